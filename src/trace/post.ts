// One request to the collector, and what its answer means (OTLP 1, "OTLP/HTTP Response").
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import type { RequestOptions } from 'node:https';
import { promisify } from 'node:util';
import { Agent, https, sendRequest, zlib } from '../base/builtins.ts';
import type { TraceSettings } from './environment.ts';

export type Outcome =
  | { readonly kind: 'sent'; readonly rejected: number; readonly reason: string | undefined }
  /** `after`: the milliseconds that the collector wants to be left alone. */
  | { readonly kind: 'failed'; readonly reason: string; readonly after: number | undefined }
  /** A retry would be refused, too. */
  | { readonly kind: 'refused'; readonly reason: string; readonly after: undefined };

/** @param time milliseconds at most. Never rejects. */
export type SendBatch = (body: string, time: number) => Promise<Outcome>;

type PostSettings = Pick<
  TraceSettings,
  'endpoint' | 'headers' | 'certificate' | 'clientCertificate' | 'clientKey' | 'compress'
>;

/** The statuses that the protocol lets a sender retry. */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** Bytes of an answer that are read. */
const LONGEST_ANSWER = 64 * 1024;

/** @throws Error when a file of a certificate cannot be read */
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

  async function post(body: string, time: number): Promise<Outcome> {
    const bytes = compress ? await promisify(zlib().gzip)(body) : Buffer.from(body);
    return new Promise((resolve) => {
      const fail = (error: NodeJS.ErrnoException): void =>
        resolve({ kind: 'failed', reason: error.code ?? error.message, after: undefined });
      const request = send(endpoint, options, (response) => {
        response.on('error', fail);
        readAnswer(response).then(resolve, fail);
      });
      request.on('error', fail);
      const timer = setTimeout(() => request.destroy(new Error('the collector did not answer in time')), time).unref();
      request.on('close', () => clearTimeout(timer));
      request.end(bytes);
    });
  }

  return post;
}

async function readAnswer(response: IncomingMessage): Promise<Outcome> {
  const status = response.statusCode ?? 0;
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) if (text.length < LONGEST_ANSWER) text += chunk;
  if (status >= 200 && status < 300) return readPartialSuccess(text);
  const reason = `the collector answered ${status}`;
  if (!RETRYABLE.has(status)) return { kind: 'refused', reason, after: undefined };
  return { kind: 'failed', reason, after: readRetryAfter(response.headers['retry-after']) };
}

/** The collector may have taken only a part. Such a batch is not sent again. */
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
    // A collector may answer with anything. The status says that it has the spans.
    return {};
  }
}

/** Seconds, or a date (RFC 9110, 10.2.3). */
function readRetryAfter(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}
