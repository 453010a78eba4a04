// Writes metrics in the Prometheus text format 0.0.4. A family is a metric with its samples: values with labels.
import { type Histogram, totalCount } from './histogram.ts';

export interface Sample {
  readonly labels?: Readonly<Record<string, string | number>>;
  readonly value: number | Histogram;
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
      const pairs = Object.entries(labels).map(([label, content]) => `${label}="${escapeLabel(String(content))}"`);
      text += typeof value === 'number' ? renderLine(name, pairs, value) : renderHistogram(name, pairs, value);
    }
  }
  return text;
}

function renderHistogram(name: string, labels: readonly string[], value: Histogram): string {
  let text = '';
  // The count of a bucket includes those of all buckets before.
  let cumulative = 0;
  for (const [i, count] of value.buckets.entries()) {
    cumulative += count;
    const upperBound = `le="${formatNumber(value.bounds[i] ?? Number.POSITIVE_INFINITY)}"`;
    text += renderLine(`${name}_bucket`, [...labels, upperBound], cumulative);
  }
  return text + renderLine(`${name}_sum`, labels, value.sum) + renderLine(`${name}_count`, labels, totalCount(value));
}

function renderLine(name: string, labels: readonly string[], value: number): string {
  return `${name}${labels.length === 0 ? '' : `{${labels.join(',')}}`} ${formatNumber(value)}\n`;
}

function formatNumber(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value);
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

function escapeLabel(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"');
}
