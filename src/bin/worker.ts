// The entry of a worker process only connects live/worker/life.ts and live/worker/parts.ts. Modules that every worker
// needs are imported at the top, because a later import would delay the first answer.
import cluster from 'node:cluster';
import { maxConnections, maxDescriptor } from '../base/descriptors.ts';
import { readHeap } from '../base/heap.ts';
import { asksForInspector, watchInspector } from '../base/inspector.ts';
import type { Log } from '../base/log.ts';
import { keepTickShape } from '../base/node-internals.ts';
import { type ProcessBasics, readProcessBasics } from '../base/process.ts';
import { isSecure, type Settings } from '../base/settings.ts';
import { asksForTraces } from '../base/trace-switch.ts';
import { createNoteWriter } from '../base/worker-note.ts';
import type { SharedTable } from '../callers/credentials/credentials.ts';
import { readServiceInfo } from '../documents/service-info.ts';
import { prepareLoad } from '../live/load/file-loader.ts';
import { runWorker } from '../live/worker/life.ts';
import { createWorkerParts } from '../live/worker/parts.ts';
import type { TlsServer } from '../operate/https/serve/tls-server.ts';
import type { WorkerMetrics } from '../operate/ops/worker-metrics.ts';
import { version } from '../own-files.ts';
import type { App } from '../request/app.ts';

const HEAP_NOTE_INTERVAL_MS = 250;

keepTickShape();
const note = createNoteWriter();
const basics = cluster.isWorker ? readProcessBasics() : refuseDirectStart();
if (basics !== undefined) await run(basics);

async function run({ settings, log, sink }: ProcessBasics): Promise<void> {
  if (settings.development || asksForInspector([...process.execArgv, ...process.argv])) await watchInspector();
  let app: App | undefined;
  const noteHeap = () => note?.heap(readHeap());
  noteHeap();
  if (note !== undefined) setInterval(noteHeap, HEAP_NOTE_INTERVAL_MS).unref();
  const transport = await createTransport(settings, () => app?.rawRefusal('HTTPS_REQUIRED') ?? '');
  return runWorker({
    async createParts(events) {
      const metrics = await createMetrics(settings.opsPort);
      const tracing = await createTracing(settings, log);
      const parts = await createWorkerParts({
        ...{ settings, log, sink, transport, maxDescriptor: maxDescriptor() },
        ...{ observer: metrics?.observer, noteBegin: note?.begin },
        shared: await createStoreTable(settings),
        ...events,
      });
      ({ app } = parts);
      return {
        ...parts,
        ...(tracing && { finish: tracing.close }),
        ...(metrics && { takeMetrics: () => metrics.takeReport({ ...parts, tracing, logWriter: sink }) }),
      };
    },
    // An error is ignored here, because loading the controllers fails with the same error, and reports it.
    prepare: () => prepareLoad(settings.controllersDir).catch(() => {}),
    onSecure: (state) => transport?.use(state),
    log,
    flush: sink.close,
    drainTimeout: settings.drainTimeout,
  });
}

/** @param plainRefusal returns the answer to a client that sends HTTP without TLS to the port of HTTPS */
async function createTransport(settings: Settings, plainRefusal: () => string): Promise<TlsServer | undefined> {
  if (!isSecure(settings)) return undefined;
  const { createTlsServer } = await import('../operate/https/serve/tls-server.ts');
  const { headersTimeout: handshakeTimeout } = settings;
  return createTlsServer({
    ...{ handshakeTimeout, plainRefusal },
    maxConnections: maxConnections(settings.maxConnections),
  });
}

async function createStoreTable({ store, storeKeys }: Settings): Promise<SharedTable | undefined> {
  if (store === undefined) return undefined;
  const { createSharedTable } = await import('../operate/store/worker.ts');
  return createSharedTable({
    sharesSessionKey: storeKeys.length > 0,
    // The empty callback ignores an error of the channel: without the channel to the supervisor, a worker ends.
    send: (message) => void process.send?.(message, undefined, {}, () => {}),
    onMessage: (receive) => void process.on('message', receive),
  });
}

/** @returns undefined without OPS_PORT, because only that port shows the metrics */
async function createMetrics(opsPort: number | undefined): Promise<WorkerMetrics | undefined> {
  if (opsPort === undefined) return undefined;
  const { createWorkerMetrics } = await import('../operate/ops/worker-metrics.ts');
  return createWorkerMetrics();
}

/** @returns undefined when no variable asks for traces, or when tracing is off for another reason */
async function createTracing(settings: Settings, log: Log) {
  if (!asksForTraces(process.env)) return undefined;
  const { startTracing } = await import('../operate/trace/tracing.ts');
  const service = readServiceInfo(settings.controllersDir);
  return startTracing({ settings, env: process.env, service, gatefoldVersion: version(), log });
}

function refuseDirectStart(): undefined {
  process.stderr.write('gatefold: run server.js, which starts the workers\n');
  process.exitCode = 1;
}
