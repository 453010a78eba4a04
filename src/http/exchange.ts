// One request and its answer: the state that its steps share, and that its log line is made of. A key is the credential
// of a registered application.
import type { ServerResponse } from 'node:http';
import type { RequestParts } from '../contract/check/request-check.ts';
import type { ServiceUser } from '../controller/service.ts';
import type { Trace } from '../controller/trace.ts';
import type { CallingApplication } from '../controller.ts';
import type { FormatError } from './answer/error-body.ts';
import type { Pieces } from './body/pieces.ts';
import type { CallerRow } from './credential-rights.ts';
import type { Request, RequestHead } from './head.ts';
import type { Choice } from './operation-choice.ts';
import type { ExchangeEvent } from './request-event.ts';
import type { ResolvedPath } from './router.ts';

/** One step of a request. A step that refuses throws an `HttpError`. A step that sends the answer ends the request. */
export type Step = (exchange: Exchange) => Outcome;

/**
 * `undefined`: the next step follows at once. A promise: the next step follows when it resolves. `later`: the step
 * itself continues the request.
 */
export type Outcome = undefined | 'later' | Promise<undefined>;

/** The arguments of an operation before they are checked, and after. */
export interface RequestInput extends RequestParts {
  /** The inflated body. Undefined: there is none, or `data` is its stream. */
  readonly bytes: Buffer | undefined;
}

/** A call of an operation by a tool of the Model Context Protocol (tool-calls.ts). */
export interface ToolCall {
  /** The name of the tool. */
  readonly name: string;
  /** `Order` */
  readonly group: string;
  /** `GET {id}` */
  readonly operation: string;
  readonly verb: string;
  /** The path with its query, as a request would have it. */
  readonly target: string;
  /** JSON; undefined: no body. */
  readonly body: string | undefined;
}

/** The answer to a call by a tool, which no connection gets. */
export interface CapturedAnswer {
  readonly status: number;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  readonly body: string | Uint8Array;
}

const NO_STEPS: readonly Step[] = [];
const NO_PATH: Readonly<Record<string, string>> = Object.freeze({});

export class Exchange {
  readonly request: Request;
  readonly response: ServerResponse;
  readonly head: RequestHead;
  /** `performance.now()` when the head was complete; 0 in a service without log lines and metrics. */
  readonly startedAt: number;
  requestId = '';
  resolved: ResolvedPath | undefined;
  /** The query as sent, without its question mark. */
  queryText = '';
  /** The handler group as the URL names it. */
  page = '';
  /** The group that serves, by the URL or by the row of the key; '' before it is found. */
  group = '';
  slugs: readonly string[] = [];
  /** The segments that the route of the operation names, decoded. */
  path: Readonly<Record<string, string>> = NO_PATH;
  operation = '';
  /** The steps of the row of routes.ts that the request fits. */
  steps: readonly Step[] = NO_STEPS;
  /** The number of steps that have begun. */
  step = 0;
  /** The operation, by the step that finds it. No earlier step reads this field. */
  choice!: Choice;
  /** The arguments of the operation, from the arrival of the body to the call; undefined before and after that. */
  input: RequestInput | undefined;
  /** The row of its key in the credentials table; undefined: it has no key. */
  caller: CallerRow | undefined;
  /** The id of that row. A refused key has the id that its token names, if any; else ''. */
  credential = '';
  /** The user whom `authenticate` of the service file has found. */
  user: ServiceUser | undefined;
  /** The id of that user, which is read once: a getter may throw the next time. */
  userId: string | undefined;
  /** Milliseconds of the operation's time that `authenticate` and `access` have left; undefined: all of it. */
  timeLeft: number | undefined;
  /** `performance.now()` when the time limit began to run. */
  clockStartedAt = 0;
  /** The text that has been identified as the credential of `caller`, in the form of `Authorization`. */
  key: string | undefined;
  /** The header `Authorization`, where it holds no credential of ours. */
  foreignAuthorization: string | undefined;
  cookies: Readonly<Record<string, string>> | undefined;
  /** The client waits for `100 Continue` before it sends the body. */
  expectsContinue = false;
  /** The operation reads the body as a stream, so a part of it may still be unread when the answer is sent. */
  streamsBody = false;
  /** The body is being read and is not complete. */
  isUploading = false;
  /** The part of the body that has arrived. */
  received: Buffer | Pieces | undefined;
  /** The bytes of the body that body/budget.ts counts. */
  heldBytes = 0;
  /** The value of `heldBytes` at the last sweep of body/budget.ts; -1 before the first. */
  lastHeldBytes = -1;
  /** The whole answer has been handed to Node. */
  isAnswered = false;
  /** The bytes of the answer that the kernel had not taken at the last look. */
  unsent = 0;
  /** The answer is a 500 that is the client's fault, so it is not counted as an error. */
  isClientFault = false;
  /** The head of a streamed answer has been sent. */
  isStreamingAnswer = false;
  /** The status of an answer whose result sets none. */
  status = 200;
  /** The time limit of the operation, once its clock has started. */
  timer: NodeJS.Timeout | undefined;
  /** The reason why nobody waits for the operation; undefined: the client still waits. */
  abortReason: Error | undefined;
  /** Ends the source of a streamed answer. */
  cancelBody: ((reason: Error) => void) | undefined;
  /** Called when the connection closes before the whole body has come. A listener on each request would cost more. */
  onLost: (() => void) | undefined;
  /** The tool that calls the operation; undefined: the request came by itself. */
  tool: ToolCall | undefined;
  /** Receives the answer of a call by a tool, in the place of the connection. */
  capture: ((answer: CapturedAnswer) => void) | undefined;
  /** The message of the public channels; undefined: no tool follows requests. */
  event: ExchangeEvent | undefined;
  /** The synchronous part of a followed request is over, and its answer was not out. */
  hasReturned = false;
  /** The trace that the request belongs to; undefined: none is known. */
  trace: Trace | undefined;
  /** The form of its refusals, in the place of `formatError` of the service file. */
  formatRefusal: FormatError | undefined;
  #isWatched = false;
  #abort: AbortController | undefined;

  constructor(request: Request, response: ServerResponse, startedAt: number) {
    this.request = request;
    this.response = response;
    this.startedAt = startedAt;
    this.head = request.receive();
  }

  get application(): CallingApplication | undefined {
    return this.caller?.application;
  }

  get verb(): string {
    return this.request.method as string;
  }

  /** One of the two framing headers announces a body (RFC 9112, 6). */
  get hasBody(): boolean {
    const { contentLength, transferEncoding } = this.head;
    return transferEncoding !== undefined || (contentLength !== undefined && Number(contentLength) > 0);
  }

  /** Aborts the signal of the operation and its streamed answer. Only the first call counts. */
  abort(reason: Error): void {
    if (this.abortReason !== undefined) return;
    this.abortReason = reason;
    this.#abort?.abort(reason);
    this.cancelBody?.(reason);
  }

  /** Aborts when nobody waits for the result any more. Created for the first reader. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.abortReason !== undefined) this.#abort.abort(this.abortReason);
      this.watchClient();
    }
    return this.#abort.signal;
  }

  /** Aborts when the client leaves. Only an operation that asks for its signal pays for the listener. */
  watchClient(): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    const leave = () => {
      if (!this.response.writableFinished) this.abort(new Error('the client is gone'));
    };
    // The client may have left before the operation asked.
    if (this.response.destroyed) leave();
    else this.response.once('close', leave);
  }
}
