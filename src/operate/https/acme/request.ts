// Sends one request to the directory. Time and size are limited. Redirects are not followed, because a directory lists
// its addresses.
import type { IncomingHttpHeaders } from 'node:http';
import { https } from '../../../base/builtins.ts';
import { parseRetryAfter } from '../../../base/time.ts';
import { parseObject } from '../../../base/values.ts';

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

/** The default of `timeoutMs`: milliseconds in which the whole answer must arrive. */
const TIMEOUT_MS = 30_000;
/** Maximum bytes of an answer. A long certificate chain has 20 KiB. */
const MAX_BYTES = 512 * 1024;

/** An ACME server gave no answer, refused a request (RFC 8555, section 6.7), or gave an answer of another form. */
export class AcmeError extends Error {
  /** Such as `rateLimited`, short for `urn:ietf:params:acme:error:rateLimited`. Undefined when there is no type. */
  readonly type: string | undefined;
  /** Milliseconds that the server asks to wait, or undefined when it asks for no time. */
  readonly retryAfter: number | undefined;

  constructor(
    message: string,
    { type, retryAfter, cause }: { type?: string | undefined; retryAfter?: number | undefined; cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.type = type;
    this.retryAfter = retryAfter;
  }
}

export function createSend({ userAgent, ca, timeoutMs = TIMEOUT_MS }: SendOptions): Send {
  return ({ method, url, body, accept }) => {
    const headers: Record<string, string> = { 'User-Agent': userAgent, Accept: accept ?? 'application/json' };
    if (body !== undefined) {
      headers['Content-Type'] = 'application/jose+json';
      headers['Content-Length'] = String(Buffer.byteLength(body));
    }
    return new Promise((resolve, reject) => {
      const fail = (cause: Error) => {
        const code = (cause as NodeJS.ErrnoException).code;
        reject(
          new AcmeError(`Cannot reach ${hostOf(url)}: ${cause.message || code || 'the connection failed'}`, { cause }),
        );
      };
      if (!url.startsWith('https://')) return fail(new Error('the address is not https'));
      const signal = AbortSignal.timeout(timeoutMs);
      signal.addEventListener('abort', () => fail(new Error(`no answer within ${timeoutMs / 1000} s`)));
      // Each request opens its own connection, because a server may cut an idle one just before it is used again. The
      // cost is small: there are about a dozen requests in a month.
      const request = https().request(
        url,
        { method, headers, agent: false, signal, ...(ca === undefined ? {} : { ca }) },
        (response) => {
          const chunks: Buffer[] = [];
          let bytes = 0;
          response.on('error', fail);
          response.on('data', (chunk: Buffer) => {
            bytes += chunk.length;
            if (bytes > MAX_BYTES) response.destroy(new Error(`the answer is longer than ${MAX_BYTES} bytes`));
            else chunks.push(chunk);
          });
          response.on('end', () =>
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              text: Buffer.concat(chunks).toString('utf8'),
            }),
          );
        },
      );
      request.on('error', fail);
      request.end(body);
    });
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
export function readProblem(
  problem: Readonly<Record<string, unknown>> | undefined,
  retryAfter?: number,
): AcmeError | undefined {
  if (typeof problem?.type !== 'string') return undefined;
  const type = problem.type.split(':').at(-1);
  // The most precise description is often in a subproblem (RFC 8555, section 6.7.1).
  const subproblems = Array.isArray(problem.subproblems) ? (problem.subproblems as Record<string, unknown>[]) : [];
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
