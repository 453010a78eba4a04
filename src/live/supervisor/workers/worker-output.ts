// Relays the output of the workers through the supervisor. Otherwise all processes would write to one socket: that of
// the journal, or a pipe of Node (a socket, too). Each could make the writes of all wait (base/log-writer.ts).
import cluster from 'node:cluster';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LogWriter } from '../../../base/log-writer.ts';

export type WorkerOutput = ReturnType<typeof relayOutput>;

/** Maximum length of an unfinished line, in UTF-16 code units. A longer line is relayed in parts. */
const MAX_LINE_LENGTH = 65_536;
/** Maximum bytes that wait for a slow reader of standard output. Further output is dropped. */
const MAX_WAITING_BYTES = 1024 * 1024;
/** Maximum milliseconds to wait for the last output. A process that a controller started can hold the output open. */
const MAX_END_WAIT = 200;

/** Makes workers write to this process. Call it before the first fork. @param log receives their standard error */
export function relayOutput(log: Pick<LogWriter, 'pass'>) {
  const openStreams = new Set<Readable>();
  cluster.setupPrimary({ stdio: ['inherit', 'pipe', 'pipe', 'ipc'] });
  cluster.on('fork', ({ process: { stdout, stderr } }) => {
    relay(stdout, print);
    relay(stderr, log.pass);
  });

  /** Relays whole lines, because the lines of several workers go to one place. */
  function relay(stream: Readable | null | undefined, write: (lines: string) => void): void {
    // A worker that the system refused to start has no streams.
    if (!stream) return;
    let unfinishedLine = '';
    openStreams.add(stream);
    stream.setEncoding('utf8').on('data', (text: string) => {
      const lines = unfinishedLine + text;
      const end = lines.length > MAX_LINE_LENGTH ? lines.length : lines.lastIndexOf('\n') + 1;
      if (end > 0) write(lines.slice(0, end));
      unfinishedLine = lines.slice(end);
    });
    stream.on('error', () => {});
    stream.on('close', () => {
      openStreams.delete(stream);
      if (unfinishedLine !== '') write(`${unfinishedLine}\n`);
    });
  }

  return {
    /** Resolves when the workers have closed their output and all of it is relayed, or after 200 ms at the latest. */
    async drained(): Promise<void> {
      const deadline = performance.now() + MAX_END_WAIT;
      while (openStreams.size > 0 && performance.now() < deadline) await sleep(5);
    },
  };
}

function print(lines: string): void {
  if (process.stdout.writableLength < MAX_WAITING_BYTES) process.stdout.write(lines);
}
