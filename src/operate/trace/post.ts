// Sends one request to the collector, and interprets the answer (OTLP 1, "OTLP/HTTP Response").
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { http, https, zlib } from '../../base/builtins.ts';
import { parseRetryAfter } from '../../base/time.ts';
import { isObject, parseObject } from '../../base/values.ts';
import type { TraceSettings } from './environment.ts';

export type Outcome =
  /** The collector has the batch, but has rejected `rejected` of its spans for this reason. */
  | { readonly kind: 'sent'; readonly rejected: number; readonly reason: string }
  /** The batch can be sent again. `retryAfter` is how many milliseconds the collector asks the sender to wait, or 0. */
  | { readonly kind: 'retryable'; readonly reason: string; readonly retryAfter: number }
  /** The batch must not be sent again. The collector would refuse it again, or no time is left (exporter.ts). */
  | { readonly kind: 'lost'; readonly reason: string };

/** Sends one batch and never rejects. @param timeLimit milliseconds, without the compression of the body */
export type SendBatch = (body: Buffer, timeLimit: number) => Promise<Outcome>;

/** Milliseconds. Collectors close idle connections after some seconds, and a request that is sent just then fails. */
const MAX_IDLE = 1000;
/** When this many characters of an answer have come, no more are read. */
const MAX_ANSWER_LENGTH = 64 * 1024;
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504]);

export function createBatchSender(
  { endpoint, headers, tls, compress }: Pick<TraceSettings, 'endpoint' | 'headers' | 'tls' | 'compress'>,
  userAgent: string,
): SendBatch {
  const client = endpoint.protocol === 'https:' ? https() : http;
  const agent = new client.Agent({ keepAlive: true, maxSockets: 1, timeout: MAX_IDLE, ...tls });
  const fields = {
    ...{ ...headers, 'content-type': 'application/json', 'user-agent': userAgent },
    ...(compress && { 'content-encoding': 'gzip' }),
  };

  function post(body: Buffer, timeLimit: number): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      const options = { method: 'POST', agent, headers: { ...fields, 'content-length': body.length } };
      const request = client.request(endpoint, options, async (response) => {
        resolve(interpret(response, await readText(response)));
        // A collector can answer before the whole body is sent.
        if (!request.writableFinished) request.destroy();
      });
      const timer = setTimeout(
        () => request.destroy(new Error('the collector did not answer in time')),
        Math.ceil(timeLimit),
      );
      request.on('close', () => clearTimeout(timer));
      request.on('error', reject).end(body);
    });
  }

  return async (body, timeLimit) => {
    try {
      return await post(compress ? await promisify(zlib().gzip)(body) : body, timeLimit);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return { kind: 'retryable', reason: code ?? message, retryAfter: 0 };
    }
  };
}

/** Returns the body, or the part of it that has come before the connection broke: the status alone says what holds. */
async function readText(response: IncomingMessage): Promise<string> {
  let text = '';
  try {
    for await (const chunk of response.setEncoding('utf8')) {
      text += chunk;
      // The end of the loop closes the connection.
      if (text.length >= MAX_ANSWER_LENGTH) break;
    }
  } catch {}
  return text;
}

function interpret({ statusCode: status = 0, headers }: IncomingMessage, text: string): Outcome {
  if (status < 300) return readSuccess(text);
  const reason = `the collector answered ${status}`;
  if (!RETRYABLE.has(status)) return { kind: 'lost', reason };
  return { kind: 'retryable', reason, retryAfter: parseRetryAfter(headers['retry-after']) ?? 0 };
}

/** Reads the answer to a batch that the collector has taken. If it has rejected spans, `partialSuccess` counts them. */
function readSuccess(text: string): Outcome {
  // The body can be anything. The status alone shows that the collector has the spans.
  const partialSuccess = parseObject(text)?.partialSuccess;
  const { rejectedSpans, errorMessage } = isObject(partialSuccess) ? partialSuccess : {};
  const count = Number(rejectedSpans);
  const rejected = Number.isSafeInteger(count) && count > 0 ? count : 0;
  const collectorReason = typeof errorMessage === 'string' ? errorMessage.slice(0, 200) : '';
  return { kind: 'sent', rejected, reason: collectorReason || 'the collector rejected spans' };
}
