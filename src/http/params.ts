// The controller params of one call. The enumerable fields are JSON-safe; `path`, `request` and `signal` sit on the prototype, so
// that an echo or a spread of the params never carries them, and cost nothing to an operation that does not ask.
import type { IncomingMessage } from 'node:http';
import type { CallingApplication, ControllerParams } from '../controller.ts';
import type { Exchange } from './exchange.ts';
import type { Query } from './form.ts';

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

  get path(): Readonly<Record<string, string>> {
    return this.#exchange.path;
  }

  get lastEventId(): string | undefined {
    const id = this.#exchange.request.headers['last-event-id'];
    return Array.isArray(id) ? id[0] : id;
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
