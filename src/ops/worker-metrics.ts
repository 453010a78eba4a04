// The worker's half of the metrics: counts every answer, and puts the report of the last second together. It exists only
// where OPS_PORT is on. It allocates nothing for a request, and labels with no text that a client made up.
import { createLoopDelay, type LoopDelay } from './loop-delay.ts';
import type { Quarantined, WorkerReport } from './report.ts';
import { createRequestCounts } from './request-counts.ts';

/** What is read of an exchange. */
export interface Answered {
  /** A client's text, unless an operation was found for it. */
  readonly page: string;
  /** '' when no operation was found. */
  readonly operation: string;
  readonly verb: string;
  /** Of the credential in SDK mode. */
  readonly application: object | undefined;
}

/** What is asked of the parts of a worker, once a second. */
export interface ReportedParts {
  readonly app: { inFlight(): number };
  readonly groups: { names(): readonly string[] };
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
}

export interface WorkerMetrics {
  readonly observer: { answered(exchange: Answered, status: number, bytes: number, duration: number): void };
  /** What has happened since the last time. */
  take(parts: ReportedParts): WorkerReport;
  close(): void;
}

/** As the page of what an application credential asked: the URL's page is a client's text then, its group another. */
export const APPLICATION = '(application)';
/** In a report; the log names the others. */
const MOST_NAMED = 20;

export function createWorkerMetrics(): WorkerMetrics {
  const requests = createRequestCounts();
  /** From the first report on, when the folder is loaded: importing blocks the event loop, and nobody waits for it yet. */
  let delay: LoopDelay | undefined;
  const since = createDifferences();
  /** Spellings of the groups that serve, of no more than a second ago. */
  let known: ReadonlySet<string> = new Set();

  /** A page of which no operation was found may be any text; it is a label only when a group serves it. */
  function pageOf(page: string, operation: string): string {
    if (operation === '' && !known.has(page)) return '';
    const first = page.charCodeAt(0);
    // `/api/Test` is `/api/test`: one label for both.
    return first >= 0x41 && first <= 0x5a ? lowerFirst(page) : page;
  }

  return {
    observer: {
      answered({ page, operation, verb, application }, status, bytes, duration) {
        const counts = requests.of(application === undefined ? pageOf(page, operation) : APPLICATION, operation);
        requests.count(counts, verb, status, bytes, duration);
      },
    },
    take({ app, groups, credentials, identity }) {
      delay ??= createLoopDelay();
      known = new Set(groups.names().flatMap((name) => [name, lowerFirst(name)]));
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

function lowerFirst(name: string): string {
  return name.charAt(0).toLowerCase() + name.slice(1);
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
