// Renders the Prometheus text format, version 0.0.4: families of samples in, text out. It knows no particular metric.
import { countOf, type HistogramPiece } from './histogram.ts';

export interface Sample {
  /** In the order in which they are written. */
  readonly labels?: Readonly<Record<string, string | number>>;
  readonly value: number | (HistogramPiece & { readonly bounds: readonly number[] });
}

export interface Family {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly samples: Iterable<Sample>;
}

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

export function renderFamilies(families: Iterable<Family>): string {
  let text = '';
  for (const { name, type, help, samples } of families) {
    text += `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n`;
    for (const { labels = {}, value } of samples) {
      const list = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(String(text))}"`);
      text += typeof value === 'number' ? line(name, list, value) : histogramLines(name, list, value);
    }
  }
  return text;
}

function histogramLines(name: string, labels: readonly string[], value: Exclude<Sample['value'], number>): string {
  let text = '';
  let cumulative = 0;
  for (const [i, count] of value.buckets.entries()) {
    cumulative += count;
    text += line(
      `${name}_bucket`,
      [...labels, `le="${number(value.bounds[i] ?? Number.POSITIVE_INFINITY)}"`],
      cumulative,
    );
  }
  return text + line(`${name}_sum`, labels, value.sum) + line(`${name}_count`, labels, countOf(value));
}

function line(name: string, labels: readonly string[], value: number): string {
  return `${name}${labels.length === 0 ? '' : `{${labels.join(',')}}`} ${number(value)}\n`;
}

/** As Go reads it: that is what scrapes. */
function number(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value);
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

function escapeLabel(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"');
}
