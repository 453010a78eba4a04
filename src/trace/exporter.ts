// Sends spans to a collector by OTLP over HTTP. One request carries many spans, and only one request is sent at a time.
// The number of waiting spans is limited. While the collector is away, the spans beyond the limit are dropped and
// counted. No client ever waits for the collector.
import { AsyncResource } from 'node:async_hooks';
import type { Log } from '../base/log.ts';
import { createBatchWriter, type EndedSpan } from './batch.ts';
import { followClock } from './otlp.ts';
import type { SendBatch } from './post.ts';

export interface ExporterOptions {
  readonly send: SendBatch;
  /** The texts before and after the spans in the body of a request. */
  readonly envelope: readonly [before: string, behind: string];
  /** Milliseconds between two batches of spans. */
  readonly delay: number;
  /** The time limit of a batch in milliseconds, including retries. */
  readonly timeout: number;
  readonly queueSize: number;
  readonly batchSize: number;
  readonly log: Log;
  readonly random?: () => number;
}

export interface Exporter {
  /** Adds a span to the queue. */
  add(span: EndedSpan): void;
  readonly exported: () => number;
  readonly dropped: () => number;
  /** Sends the spans that still wait, for at most `patience` milliseconds. Never rejects. */
  close(patience: number): Promise<void>;
}

/** The most characters of all waiting spans together. */
const MAX_HELD = 8 * 1024 * 1024;
/** Milliseconds before the first retry. Each further pause is twice as long, up to MAX_PAUSE. */
const FIRST_PAUSE = 500;
const MAX_PAUSE = 5000;

export function createExporter(options: ExporterOptions): Exporter {
  const { send, envelope, delay, timeout, queueSize, batchSize, log, random = Math.random } = options;
  const writeBatch = createBatchWriter(envelope);
  let queue: EndedSpan[] = [];
  let held = 0;
  let exported = 0;
  let dropped = 0;
  let timer: NodeJS.Timeout | undefined;
  let sending: Promise<void> | undefined;
  /** The time at which `close` stops sending; undefined before `close` is called. */
  let deadline: number | undefined;
  let wake: (() => void) | undefined;
  let isFailing = false;
  /** The number of spans in the batch that is being sent. */
  let flying = 0;
  // Most spans are added within a request. The resource leads out of its context, which then does not live on.
  const outside = new AsyncResource('GATEFOLD_EXPORTER');

  function add(span: EndedSpan): void {
    if (queue.length >= queueSize || held + span.size > MAX_HELD) {
      dropped++;
      return;
    }
    held += span.size;
    queue.push(span);
    if (queue.length >= batchSize) {
      if (sending === undefined) outside.runInAsyncScope(start);
    } else if (timer === undefined) outside.runInAsyncScope(startTimer);
  }

  function startTimer(): void {
    timer ??= setTimeout(start, delay).unref();
  }

  function start(): void {
    clearTimeout(timer);
    timer = undefined;
    sending ??= sendAll();
  }

  async function sendAll(): Promise<void> {
    await Promise.resolve();
    // A full batch is followed by the next one at once. Spans that do not fill a batch wait for more.
    do await sendBatch();
    while (queue.length >= batchSize || (deadline !== undefined && queue.length > 0));
    sending = undefined;
    if (queue.length > 0) startTimer();
  }

  async function sendBatch(): Promise<void> {
    const batch = queue.splice(0, batchSize);
    for (const span of batch) held -= span.size;
    if (batch.length === 0) return;
    flying = batch.length;
    const body = writeBatch(batch);
    followClock();
    const end = performance.now() + timeout;
    for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, MAX_PAUSE)) {
      const left = Math.min(end, deadline ?? end) - performance.now();
      const outcome = left <= 0 ? OUT_OF_TIME : await send(body, left);
      // `close` has ended before this batch was sent, and has already counted its spans as dropped.
      if (flying === 0) return;
      if (outcome.kind === 'sent') return succeed(batch.length, outcome.rejected, outcome.reason);
      // Up to half of the pause is random, so that not all instances retry at the same time.
      const wait = Math.max(outcome.after ?? 0, pause * (0.5 + random() / 2));
      const isLast = outcome.kind === 'refused' || performance.now() + wait > Math.min(end, deadline ?? end);
      if (isLast) return drop(batch.length, outcome.reason);
      report(outcome.reason);
      await sleep(wait);
    }
  }

  function succeed(spans: number, rejected: number, reason: string | undefined): void {
    flying = 0;
    exported += spans - rejected;
    dropped += rejected;
    if (rejected > 0) return report(reason ?? 'the collector rejected spans');
    if (isFailing) log.info('trace-export-restored', { spans_dropped: dropped });
    isFailing = false;
  }

  function drop(spans: number, reason: string): void {
    flying = 0;
    dropped += spans;
    report(reason);
  }

  /** Logs a failure, but only the first one of a series. */
  function report(reason: string): void {
    if (!isFailing) log.warn('trace-export-failed', { reason, spans_dropped: dropped });
    isFailing = true;
  }

  function sleep(time: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(pauseTimer);
        wake = undefined;
        resolve();
      };
      const pauseTimer = setTimeout(end, time).unref();
      wake = end;
    });
  }

  async function close(patience: number): Promise<void> {
    deadline = performance.now() + patience;
    wake?.();
    const before = dropped;
    let late: NodeJS.Timeout | undefined;
    const limit = new Promise<void>((resolve) => {
      late = setTimeout(resolve, patience);
    });
    if (queue.length > 0) start();
    await Promise.race([drainQueue(), limit]);
    clearTimeout(late);
    dropped += queue.length + flying;
    queue = [];
    flying = 0;
    if (dropped > before) log.warn('trace-spans-lost', { spans_dropped: dropped - before });
  }

  async function drainQueue(): Promise<void> {
    while (sending !== undefined) {
      await sending;
      if (queue.length > 0) start();
    }
  }

  return { add, exported: () => exported, dropped: () => dropped, close };
}

const OUT_OF_TIME = { kind: 'refused', reason: 'no time was left', after: undefined } as const;
