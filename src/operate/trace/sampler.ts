// The samplers that the variable OTEL_TRACES_SAMPLER can name. A sampler decides whether a trace is recorded.
import { SAMPLED, type TraceContext } from '../../base/traceparent.ts';

/** @param parent the span of the caller; undefined when the request begins a trace */
export type Sampler = (traceId: string, parent: TraceContext | undefined) => boolean;

export const DEFAULT_SAMPLER = 'parentbased_always_on';

const always = () => true;
const never = () => false;

/** The last 13 hexadecimal digits of a trace id are random, and have this many values. */
const RANDOM_DIGITS = 13;
const RANGE = 2 ** 52;

/** All services of a trace decide by the same digits of its id, so they decide alike. */
function sampleRatio(ratio: number): Sampler {
  return (traceId) => Number.parseInt(traceId.slice(-RANDOM_DIGITS), 16) / RANGE >= 1 - ratio;
}

/** Repeats the decision of the caller's span. If the request begins a trace, the root sampler decides. */
function followParent(decideRoot: Sampler): Sampler {
  return (traceId, parent) => (parent === undefined ? decideRoot(traceId, parent) : (parent.flags & SAMPLED) !== 0);
}

/** @param ratio the part of traces to record, from 0 to 1 */
export type CreateSampler = (ratio: number) => Sampler;

export const SAMPLERS: ReadonlyMap<string, CreateSampler> = new Map([
  ['always_on', () => always],
  ['always_off', () => never],
  ['traceidratio', sampleRatio],
  [DEFAULT_SAMPLER, () => followParent(always)],
  ['parentbased_always_off', () => followParent(never)],
  ['parentbased_traceidratio', (ratio: number) => followParent(sampleRatio(ratio))],
]);
