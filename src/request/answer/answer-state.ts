// The state of the answer to one request. The files of this folder own it.
import { OwnHeaders } from '../../base/own-headers.ts';
import type { LiveStream } from './byte-stream.ts';
import type { FormatError } from './error-body.ts';

/** The answer to a tool call. The code in operate/tools/ makes this answer a part of the answer to a message. */
export interface CapturedAnswer {
  readonly status: number;
  /** Alternating names and values. */
  readonly headers: readonly string[];
  readonly body: string | Uint8Array;
}

export class AnswerState {
  /** True when the whole answer has been passed to Node, or to the code in operate/tools/. */
  isComplete = false;
  /** Bytes of the answer that the kernel had not taken at the last count. */
  unsentBytes = 0;
  /** True when the request named something unknown, so that its answer, a 500, does not count as an error. */
  isClientFault = false;
  /** True when the head of a streamed answer has been sent. */
  isStreaming = false;
  /** True for a file of PUBLIC_DIR, which has no CORS headers, and when the handler of a mount sets them. */
  ownsCors = false;
  /** The status of the answer, unless the result of the operation sets one. */
  status = 200;
  /** The streamed answer, from its start on: before its head is sent, and after its end. */
  live: LiveStream | undefined;
  /** Takes the response back from the handler of a mount, so that the service can answer; mostly undefined. */
  takeBack: (() => void) | undefined;
  /** Receives the answer to a tool call; undefined when the connection gets the answer. */
  capture: ((answer: CapturedAnswer) => void) | undefined;
  /** The headers that `params.setHeader` and its like have set; undefined for nearly all requests. */
  ownHeaders: OwnHeaders | undefined;
  /** Gives back what the `limit` of the operation has taken. Called for an answer below 400; mostly undefined. */
  giveBack: (() => void) | undefined;
  /** Makes the bodies of refusals in the place of `formatError` of the service file; undefined for usual requests. */
  formatRefusal: FormatError | undefined;

  /** @throws Error when the head of the answer has been sent */
  get settableHeaders(): OwnHeaders {
    if (this.isComplete || this.isStreaming) throw new Error('the answer has been sent, so no header can be set');
    this.ownHeaders ??= new OwnHeaders();
    return this.ownHeaders;
  }
}
