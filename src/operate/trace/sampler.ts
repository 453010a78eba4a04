// The samplers that the variable OTEL_TRACES_SAMPLER can name. A sampler decides whether a trace is recorded.
import { SAMPLED, type TraceContext } from '../../base/traceparent.ts';

/**
 * @param randomness the number from 0 to less than 1 that the last digits of the trace id stand for. All services of a
 *   trace decide by this number, so they decide alike
 * @param parent the span of the caller; undefined when the request begins a trace
 * @returns whether the trace is recorded
 */
export type Sampler = (randomness: number, parent: TraceContext | undefined) => boolean;

export const DEFAULT_SAMPLER = 'parentbased_always_on';

/** Decides about a trace without asking the caller's span. */
type RootSampler = (randomness: number) => boolean;

const always: RootSampler = () => true;
const never: RootSampler = () => false;

const sampleRatio =
  (ratio: number): RootSampler =>
  (randomness) =>
    randomness >= 1 - ratio;

/** Repeats the decision of the caller's span. If the request begins a trace, the root sampler decides. */
function followParent(decideRoot: RootSampler): Sampler {
  return (randomness, parent) => (parent === undefined ? decideRoot(randomness) : (parent.flags & SAMPLED) !== 0);
}

type CreateSampler = (ratio: number) => Sampler;

const SAMPLERS: ReadonlyMap<string, CreateSampler> = new Map([
  ['always_on', () => always],
  ['always_off', () => never],
  ['traceidratio', sampleRatio],
  [DEFAULT_SAMPLER, () => followParent(always)],
  ['parentbased_always_off', () => followParent(never)],
  ['parentbased_traceidratio', (ratio: number) => followParent(sampleRatio(ratio))],
]);

export const SAMPLER_NAMES: readonly string[] = [...SAMPLERS.keys()];

/** @param name one of SAMPLER_NAMES @param ratio the part of traces to record, from 0 to 1 */
export function createSampler(name: string, ratio: number): Sampler {
  return (SAMPLERS.get(name) as CreateSampler)(ratio);
}
