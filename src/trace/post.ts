// Sends one request to the collector, and interprets the answer (OTLP 1, "OTLP/HTTP Response").
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { zlib } from '../base/builtins.ts';
import type { Answer } from './answer.ts';
import { createConnection } from './connection.ts';
import type { TraceSettings } from './environment.ts';

export type Outcome =
  /** The collector has the batch, but has rejected `rejected` of its spans for this reason. */
  | { readonly kind: 'sent'; readonly rejected: number; readonly reason: string }
  /** The batch can be sent again. `retryAfter` is how many milliseconds the collector asks the sender to wait, or 0. */
  | { readonly kind: 'retryable'; readonly reason: string; readonly retryAfter: number }
  /** The batch must not be sent again. The collector would refuse it again, or no time is left (exporter.ts). */
  | { readonly kind: 'lost'; readonly reason: string };

/**
 * Sends one batch and never rejects. After the result, nothing reads the body, so its memory can be used again.
 *
 * @param timeLimit milliseconds for the request and its answer, without the compression of the body
 */
export type SendBatch = (body: Buffer, timeLimit: number) => Promise<Outcome>;

type PostSettings = Pick<
  TraceSettings,
  'endpoint' | 'headers' | 'caFile' | 'clientCertificateFile' | 'clientKeyFile' | 'compress'
>;

/** The statuses after which the protocol allows a retry. */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** @throws Error when a file of the settings cannot be read */
export function createBatchSender(settings: PostSettings, userAgent: string): SendBatch {
  const { endpoint, headers, caFile, clientCertificateFile, clientKeyFile, compress } = settings;
  const tlsFiles = Object.entries({ ca: caFile, cert: clientCertificateFile, key: clientKeyFile });
  const sendPost = createConnection({
    endpoint,
    headers: {
      ...headers,
      'content-type': 'application/json',
      'user-agent': userAgent,
      ...(compress && { 'content-encoding': 'gzip' }),
    },
    tlsOptions: Object.fromEntries(tlsFiles.flatMap(([name, path]) => (path ? [[name, readFileSync(path)]] : []))),
  });
  return async (body, timeLimit) => {
    try {
      const bytes = compress ? await promisify(zlib().gzip)(body) : body;
      return interpret(await sendPost(bytes, timeLimit));
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return { kind: 'retryable', reason: code ?? message, retryAfter: 0 };
    }
  };
}

function interpret({ status, headers, text }: Answer): Outcome {
  if (status < 300) return readSuccess(text);
  const reason = `the collector answered ${status}`;
  if (!RETRYABLE.has(status)) return { kind: 'lost', reason };
  return { kind: 'retryable', reason, retryAfter: readRetryAfter(headers.get('retry-after')) };
}

/** Reads the answer to a batch that the collector has taken. If it has rejected spans, `partialSuccess` counts them. */
function readSuccess(text: string): Outcome {
  const { rejectedSpans, errorMessage } = parsePartialSuccess(text);
  const count = Number(rejectedSpans);
  const rejected = Number.isSafeInteger(count) && count > 0 ? count : 0;
  const collectorReason = typeof errorMessage === 'string' ? errorMessage.slice(0, 200) : '';
  return { kind: 'sent', rejected, reason: collectorReason || 'the collector rejected spans' };
}

function parsePartialSuccess(text: string): { readonly rejectedSpans?: unknown; readonly errorMessage?: unknown } {
  try {
    return JSON.parse(text)?.partialSuccess ?? {};
  } catch {
    // The body of an answer can be anything. The status alone shows that the collector has the spans.
    return {};
  }
}

/**
 * Reads the header Retry-After: seconds or a date (RFC 9110, 10.2.3).
 *
 * @returns milliseconds from now; 0 when the header is absent or in another form
 */
function readRetryAfter(header = ''): number {
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? 0 : Math.max(0, date - Date.now());
}
