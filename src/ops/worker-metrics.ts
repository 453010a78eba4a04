// The worker's half of the metrics: counts every answer, and puts the report of the last second together. It exists only
// where OPS_PORT is on. It allocates nothing for a request, and labels with no text that a client made up.
import { createLoopDelay, type LoopDelay } from './loop-delay.ts';
import type { Quarantined, WorkerReport } from './report.ts';
import { createRequestCounts } from './request-counts.ts';

/** What is read of an exchange. */
export interface Answered {
  /** The group that served; '' when none did. */
  readonly group: string;
  /** A client's text, unless an operation was found for it. */
  readonly page: string;
  /** '' when no operation was found. */
  readonly operation: string;
  readonly verb: string;
}

/** What is asked of the parts of a worker, once a second. */
export interface ReportedParts {
  readonly app: { inFlight(): number };
  readonly credentials: {
    status(): {
      readonly rows: number;
      readonly quarantined: readonly Quarantined[];
      readonly reloads: number;
      readonly reloadFailures: number;
      readonly lastFailure?: string;
    };
  };
  readonly identity: {
    status(): {
      readonly providers: readonly string[];
      readonly refusedRows: number;
      readonly keyFetches: number;
      readonly keyFailures: number;
    };
  };
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
  /** From the first report on, when the folder is loaded: importing blocks the event loop, and nobody waits for it yet. */
  let delay: LoopDelay | undefined;
  const since = createDifferences();
  /** Group → as a URL has it. */
  const pages = new Map<string, string>();

  /** A page that no group serves may be any text; of the explicit rows it is one of the table. */
  function pageOf({ group, page, operation }: Answered): string {
    if (group === '') return operation === '' ? '' : page;
    const known = pages.get(group) ?? group.charAt(0).toLowerCase() + group.slice(1);
    pages.set(group, known);
    return known;
  }

  return {
    observer: {
      answered(answered, status, bytes, duration) {
        requests.count(requests.of(pageOf(answered), answered.operation), answered.verb, status, bytes, duration);
      },
    },
    take({ app, credentials, identity, logWriter }) {
      delay ??= createLoopDelay();
      const table = credentials.status();
      const providers = identity.status();
      const { user, system } = process.cpuUsage();
      return {
        requests: requests.take(),
        ...delay.take(),
        cpuSeconds: since('cpu', user + system) / 1e6,
        credentialReloads: since('reloads', table.reloads),
        credentialReloadFailures: since('reload failures', table.reloadFailures),
        keyFetches: since('key fetches', providers.keyFetches),
        keyFailures: since('key failures', providers.keyFailures),
        logLinesDropped: since('log lines dropped', logWriter.droppedLines()),
        inFlight: app.inFlight(),
        memoryBytes: process.memoryUsage.rss(),
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
