// An exchange is one request with its answer. Its fields are the state that the steps share and the log line shows.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Trace } from '../api/controller/trace.ts';
import { formatTraceparent, parseTraceparent } from '../base/traceparent.ts';
import { CallerState } from '../callers/access/caller-state.ts';
import type { RequestParts } from '../contract/check/request-check.ts';
import { AnswerState } from './answer/answer-state.ts';
import { BodyState } from './body/body-state.ts';
import type { Request, RequestHead } from './head.ts';
import type { Choice } from './operation-choice.ts';
import type { ExchangeEvent } from './request-event.ts';
import type { ResolvedPath } from './router.ts';
import type { TimeLimit } from './time-limits.ts';

/** A step that refuses throws an `HttpError`. A step that sends the answer ends the request. */
export type Step = (exchange: Exchange) => Outcome;

/** The next step runs at once (`undefined`), after a promise, or when this step itself continues (`later`). */
export type Outcome = undefined | 'later' | Promise<undefined>;

export interface RequestInput extends RequestParts {
  /** The inflated body; undefined when there is no body, or when `data` is the stream of the body. */
  readonly bytes: Buffer | undefined;
}

/** A call of an operation by a tool of the Model Context Protocol (tool-calls.ts). */
export interface ToolCall {
  readonly name: string;
  readonly group: string;
  readonly operation: string;
  readonly verb: string;
  /** The path with its query, as a request would have it. */
  readonly target: string;
  /** The body as JSON; undefined when the call has no body. */
  readonly body: string | undefined;
}

const NO_STEPS: readonly Step[] = [];
/** The value of `path` when the route of the operation has no named segments. */
export const NO_PATH: Readonly<Record<string, string>> = Object.freeze({});

export class Exchange {
  readonly request: Request;
  readonly response: ServerResponse;
  /** The socket of the request. Node takes it from a request that `pipeline` or `for await` destroys. */
  readonly socket: Socket;
  readonly head: RequestHead;
  /** The HTTP method. It is kept here, because a handler of a mount may change that of `request`. */
  readonly verb: string;
  /** `performance.now()` when the head was complete; 0 in a service without log lines and metrics. */
  readonly startedAt: number;
  readonly answer = new AnswerState();
  readonly body = new BodyState();
  readonly caller = new CallerState();
  requestId = '';
  /** Undefined until the request target has been read. */
  resolvedPath: ResolvedPath | undefined;
  /** The query as sent, without its question mark. */
  queryText = '';
  /** The group as the URL spells it: `order` for `Order`. */
  groupInUrl = '';
  /** The group that serves the request, such as `Order`; '' until the group has been found. */
  group = '';
  /** The decoded segments of the path after the group. */
  slugs: readonly string[] = [];
  /** `path` of `choice`. The check of the types can convert its values. */
  path: Readonly<Record<string, string>> = NO_PATH;
  /** The headers that the operation declares, converted; undefined when it declares none. */
  headers: Readonly<Record<string, string>> | undefined;
  /** '' until the operation has been found. */
  operation = '';
  steps: readonly Step[] = NO_STEPS;
  stepsBegun = 0;
  /** No step reads this field before the step that sets it (find-operation.ts, steps.ts). */
  choice!: Choice;
  /** The arguments of the operation, from the arrival of the body to the call; undefined before and after that. */
  input: RequestInput | undefined;
  /** Milliseconds of the time limit that are left after `authenticate` and `access`; undefined if neither waited. */
  timeLeft: number | undefined;
  /** Undefined before the time limit of the operation starts, and while the body arrives. */
  timeLimit: TimeLimit | undefined;
  /** The reason why nobody waits for the operation any more; undefined while the client still waits. */
  abortReason: Error | undefined;
  /** Undefined when a client sent the request itself. */
  toolCall: ToolCall | undefined;
  /** Undefined when no tracing tool follows the request. */
  event: ExchangeEvent | undefined;
  /** True when code of an author has run for this request. */
  hasBegun = false;
  /** True when `event` exists, and `serve` (app.ts) returned before the answer was sent. */
  returnedBeforeAnswer = false;
  #trace: Trace | undefined;
  /** True when `#trace` is valid: the header `traceparent` has been read, or a tracing tool has set the trace. */
  #hasTrace = false;
  #isWatched = false;
  #abort: AbortController | undefined;

  constructor(request: Request, response: ServerResponse, startedAt: number) {
    this.request = request;
    this.response = response;
    this.socket = request.socket;
    this.startedAt = startedAt;
    this.head = request.readHead();
    this.verb = request.method as string;
  }

  /** The header `traceparent` is read at the first use. */
  get trace(): Trace | undefined {
    if (this.#hasTrace) return this.#trace;
    const { traceparent } = this.head;
    if (traceparent !== undefined) this.trace = receivedTrace(traceparent);
    return this.#trace;
  }

  set trace(trace: Trace | undefined) {
    this.#trace = trace;
    this.#hasTrace = true;
  }

  /** Says whether one of the two framing headers announces a body (RFC 9112, 6). */
  get hasBody(): boolean {
    const { contentLength, transferEncoding } = this.head;
    return transferEncoding !== undefined || Number(contentLength) > 0;
  }

  /** Says whether the request is a handshake whose socket the operation takes over. */
  get opensSocket(): boolean {
    return this.request.upgradeHead !== undefined && this.choice.operation.mount?.upgrade !== undefined;
  }

  /** Aborts `signal`, and cancels the streamed answer. Only the first call has an effect. */
  abort(reason: Error): void {
    if (this.abortReason !== undefined) return;
    this.abortReason = reason;
    this.#abort?.abort(reason);
    this.answer.live?.cancel(reason);
  }

  /** Aborts when nobody waits for the result any more. Created at the first use. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.abortReason !== undefined) this.#abort.abort(this.abortReason);
      this.watchClient();
    }
    return this.#abort.signal;
  }

  /** From now on, the exchange aborts when the client leaves. Only operations that need this pay for a listener. */
  watchClient(): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    const leave = () => {
      if (!this.response.writableFinished) this.abort(new Error('the client is gone'));
    };
    if (this.response.destroyed) leave();
    else this.response.once('close', leave);
  }
}

/** Returns the client's trace, for logs and `params.trace` without a tracing tool; undefined when it is malformed. */
function receivedTrace(header: string): Trace | undefined {
  const context = parseTraceparent(header);
  if (context === undefined) return undefined;
  const { traceId, spanId } = context;
  const trace: Trace = { traceId, spanId, traceparent: formatTraceparent(context), span: (_name, work) => work(trace) };
  return trace;
}
