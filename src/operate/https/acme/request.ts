// Sends a request of limited time and size to the directory, which lists its addresses: no redirect is followed.
import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { https } from '../../../base/builtins.ts';
import { parseRetryAfter } from '../../../base/time.ts';
import { type Fields, parseObject } from '../../../base/values.ts';

export interface AcmeResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface AcmeRequest {
  readonly method: 'GET' | 'HEAD' | 'POST';
  readonly url: string;
  readonly body?: string;
  readonly accept?: string;
}

export type Send = (request: AcmeRequest) => Promise<AcmeResponse>;

export interface SendOptions {
  readonly userAgent: string;
  /** For tests. Operators add the root of a private directory by NODE_EXTRA_CA_CERTS. */
  readonly ca?: string | undefined;
  readonly timeoutMs?: number;
}

const ANSWER_TIMEOUT_MS = 30_000;
/** Maximum bytes of an answer. A long certificate chain has 20 KiB. */
const MAX_BYTES = 512 * 1024;

/** An ACME server gave no answer, refused a request (RFC 8555, section 6.7), or gave an answer of another form. */
export class AcmeError extends Error {
  /** Such as `rateLimited`, short for `urn:ietf:params:acme:error:rateLimited`. Undefined when there is no type. */
  readonly type: string | undefined;
  /** Milliseconds that the server asks to wait, or undefined when it asks for no time. */
  readonly retryAfter: number | undefined;

  constructor(message: string, facts: Partial<Pick<AcmeError, 'type' | 'retryAfter' | 'cause'>> = {}) {
    const { type, retryAfter, cause } = facts;
    super(message, { cause });
    this.type = type;
    this.retryAfter = retryAfter;
  }
}

export function createSend({ userAgent, ca, timeoutMs = ANSWER_TIMEOUT_MS }: SendOptions): Send {
  return async ({ method, url, body, accept = 'application/json' }) => {
    const length = body === undefined ? undefined : Buffer.byteLength(body);
    const content = length === undefined ? {} : { 'Content-Type': 'application/jose+json', 'Content-Length': length };
    const headers = { 'User-Agent': userAgent, Accept: accept, ...content };
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      if (!url.startsWith('https://')) throw new Error('the address is not https');
      // Each request opens its own connection, because a server may cut an idle one just before it is used again. The
      // cost is small: there are about a dozen requests in a month.
      const options = { method, headers, agent: false, signal, ...(ca === undefined ? {} : { ca }) };
      const request = https().request(url, options);
      // An error after the head of the answer is one of the response, too.
      request.on('error', () => {});
      const [response] = (await once(request.end(body), 'response')) as [IncomingMessage];
      const chunks: Buffer[] = [];
      let bytes = 0;
      for await (const chunk of response as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > MAX_BYTES) throw new Error(`the answer is longer than ${MAX_BYTES} bytes`);
        chunks.push(chunk);
      }
      return { status: response.statusCode ?? 0, headers: response.headers, text: Buffer.concat(chunks).toString() };
    } catch (error) {
      const cause = signal.aborted ? new Error(`no answer within ${timeoutMs / 1000} s`) : error;
      const { message, code } = cause as NodeJS.ErrnoException;
      throw new AcmeError(`Cannot reach ${hostOf(url)}: ${message || code || 'the connection failed'}`, { cause });
    }
  };
}

export function readError({ status, headers, text }: AcmeResponse, url: string): AcmeError {
  const problem = parseObject(text);
  const retryAfter = parseRetryAfter(headers['retry-after']);
  return (
    readProblem(problem, retryAfter) ?? new AcmeError(`${hostOf(url)} answers with status ${status}`, { retryAfter })
  );
}

/** Returns the error of a problem document (RFC 7807), or undefined when the object is no problem document. */
export function readProblem(problem: Fields | undefined, retryAfter?: number): AcmeError | undefined {
  if (typeof problem?.type !== 'string') return undefined;
  const type = problem.type.split(':').at(-1);
  // The most precise description is often in a subproblem (RFC 8555, section 6.7.1).
  const subproblems = Array.isArray(problem.subproblems) ? (problem.subproblems as Fields[]) : [];
  const details = [problem, ...subproblems].map(({ detail }) => detail).filter((detail) => typeof detail === 'string');
  // A third party may have written parts of the text, so the message becomes one short line without control characters.
  const message = details
    .join('; ')
    .replaceAll(/[\s\p{C}]+/gu, ' ')
    .slice(0, 600);
  // The type `compound` only says that the subproblems have the types.
  const firstSubtype = subproblems.find(({ type }) => typeof type === 'string')?.type as string | undefined;
  return new AcmeError(message === '' ? `the directory reports ${type}` : message, {
    type: type === 'compound' ? firstSubtype?.split(':').at(-1) : type,
    retryAfter,
  });
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : 'the directory';
}
