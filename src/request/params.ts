// The second argument of an operation. Only fields that a client may see are enumerable. All other properties are
// getters on the prototype. So a result that contains the params does not send these properties, and they cost nothing
// until they are read.
import type { IncomingHttpHeaders } from 'node:http';
import type { ServiceUser } from '../api/controller/service.ts';
import { NO_TRACE, type Trace } from '../api/controller/trace.ts';
import type { CallingApplication, ControllerParams } from '../api/controller.ts';
import type { Log } from '../base/log.ts';
import { RequestView } from '../callers/access/access-params.ts';
import type { TrustedProxies } from '../callers/access/address.ts';
import type { OriginParts } from '../callers/access/origin-check.ts';
import type { BackgroundWork } from './background.ts';
import type { Query } from './body/form.ts';
import type { Exchange } from './exchange.ts';
import { createWebRequest } from './web-request.ts';

export interface ParamsParts extends OriginParts {
  readonly log: Log;
  readonly background: BackgroundWork;
  readonly proxies: TrustedProxies;
  /** BASE_PATH, which is empty when the service is at the root. */
  readonly basePath: string;
  /** The settings DOMAINS and PORT. */
  readonly domains: readonly string[];
  readonly port: number;
}

const NO_BYTES = new Uint8Array(0);

export class Params extends RequestView implements ControllerParams {
  readonly slugs: string[];
  readonly query: Query;
  readonly requestId: string;
  declare readonly application?: CallingApplication;
  readonly #exchange: Exchange;
  readonly #parts: ParamsParts;
  readonly #bytes: Uint8Array | undefined;

  /** @param bytes the inflated body; undefined when there is no body or when the body is a stream */
  constructor(exchange: Exchange, query: Query, parts: ParamsParts, bytes: Uint8Array | undefined) {
    super(exchange.groupInUrl, exchange, parts);
    this.slugs = exchange.slugs.slice();
    this.query = query;
    this.requestId = exchange.requestId;
    if (exchange.caller.application !== undefined) this.application = exchange.caller.application;
    this.#exchange = exchange;
    this.#parts = parts;
    this.#bytes = bytes;
  }

  get bytes(): Uint8Array {
    return this.#bytes ?? NO_BYTES;
  }

  get trace(): Trace {
    return this.#exchange.trace ?? NO_TRACE;
  }

  get waitUntil(): (work: PromiseLike<unknown>) => void {
    return (work) => this.#parts.background.add(this.#exchange, work);
  }

  get path(): Readonly<Record<string, string>> {
    return this.#exchange.path;
  }

  get headers(): IncomingHttpHeaders {
    return this.#exchange.headers ?? this.#exchange.request.headers;
  }

  get base(): string {
    return this.#parts.basePath;
  }

  get lastEventId(): string | undefined {
    // Only `Set-Cookie` is an array in `headers`.
    const id = this.#exchange.request.headers['last-event-id'] as string | undefined;
    return id === undefined ? undefined : decodeUtf8(id);
  }

  get user(): ServiceUser | undefined {
    return this.#exchange.caller.user;
  }

  get toRequest(): () => Request {
    return () => createWebRequest(this.#exchange, this.#parts, this.#bytes);
  }
}

/** Decodes a header as UTF-8, because Node reads it as Latin-1. A value that is not UTF-8 stays as it is. */
function decodeUtf8(header: string): string {
  const text = Buffer.from(header, 'latin1').toString();
  return text.includes('\ufffd') ? header : text;
}
