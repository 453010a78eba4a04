// Passes on what workers log and print, where they would otherwise share a socket with the supervisor: the journal's,
// or the one that Node calls a pipe. Each process that shares a socket can make the writes of all others wait
// (base/log-writer.ts).
import cluster from 'node:cluster';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LogWriter } from '../../base/log-writer.ts';

export interface WorkerOutput {
  /** Resolves when everything is passed on that workers wrote before they ended. */
  drained(): Promise<void>;
}

/** UTF-16 units of a line that has no end yet; what is longer is passed on in parts. */
const LONGEST_LINE = 65_536;
/** Bytes that are held for a reader of standard output. Output beyond that is dropped. */
const MAX_HELD = 1024 * 1024;
/** Milliseconds that the end of the service waits: a process that a controller started may hold the output open. */
const GRACE = 200;

/** Makes workers write to this process; called before the first one is forked. */
export function relayOutput({ pass }: Pick<LogWriter, 'pass'>): WorkerOutput {
  const open = new Set<Readable>();
  cluster.setupPrimary({ stdio: ['inherit', 'pipe', 'pipe', 'ipc'] });
  cluster.on('fork', ({ process: { stdout, stderr } }) => {
    follow(stdout, print);
    follow(stderr, pass);
  });

  /** Passes on whole lines, because the lines of several workers go to one place. */
  function follow(stream: Readable | null | undefined, write: (lines: string) => void): void {
    // The system refused to start this worker.
    if (!stream) return;
    let rest = '';
    open.add(stream);
    stream.setEncoding('utf8').on('data', (text: string) => {
      rest += text;
      const end = rest.length > LONGEST_LINE ? rest.length : rest.lastIndexOf('\n') + 1;
      if (end > 0) write(rest.slice(0, end));
      rest = rest.slice(end);
    });
    stream.on('error', () => {});
    stream.on('close', () => {
      open.delete(stream);
      if (rest !== '') write(`${rest}\n`);
    });
  }

  return {
    async drained() {
      for (const end = performance.now() + GRACE; open.size > 0 && performance.now() < end; ) await sleep(5);
    },
  };
}

function print(lines: string): void {
  if (process.stdout.writableLength < MAX_HELD) process.stdout.write(lines);
}
