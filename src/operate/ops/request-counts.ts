// Counts requests by page, operation, verb and status (with durations and bytes), and by credential. Each worker sends
// deltas, which the supervisor adds up.
import {
  addDelta,
  createHistogram,
  type Histogram,
  type HistogramDelta,
  observe,
  takeDelta,
  totalCount,
} from './histogram.ts';

/** The upper bounds of the buckets for durations, in seconds. The last one is the default of OPERATION_TIMEOUT. */
const DURATION_BOUNDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** The label value for everything beyond the maximum numbers below. No real name has parentheses. */
export const OTHER = '(other)';
const VERBS: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', OTHER];
const VERB_NUMBERS: ReadonlyMap<string, number> = new Map(VERBS.map((verb, i) => [verb, i]));
const OTHER_VERB = VERBS.length - 1;
/** Stands for every status, in the cell that counts the requests beyond MAX_CELLS. Each operation has one such cell. */
const ANY_STATUS = 0;

/** Maximum pairs of page and operation. All further operations are counted as one. */
export const MAX_OPERATIONS = 500;
/** Maximum number of cells (see `OperationCounts`) of all operations. Each new status of a controller adds a cell. */
export const MAX_CELLS = 5000;
/** Maximum application credentials. All further credentials are counted as one. */
export const MAX_CREDENTIALS = 1000;

export interface OperationCounts {
  readonly page: string;
  readonly operation: string;
  bytes: number;
  /** In seconds. */
  readonly durations: Histogram;
  /** Key: a cell, which is a combination of verb, status and fault, as one number (`cellOf`). Value: its requests. */
  readonly cells: Map<number, number>;
}

export interface OperationDelta {
  readonly page: string;
  readonly operation: string;
  readonly bytes: number;
  readonly durations: HistogramDelta;
  readonly cells: readonly (readonly [cell: number, requests: number])[];
}

export type CredentialCount = readonly [id: string, requests: number];

export interface RequestCounts {
  /**
   * Returns the counts of an operation. All operations beyond MAX_OPERATIONS share the same counts. The names must be
   * those of an existing operation, or '' for a request that no operation served, but never any text of a client.
   */
  countsFor(page: string, operation: string): OperationCounts;
  /**
   * @param duration milliseconds
   * @param isClientFault whether the status is a 500 because the request named something unknown
   */
  count(
    counts: OperationCounts,
    verb: string,
    status: number,
    bytes: number,
    duration: number,
    isClientFault?: boolean,
  ): void;
  /** Counts requests (default: one) by credential. @param id the id of a row, never a text of the client */
  countCredential(id: string, requests?: number): void;
  operations(): Iterable<OperationCounts>;
  credentials(): Iterable<CredentialCount>;
  takeOperations(): OperationDelta[];
  takeCredentials(): CredentialCount[];
  add(delta: OperationDelta): void;
}

export function createRequestCounts(): RequestCounts {
  const pages = new Map<string, Map<string, OperationCounts>>();
  const credentials = new Map<string, number>();
  let operationCount = 0;
  let cellCount = 0;

  function countsFor(page: string, operation: string): OperationCounts {
    return pages.get(page)?.get(operation) ?? addCounts(page, operation);
  }

  function addCounts(page: string, operation: string): OperationCounts {
    if (operationCount >= MAX_OPERATIONS && page !== OTHER) return countsFor(OTHER, OTHER);
    operationCount++;
    const counts = { page, operation, bytes: 0, durations: createHistogram(DURATION_BOUNDS), cells: new Map() };
    pages.set(page, (pages.get(page) ?? new Map()).set(operation, counts));
    return counts;
  }

  function addToCell(counts: OperationCounts, cell: number, requests: number): void {
    const previousRequests = counts.cells.get(cell);
    const otherCell = cellOf(OTHER_VERB, ANY_STATUS);
    if (previousRequests !== undefined) counts.cells.set(cell, previousRequests + requests);
    else if (cellCount < MAX_CELLS || cell === otherCell) {
      cellCount++;
      counts.cells.set(cell, requests);
    } else addToCell(counts, otherCell, requests);
  }

  function* operations(): Generator<OperationCounts> {
    for (const operationsOfPage of pages.values()) yield* operationsOfPage.values();
  }

  return {
    countsFor,
    count(counts, verb, status, bytes, duration, isClientFault = false) {
      addToCell(counts, cellOf(VERB_NUMBERS.get(verb) ?? OTHER_VERB, status, isClientFault), 1);
      counts.bytes += bytes;
      observe(counts.durations, duration / 1000);
    },
    countCredential(id, requests = 1) {
      const key = credentials.has(id) || credentials.size < MAX_CREDENTIALS ? id : OTHER;
      credentials.set(key, (credentials.get(key) ?? 0) + requests);
    },
    operations,
    credentials: () => credentials,
    takeOperations: () =>
      Array.from(operations()).flatMap((counts) => (totalCount(counts.durations) === 0 ? [] : [takeOperation(counts)])),
    takeCredentials() {
      const counts = Array.from(credentials).filter(([, requests]) => requests > 0);
      for (const [id] of counts) credentials.set(id, 0);
      return counts;
    },
    add(delta) {
      const counts = countsFor(delta.page, delta.operation);
      counts.bytes += delta.bytes;
      addDelta(counts.durations, delta.durations);
      for (const [cell, requests] of delta.cells) addToCell(counts, cell, requests);
    },
  };
}

function takeOperation(counts: OperationCounts): OperationDelta {
  const { page, operation, bytes } = counts;
  const cells = Array.from(counts.cells).filter(([, requests]) => requests > 0);
  // The cells stay in the map, so that the next requests do not add them to `cellCount` again.
  for (const [cell] of cells) counts.cells.set(cell, 0);
  counts.bytes = 0;
  return { page, operation, bytes, durations: takeDelta(counts.durations), cells };
}

/**
 * Encodes verb, status and fault as one number: HEAD (verb 1), 500 and a fault of the client become 1 * 2000 + 1000 +
 * 500 = 3500. A text would need a new string for each request.
 */
function cellOf(verb: number, status: number, isClientFault = false): number {
  return verb * VERB_STEP + (isClientFault ? CLIENT_FAULT_STEP : 0) + status;
}

const CLIENT_FAULT_STEP = 1000;
const VERB_STEP = 2000;

export function describeCell(cell: number): { verb: string; status: string; fault: string } {
  const status = cell % CLIENT_FAULT_STEP;
  return {
    verb: VERBS[Math.floor(cell / VERB_STEP)] as string,
    status: status === ANY_STATUS ? OTHER : String(status),
    fault: cell % VERB_STEP >= CLIENT_FAULT_STEP ? 'client' : '',
  };
}
