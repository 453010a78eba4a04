// Decides which traces are recorded: the samplers that OTEL_TRACES_SAMPLER names.
import { SAMPLED, type TraceContext } from '../base/traceparent.ts';

/** @param parent the span of the caller; undefined: the request begins a trace */
export type Sampler = (traceId: string, parent: TraceContext | undefined) => boolean;

export const DEFAULT_SAMPLER = 'parentbased_always_on';

type Root = (traceId: string) => boolean;

const always: Root = () => true;
const never: Root = () => false;

/** Compares the last 52 bits of the id, which are random, so that all services with one ratio choose the same traces. */
function ofRatio(ratio: number): Root {
  const threshold = Math.round((1 - ratio) * 2 ** 52);
  return (traceId) => Number.parseInt(traceId.slice(19), 16) >= threshold;
}

/** A span of the caller decides. The root sampler decides where there is none. */
function byParent(root: Root): Sampler {
  return (traceId, parent) => (parent === undefined ? root(traceId) : (parent.flags & SAMPLED) !== 0);
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
