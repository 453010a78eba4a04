// The entry of a worker process, which the supervisor starts. It only connects worker/life.ts and worker/parts.ts. The
// imports are static where each worker needs them, because a later import would delay its first answer.
import cluster from 'node:cluster';
import { mostConnections } from './base/descriptors.ts';
import { rawRefusal } from './base/envelope.ts';
import { refusal } from './base/errors.ts';
import { keepTickShape } from './base/node-internals.ts';
import { type ProcessBasics, readProcessBasics } from './base/process.ts';
import { isSecure, type Settings } from './base/settings.ts';
import { prepareTypeScript } from './groups/module-loader.ts';
import { listControllers } from './groups/naming.ts';
import { RAW_REFUSAL_HEADERS } from './http/headers.ts';
import { createRequestIds } from './http/request-id.ts';
import type { TlsServer } from './https/serve/tls-server.ts';
import type { WorkerMetrics } from './ops/worker-metrics.ts';
import { runWorker } from './worker/life.ts';
import { createWorkerParts } from './worker/parts.ts';

keepTickShape();
const basics = cluster.isWorker ? readProcessBasics() : refuseDirectStart();
if (basics !== undefined) await run(basics);

async function run({ settings, log, sink, flush }: ProcessBasics): Promise<void> {
  const transport = await createTransport(settings);
  return runWorker({
    async createParts(events) {
      const metrics = await createMetrics(settings.opsPort);
      const bounded = { ...settings, maxConnections: mostConnections(settings.maxConnections) };
      const parts = await createWorkerParts({
        settings: bounded,
        log,
        sink,
        observer: metrics?.observer,
        transport,
        ...events,
      });
      return metrics === undefined
        ? parts
        : { ...parts, takeMetrics: () => metrics.takeReport({ ...parts, logWriter: sink }) };
    },
    prepare: () => prepareFor(settings.controllersDir),
    onSecure: (state) => transport?.use(state),
    log,
    flush,
    drainTimeout: settings.drainTimeout,
  });
}

/** Prepares the TypeScript loader before the worker has to load. A worker in reserve has the time for it. */
async function prepareFor(dir: string): Promise<void> {
  try {
    if ([...listControllers(dir).values()].some((file) => file.endsWith('.ts'))) await prepareTypeScript();
  } catch {
    // The folder is missing, or `tsx` is broken. The load reports the same error.
  }
}

/** @returns undefined for HTTP without TLS */
async function createTransport(settings: Settings): Promise<TlsServer | undefined> {
  if (!isSecure(settings)) return undefined;
  const { createTlsServer } = await import('./https/serve/tls-server.ts');
  const requestIds = createRequestIds();
  const plainRefusal = () => rawRefusal(refusal('HTTPS_REQUIRED'), requestIds.of(undefined), RAW_REFUSAL_HEADERS);
  const { headersTimeout: handshakeTimeout, maxConnections } = settings;
  return createTlsServer({ handshakeTimeout, maxConnections, plainRefusal });
}

/** @returns undefined when there is no operations port, because nothing else reads the metrics */
async function createMetrics(opsPort: number | undefined): Promise<WorkerMetrics | undefined> {
  if (opsPort === undefined) return undefined;
  const { createWorkerMetrics } = await import('./ops/worker-metrics.ts');
  return createWorkerMetrics();
}

function refuseDirectStart(): undefined {
  process.stderr.write('gatefold: run server.js, which starts the workers\n');
  process.exitCode = 1;
}
