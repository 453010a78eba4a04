// One request and its answer: what the steps from the gateway to the response hand on to each other, and what the log
// line of the request is made of.
import type { ServerResponse } from 'node:http';
import type { RequestParts } from '../contract/check/request-check.ts';
import type { ServiceUser } from '../controller/service.ts';
import type { CallingApplication } from '../controller.ts';
import type { Pieces } from './body/pieces.ts';
import type { CallerRow } from './credential-rights.ts';
import type { Request, RequestHead } from './head.ts';
import type { Choice } from './operation-choice.ts';
import type { ResolvedPath } from './router.ts';

/**
 * One step of a request. A step that refuses throws an `HttpError`; a step that answers ends the request.
 */
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

const NO_STEPS: readonly Step[] = [];
const NO_PATH: Readonly<Record<string, string>> = Object.freeze({});

export class Exchange {
  readonly request: Request;
  readonly response: ServerResponse;
  readonly head: RequestHead;
  /** `performance.now()` when the head was complete, where anybody measures; else 0. */
  readonly startedAt: number;
  requestId = '';
  resolved: ResolvedPath | undefined;
  /** The query as sent, without its question mark. */
  queryText = '';
  /** The handler group as the URL names it. */
  page = '';
  /** The group that serves, which in SDK mode the credential's row names; '' while none does. */
  group = '';
  slugs: readonly string[] = [];
  /** What the segments named in the route of its operation are. */
  path: Readonly<Record<string, string>> = NO_PATH;
  operation = '';
  /** The steps of the row of routes.ts that the request fits, and the number of those that have begun. */
  steps: readonly Step[] = NO_STEPS;
  step = 0;
  /** The step that finds the operation sets it, before any step that reads it. */
  choice!: Choice;
  /** Undefined before the body has arrived, and again when the operation has it. */
  input: RequestInput | undefined;
  /** The row of the credential that it came with, in SDK mode or for one of its groups. */
  caller: CallerRow | undefined;
  /** The id of that row; of a credential that is refused, where its token told one; else ''. */
  credential = '';
  /** The user whom `authenticate` of the service file has found. */
  user: ServiceUser | undefined;
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
  /** Its body goes to the operation as a stream: there may be more of it when the answer is given. */
  streamsBody = false;
  /** Its body is being read and is not complete. */
  isUploading = false;
  /** What has come of the body. */
  received: Buffer | Pieces | undefined;
  /** Bytes of the body that body/budget.ts has counted, and how many there were when it looked last. */
  held = 0;
  heldBefore = -1;
  /** The one answer has been given, to its last byte. */
  settled = false;
  /** Bytes of it that the kernel had not taken when somebody looked last. */
  unsent = 0;
  /** It is answered by a 500 that nothing of the service is to blame for. */
  isClientsDoing = false;
  /** The head of an answer that takes its time is out: a stream, server-sent events. */
  streaming = false;
  /** Of an answer that says none of its own. */
  status = 200;
  /** The operation's time limit, while it has one to keep. */
  timer: NodeJS.Timeout | undefined;
  /** Why the operation's work is no longer wanted, once it is not. */
  abortReason: Error | undefined;
  /** Ends the source of a body that is sent piece by piece. */
  cancelBody: ((reason: Error) => void) | undefined;
  /**
   * Called when the connection closes, by whoever waits for the rest of the body: a listener on each request costs
   * more.
   */
  onLost: (() => void) | undefined;
  #watched = false;
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

  /** RFC 9112, 6: a body is there when one of the two framing headers says so. */
  get hasBody(): boolean {
    const { contentLength, transferEncoding } = this.head;
    return transferEncoding !== undefined || (contentLength !== undefined && Number(contentLength) > 0);
  }

  /** Tells the operation, once, that nobody waits for its result any more. */
  abort(reason: Error): void {
    if (this.abortReason !== undefined) return;
    this.abortReason = reason;
    this.#abort?.abort(reason);
    this.cancelBody?.(reason);
  }

  /** Aborted when nobody waits for the result any more. Made for who asks for it. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.abortReason !== undefined) this.#abort.abort(this.abortReason);
      this.watchClient();
    }
    return this.#abort.signal;
  }

  /** Only an operation that takes its time needs to know that its client has gone: a listener costs every request. */
  watchClient(): void {
    if (this.#watched) return;
    this.#watched = true;
    const leave = () => {
      if (!this.response.writableFinished) this.abort(new Error('the client is gone'));
    };
    // It may have left before anybody asked.
    if (this.response.destroyed) leave();
    else this.response.once('close', leave);
  }
}
