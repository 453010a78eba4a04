// A Prometheus histogram: the number of values in each bucket, and the sum of the values. A worker counts values, and
// sends them to the supervisor in pieces: each piece has the values since the piece before. The supervisor adds the
// pieces up.

export interface Histogram {
  /** The upper bounds of the buckets, ascending. One more bucket contains the values above the last bound. */
  readonly bounds: readonly number[];
  /** The number of values in each bucket (not cumulative). */
  readonly buckets: number[];
  sum: number;
}

export interface HistogramPiece {
  readonly buckets: readonly number[];
  readonly sum: number;
}

export function createHistogram(bounds: readonly number[]): Histogram {
  return { bounds, buckets: new Array<number>(bounds.length + 1).fill(0), sum: 0 };
}

/** Counts a value. */
export function observe(histogram: Histogram, value: number): void {
  const { bounds, buckets } = histogram;
  let i = 0;
  // A scan is fast, because most values are in the first buckets.
  while (i < bounds.length && value > (bounds[i] as number)) i++;
  buckets[i] = (buckets[i] as number) + 1;
  histogram.sum += value;
}

export function totalCount({ buckets }: HistogramPiece): number {
  return buckets.reduce((total, count) => total + count, 0);
}

/** Returns the counts since the last call, and sets them to 0. */
export function takePiece(histogram: Histogram): HistogramPiece {
  const piece = { buckets: [...histogram.buckets], sum: histogram.sum };
  histogram.buckets.fill(0);
  histogram.sum = 0;
  return piece;
}

export function addPiece(histogram: Histogram, piece: HistogramPiece): void {
  for (const [i, count] of piece.buckets.entries()) histogram.buckets[i] = (histogram.buckets[i] ?? 0) + count;
  histogram.sum += piece.sum;
}
