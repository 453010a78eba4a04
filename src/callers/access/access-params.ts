// The argument of `authenticate` and of the functions in `access`: a request before its body has arrived. The names of
// the fields are public: `page` is the group, and `method` is the operation. request/params.ts has the argument of an
// operation.
import type { IncomingMessage } from 'node:http';
import type { HeaderSetters } from '../../api/controller/answer-headers.ts';
import type { AccessParams, ServiceUser } from '../../api/controller/service.ts';
import type { CallingApplication, OperationLog } from '../../api/controller.ts';
import { urlNameOf } from '../../base/group-name.ts';
import { createOperationLog } from '../../base/operation-log.ts';
import { objectWithoutPrototype, parseQuery, type Query } from '../../request/body/form.ts';
import type { Exchange } from '../../request/exchange.ts';
import type { ParamsParts } from '../../request/params.ts';
import { addressOf } from './address.ts';
import { cookieSetter, cookiesOf } from './cookies.ts';

export type AccessParts = Pick<ParamsParts, 'log' | 'proxies' | 'isSecure' | 'publicOrigins'>;

/** The fields that this argument and that of an operation have in common. */
export class RequestView {
  readonly page: string;
  readonly method: string;
  readonly verb: string;
  readonly #exchange: Exchange;
  readonly #parts: AccessParts;

  constructor(page: string, exchange: Exchange, parts: AccessParts) {
    this.page = page;
    this.method = exchange.operation;
    this.verb = exchange.verb;
    this.#exchange = exchange;
    this.#parts = parts;
  }

  get cookies(): Readonly<Record<string, string>> {
    return cookiesOf(this.#exchange);
  }

  get address(): string {
    return addressOf(this.#exchange, this.#parts.proxies);
  }

  get log(): OperationLog {
    return createOperationLog(this.#parts.log, this.#exchange);
  }

  get request(): IncomingMessage {
    return this.#exchange.request;
  }

  get setHeader(): HeaderSetters['setHeader'] {
    return (name, value) => this.#exchange.answer.settableHeaders.set(name, value);
  }

  get appendHeader(): HeaderSetters['appendHeader'] {
    return (name, value) => this.#exchange.answer.settableHeaders.append(name, value);
  }

  get setCookie(): HeaderSetters['setCookie'] {
    return cookieSetter(this.#exchange, this.#parts);
  }

  get signal(): AbortSignal {
    return this.#exchange.signal;
  }
}

export class RequestAccess extends RequestView implements AccessParams {
  readonly path: Readonly<Record<string, string>>;
  declare readonly application?: CallingApplication;
  /** Present for a function in `access`, which runs after `authenticate`. */
  declare readonly user?: ServiceUser;
  readonly #exchange: Exchange;
  #query: Query | undefined;

  constructor(exchange: Exchange, parts: AccessParts) {
    // A function that protects the page `admin` also protects `/api/Admin`.
    super(urlNameOf(exchange.groupInUrl), exchange, parts);
    this.path = exchange.path;
    const { application, user } = exchange.caller;
    if (application !== undefined) this.application = application;
    if (user !== undefined) this.user = user;
    this.#exchange = exchange;
  }

  get authorization(): string | undefined {
    return this.#exchange.caller.foreignAuthorization;
  }

  get query(): Query {
    this.#query ??= parseQuery(this.#exchange.queryText, objectWithoutPrototype());
    return this.#query;
  }
}
