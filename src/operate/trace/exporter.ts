// Sends spans to a collector by OTLP over HTTP. One request carries a batch of spans, and only one request is sent at a
// time. The number and the size of waiting spans are limited, so some spans are dropped, for example while the
// collector does not answer. Dropped spans are counted. No client of this service ever waits for the collector.
import { AsyncResource } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../base/log.ts';
import { withTimeLimit } from '../../base/time.ts';
import type { TraceSettings } from './environment.ts';
import { updateClockOffset } from './otlp.ts';
import type { SendBatch } from './post.ts';

/** A span that has ended, and is not yet text. */
export interface EndedSpan {
  /** About how many characters the JSON of the span has. */
  readonly size: number;
  encode(): string;
}

export interface ExporterOptions extends Pick<TraceSettings, 'delay' | 'timeout'> {
  readonly send: SendBatch;
  readonly envelope: readonly [head: string, tail: string];
  readonly log: Log;
  readonly queueSize?: number;
  readonly batchSize?: number;
  readonly random?: () => number;
}

const MAX_QUEUED_CHARACTERS = 8 * 1024 * 1024;
/**
 * Maximum milliseconds of the pause before the first retry of a batch. The maximum of each further pause is twice as
 * long, up to MAX_PAUSE. A pause is shorter by a random part, or longer when the collector asks for it.
 */
const FIRST_PAUSE = 500;
const MAX_PAUSE = 5000;

export function createExporter(options: ExporterOptions) {
  const { send, envelope, delay, timeout, log, queueSize = 2048, batchSize = 512, random = Math.random } = options;
  const [head, tail] = envelope;
  let queue: EndedSpan[] = [];
  let queuedCharacters = 0;
  let exported = 0;
  let dropped = 0;
  /** Starts the batch that is not full yet; undefined while no span waits for the end of `delay`. */
  let delayTimer: NodeJS.Timeout | undefined;
  /** Resolves when no more batches are sent; undefined while none is sent. */
  let sending: Promise<void> | undefined;
  /** When `close` stops sending, by `performance.now()`; undefined before `close` is called. */
  let closeDeadline: number | undefined;
  let pause = new AbortController();
  let isFailing = false;
  let spansInFlight = 0;
  // Most spans are added in the async context of a request. Timers and requests begin in the context of this resource
  // instead, so that they do not keep the context of the request in memory.
  const outsideRequest = new AsyncResource('GATEFOLD_EXPORTER');

  /** Adds a span to the queue. Drops the span when the queue has too many spans or too many characters. */
  function add(span: EndedSpan): void {
    if (queue.length >= queueSize || queuedCharacters + span.size > MAX_QUEUED_CHARACTERS) {
      dropped++;
      return;
    }
    queuedCharacters += span.size;
    queue.push(span);
    if (queue.length >= batchSize) {
      if (sending === undefined) outsideRequest.runInAsyncScope(start);
    } else if (delayTimer === undefined) outsideRequest.runInAsyncScope(startTimer);
  }

  function startTimer(): void {
    delayTimer ??= setTimeout(start, delay).unref();
  }

  function start(): void {
    clearTimeout(delayTimer);
    delayTimer = undefined;
    sending ??= sendAll();
  }

  /** Sends batches one after the other, while a batch is full. After the call of `close`, sends all spans. */
  async function sendAll(): Promise<void> {
    // Code of the request whose span has filled the batch runs on before the batch is written.
    await Promise.resolve();
    do await sendBatch();
    while (queue.length >= batchSize || (closeDeadline !== undefined && queue.length > 0));
    sending = undefined;
    if (queue.length > 0) startTimer();
  }

  async function sendBatch(): Promise<void> {
    const batch = queue.splice(0, batchSize);
    for (const span of batch) queuedCharacters -= span.size;
    if (batch.length === 0) return;
    spansInFlight = batch.length;
    // Spans become text just before they are sent. Texts that wait would be many small objects for V8 to keep.
    const body = Buffer.from(`${head}${batch.map((span) => span.encode()).join(',')}${tail}`);
    updateClockOffset();
    const batchDeadline = performance.now() + timeout;
    const deadline = () => Math.min(batchDeadline, closeDeadline ?? batchDeadline);
    for (let maxPause = FIRST_PAUSE; ; maxPause = Math.min(2 * maxPause, MAX_PAUSE)) {
      const timeLeft = deadline() - performance.now();
      const outcome = timeLeft <= 0 ? OUT_OF_TIME : await send(body, timeLeft);
      // `close` has run out of time while this batch was being sent, and has counted its spans as dropped.
      if (spansInFlight === 0) return;
      if (outcome.kind === 'sent') return succeed(outcome.rejected, outcome.reason);
      if (outcome.kind === 'lost') return drop(outcome.reason);
      // A random part of up to half of the pause is left out, so that not all instances retry at the same time.
      const milliseconds = Math.max(outcome.retryAfter, maxPause * (0.5 + random() / 2));
      if (performance.now() + milliseconds > deadline()) return drop(outcome.reason);
      report(outcome.reason);
      pause = new AbortController();
      await sleep(milliseconds, undefined, { ref: false, signal: pause.signal }).catch(() => {});
    }
  }

  function succeed(rejected: number, reason: string): void {
    exported += spansInFlight - rejected;
    spansInFlight = 0;
    dropped += rejected;
    if (rejected > 0) return report(reason);
    if (isFailing) log.info('trace-export-restored', { spans_dropped: dropped });
    isFailing = false;
  }

  function drop(reason: string): void {
    dropped += spansInFlight;
    spansInFlight = 0;
    report(reason);
  }

  /** Logs a failure, unless one was logged since the last success. */
  function report(reason: string): void {
    if (!isFailing) log.warn('trace-export-failed', { reason, spans_dropped: dropped });
    isFailing = true;
  }

  /** Sends the spans that still wait, for at most `timeLimit` milliseconds. Never rejects. */
  async function close(timeLimit: number): Promise<void> {
    closeDeadline = performance.now() + timeLimit;
    pause.abort();
    const droppedBefore = dropped;
    if (queue.length > 0) start();
    await withTimeLimit(Promise.resolve(sending), timeLimit, () => new Error('late')).catch(() => {});
    dropped += queue.length + spansInFlight;
    queue = [];
    spansInFlight = 0;
    if (dropped > droppedBefore) log.warn('trace-spans-lost', { spans_dropped: dropped - droppedBefore });
  }

  /** The spans that the collector has accepted, and those that were lost, since the start. */
  const status = () => ({ exported, dropped });
  return { add, status, close };
}

const OUT_OF_TIME = { kind: 'lost', reason: 'no time was left' } as const;
