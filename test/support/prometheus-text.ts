// A strict parser of the Prometheus text format 0.0.4. An error names the line, also for mistakes that a lenient
// scraper accepts. The parser checks the format and its naming rules for any metric.
import assert from 'node:assert/strict';

export interface ParsedSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface ParsedFamily {
  readonly type: string;
  readonly help: string;
  readonly samples: readonly ParsedSample[];
}

export type ParsedMetrics = ReadonlyMap<string, ParsedFamily>;

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const HELP = new RegExp(`^# HELP (${NAME}) ((?:[^\\\\]|\\\\\\\\|\\\\n)+)$`);
const TYPE = new RegExp(`^# TYPE (${NAME}) (counter|gauge|histogram)$`);
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(.+)\\})? (\\S+)$`);
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(,|$)/;
const VALUE = /^(?:[+-]Inf|NaN|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?)$/;

/** @throws AssertionError for any text that breaks the format */
export function parseMetrics(text: string): ParsedMetrics {
  assert.ok(text.endsWith('\n'), 'the text does not end with a line feed');
  const families = new Map<string, { type: string; help: string; samples: ParsedSample[] }>();
  const seen = new Set<string>();
  let current: string | undefined;
  let helped: string | undefined;
  let help = '';
  for (const [i, line] of text.slice(0, -1).split('\n').entries()) {
    const where = `line ${i + 1}: ${line}`;
    if (line.startsWith('#')) {
      const isHelp = HELP.exec(line);
      const isType = TYPE.exec(line);
      assert.ok(isHelp !== null || isType !== null, `neither HELP nor TYPE, ${where}`);
      const name = String((isHelp ?? isType)?.[1]);
      assert.ok(!families.has(name), `a second time, ${where}`);
      if (isHelp !== null) [helped, help] = [name, String(isHelp[2])];
      else {
        assert.equal(helped, name, `HELP does not stand before TYPE, ${where}`);
        families.set(name, { type: String(isType?.[2]), help, samples: [] });
        current = name;
      }
      continue;
    }
    const match = SAMPLE.exec(line);
    assert.ok(match !== null, `no sample, ${where}`);
    const [, name = '', labelText, value = ''] = match;
    assert.ok(VALUE.test(value), `no number, ${where}`);
    const family = families.get(current ?? '');
    assert.ok(family !== undefined, `a sample without a family, ${where}`);
    assert.ok(isOf(name, String(current), family.type), `not of the family ${current} above it, ${where}`);
    const labels = labelText === undefined ? {} : parseLabels(labelText, where);
    const key = `${name} ${JSON.stringify(Object.entries(labels).sort())}`;
    assert.ok(!seen.has(key), `the series is there already, ${where}`);
    seen.add(key);
    family.samples.push({ name, labels, value: value.endsWith('Inf') ? Number(`${value}inity`) : Number(value) });
  }
  for (const [name, family] of families) checkFamily(name, family);
  return families;
}

function isOf(name: string, family: string, type: string): boolean {
  return type === 'histogram'
    ? ['_bucket', '_sum', '_count'].some((suffix) => name === family + suffix)
    : name === family;
}

function parseLabels(text: string, where: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (let rest = text; rest !== ''; ) {
    const match = LABEL.exec(rest);
    assert.ok(match !== null, `labels that cannot be read, ${where}`);
    const [whole, name = '', value = '', comma] = match;
    assert.ok(!name.startsWith('__'), `a reserved label, ${where}`);
    assert.ok(!Object.hasOwn(labels, name), `a label twice, ${where}`);
    labels[name] = value.replace(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped));
    rest = rest.slice(whole.length);
    assert.ok(comma === '' || rest !== '', `a comma behind the last label, ${where}`);
  }
  return labels;
}

/** Checks the rules of `promtool check metrics` that hold for any metric. */
function checkFamily(name: string, { type, help, samples }: ParsedFamily): void {
  assert.equal(name.endsWith('_total'), type === 'counter', `${name}: a counter, and nothing else, ends in _total`);
  assert.ok(!/_(?:bucket|sum|count)$/.test(name), `${name}: the suffix belongs to histograms`);
  assert.doesNotMatch(
    name,
    /_(?:ms|milliseconds|minutes|kb|mb|kilobytes|megabytes|percent)(?:_|$)/,
    `${name}: not a base unit`,
  );
  assert.ok(help.length > 0, `${name}: no help`);
  for (const { value, labels } of samples) {
    assert.ok(type === 'gauge' || value >= 0, `${name}: below 0, or not a number`);
    assert.ok(type === 'histogram' || labels.le === undefined, `${name}: le belongs to histograms`);
  }
  if (type === 'histogram') checkHistogram(name, samples);
}

function checkHistogram(name: string, samples: readonly ParsedSample[]): void {
  const series = new Map<string, ParsedSample[]>();
  for (const sample of samples) {
    const { le: _, ...labels } = sample.labels;
    const key = JSON.stringify(Object.entries(labels).sort());
    series.set(key, [...(series.get(key) ?? []), sample]);
  }
  for (const [key, rows] of series) {
    const buckets = rows.filter((row) => row.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels }) => (labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels.le)));
    assert.ok(
      bounds.length > 1 && bounds.every((bound) => !Number.isNaN(bound)),
      `${name}${key}: a bucket without a bound`,
    );
    assert.equal(bounds.at(-1), Number.POSITIVE_INFINITY, `${name}${key}: the last bucket is not +Inf`);
    buckets.slice(1).forEach((bucket, i) => {
      assert.ok(Number(bounds[i + 1]) > Number(bounds[i]), `${name}${key}: the bounds do not ascend`);
      assert.ok(bucket.value >= Number(buckets[i]?.value), `${name}${key}: the buckets are not cumulative`);
    });
    const [sum, count] = ['_sum', '_count'].map((suffix) => rows.filter((row) => row.name === name + suffix));
    assert.equal(sum?.length, 1, `${name}${key}: one _sum`);
    assert.equal(count?.length, 1, `${name}${key}: one _count`);
    assert.equal(count?.[0]?.value, buckets.at(-1)?.value, `${name}${key}: _count is not the +Inf bucket`);
  }
}

/** Returns the sum over the series with these labels, 0 when there is none. */
export function total(metrics: ParsedMetrics, name: string, labels: Readonly<Record<string, string>> = {}): number {
  const family = metrics.get(name) ?? metrics.get(name.replace(/_(?:bucket|sum|count)$/, ''));
  assert.ok(family !== undefined, `there is no metric ${name}`);
  return family.samples
    .filter(
      (sample) =>
        sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
    )
    .reduce((sum, { value }) => sum + value, 0);
}
