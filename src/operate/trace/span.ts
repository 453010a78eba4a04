// A span from its beginning to its end. One that is not sampled is never exported, but has ids for logs and calls.
import type { AsyncLocalStorage } from 'node:async_hooks';
import type { SpanOptions, Trace } from '../../api/controller/trace.ts';
import { crypto } from '../../base/builtins.ts';
import { attempt } from '../../base/failure.ts';
import { formatTraceparent, RANDOM_ID, SAMPLED, type TraceContext } from '../../base/traceparent.ts';
import { isThenable } from '../../base/values.ts';
import type { EndedSpan } from './exporter.ts';
import { type Attributes, copyAttributes, encodeSpan, type Kind, sizeOf } from './otlp.ts';
import type { Sampler } from './sampler.ts';

export interface Tracer {
  readonly storage: AsyncLocalStorage<Span | undefined>;
  readonly add: (span: EndedSpan) => void;
}

/** The HTTP methods that spans name. Any other method is `_OTHER`. */
export const KNOWN_METHODS: ReadonlySet<string> = new Set(
  'CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT TRACE'.split(' '),
);

/** Matches a code or a class name of an error. No other text of an error is sent, because it may contain data. */
const ERROR_NAME = /^[\w.$-]{1,100}$/;

/** About how many characters the JSON of a span has besides its name and its attributes. */
const FIXED_SIZE = 250;

export class Span implements Trace, EndedSpan {
  readonly tracer: Tracer;
  readonly traceId: string;
  readonly spanId = newSpanId();
  readonly parentSpanId: string | undefined;
  readonly isRemoteParent: boolean;
  readonly flags: number;
  readonly tracestate: string;
  /** A time of `performance.now()`; 0 for a span that is not sampled. */
  readonly startedAt: number;
  endedAt = 0;
  hasFailed = false;
  name = '';
  kind: Kind = 'internal';
  attributes: Attributes = {};

  constructor(
    tracer: Tracer,
    traceId: string,
    parentSpanId: string | undefined,
    isRemoteParent: boolean,
    flags: number,
    tracestate: string,
  ) {
    this.tracer = tracer;
    this.traceId = traceId;
    this.parentSpanId = parentSpanId;
    this.isRemoteParent = isRemoteParent;
    this.flags = flags;
    this.tracestate = tracestate;
    this.startedAt = this.isSampled ? performance.now() : 0;
  }

  get isSampled(): boolean {
    return (this.flags & SAMPLED) !== 0;
  }

  get traceparent(): string {
    return formatTraceparent(this);
  }

  child(): Span {
    return new Span(this.tracer, this.traceId, this.spanId, false, this.flags, this.tracestate);
  }

  span<T>(name: string, work: (trace: Trace) => T, { kind = 'internal', attributes }: SpanOptions = {}): T {
    if (!this.isSampled) return work(this);
    const child = this.child();
    // Reading attributes can throw, as where a getter of an ORM does. The work runs all the same.
    const ownAttributes = attempt(() => copyAttributes(attributes), {});
    const end = (): void => child.end(name, kind, ownAttributes);
    const fail = (error: unknown): void => child.end(name, kind, { ...child.fail(error), ...ownAttributes });
    return this.tracer.storage.run(child, () => {
      let result: T;
      try {
        result = work(child);
      } catch (error) {
        fail(error);
        throw error;
      }
      if (!isThenable(result)) {
        end();
        return result;
      }
      // A thenable of a library, such as a query, is returned itself, because it can have methods that a promise lacks.
      if (Object.getPrototypeOf(result) !== Promise.prototype) {
        observe(result, end, fail);
        return result;
      }
      // The chained promise is returned. If the promise itself were returned, `fail` would count as its handler, and
      // Node would not report a rejection that the author does not handle.
      return result.then(
        (value) => {
          end();
          return value;
        },
        (error: unknown) => {
          fail(error);
          throw error;
        },
      ) as T;
    });
  }

  /** Marks the span as failed. @returns the attribute with the reason */
  fail(error: unknown): { readonly 'error.type': string } {
    this.hasFailed = true;
    return { 'error.type': errorType(error) };
  }

  /** Ends a sampled span, and adds it to the exporter. */
  end(name: string, kind: Kind, attributes: Attributes): void {
    this.name = String(name);
    this.kind = kind;
    this.attributes = attributes;
    this.endedAt = performance.now();
    this.tracer.add(this);
  }

  get size(): number {
    return FIXED_SIZE + this.name.length + sizeOf(this.attributes);
  }

  encode(): string {
    return encodeSpan(this);
  }
}

/** Begins the span of a request. @param parent the span of the caller; undefined when the request begins a trace */
export function beginSpan(tracer: Tracer, sampler: Sampler, parent: TraceContext | undefined, tracestate: string) {
  const traceId = parent?.traceId ?? newTraceId();
  const randomFlag = parent === undefined ? RANDOM_ID : parent.flags & RANDOM_ID;
  const flags = randomFlag | (sampler(traceId, parent) ? SAMPLED : 0);
  return new Span(tracer, traceId, parent?.spanId, parent !== undefined, flags, tracestate);
}

/** Returns the code or else the name of an error; `_OTHER` when neither has the form of ERROR_NAME. */
export function errorType(error: unknown): string {
  try {
    const { code, name } = error as { readonly code?: unknown; readonly name?: unknown };
    for (const text of [code, name]) if (typeof text === 'string' && ERROR_NAME.test(text)) return text;
  } catch {
    // A thrown value can be anything, so even reading its fields can throw.
  }
  return '_OTHER';
}

/**
 * Calls `end` or `fail` when a thenable is first settled. Each call of `then` can run a query again, so this function
 * does not call `then`, but replaces it. If `then` cannot be replaced, `end` is called at once.
 */
function observe(thenable: PromiseLike<unknown>, end: () => void, fail: (error: unknown) => void): void {
  const { then } = thenable;
  let isSettled = false;
  const settle = (report: () => void): void => {
    if (!isSettled) report();
    isSettled = true;
  };
  const observedThen: PromiseLike<unknown>['then'] = function (this: PromiseLike<unknown>, onValue, onError) {
    return then.call(
      this,
      (value) => {
        settle(end);
        return onValue == null ? value : onValue(value);
      },
      (error: unknown) => {
        settle(() => fail(error));
        if (onError == null) throw error;
        return onError(error);
      },
    ) as never;
  };
  if (!Reflect.defineProperty(thenable, 'then', { value: observedThen, configurable: true, writable: true })) end();
}

/** Ids are slices of a long random text: a call of the generator for each would cost more than the rest of a span. */
const POOL_BYTES = 8192;
/** An id of zeros is invalid. So a text with as many zeros in a row as a span id has is not used. */
const ZEROS = '0'.repeat(16);

let digits = '';
let offset = 0;

function takeDigits(length: number): string {
  if (offset + length > digits.length) {
    do digits = crypto().randomBytes(POOL_BYTES).toString('hex');
    while (digits.includes(ZEROS));
    offset = 0;
  }
  const id = digits.slice(offset, offset + length);
  offset += length;
  return id;
}

export const newTraceId = (): string => takeDigits(32);
export const newSpanId = (): string => takeDigits(16);
