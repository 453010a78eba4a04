// Decides which traces are recorded. Contains the samplers that the variable OTEL_TRACES_SAMPLER can name.
import { SAMPLED, type TraceContext } from '../base/traceparent.ts';

/**
 * @param randomness the number from 0 to 1 that the id of the trace contains
 * @param parent the span of the caller; undefined when the request begins a trace
 */
export type Sampler = (randomness: number, parent: TraceContext | undefined) => boolean;

export const DEFAULT_SAMPLER = 'parentbased_always_on';

type Root = (randomness: number) => boolean;

const always: Root = () => true;
const never: Root = () => false;

const ofRatio =
  (ratio: number): Root =>
  (randomness) =>
    randomness >= 1 - ratio;

/** Follows the decision of the caller's span. Without such a span, the root sampler decides. */
function byParent(root: Root): Sampler {
  return (randomness, parent) => (parent === undefined ? root(randomness) : (parent.flags & SAMPLED) !== 0);
}

const SAMPLERS: ReadonlyMap<string, (ratio: number) => Sampler> = new Map([
  ['always_on', () => always],
  ['always_off', () => never],
  ['traceidratio', ofRatio],
  [DEFAULT_SAMPLER, () => byParent(always)],
  ['parentbased_always_off', () => byParent(never)],
  ['parentbased_traceidratio', (ratio: number) => byParent(ofRatio(ratio))],
]);

export const SAMPLER_NAMES: readonly string[] = [...SAMPLERS.keys()];

/** @param name one of SAMPLER_NAMES @param ratio from 0 to 1 */
export function createSampler(name: string, ratio: number): Sampler {
  return (SAMPLERS.get(name) ?? (() => byParent(always)))(ratio);
}
