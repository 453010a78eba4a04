// Relays the output of the workers. Otherwise the workers would share an output socket with the supervisor: the socket
// of the journal, or a pipe of Node, which is a socket, too. A process that shares a socket can make the writes of all
// others wait (base/log-writer.ts).
import cluster from 'node:cluster';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LogWriter } from '../../base/log-writer.ts';

export interface WorkerOutput {
  /** Resolves when all output of the workers is relayed and they have ended, after 200 ms at the latest. */
  drained(): Promise<void>;
}

/** Maximum length of an unfinished line, in UTF-16 code units. A longer line is relayed in parts. */
const MAX_LINE_LENGTH = 65_536;
/** Maximum bytes that wait for a slow reader of standard output. Further output is dropped. */
const MAX_WAITING_BYTES = 1024 * 1024;
/** Milliseconds to wait for output at the end. A process that a controller started can hold the output open. */
const MAX_END_WAIT = 200;

/** Makes workers write to this process. Call it before the first fork. */
export function relayOutput({ pass }: Pick<LogWriter, 'pass'>): WorkerOutput {
  const open = new Set<Readable>();
  cluster.setupPrimary({ stdio: ['inherit', 'pipe', 'pipe', 'ipc'] });
  cluster.on('fork', ({ process: { stdout, stderr } }) => {
    relay(stdout, print);
    relay(stderr, pass);
  });

  /** Relays whole lines, because the lines of several workers go to one place. */
  function relay(stream: Readable | null | undefined, write: (lines: string) => void): void {
    // A worker that the system refused to start has no streams.
    if (!stream) return;
    let rest = '';
    open.add(stream);
    stream.setEncoding('utf8').on('data', (text: string) => {
      rest += text;
      const length = rest.length > MAX_LINE_LENGTH ? rest.length : rest.lastIndexOf('\n') + 1;
      if (length > 0) write(rest.slice(0, length));
      rest = rest.slice(length);
    });
    stream.on('error', () => {});
    stream.on('close', () => {
      open.delete(stream);
      if (rest !== '') write(`${rest}\n`);
    });
  }

  return {
    async drained() {
      const deadline = performance.now() + MAX_END_WAIT;
      while (open.size > 0 && performance.now() < deadline) await sleep(5);
    },
  };
}

function print(lines: string): void {
  if (process.stdout.writableLength < MAX_WAITING_BYTES) process.stdout.write(lines);
}
