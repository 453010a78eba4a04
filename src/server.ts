// The entry of every process of the service, supervisor or worker: settings in, the right one of the two out. It only
// wires; a process loads no more than its own half, because the memory of both is paid by everyone who runs this.
import cluster from 'node:cluster';
import { availableParallelism } from 'node:os';
import { forkEarly } from './cluster/early-workers.ts';
import { keepTickShape } from './cluster/tick-shape.ts';
import { parseSettings, type Settings, SettingsError } from './config.ts';
import { createLog, type Log } from './log.ts';
import { createLogWriter } from './log-writer.ts';
import type { Operations } from './ops/operations.ts';
import type { WorkerMetrics } from './ops/worker-metrics.ts';
import { entryPath } from './own-files.ts';

const args = process.argv.slice(2);
const settings = readSettings();
if (settings !== undefined) await run(settings);

async function run(settings: Settings): Promise<void> {
  const writer = createLogWriter(2);
  const log = createLog({ level: settings.logLevel, sink: writer });
  const flush = () => writer.close();
  if (cluster.isPrimary) {
    const early = forkEarly(entryPath('server'), args, settings.workers);
    const { serve } = await import('./cluster/serve.ts');
    const operations = await createOperations(settings, log);
    await serve({ settings, early, log, flush, operations });
  } else {
    keepTickShape();
    const { runWorker } = await import('./cluster/worker.ts');
    const { createWorkerParts } = await import('./worker-parts.ts');
    await runWorker({
      async createParts(events) {
        const metrics = await createMetrics(settings);
        const parts = createWorkerParts({ settings, log, sink: writer, observer: metrics?.observer, ...events });
        return metrics === undefined ? parts : { ...parts, takeMetrics: () => metrics.take(parts) };
      },
      log,
      flush,
      drainTimeout: settings.drainTimeout,
    });
  }
}

async function createOperations({ opsPort, opsHost, workers }: Settings, log: Log): Promise<Operations | undefined> {
  if (opsPort === undefined) return undefined;
  const { createOperations } = await import('./ops/operations.ts');
  return createOperations({ port: opsPort, host: opsHost, workers, log });
}

async function createMetrics({ opsPort }: Settings): Promise<WorkerMetrics | undefined> {
  if (opsPort === undefined) return undefined;
  const { createWorkerMetrics } = await import('./ops/worker-metrics.ts');
  return createWorkerMetrics();
}

function readSettings(): Settings | undefined {
  try {
    return parseSettings(process.env, args, { cores: availableParallelism() });
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    process.stderr.write(`gatefold: ${error.message}\n`);
    process.exitCode = 1;
    return undefined;
  }
}
