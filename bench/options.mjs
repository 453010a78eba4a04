// Parses the command line of run.mjs, start.mjs and body-memory.mjs, by a table with one row for each option. An
// invalid value stops the run with one line.
import { parseArgs } from 'node:util';
import { GENERATORS, installedGenerator } from './load.mjs';
import { SCENARIOS } from './scenarios.mjs';
import { SERVERS } from './servers.mjs';

const PEERS = [...new Set(Object.values(SERVERS).map(({ peer }) => peer))];
const NAMES = SCENARIOS.map(({ name }) => name);

const ROWS = {
  node: { fallback: () => process.execPath, parse: String, about: 'the Node binary that runs every server' },
  scenario: { fallback: () => NAMES.join(','), parse: listOf(NAMES), about: NAMES.join(', ') },
  peers: { fallback: () => PEERS.join(','), parse: listOf(PEERS), about: `${PEERS.join(', ')} (bare always runs)` },
  laps: { fallback: () => '2', parse: wholeNumber(1, 100), about: 'laps a scenario, each with fresh processes' },
  rounds: {
    fallback: () => '4',
    parse: wholeNumber(1, 1000),
    about: 'rounds a lap; start.mjs and body-memory.mjs: rounds in all',
  },
  seconds: { fallback: () => '1', parse: wholeNumber(1, 60), about: 'seconds a burst' },
  connections: { fallback: () => '32', parse: wholeNumber(1, 1000), about: 'connections of the load generator' },
  other: {
    fallback: () => '',
    parse: String,
    about: 'another build, a checkout or a dist, that the present one is compared with in the place of bare',
  },
  order: {
    fallback: () => 'turns',
    parse: oneOf(['turns', 'together']),
    about: 'bursts in turns, or all at the same time on one core',
  },
  load: {
    fallback: installedGenerator,
    parse: oneOf(Object.keys(GENERATORS)),
    about: 'wrk or autocannon; default: wrk where installed',
  },
};

/** Returns the options. For `--help` it prints them and exits; for an invalid one it exits with status 1. */
export function readOptions() {
  try {
    const options = Object.fromEntries(
      Object.keys(ROWS).map((name) => [name, { type: /** @type {const} */ ('string') }]),
    );
    const { values } = parseArgs({ options: { ...options, help: { type: 'boolean' } } });
    const given = /** @type {Record<string, string | undefined>} */ (values);
    if ('help' in values) end(0, usage());
    /** @type {<N extends keyof typeof ROWS>(name: N) => ReturnType<typeof ROWS[N]['parse']>} */
    const read = (name) => {
      const { fallback, parse } = ROWS[name];
      try {
        return /** @type {any} */ (parse(given[name] ?? fallback()));
      } catch (error) {
        throw new Error(`--${name}: ${/** @type {Error} */ (error).message}`);
      }
    };
    return {
      node: read('node'),
      scenarios: read('scenario'),
      peers: read('peers'),
      laps: read('laps'),
      rounds: read('rounds'),
      seconds: read('seconds'),
      connections: read('connections'),
      other: read('other'),
      order: read('order'),
      generator: read('load'),
    };
  } catch (error) {
    return end(1, /** @type {Error} */ (error).message);
  }
}

function usage() {
  return Object.entries(ROWS)
    .map(([name, { about }]) => `--${name.padEnd(12)} ${about}`)
    .join('\n');
}

/** @param {number} code @param {string} text @returns {never} */
function end(code, text) {
  (code === 0 ? process.stdout : process.stderr).write(`${text}\n`);
  process.exit(code);
}

/** @param {number} min @param {number} max */
function wholeNumber(min, max) {
  return (/** @type {string} */ text) => {
    const value = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max))
      throw new Error(`${JSON.stringify(text)} is not a whole number from ${min} to ${max}`);
    return value;
  };
}

/** @param {string[]} names */
function oneOf(names) {
  return (/** @type {string} */ text) => {
    if (!names.includes(text)) throw new Error(`${JSON.stringify(text)} is none of ${names.join(', ')}`);
    return text;
  };
}

/** @param {string[]} names */
function listOf(names) {
  const parse = oneOf(names);
  return (/** @type {string} */ text) => text.split(',').map(parse);
}
