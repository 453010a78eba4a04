// The controller params of one call. The enumerable fields are JSON-safe; `request` and `signal` sit on the prototype, so
// that an echo or a spread of the params never carries them, and cost nothing to an operation that does not ask.
import type { IncomingMessage } from 'node:http';
import type { CallingApplication, ControllerParams } from '../controller.ts';
import type { Exchange } from './exchange.ts';

export type Query = Record<string, string | string[]>;

export class Params implements ControllerParams {
  readonly page: string;
  readonly method: string;
  readonly verb: string;
  readonly slugs: string[];
  readonly query: Query;
  readonly requestId: string;
  declare readonly application?: CallingApplication;
  readonly #exchange: Exchange;
  #abort: AbortController | undefined;

  constructor(exchange: Exchange, query: Query) {
    this.page = exchange.page;
    this.method = exchange.operation;
    this.verb = exchange.verb;
    this.slugs = exchange.slugs.slice();
    this.query = query;
    this.requestId = exchange.requestId;
    if (exchange.application !== undefined) this.application = exchange.application;
    this.#exchange = exchange;
  }

  get request(): IncomingMessage {
    return this.#exchange.request;
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      const abort = new AbortController();
      const exchange = this.#exchange;
      this.#abort = abort;
      if (exchange.abortReason !== undefined) abort.abort(exchange.abortReason);
      exchange.onAbort = (reason) => abort.abort(reason);
      exchange.watchClient();
    }
    return this.#abort.signal;
  }
}

/**
 * A query string or an urlencoded form, by the URL standard's parser. A repeated key becomes an array; the object has no
 * prototype, so `__proto__` is a key like any other.
 *
 * @param query an object without prototype, to be filled and returned
 */
export function parseQuery(text: string, query: Query = Object.create(null)): Query {
  if (text === '') return query;
  // The parser drops a question mark at the very start, which here belongs to the first key.
  for (const [key, value] of new URLSearchParams(text.startsWith('?') ? `&${text}` : text)) addValue(query, key, value);
  return query;
}

/**
 * An empty object of the engine's usual kind, for what may be echoed beside much else. `Object.create(null)` is made in a
 * twentieth of the time, but it is a dictionary, and one dictionary in a result makes `JSON.stringify` of Node 22 and later
 * start over and take twice as long for the whole of it.
 */
export function withoutPrototype<V>(): Record<string, V> {
  return Object.setPrototypeOf({}, null);
}

export function addValue<V>(into: Record<string, V | V[]>, key: string, value: V): void {
  const before = into[key];
  if (before === undefined) into[key] = value;
  else if (Array.isArray(before)) before.push(value);
  else into[key] = [before, value];
}
