// Compares docs/LIMITS.md with the code: each limit in it has the value of the code, and it names each limit on what a
// client can send or make the server keep.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { settingRows } from '../../../src/base/settings.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const TEXT = readFileSync(join(ROOT, 'docs/LIMITS.md'), 'utf8');

interface Row {
  readonly subject: string;
  readonly limit: string;
  readonly source: string;
}

/** Returns the rows of the tables whose second column is a limit. */
const ROWS: Row[] = TEXT.split('\n## ')
  .slice(2)
  .flatMap((section) =>
    section
      .split('\n')
      .filter((line) => /^\| (?!---)/.test(line))
      .slice(1),
  )
  .map((line) => {
    const [, subject = '', limit = '', , source = ''] = line.split('|').map((cell) => cell.trim());
    return { subject, limit, source };
  });

const UNITS: Readonly<Record<string, number>> = { KiB: 1024, MiB: 1024 ** 2, s: 1000 };

/** Parses a limit: `128 KiB` → 131072. */
function parseLimit(text: string): number {
  const [, digits = '', unit = ''] = /^([\d,]+) ?(\S*)/.exec(text) ?? [];
  return Number(digits.replaceAll(',', '')) * (UNITS[unit] ?? 1);
}

/** Reads the value of `const NAME = …`, a product of numbers. */
function readConstant(file: string, name: string): number {
  const source = new RegExp(`^(?:export )?const ${name} = ([\\d_* ]+);`, 'm').exec(
    readFileSync(join(ROOT, file), 'utf8'),
  )?.[1];
  assert.ok(source !== undefined, `${file} has no constant ${name}`);
  return source.split('*').reduce((product, factor) => product * Number(factor.trim().replaceAll('_', '')), 1);
}

describe('docs/LIMITS.md', () => {
  const settings = new Map(settingRows({ cores: 1, cwd: '/' }).map((row) => [row.name, row.parse(row.fallback)]));
  for (const { subject, limit, source } of ROWS) {
    const [, file, constant] = /^`(src\/[^`]+)` `([A-Z_]+)`$/.exec(source) ?? [];
    const setting = /^`([A-Z_]+)`/.exec(source)?.[1];
    if (file !== undefined && constant !== undefined) {
      test(`${subject}: ${constant}`, () => assert.equal(readConstant(file, constant), parseLimit(limit)));
    } else if (setting !== undefined) {
      test(`${subject}: ${setting}`, () => {
        assert.ok(settings.has(setting), `there is no setting ${setting}`);
        const value = settings.get(setting);
        if (value !== undefined) assert.equal(value, parseLimit(limit));
      });
    } else if (source !== '') test(subject, () => assert.fail(`${source} is neither a setting nor a constant`));
  }

  test('lists each limit of the rooms that a request passes through', () => {
    const named = new Set(ROWS.map(({ source }) => source));
    const missing: string[] = [];
    for (const room of [
      'request',
      'request/answer',
      'request/body',
      'request/connections',
      'callers/access',
      'callers/rates',
    ]) {
      for (const file of readdirSync(join(ROOT, 'src', room))) {
        if (!file.endsWith('.ts')) continue;
        const source = readFileSync(join(ROOT, 'src', room, file), 'utf8');
        for (const [, name = ''] of source.matchAll(
          /^(?:export )?const ((?:MOST|MAX|LONGEST|SLOWEST|KEPT|KNOWN)_[A-Z_]+) = /gm,
        )) {
          if (!named.has(`\`src/${room}/${file}\` \`${name}\``) && !(name in NOT_OF_CLIENTS))
            missing.push(`${room}/${file} ${name}`);
        }
      }
    }
    assert.deepEqual(missing, []);
  });
});

/** Limits that no client can reach, with the reason. */
const NOT_OF_CLIENTS = {
  MAX_REFUSALS: 'one for each limit and each wait in seconds',
  MAX_DEBT: 'the debt of a caller',
  MAX_INITIAL_BALANCES: 'sent to a new worker',
  MAX_VALUES: 'only in development',
};
