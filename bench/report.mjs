// Prints pairs of bursts as one Markdown table: medians of ratios, quartiles, and whether a goal is met. Absolute
// figures are not printed, because they depend on the machine more than on the server.
import { SERVERS } from './servers.mjs';

/**
 * @typedef {import('./scenarios.mjs').Scenario} Scenario
 * @typedef {import('./scenarios.mjs').Entry} Entry
 * @typedef {import('./measure.mjs').Series} Series
 * @typedef {import('./measure.mjs').Pair} Pair
 */

const HEAD = ['scenario', 'server', 'CPU a request', 'quartiles', 'throughput', 'p99', 'peak memory', 'goal'];

/** @param {{ scenario: Scenario, series: Map<string, Series> }[]} results */
export function formatTable(results) {
  const rows = results.flatMap(({ scenario, series }) =>
    scenario.entries.map((entry) => formatRow(scenario, entry, series)),
  );
  return markdown(HEAD, rows);
}

/**
 * Describes the CPU use of other processes during the measurement. Above a tenth of a core, the figures are unreliable.
 *
 * @param {Pair[]} pairs
 */
export function foreignNote(pairs) {
  const cores = pairs.map(({ own, bare }) => Math.max(own.foreign, bare.foreign));
  return `others used ${ratio(median(cores))} cores in the middling burst, ${ratio(Math.max(...cores))} in the worst`;
}

/**
 * Formats a table with columns of equal width, so that it is readable in a terminal, too.
 *
 * @param {string[]} head
 * @param {string[][]} rows
 */
export function markdown(head, rows) {
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i].length)));
  const line = (/** @type {string[]} */ cells) => `| ${cells.map((cell, i) => cell.padEnd(widths[i])).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

/**
 * @param {Scenario} scenario
 * @param {Entry} entry
 * @param {Map<string, Series>} series
 */
function formatRow(scenario, entry, series) {
  const { pairs, memory } = /** @type {Series} */ (series.get(entry.key));
  const cpu = pairs.map(({ own, bare }) => own.cpu / bare.cpu);
  const { label } = SERVERS[entry.server];
  return [
    scenario.title,
    entry.note === undefined ? label : `${label}, ${entry.note}`,
    ratio(median(cpu)),
    `${ratio(quantile(cpu, 0.25))} to ${ratio(quantile(cpu, 0.75))}`,
    ratio(median(pairs.map(({ own, bare }) => own.perSecond / bare.perSecond))),
    ratio(median(pairs.map(({ own, bare }) => own.p99 / bare.p99))),
    ratio(median(memory)),
    formatGoal(entry, series),
  ];
}

/**
 * @param {Entry} entry
 * @param {Map<string, Series>} series
 */
function formatGoal({ key, goal }, series) {
  if (goal === undefined) return '';
  const own = relative(series, key);
  const over = goal.over === undefined ? { cpu: 1, perSecond: 1, microseconds: 0 } : relative(series, goal.over);
  const { atMost, extraMicroseconds, throughputAtLeast } = goal;
  if (atMost !== undefined)
    return verdict(own.cpu / over.cpu <= atMost, `${ratio(own.cpu / over.cpu)}, at most ${ratio(atMost)}`);
  if (throughputAtLeast !== undefined) {
    const times = own.perSecond / over.perSecond;
    return verdict(times >= throughputAtLeast, `throughput ${ratio(times)}, at least ${ratio(throughputAtLeast)}`);
  }
  if (extraMicroseconds === undefined) throw new Error(`Cannot judge ${key}: its goal has no limit`);
  const extra = own.microseconds - over.microseconds;
  return verdict(extra <= extraMicroseconds, `${extra.toFixed(1)} µs more, at most ${extraMicroseconds}`);
}

/**
 * Returns the figures of an entry relative to bare. Microseconds are the ratio times bare's median, so that the noise
 * of the machine cancels out as in the ratio.
 *
 * @param {Map<string, Series>} series
 * @param {string} key
 */
function relative(series, key) {
  const { pairs } = /** @type {Series} */ (series.get(key));
  const cpu = median(pairs.map(({ own, bare }) => own.cpu / bare.cpu));
  const bares = [...series.values()].flatMap((one) => one.pairs.map(({ bare }) => bare.cpu));
  return {
    cpu,
    perSecond: median(pairs.map(({ own, bare }) => own.perSecond / bare.perSecond)),
    microseconds: cpu * median(bares) * 1e6,
  };
}

/**
 * @param {boolean} met
 * @param {string} text
 */
export function verdict(met, text) {
  return `${text}: ${met ? 'met' : 'missed'}`;
}

/** @param {number} value */
export function ratio(value) {
  return value.toFixed(2);
}

/** @param {number[]} values */
export function median(values) {
  return quantile(values, 0.5);
}

/**
 * @param {number[]} values
 * @param {number} q
 */
function quantile(values, q) {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const low = Math.floor(at);
  return sorted[low] + (sorted[Math.ceil(at)] - sorted[low]) * (at - low);
}
