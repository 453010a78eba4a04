// Sends one request to the collector, and interprets the answer (OTLP 1, "OTLP/HTTP Response").
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import type { RequestOptions } from 'node:https';
import { promisify } from 'node:util';
import { Agent, https, sendRequest, zlib } from '../base/builtins.ts';
import type { TraceSettings } from './environment.ts';

export type Outcome =
  | { readonly kind: 'sent'; readonly rejected: number; readonly reason: string | undefined }
  /** The request may be retried. `retryAfter` is how many milliseconds the collector asks the sender to wait. */
  | { readonly kind: 'failed'; readonly reason: string; readonly retryAfter: number | undefined }
  /** The collector would refuse a retry, too. */
  | { readonly kind: 'refused'; readonly reason: string; readonly retryAfter: undefined };

/**
 * Sends one batch and never rejects. After the result, nothing reads the body, so its memory can be used again.
 *
 * @param timeLimit milliseconds
 */
export type SendBatch = (body: Buffer, timeLimit: number) => Promise<Outcome>;

type PostSettings = Pick<
  TraceSettings,
  'endpoint' | 'headers' | 'certificate' | 'clientCertificate' | 'clientKey' | 'compress'
>;

/** The statuses after which the protocol allows a retry. */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** About this many characters of an answer are stored at most. The rest is read and dropped. */
const MAX_ANSWER_LENGTH = 64 * 1024;

/** @throws Error when the file of a certificate cannot be read */
export function createPost(settings: PostSettings, userAgent: string): SendBatch {
  const { endpoint, headers, certificate, clientCertificate, clientKey, compress } = settings;
  const isSecure = endpoint.protocol === 'https:';
  const files = { ca: certificate, cert: clientCertificate, key: clientKey };
  const contents = Object.entries(files).flatMap(([name, file]) => (file ? [[name, readFileSync(file)]] : []));
  const send: typeof sendRequest = isSecure ? https().request : sendRequest;
  const agentOptions = { keepAlive: true, maxSockets: 1 };
  const options: RequestOptions = {
    method: 'POST',
    agent: isSecure ? new (https().Agent)(agentOptions) : new Agent(agentOptions),
    ...(isSecure && Object.fromEntries(contents)),
    headers: {
      ...headers,
      'content-type': 'application/json',
      'user-agent': userAgent,
      ...(compress && { 'content-encoding': 'gzip' }),
    },
  };

  async function post(body: Buffer, timeLimit: number): Promise<Outcome> {
    const bytes = compress ? await promisify(zlib().gzip)(body) : body;
    return new Promise((resolve) => {
      const fail = (error: NodeJS.ErrnoException): void =>
        resolve({ kind: 'failed', reason: error.code ?? error.message, retryAfter: undefined });
      const request = send(endpoint, options, (response) => {
        response.on('error', fail);
        // A collector can answer before it has read the whole body. The rest is then not sent.
        response.on('end', () => request.writableFinished || request.destroy());
        readAnswer(response).then(resolve, fail);
      });
      request.on('error', fail);
      const timer = setTimeout(
        () => request.destroy(new Error('the collector did not answer in time')),
        timeLimit,
      ).unref();
      request.on('close', () => clearTimeout(timer));
      request.end(bytes);
    });
  }

  return post;
}

async function readAnswer(response: IncomingMessage): Promise<Outcome> {
  const status = response.statusCode ?? 0;
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) if (text.length < MAX_ANSWER_LENGTH) text += chunk;
  if (status >= 200 && status < 300) return readPartialSuccess(text);
  const reason = `the collector answered ${status}`;
  if (!RETRYABLE.has(status)) return { kind: 'refused', reason, retryAfter: undefined };
  return { kind: 'failed', reason, retryAfter: readRetryAfter(response.headers['retry-after']) };
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
