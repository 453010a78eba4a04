// The entry of the service, and the supervisor's process. It only wires. A worker's entry is worker.ts: a process loads no
// more than its own half, because the memory of both is paid by everyone who runs this.

import { type ProcessBasics, readProcessBasics } from './base/process.ts';
import type { Operations } from './ops/server.ts';
import { entryPath } from './own-files.ts';
import { forkEarly } from './supervisor/prefork.ts';

const basics = readProcessBasics();
if (basics !== undefined) await run(basics);

async function run(basics: ProcessBasics): Promise<void> {
  const { settings, log, flush } = basics;
  const early = forkEarly(entryPath('worker'), process.argv.slice(2), settings.workers);
  const { serve } = await import('./supervisor/serve.ts');
  const operations = await createOperations(basics);
  await serve({ settings, early, log, flush, operations });
}

async function createOperations({ settings, log, sink }: ProcessBasics): Promise<Operations | undefined> {
  const { opsPort, opsHost, workers } = settings;
  if (opsPort === undefined) return undefined;
  const { createOperations } = await import('./ops/server.ts');
  return createOperations({ port: opsPort, host: opsHost, workers, log, droppedLines: sink.droppedLines });
}
