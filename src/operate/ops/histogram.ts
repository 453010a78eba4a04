// A Prometheus histogram. Each report of a worker has the delta since the last one, which the supervisor adds up.

export interface Histogram {
  /** The upper bounds of the buckets (inclusive), ascending. One more bucket has the values above the last bound. */
  readonly bounds: readonly number[];
  readonly buckets: number[];
  sum: number;
}

export type HistogramDelta = Readonly<Pick<Histogram, 'buckets' | 'sum'>>;

export function createHistogram(bounds: readonly number[]): Histogram {
  return { bounds, buckets: new Array<number>(bounds.length + 1).fill(0), sum: 0 };
}

export function observe(histogram: Histogram, value: number): void {
  const { bounds, buckets } = histogram;
  let i = 0;
  // A scan is fast, because most values are in the first buckets.
  while (i < bounds.length && value > (bounds[i] as number)) i++;
  buckets[i] = (buckets[i] as number) + 1;
  histogram.sum += value;
}

export function totalCount({ buckets }: HistogramDelta): number {
  return buckets.reduce((total, count) => total + count, 0);
}

export function takeDelta(histogram: Histogram): HistogramDelta {
  const delta = { buckets: [...histogram.buckets], sum: histogram.sum };
  histogram.buckets.fill(0);
  histogram.sum = 0;
  return delta;
}

export function addDelta(histogram: Histogram, delta: HistogramDelta): void {
  for (const [i, count] of delta.buckets.entries()) histogram.buckets[i] = (histogram.buckets[i] as number) + count;
  histogram.sum += delta.sum;
}
