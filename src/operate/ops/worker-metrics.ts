// The worker's half of the metrics, with OPS_PORT only. Counting allocates no memory, and no label is a client's text.
import { processChannels } from '../../base/channel-hub.ts';
import { descriptorLimit, openDescriptors } from '../../base/descriptors.ts';
import { servingPage } from '../../base/group-name.ts';
import { readHeap } from '../../base/heap.ts';
import type { Credentials } from '../../callers/credentials/credentials.ts';
import type { Identity } from '../../callers/identity/handler.ts';
import type { RateLimiter } from '../../callers/rates/rate-limiter.ts';
import type { App } from '../../request/app.ts';
import type { Exchange } from '../../request/exchange.ts';
import { createLoopDelay, type LoopDelay } from './loop-delay.ts';
import { createMemoryReader } from './memory.ts';
import { createRequestCounts } from './request-counts.ts';

export type AnsweredExchange = Pick<Exchange, 'group' | 'groupInUrl' | 'operation' | 'verb'> & {
  readonly caller: Pick<Exchange['caller'], 'row' | 'credentialId'>;
  readonly answer?: Pick<Exchange['answer'], 'isClientFault'>;
};

export interface ReportedParts {
  readonly app: Pick<App, 'inFlight' | 'refusedConnections'>;
  readonly credentials: Pick<Credentials, 'status'>;
  readonly identity: Pick<Identity, 'status'>;
  readonly limiter: Pick<RateLimiter, 'status'>;
  readonly logWriter: { droppedLines(): number };
  readonly tracing?: { status(): { readonly exported: number; readonly dropped: number } } | undefined;
}

export type WorkerMetrics = ReturnType<typeof createWorkerMetrics>;
/** A report to the supervisor once a second. The supervisor adds the counts up, also those of a worker that ends. */
export type WorkerReport = Readonly<ReturnType<WorkerMetrics['takeReport']>>;

/** Maximum number of quarantined (invalid) rows that a report names. The log names all of them. */
const MAX_NAMED_ROWS = 20;

export function createWorkerMetrics() {
  const requests = createRequestCounts();
  /** Created for the first report, so that the load of the controllers, when no request waits, is not measured. */
  let loopDelay: LoopDelay | undefined;
  const growthOf = createGrowthCounter();
  const memoryBytes = createMemoryReader();
  const maxDescriptors = descriptorLimit() ?? 0;

  return {
    observer: {
      /** Counts an answer. The unit of `duration` is milliseconds. */
      answered(exchange: AnsweredExchange, status: number, bytes: number, duration: number, route = ''): void {
        const counts = requests.countsFor(servingPage(exchange), exchange.operation, route);
        requests.count(counts, exchange.verb, status, bytes, duration, exchange.answer?.isClientFault);
        const { row, credentialId } = exchange.caller;
        if (row !== undefined) requests.countCredential(credentialId);
      },
    },
    /** Builds a report. Its counts cover the time since the last report. */
    takeReport({ app, credentials, identity, limiter, logWriter, tracing }: ReportedParts) {
      loopDelay ??= createLoopDelay();
      const credentialsStatus = credentials.status();
      const providers = identity.status();
      const { refused, callers } = limiter.status();
      const { user, system } = process.cpuUsage();
      const heap = readHeap();
      const { counts: channels } = processChannels();
      const spans = tracing?.status() ?? { exported: 0, dropped: 0 };
      return {
        requestsByOperation: requests.takeOperations(),
        requestsByCredential: requests.takeCredentials(),
        ...loopDelay.take(),
        rateLimited: growthOf({ ...refused }),
        ...growthOf({ cpuSeconds: (user + system) / 1e6 }),
        /** The supervisor adds each of them to its total. */
        counters: growthOf({
          credentialReloads: credentialsStatus.reloads,
          credentialReloadFailures: credentialsStatus.reloadFailures,
          identityKeyFetches: providers.keyFetches,
          identityKeyFailures: providers.keyFailures,
          logLinesDropped: logWriter.droppedLines(),
          spansExported: spans.exported,
          spansDropped: spans.dropped,
          connectionsRefused: app.refusedConnections(),
          channelDelivered: channels.delivered,
          channelTooSlow: channels.tooSlow,
        }),
        // The fields below are the state now.
        inFlight: app.inFlight(),
        rateLimitCallers: callers,
        memoryBytes: memoryBytes(),
        heapUsed: heap.used,
        heapLimit: heap.limit,
        openDescriptors: openDescriptors(),
        /** 0 when there is no limit, or none is known. */
        maxDescriptors,
        credentialRows: credentialsStatus.rows,
        quarantinedRows: credentialsStatus.quarantined.length,
        quarantineReasons: credentialsStatus.quarantined
          .slice(0, MAX_NAMED_ROWS)
          .map(({ name, reason }) => ({ name, reason })),
        /** The reason why the worker still uses an older credentials table; '' when its table is the latest. */
        credentialsFailure: credentialsStatus.lastFailure ?? '',
        providers: providers.providers.length,
        refusedProviderRows: providers.refusedRows,
      };
    },
    close: () => loopDelay?.close(),
  };
}

/** @returns a function that returns how much each of the counts has grown since the last call with its name */
function createGrowthCounter(): <Name extends string>(counts: Record<Name, number>) => Record<Name, number> {
  const lastValues: Record<string, number> = {};
  return (counts) => {
    const growth = { ...counts };
    for (const name in counts) growth[name] = Math.max(0, counts[name] - (lastValues[name] ?? 0));
    Object.assign(lastValues, counts);
    return growth;
  };
}
