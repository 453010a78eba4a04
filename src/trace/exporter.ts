// Sends spans to a collector by OTLP over HTTP: many in a request, one request at a time. The spans that wait are
// bounded: while the collector is away, those beyond the bound are dropped and counted. No client ever waits for it.
import type { Log } from '../base/log.ts';
import { followClock } from './otlp.ts';
import type { SendBatch } from './post.ts';

export interface ExporterOptions {
  readonly send: SendBatch;
  /** The texts around the spans in the body of a request. */
  readonly envelope: readonly [before: string, behind: string];
  /** Milliseconds between two batches. */
  readonly delay: number;
  /** Milliseconds that a batch may take, retries included. */
  readonly timeout: number;
  readonly queueSize: number;
  readonly batchSize: number;
  readonly log: Log;
  /** Runs a function outside of the trace of any request. */
  readonly outside: <T>(work: () => T) => T;
  readonly random?: () => number;
}

export interface Exporter {
  /** @param span as JSON */
  add(span: string): void;
  readonly exported: () => number;
  readonly dropped: () => number;
  /** Sends what waits, for `patience` milliseconds at most. Never rejects. */
  close(patience: number): Promise<void>;
}

/** Characters of all spans that wait. */
const MOST_HELD = 8 * 1024 * 1024;
/** Milliseconds before the first retry. Each further pause is twice as long, up to LONGEST_PAUSE. */
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 5000;

export function createExporter(options: ExporterOptions): Exporter {
  const { send, envelope, delay, timeout, queueSize, batchSize, log, outside, random = Math.random } = options;
  let queue: string[] = [];
  let held = 0;
  let exported = 0;
  let dropped = 0;
  let timer: NodeJS.Timeout | undefined;
  let sending: Promise<void> | undefined;
  /** The moment at which a drain ends. */
  let deadline: number | undefined;
  let wake: (() => void) | undefined;
  let isFailing = false;
  /** Spans of the batch that is on its way. */
  let flying = 0;

  function add(span: string): void {
    if (queue.length >= queueSize || held + span.length > MOST_HELD) {
      dropped++;
      return;
    }
    held += span.length;
    queue.push(span);
    if (queue.length >= batchSize) start();
    else timer ??= outside(() => setTimeout(start, delay).unref());
  }

  function start(): void {
    clearTimeout(timer);
    timer = undefined;
    sending ??= outside(async () => {
      await Promise.resolve();
      // After a full batch the next one follows at once. A part of one waits for more.
      do await sendBatch();
      while (queue.length >= batchSize || (deadline !== undefined && queue.length > 0));
      sending = undefined;
      if (queue.length > 0) timer ??= setTimeout(start, delay).unref();
    });
  }

  async function sendBatch(): Promise<void> {
    const batch = queue.slice(0, batchSize);
    queue = queue.slice(batchSize);
    for (const span of batch) held -= span.length;
    if (batch.length === 0) return;
    followClock();
    flying = batch.length;
    const body = envelope[0] + batch.join(',') + envelope[1];
    const end = performance.now() + timeout;
    for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
      const left = Math.min(end, deadline ?? end) - performance.now();
      const outcome = left <= 0 ? OUT_OF_TIME : await send(body, left);
      // The drain has ended without this batch, and has counted it.
      if (flying === 0) return;
      if (outcome.kind === 'sent') return succeed(batch.length, outcome.rejected, outcome.reason);
      // Half of the pause is by chance, so that all instances do not come back at once.
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

  /** Logs the first failure of a series. */
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
