// The trace that a request brings in its header `traceparent`. It is known without any tracing tool, for log lines and
// for `params.trace`.
import { formatTraceparent, parseTraceparent, type TraceContext } from '../base/traceparent.ts';
import type { SpanOptions, Trace } from '../controller/trace.ts';

/** The trace of the caller, which this service continues without a span of its own. */
class ReceivedTrace implements Trace {
  readonly #context: TraceContext;

  constructor(context: TraceContext) {
    this.#context = context;
  }

  get traceId(): string {
    return this.#context.traceId;
  }

  get spanId(): string {
    return this.#context.spanId;
  }

  get traceparent(): string {
    return formatTraceparent(this.#context);
  }

  span<T>(_name: string, work: (trace: Trace) => T, _options?: SpanOptions): T {
    return work(this);
  }
}

/** @returns undefined when the header `traceparent` is malformed */
export function receivedTrace(header: string): Trace | undefined {
  const context = parseTraceparent(header);
  return context && new ReceivedTrace(context);
}
