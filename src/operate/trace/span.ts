// A span from its beginning to its end. A span that is not sampled is never exported, but it has ids for the log and
// for the services that are called.
import type { AsyncLocalStorage } from 'node:async_hooks';
import type { SpanOptions, Trace } from '../../api/controller/trace.ts';
import { formatTraceparent, RANDOM_ID, SAMPLED, type TraceContext } from '../../base/traceparent.ts';
import { isThenable } from '../../base/values.ts';
import type { EndedSpan } from './exporter.ts';
import { newSpanId, newTraceId, randomnessOf } from './ids.ts';
import { attributesOf, encodeNameAndKind, encodeSpan, type Kind, textAttribute } from './otlp.ts';
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

/** About how many characters the JSON of a span has besides `beginning`, `path` and `rest`. */
const FIXED_SIZE = 250;

export class Span implements Trace, EndedSpan {
  readonly parentSpanId: string | undefined;
  readonly isRemoteParent: boolean;
  readonly flags: number;
  readonly tracestate: string;
  /** A time of `performance.now()`, like `endedAt`; 0 for a span that is not sampled. */
  readonly startedAt: number;
  endedAt = 0;
  hasFailed = false;
  /** JSON: the name, the kind, and the first attributes. For requests, many spans share this text. */
  beginning = '';
  /**
   * The path of the URL. `beginning` then stops just before the value of `url.path`, and `encodeSpan` puts the path
   * there. Undefined for a span without this attribute.
   */
  path: string | undefined;
  /** JSON: the other attributes. If there is a path, the text begins with the end of its attribute: `}}`. */
  rest = '';
  readonly tracer: Tracer;
  /**
   * The trace id, or the number from which the id is made when it is first read. Many ids of spans that are not sampled
   * are never read.
   */
  #traceId: string | number;
  #spanId = '';

  /** @param traceId the id, or a number from 0 to less than 1 from which a new id is made (ids.ts) */
  constructor(
    tracer: Tracer,
    traceId: string | number,
    parentSpanId: string | undefined,
    isRemoteParent: boolean,
    flags: number,
    tracestate: string,
  ) {
    this.tracer = tracer;
    this.#traceId = traceId;
    this.parentSpanId = parentSpanId;
    this.isRemoteParent = isRemoteParent;
    this.flags = flags;
    this.tracestate = tracestate;
    this.startedAt = this.isSampled ? performance.now() : 0;
  }

  get traceId(): string {
    if (typeof this.#traceId === 'number') this.#traceId = newTraceId(this.#traceId);
    return this.#traceId;
  }

  get spanId(): string {
    if (this.#spanId === '') this.#spanId = newSpanId();
    return this.#spanId;
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
    const encodedAttributes = attributesOf(attributes);
    const end = (): void => child.end(name, kind, encodedAttributes);
    const fail = (error: unknown): void => {
      encodedAttributes.push(child.fail(error));
      end();
    };
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
  fail(error: unknown): string {
    this.hasFailed = true;
    return textAttribute('error.type', errorType(error));
  }

  /** Ends the span, and adds it to the exporter if it is sampled. */
  end(name: string, kind: Kind, attributes: readonly string[]): void {
    if (!this.isSampled) return;
    this.endWithJson(encodeNameAndKind(String(name), kind), undefined, attributes.join(','));
  }

  endWithJson(beginning: string, path: string | undefined, rest: string): void {
    this.beginning = beginning;
    this.path = path;
    this.rest = rest;
    this.endedAt = performance.now();
    this.tracer.add(this);
  }

  get size(): number {
    return FIXED_SIZE + this.beginning.length + (this.path?.length ?? 0) + this.rest.length;
  }

  encode(): string {
    return encodeSpan(this);
  }
}

/** Begins the span of a request. @param parent the span of the caller; undefined when the request begins a trace */
export function beginSpan(
  tracer: Tracer,
  sampler: Sampler,
  parent: TraceContext | undefined,
  tracestate: string,
): Span {
  const randomness = parent === undefined ? Math.random() : randomnessOf(parent.traceId);
  const randomFlag = parent === undefined ? RANDOM_ID : parent.flags & RANDOM_ID;
  const flags = randomFlag | (sampler(randomness, parent) ? SAMPLED : 0);
  return new Span(tracer, parent?.traceId ?? randomness, parent?.spanId, parent !== undefined, flags, tracestate);
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
 * Calls `end` or `fail` when a thenable is first fulfilled or rejected. Each call of `then` can run a query again, so
 * this function does not call `then`. Instead, it replaces `then`, to see the results of the author's calls. If `then`
 * cannot be replaced, `end` is called at once.
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
