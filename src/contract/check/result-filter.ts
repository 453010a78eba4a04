// Makes the filter of an operation's results: what its result types declare is sent, and no more. A result with the
// schema of a library is replaced by the output of this schema.
import { isPromise } from '../../base/values.ts';
import type { OperationContract, ResultContract, Schema } from '../contract.ts';
import type { PartSchema } from '../part-schemas.ts';
import { type StandardSchema, type Validated, validate } from './library.ts';
import type { CompileCopy, Copy } from './result-copy.ts';

/**
 * Copies an object or a list of a result, or the data of an event, without undeclared fields. The copy is a promise
 * when the schema of a library is asynchronous.
 *
 * @param status the status of a `Reply`; undefined for another result
 * @throws the error of a getter, of `toJSON` or of a library; TypeError for a result that does not fit its schema
 */
export interface ResultFilter {
  (value: unknown, body: 'json' | 'events', status: number | undefined): unknown;
  /** Whether the schema of a library makes the result, which can be any value. */
  readonly isOutput?: boolean;
}

/** @param schema the schema of the first result, which replaces its type */
export function createResultFilter(
  { results }: OperationContract,
  compile: CompileCopy,
  schema: PartSchema | undefined,
): ResultFilter | undefined {
  const library = schema !== undefined && 'standard' in schema ? schema.standard : undefined;
  const [first] = results as [ResultContract, ...ResultContract[]];
  const copyOf = (chosen: readonly ResultContract[]): Copy | undefined =>
    library !== undefined && chosen.includes(first)
      ? (value) => (schema?.isList === true ? listOf(library, value) : outputOf(library, value))
      : compile(chosen.flatMap(schemasOf));
  const keyOf = (body: string, status: number) => `${body} ${status}`;
  const copies = new Map(
    results.map(({ body, status }): [string, Copy | undefined] => [
      keyOf(body, status),
      copyOf(results.filter((result) => result.body === body && result.status === status)),
    ]),
  );
  // A guard can answer what the operation does not declare. Then the fields of all results are declared.
  const copyOfAny = copyOf(results);
  if (copyOfAny === undefined && [...copies.values()].every((copy) => copy === undefined)) return undefined;
  const plainCopy = copies.get(keyOf('json', first.status));
  const filter: ResultFilter = (value, body, status) => {
    if (status === undefined && body === 'json' && plainCopy !== undefined) return plainCopy(value, '');
    const key = keyOf(body, status ?? first.status);
    const copy = copies.has(key) ? copies.get(key) : copyOfAny;
    return copy === undefined ? value : copy(value, '');
  };
  return library === undefined ? filter : Object.assign(filter, { isOutput: true });
}

/** A result whose type is `unknown` has the schema `{}`. One that is only undefined has none, so it has no fields. */
function schemasOf({ body, returnedSchema, mayBeAbsent }: ResultContract): Schema[] {
  if (returnedSchema !== undefined) return [returnedSchema];
  return body === 'events' || (body === 'json' && mayBeAbsent === undefined) ? [{}] : [];
}

function listOf(schema: StandardSchema, value: unknown): unknown {
  if (!Array.isArray(value)) throw new TypeError('the result does not fit its schema: it is no list');
  // An error must not leave the promise of an earlier item, which can be rejected, without a handler.
  const items = value.map((item) => {
    try {
      return outputOf(schema, item);
    } catch (error) {
      return Promise.reject(error);
    }
  });
  return items.some((item) => isPromise(item)) ? Promise.all(items) : items;
}

/** Validates a value, and then its JSON form, because the schema may declare a `Date` as its text. */
function outputOf(schema: StandardSchema, value: unknown, isJson = false): unknown {
  const { toJSON } = Object(value) as { toJSON?: unknown };
  const shown = typeof toJSON === 'function' && !(value instanceof Date) ? toJSON.call(value, '') : value;
  const outcome = validate(schema, shown, 'body');
  return isPromise(outcome) ? outcome.then(take) : take(outcome);

  function take(validated: Validated): unknown {
    if ('value' in validated) return validated.value;
    if (!isJson) return outputOf(schema, JSON.parse(JSON.stringify(shown) ?? 'null'), true);
    const [{ pointer, message } = { pointer: '', message: '' }] = validated.problems;
    throw new TypeError(`the result does not fit its schema: ${pointer} ${message}`.trimEnd());
  }
}
