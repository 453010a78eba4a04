// `npm run bench`: measures each scenario and prints one table.
import { measureScenario } from './measure.mjs';
import { readOptions } from './options.mjs';
import { foreignNote, formatTable } from './report.mjs';
import { besideOther, SCENARIOS } from './scenarios.mjs';
import { missingCommand, SERVERS, useOther } from './servers.mjs';

const { scenarios: wanted, peers, other, ...options } = readOptions();
const say = (/** @type {string} */ text) => process.stderr.write(`${text}\n`);
if (other !== '') useOther(other);
const scenarios = SCENARIOS.filter(({ name }) => wanted.includes(name))
  .map((scenario) => (other === '' ? scenario : besideOther(scenario)))
  .map((scenario) => ({ ...scenario, entries: scenario.entries.filter(isWanted) }))
  // A scenario with bare alone is run only if bare was requested.
  .filter(({ entries }) => entries.some(({ key }) => key !== 'noise') || peers.every((peer) => peer === 'bare'));

try {
  const results = [];
  for (const scenario of scenarios) results.push({ scenario, series: await measureScenario(scenario, options, say) });
  const { laps, rounds, seconds, connections, generator, order } = options;
  say(foreignNote(results.flatMap(({ series }) => [...series.values()].flatMap(({ pairs }) => pairs))));
  say(
    `${laps} laps of ${rounds} rounds, bursts of ${seconds} s ${order === 'together' ? 'at the same time' : 'in turns'} by ${generator} on ${connections} connections; ${other === '' ? 'bare' : 'the other build'} = 1.00\n`,
  );
  process.stdout.write(`${formatTable(results)}\n`);
} catch (error) {
  say(/** @type {Error} */ (error).message);
  process.exitCode = 1;
}

/** @param {import('./scenarios.mjs').Entry} entry */
function isWanted({ key, server }) {
  if (key === 'noise') return true;
  if (!peers.includes(SERVERS[server].peer)) return false;
  const missing = missingCommand(server);
  if (missing !== undefined) say(`${SERVERS[server].label} is left out: ${missing} is not installed`);
  return missing === undefined;
}
