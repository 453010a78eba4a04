// The entry of every process of the service, supervisor or worker: settings in, the right one of the two out. It only
// wires; a process loads no more than its own half, because the memory of both is paid by everyone who runs this.
import cluster from 'node:cluster';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseSettings, type Settings, SettingsError } from './config.ts';
import { createLog } from './log.ts';
import { createLogWriter } from './log-writer.ts';

const args = process.argv.slice(2);
const settings = readSettings();
if (settings !== undefined) await run(settings);

async function run(settings: Settings): Promise<void> {
  const writer = createLogWriter(2);
  const log = createLog({ level: settings.logLevel, sink: writer });
  const flush = () => writer.close();
  if (cluster.isPrimary) {
    const { serve } = await import('./cluster/serve.ts');
    await serve({ settings, exec: fileURLToPath(import.meta.url), args, log, flush });
  } else {
    const { runWorker } = await import('./cluster/worker.ts');
    const { createWorkerParts } = await import('./worker-parts.ts');
    await runWorker({
      createParts: (events) => createWorkerParts({ settings, log, sink: writer, ...events }),
      log,
      flush,
      drainTimeout: settings.drainTimeout,
    });
  }
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
