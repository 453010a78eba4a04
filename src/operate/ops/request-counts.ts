// Counts requests by page, operation, route, verb, status and credential. The supervisor adds up the deltas of workers.
import * as histograms from './histogram.ts';

/** The upper bounds of the buckets for durations, in seconds. The last one is the default of OPERATION_TIMEOUT. */
const DURATION_BOUNDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** The label value for everything beyond the maximum numbers below. No real name has parentheses. */
export const OTHER = '(other)';
/** The conventions have the last value for every other method. */
const VERBS: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', '_OTHER'];
const VERB_NUMBERS: ReadonlyMap<string, number> = new Map(VERBS.map((verb, i) => [verb, i]));
const OTHER_VERB = VERBS.length - 1;
/** Stands for every status, in the cell that counts the requests beyond MAX_CELLS. Each operation has one such cell. */
const ANY_STATUS = 0;

/** Maximum combinations of page, operation and route. All further ones are counted as one. */
export const MAX_OPERATIONS = 500;
/** Maximum number of cells (see `OperationCounts`) of all operations. A scrape has 18 lines of each. */
export const MAX_CELLS = 2000;
/** Maximum application credentials. All further credentials are counted as one. */
export const MAX_CREDENTIALS = 1000;

export interface OperationCounts {
  readonly page: string;
  readonly operation: string;
  readonly route: string;
  bytes: number;
  /** Key: verb, status and fault as one number (`cellOf`). Value: the durations of its requests, in seconds. */
  readonly cells: Map<number, histograms.Histogram>;
}

export interface OperationDelta extends Readonly<Omit<OperationCounts, 'cells'>> {
  readonly cells: readonly (readonly [cell: number, durations: histograms.HistogramDelta])[];
}

export type CredentialCount = readonly [id: string, requests: number];

export type RequestCounts = ReturnType<typeof createRequestCounts>;

export function createRequestCounts() {
  /** Keys: page, operation, route. */
  const pages = new Map<string, Map<string, Map<string, OperationCounts>>>();
  const credentials = new Map<string, number>();
  let operationCount = 0;
  let cellCount = 0;

  /**
   * Returns the counts of an operation. All operations beyond MAX_OPERATIONS share the same counts. The names must be
   * those of an existing operation, or '' for a request that no operation served, but never any text of a client.
   */
  function countsFor(page: string, operation: string, route: string): OperationCounts {
    return pages.get(page)?.get(operation)?.get(route) ?? addCounts(page, operation, route);
  }

  function addCounts(page: string, operation: string, route: string): OperationCounts {
    if (operationCount >= MAX_OPERATIONS && page !== OTHER) return countsFor(OTHER, OTHER, OTHER);
    operationCount++;
    const counts: OperationCounts = { page, operation, route, bytes: 0, cells: new Map() };
    const operationsOfPage = pages.get(page) ?? new Map();
    operationsOfPage.set(operation, (operationsOfPage.get(operation) ?? new Map()).set(route, counts));
    pages.set(page, operationsOfPage);
    return counts;
  }

  function durationsOf(counts: OperationCounts, cell: number): histograms.Histogram {
    const known = counts.cells.get(cell);
    if (known !== undefined) return known;
    const otherCell = cellOf(OTHER_VERB, ANY_STATUS);
    if (cellCount >= MAX_CELLS && cell !== otherCell) return durationsOf(counts, otherCell);
    cellCount++;
    const durations = histograms.createHistogram(DURATION_BOUNDS);
    counts.cells.set(cell, durations);
    return durations;
  }

  function* operations(): Generator<OperationCounts> {
    for (const operationsOfPage of pages.values())
      for (const routes of operationsOfPage.values()) yield* routes.values();
  }

  return {
    countsFor,
    /** @param duration milliseconds @param isClientFault a 500 because the request named something unknown */
    count(
      counts: OperationCounts,
      verb: string,
      status: number,
      bytes: number,
      duration: number,
      isClientFault = false,
    ): void {
      const cell = cellOf(VERB_NUMBERS.get(verb) ?? OTHER_VERB, status, isClientFault);
      histograms.observe(durationsOf(counts, cell), duration / 1000);
      counts.bytes += bytes;
    },
    /** @param id the id of a row, never a text of the client */
    countCredential(id: string, requests = 1): void {
      const key = credentials.has(id) || credentials.size < MAX_CREDENTIALS ? id : OTHER;
      credentials.set(key, (credentials.get(key) ?? 0) + requests);
    },
    operations,
    credentials: (): Iterable<CredentialCount> => credentials,
    takeOperations: () => Array.from(operations(), takeOperation).filter(({ cells }) => cells.length > 0),
    takeCredentials(): CredentialCount[] {
      const counts = Array.from(credentials).filter(([, requests]) => requests > 0);
      for (const [id] of counts) credentials.set(id, 0);
      return counts;
    },
    add(delta: OperationDelta): void {
      const counts = countsFor(delta.page, delta.operation, delta.route);
      counts.bytes += delta.bytes;
      for (const [cell, durations] of delta.cells) histograms.addDelta(durationsOf(counts, cell), durations);
    },
  };
}

function takeOperation(counts: OperationCounts): OperationDelta {
  const { page, operation, route, bytes } = counts;
  // The cells stay in the map, so that the next requests do not add them to `cellCount` again.
  const cells = Array.from(counts.cells)
    .filter(([, durations]) => histograms.totalCount(durations) > 0)
    .map(([cell, durations]) => [cell, histograms.takeDelta(durations)] as const);
  counts.bytes = 0;
  return { page, operation, route, bytes, cells };
}

/** HEAD (verb 1), 500 and a fault of the client become 1 * 2000 + 1000 + 500 = 3500. A text would cost memory. */
function cellOf(verb: number, status: number, isClientFault = false): number {
  return verb * VERB_STEP + (isClientFault ? CLIENT_FAULT_STEP : 0) + status;
}

const CLIENT_FAULT_STEP = 1000;
const VERB_STEP = 2000;

/** Returns labels, by the names of the conventions where they have one. */
export function describeCell(cell: number) {
  const status = cell % CLIENT_FAULT_STEP;
  return {
    http_request_method: VERBS[Math.floor(cell / VERB_STEP)] as string,
    http_response_status_code: status === ANY_STATUS ? OTHER : String(status),
    fault: cell % VERB_STEP >= CLIENT_FAULT_STEP ? 'client' : '',
  };
}
