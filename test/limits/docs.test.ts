// docs/LIMITS.md against the code: every bound that it names is what the code says, and every bound on what a client
// can bring or make us keep is named.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { settingRows } from '../../src/base/settings.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const TEXT = readFileSync(join(ROOT, 'docs/LIMITS.md'), 'utf8');

interface Row {
  readonly what: string;
  readonly bound: string;
  readonly where: string;
}

/** The rows of the tables whose second column is a bound. */
const ROWS: Row[] = TEXT.split('\n## ')
  .slice(2)
  .flatMap((section) =>
    section
      .split('\n')
      .filter((line) => /^\| (?!---)/.test(line))
      .slice(1),
  )
  .map((line) => {
    const [, what = '', bound = '', , where = ''] = line.split('|').map((cell) => cell.trim());
    return { what, bound, where };
  });

const UNITS: Readonly<Record<string, number>> = { KiB: 1024, MiB: 1024 ** 2, s: 1000 };

/** `128 KiB` → 131072. */
function numberIn(text: string): number {
  const [, digits = '', unit = ''] = /^([\d,]+) ?(\S*)/.exec(text) ?? [];
  return Number(digits.replaceAll(',', '')) * (UNITS[unit] ?? 1);
}

/** What stands behind `const NAME = `: a product of numbers. */
function constantOf(file: string, name: string): number {
  const source = new RegExp(`^(?:export )?const ${name} = ([\\d_* ]+);`, 'm').exec(
    readFileSync(join(ROOT, file), 'utf8'),
  )?.[1];
  assert.ok(source !== undefined, `${file} has no constant ${name}`);
  return source.split('*').reduce((product, factor) => product * Number(factor.trim().replaceAll('_', '')), 1);
}

describe('docs/LIMITS.md', () => {
  const settings = new Map(settingRows({ cores: 1, cwd: '/' }).map((row) => [row.name, row.parse(row.fallback)]));
  for (const { what, bound, where } of ROWS) {
    const [, file, constant] = /^`(src\/[^`]+)` `([A-Z_]+)`$/.exec(where) ?? [];
    const setting = /^`([A-Z_]+)`/.exec(where)?.[1];
    if (file !== undefined && constant !== undefined) {
      test(`${what}: ${constant}`, () => assert.equal(constantOf(file, constant), numberIn(bound)));
    } else if (setting !== undefined) {
      test(`${what}: ${setting}`, () => {
        assert.ok(settings.has(setting), `there is no setting ${setting}`);
        const value = settings.get(setting);
        if (value !== undefined) assert.equal(value, numberIn(bound));
      });
    } else if (where !== '') test(what, () => assert.fail(`${where} is neither a setting nor a constant`));
  }

  test('names every bound of the rooms that a request passes', () => {
    const named = new Set(ROWS.map(({ where }) => where));
    const missing: string[] = [];
    for (const room of ['http', 'http/body', 'http/answer', 'limits']) {
      for (const file of readdirSync(join(ROOT, 'src', room))) {
        if (!file.endsWith('.ts')) continue;
        const source = readFileSync(join(ROOT, 'src', room, file), 'utf8');
        for (const [, name = ''] of source.matchAll(
          /^(?:export )?const ((?:MOST|MAX|LONGEST|SLOWEST|KEPT|KNOWN)_[A-Z_]+) = /gm,
        )) {
          if (!named.has(`\`src/${room}/${file}\` \`${name}\``) && !(name in OF_NO_CLIENT))
            missing.push(`${room}/${file} ${name}`);
        }
      }
    }
    assert.deepEqual(missing, []);
  });
});

/** What no client can bring about. */
const OF_NO_CLIENT = {
  MOST_REFUSALS: 'one for each rule and each wait in seconds',
  MOST_DEBT: 'of a caller',
  MOST_TOLD: 'to a new worker',
  MOST_VALUES: 'in development alone',
};
