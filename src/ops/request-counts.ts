// Requests by page, operation, verb and status, with durations and bytes, and by credential: the same table in a
// worker, which counts, and in the supervisor, which adds up. Bounded, whatever clients send; the caller decides which
// names are real.
import {
  addPiece,
  countOf,
  createHistogram,
  type Histogram,
  type HistogramPiece,
  observe,
  takePiece,
} from './histogram.ts';

/** Seconds. A hit takes a fraction of a millisecond; OPERATION_TIMEOUT is 30 s unless set otherwise. */
export const DURATION_BOUNDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Stands for all that has no label value of its own. No group, operation, verb or status has parentheses. */
export const OTHER = '(other)';
const VERBS: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', OTHER];
const VERB_NUMBERS: ReadonlyMap<string, number> = new Map(VERBS.map((verb, i) => [verb, i]));
const OTHER_VERB = VERBS.length - 1;
/** As the status: what found no room among the kept combinations of verb and status. */
const NO_STATUS = 0;

/** Pairs of page and operation; a service with more operations than this sees the last ones as one. */
export const MOST_OPERATIONS = 500;
/** Combinations of page, operation, verb and status: a controller may answer with any status it likes. */
export const MOST_CELLS = 5000;
/** Application credentials; a service with more of them sees the last ones as one. */
export const MOST_CREDENTIALS = 1000;

export interface OperationCounts {
  readonly page: string;
  readonly operation: string;
  bytes: number;
  readonly seconds: Histogram;
  /** Verb, status and whose doing it is as one number (a number as a key costs no string) → requests. */
  readonly cells: Map<number, number>;
}

/** What one operation was asked since the last piece. */
export interface OperationPiece {
  readonly page: string;
  readonly operation: string;
  readonly bytes: number;
  readonly seconds: HistogramPiece;
  readonly cells: readonly (readonly [cell: number, requests: number])[];
}

/** The id of a credential, and its requests. */
export type CredentialPiece = readonly [id: string, requests: number];

export interface RequestCounts {
  /** The counts of an operation; beyond the cap, those that all others share. */
  of(page: string, operation: string): OperationCounts;
  /** @param duration milliseconds */
  count(
    counts: OperationCounts,
    verb: string,
    status: number,
    bytes: number,
    duration: number,
    isClientsDoing?: boolean,
  ): void;
  /** For a request with an application credential; `id` is that of a row, never a text of the client. */
  countCredential(id: string, requests?: number): void;
  all(): Iterable<OperationCounts>;
  credentials(): Iterable<CredentialPiece>;
  /** Takes out what has been counted; what was asked nothing is not among it. */
  take(): OperationPiece[];
  takeCredentials(): CredentialPiece[];
  add(piece: OperationPiece): void;
}

export function createRequestCounts(): RequestCounts {
  const pages = new Map<string, Map<string, OperationCounts>>();
  const credentials = new Map<string, number>();
  let operations = 0;
  let cells = 0;

  function of(page: string, operation: string): OperationCounts {
    return pages.get(page)?.get(operation) ?? make(page, operation);
  }

  function make(page: string, operation: string): OperationCounts {
    if (operations >= MOST_OPERATIONS && page !== OTHER) return of(OTHER, OTHER);
    operations++;
    const made: OperationCounts = {
      page,
      operation,
      bytes: 0,
      seconds: createHistogram(DURATION_BOUNDS),
      cells: new Map(),
    };
    const known = pages.get(page);
    if (known === undefined) pages.set(page, new Map([[operation, made]]));
    else known.set(operation, made);
    return made;
  }

  function addTo(counts: OperationCounts, cell: number, requests: number): void {
    const before = counts.cells.get(cell);
    if (before !== undefined) counts.cells.set(cell, before + requests);
    else if (cells < MOST_CELLS || cell === cellOf(OTHER_VERB, NO_STATUS)) {
      cells++;
      counts.cells.set(cell, requests);
    } else addTo(counts, cellOf(OTHER_VERB, NO_STATUS), requests);
  }

  function* all(): Generator<OperationCounts> {
    for (const operations of pages.values()) yield* operations.values();
  }

  return {
    of,
    count(counts, verb, status, bytes, duration, isClientsDoing = false) {
      addTo(counts, cellOf(VERB_NUMBERS.get(verb) ?? OTHER_VERB, status, isClientsDoing), 1);
      counts.bytes += bytes;
      observe(counts.seconds, duration / 1000);
    },
    countCredential(id, requests = 1) {
      const key = credentials.has(id) || credentials.size < MOST_CREDENTIALS ? id : OTHER;
      credentials.set(key, (credentials.get(key) ?? 0) + requests);
    },
    all,
    credentials: () => credentials,
    take: () => Array.from(all()).flatMap((counts) => (countOf(counts.seconds) === 0 ? [] : [takeOperation(counts)])),
    takeCredentials() {
      const taken = Array.from(credentials).filter(([, requests]) => requests > 0);
      for (const [id] of taken) credentials.set(id, 0);
      return taken;
    },
    add(piece) {
      const counts = of(piece.page, piece.operation);
      counts.bytes += piece.bytes;
      addPiece(counts.seconds, piece.seconds);
      for (const [cell, requests] of piece.cells) addTo(counts, cell, requests);
    },
  };
}

function takeOperation(counts: OperationCounts): OperationPiece {
  const { page, operation, bytes } = counts;
  const cells = Array.from(counts.cells).filter(([, requests]) => requests > 0);
  // The keys stay: the next request of the kind finds its cell.
  for (const [cell] of cells) counts.cells.set(cell, 0);
  counts.bytes = 0;
  return { page, operation, bytes, seconds: takePiece(counts.seconds), cells };
}

function cellOf(verb: number, status: number, isClientsDoing = false): number {
  return verb * VERB_STEP + (isClientsDoing ? CLIENTS_DOING : 0) + status;
}

const CLIENTS_DOING = 1000;
const VERB_STEP = 2000;

/** What the number of a cell stands for, as label values. */
export function describeCell(cell: number): { verb: string; status: string; fault: string } {
  const status = cell % 1000;
  const fault = cell % VERB_STEP >= CLIENTS_DOING ? 'client' : '';
  return {
    verb: VERBS[Math.floor(cell / VERB_STEP)] ?? OTHER,
    status: status === NO_STATUS ? OTHER : String(status),
    fault,
  };
}
