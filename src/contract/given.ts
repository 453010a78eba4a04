// Schemas of libraries that `static operations` names: they stand in the place of annotations.
import type { Bundle } from './bundle.ts';
import type { OperationContract, Schema } from './contract.ts';
import { documentOf, type StandardSchema } from './standard-schema.ts';

export interface GivenSchemas {
  /** The types of the request are not read. */
  readonly unchecked?: boolean | undefined;
  readonly body?: StandardSchema | 'stream' | undefined;
  readonly query?: StandardSchema | undefined;
  readonly result?: StandardSchema | undefined;
  readonly status?: number | undefined;
  readonly summary?: string | undefined;
}

/** What `static operations` says wins over the annotations. */
export function withGiven(
  read: OperationContract,
  { body, query, result, status, summary }: GivenSchemas,
  bundle: Bundle,
): OperationContract {
  const document = (schema: StandardSchema, part: 'body' | 'query' | 'result'): Schema =>
    bundle(documentOf(schema, part === 'result' ? 'output' : 'input'), `${read.name}_${part}`);
  const results = read.results.map((one, i) => {
    if (i > 0) return one;
    // A reply has a status of its own.
    const answered = one.status === 200 ? (status ?? 200) : one.status;
    return { ...one, status: answered, schema: result === undefined ? one.schema : document(result, 'result') };
  });
  const isSchema = body !== undefined && body !== 'stream';
  const dataIsQuery = queryAsData(read.name, { body, query }) === 'always';
  return {
    ...read,
    summary: summary ?? read.summary,
    data: isSchema ? document(body, 'body') : query !== undefined && dataIsQuery ? document(query, 'query') : read.data,
    query: query === undefined ? read.query : document(query, 'query'),
    unchecked: isDataGiven(read.name, { body, query }) ? undefined : read.unchecked,
    results,
    undocumented: result === undefined ? read.undocumented : undefined,
  };
}

/**
 * When `data` is what the schema of the query makes of it. `always`: also where a body is sent. `without a body`: a body is the data, but
 * that of a GET, HEAD or DELETE is only where it has a schema of its own.
 */
export type QueryAsData = 'always' | 'without a body' | 'never';

export function queryAsData(name: string, { body, query }: GivenSchemas): QueryAsData {
  if (query === undefined || body === 'stream') return 'never';
  if (/^(?:index|deleted)$|^(?:GET|HEAD|DELETE) /.test(name)) return body === undefined ? 'always' : 'without a body';
  return body !== undefined || /^(?:created|red|patch)$|^(?:POST|PUT|PATCH) /.test(name) ? 'never' : 'without a body';
}

/** Whether the annotation of `data` checks nothing: schemas do, or it is a stream. */
export function isDataGiven(name: string, given: GivenSchemas): boolean {
  return given.body !== undefined || queryAsData(name, given) === 'always';
}
