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
  const isSchema = (schema: StandardSchema | 'stream' | undefined): schema is StandardSchema => schema !== undefined && schema !== 'stream';
  const results =
    result === undefined && status === undefined
      ? read.results
      : read.results.map((one, i) =>
          i > 0 ? one : { ...one, status: status ?? one.status, ...(result === undefined ? {} : { schema: document(result, 'result') }) },
        );
  return {
    ...read,
    summary: summary ?? read.summary,
    data: isSchema(body) ? document(body, 'body') : query !== undefined && isQueryFirst(read.name) ? document(query, 'query') : read.data,
    query: query === undefined ? read.query : document(query, 'query'),
    unchecked: isDataGiven(read.name, { body, query }) ? undefined : read.unchecked,
    results,
    undocumented: result === undefined ? read.undocumented : undefined,
  };
}

/** Operations whose data is the query, unless somebody sends a body with a GET. */
const isQueryFirst = (name: string): boolean => /^(?:index|deleted)$|^(?:GET|HEAD|DELETE) /.test(name);
const isBodyFirst = (name: string): boolean => /^(?:created|red|patch)$|^(?:POST|PUT|PATCH) /.test(name);

/** Whether data that came with the query is what the query's schema makes of it. */
export function isQueryData(name: string, { body }: GivenSchemas): boolean {
  return isQueryFirst(name) || (body === undefined && !isBodyFirst(name));
}

export function isDataGiven(name: string, { body, query }: GivenSchemas): boolean {
  return body !== undefined || (query !== undefined && isQueryFirst(name));
}
