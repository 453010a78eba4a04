// What the doctor says of Node and of the settings. A secret setting is named and never shown.
import type { SettingReading } from '../base/config.ts';
import { flagOf } from '../base/config.ts';
import { typescriptSupport } from '../groups/module-loader.ts';
import type { Report } from './findings.ts';

/** As in package.json. */
const OLDEST = 20;

const TYPESCRIPT = {
  node: 'it loads .ts by itself, .mjs and .js',
  tsx: 'it loads .ts by way of tsx, .mjs and .js',
  none: 'it loads .mjs and .js, but no .ts: run Node 22.18 or later, or install tsx beside gatefold',
};

export function checkNode(report: Report, version: string = process.versions.node, support = typescriptSupport()): void {
  if (Number.parseInt(version, 10) < OLDEST) report('wrong', `Node ${version} is too old: ${OLDEST} or later is needed`);
  else report('note', `Node ${version}: ${TYPESCRIPT[support]}`);
}

export function checkSettings(readings: readonly SettingReading[], report: Report): void {
  for (const { row, source, text, value, problem } of readings) {
    if (problem !== undefined) report('wrong', problem);
    else if (source !== 'default' && value !== row.parse(row.fallback)) {
      const name = source === 'flag' ? flagOf(row.name) : row.name;
      const shown = row.secret ? 'is set' : `is ${JSON.stringify(text)}, the default is ${JSON.stringify(row.fallback)}`;
      report('note', `${name} ${shown}`);
    }
  }
}
