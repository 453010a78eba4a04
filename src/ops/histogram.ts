// A Prometheus histogram as plain numbers: how many values fell under each bound, and their sum. Filled in a worker,
// sent in pieces, added up by the supervisor.

export interface Histogram {
  /** Upper bounds, ascending; what lies above the last one is counted all the same. */
  readonly bounds: readonly number[];
  /** How many values fell into each bucket alone (not cumulative), one more than there are bounds. */
  readonly buckets: number[];
  sum: number;
}

/** What was added since the last piece. */
export interface HistogramPiece {
  readonly buckets: readonly number[];
  readonly sum: number;
}

export function createHistogram(bounds: readonly number[]): Histogram {
  return { bounds, buckets: new Array<number>(bounds.length + 1).fill(0), sum: 0 };
}

/** Called for every request: no allocation, and a scan, because most values fall under the first bounds. */
export function observe(histogram: Histogram, value: number): void {
  const { bounds, buckets } = histogram;
  let i = 0;
  while (i < bounds.length && value > (bounds[i] as number)) i++;
  buckets[i] = (buckets[i] as number) + 1;
  histogram.sum += value;
}

export function countOf({ buckets }: HistogramPiece): number {
  return buckets.reduce((total, count) => total + count, 0);
}

/** Takes out what is in it. */
export function takePiece(histogram: Histogram): HistogramPiece {
  const piece = { buckets: [...histogram.buckets], sum: histogram.sum };
  histogram.buckets.fill(0);
  histogram.sum = 0;
  return piece;
}

export function addPiece(histogram: Histogram, piece: HistogramPiece): void {
  piece.buckets.forEach((count, i) => {
    histogram.buckets[i] = (histogram.buckets[i] ?? 0) + count;
  });
  histogram.sum += piece.sum;
}
