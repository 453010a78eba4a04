// The worker's half of the metrics: counts every answer and makes the report of each second. It exists only while
// OPS_PORT is set. It allocates nothing for a request, and no label is a text that a client made up.
import { servingPage } from '../base/page-name.ts';
import type { Credentials } from '../credentials/credentials.ts';
import type { App } from '../http/app.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Identity } from '../identity/handler.ts';
import type { RateLimiter } from '../limits/rate-limiter.ts';
import { createLoopDelay, type LoopDelay } from './loop-delay.ts';
import { createMemoryReader } from './memory.ts';
import type { WorkerReport } from './report.ts';
import { createRequestCounts } from './request-counts.ts';

/** What is read of an exchange. */
export type Answered = Pick<Exchange, 'group' | 'page' | 'operation' | 'verb' | 'caller' | 'credential'> &
  Partial<Pick<Exchange, 'isClientsDoing'>>;

/** What is asked of the parts of a worker, once a second. */
export interface ReportedParts {
  readonly app: Pick<App, 'inFlight'>;
  readonly credentials: Pick<Credentials, 'status'>;
  readonly identity: Pick<Identity, 'status'>;
  readonly limiter: Pick<RateLimiter, 'status'>;
  readonly logWriter: { droppedLines(): number };
}

export interface WorkerMetrics {
  readonly observer: { answered(exchange: Answered, status: number, bytes: number, duration: number): void };
  /** What has happened since the last time. */
  take(parts: ReportedParts): WorkerReport;
  close(): void;
}

/** In a report; the log names the others. */
const MOST_NAMED = 20;

export function createWorkerMetrics(): WorkerMetrics {
  const requests = createRequestCounts();
  /**
   * From the first report on, when the folder is loaded: importing blocks the event loop, and nobody waits for it yet.
   */
  let delay: LoopDelay | undefined;
  const since = createDifferences();
  const memoryBytes = createMemoryReader();

  return {
    observer: {
      answered(answered, status, bytes, duration) {
        const counts = requests.of(servingPage(answered), answered.operation);
        requests.count(counts, answered.verb, status, bytes, duration, answered.isClientsDoing);
        if (answered.caller !== undefined) requests.countCredential(answered.credential);
      },
    },
    take({ app, credentials, identity, limiter, logWriter }) {
      delay ??= createLoopDelay();
      const table = credentials.status();
      const providers = identity.status();
      const { refused, callers } = limiter.status();
      const { user, system } = process.cpuUsage();
      return {
        requests: requests.take(),
        credentials: requests.takeCredentials(),
        ...delay.take(),
        cpuSeconds: since('cpu', user + system) / 1e6,
        credentialReloads: since('reloads', table.reloads),
        credentialReloadFailures: since('reload failures', table.reloadFailures),
        keyFetches: since('key fetches', providers.keyFetches),
        keyFailures: since('key failures', providers.keyFailures),
        rateLimited: {
          credential: since('limited by credential', refused.credential),
          address: since('limited by address', refused.address),
          operation: since('limited by operation', refused.operation),
        },
        logLinesDropped: since('log lines dropped', logWriter.droppedLines()),
        inFlight: app.inFlight(),
        limitedCallers: callers,
        memoryBytes: memoryBytes(),
        credentialRows: table.rows,
        quarantinedRows: table.quarantined.length,
        quarantined: table.quarantined.slice(0, MOST_NAMED).map(({ name, reason }) => ({ name, reason })),
        credentialsFailure: table.lastFailure ?? '',
        providers: providers.providers.length,
        refusedProviders: providers.refusedRows,
      };
    },
    close: () => delay?.close(),
  };
}

/** By how much a count of somebody else has grown since it was asked for last. */
function createDifferences(): (name: string, value: number) => number {
  const last = new Map<string, number>();
  return (name, value) => {
    const difference = value - (last.get(name) ?? 0);
    last.set(name, value);
    return Math.max(0, difference);
  };
}
