// Sends one request to the collector, and interprets the answer (OTLP 1, "OTLP/HTTP Response").
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { zlib } from '../base/builtins.ts';
import type { Answer } from './answer.ts';
import { createConnection } from './connection.ts';
import type { TraceSettings } from './environment.ts';

export type Outcome =
  | { readonly kind: 'sent'; readonly rejected: number; readonly reason: string | undefined }
  /** The request may be retried. `retryAfter` is how many milliseconds the collector asks the sender to wait. */
  | { readonly kind: 'failed'; readonly reason: string; readonly retryAfter: number | undefined }
  /** The batch must not be sent again: the collector would refuse a retry, too, or no time was left. */
  | { readonly kind: 'refused'; readonly reason: string; readonly retryAfter: undefined };

/**
 * Sends one batch and never rejects. After the result, nothing reads the body, so its memory can be used again.
 *
 * @param timeLimit milliseconds for the request and its answer, without the compression of the body
 */
export type SendBatch = (body: Buffer, timeLimit: number) => Promise<Outcome>;

type PostSettings = Pick<
  TraceSettings,
  'endpoint' | 'headers' | 'certificate' | 'clientCertificate' | 'clientKey' | 'compress'
>;

/** The statuses after which the protocol allows a retry. */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** @throws Error when the file of a certificate cannot be read */
export function createBatchSender(settings: PostSettings, userAgent: string): SendBatch {
  const { endpoint, headers, certificate, clientCertificate, clientKey, compress } = settings;
  const files = { ca: certificate, cert: clientCertificate, key: clientKey };
  const contents = Object.entries(files).flatMap(([name, file]) => (file ? [[name, readFileSync(file)]] : []));
  const sendPost = createConnection({
    endpoint,
    headers: {
      ...credentialsOf(endpoint),
      ...headers,
      'content-type': 'application/json',
      'user-agent': userAgent,
      ...(compress && { 'content-encoding': 'gzip' }),
    },
    tlsOptions: Object.fromEntries(contents),
  });
  return async (body, timeLimit) => {
    try {
      const bytes = compress ? await promisify(zlib().gzip)(body) : body;
      return interpret(await sendPost(bytes, timeLimit));
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return { kind: 'failed', reason: code ?? message, retryAfter: undefined };
    }
  };
}

/** Returns the header for the user name and password of a URL such as `https://user:password@collector`. */
function credentialsOf({ username, password }: URL): { authorization?: string } {
  if (username === '' && password === '') return {};
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` };
}

function interpret({ status, headers, text }: Answer): Outcome {
  if (status < 300) return readPartialSuccess(text);
  const reason = `the collector answered ${status}`;
  if (!RETRYABLE.has(status)) return { kind: 'refused', reason, retryAfter: undefined };
  return { kind: 'failed', reason, retryAfter: readRetryAfter(headers.get('retry-after')) };
}

/** Reads the answer to a batch that the collector has accepted, at least in part. Such a batch is not sent again. */
function readPartialSuccess(text: string): Outcome {
  const { rejectedSpans, errorMessage } = partialSuccessOf(text);
  const count = Number(rejectedSpans);
  const rejected = Number.isSafeInteger(count) && count > 0 ? count : 0;
  const reason = typeof errorMessage === 'string' && errorMessage !== '' ? errorMessage.slice(0, 200) : undefined;
  return { kind: 'sent', rejected, reason };
}

function partialSuccessOf(text: string): { readonly rejectedSpans?: unknown; readonly errorMessage?: unknown } {
  try {
    return JSON.parse(text)?.partialSuccess ?? {};
  } catch {
    // The body of an answer can be anything. The status has shown that the collector has the spans.
    return {};
  }
}

/** Reads the header Retry-After: seconds or a date (RFC 9110, 10.2.3). Returns milliseconds from now. */
function readRetryAfter(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}
