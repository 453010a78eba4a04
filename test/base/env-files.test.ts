// Files of variables: which file wins, and what is refused.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { envFileOf, withEnvFiles } from '../../src/base/env-files.ts';
import { attempt } from '../../src/base/failure.ts';

function folder(context: TestContext, files: Record<string, string>): string {
  const dir = mkdtempSync(join(tmpdir(), 'gatefold-env-'));
  context.after(() => rmSync(dir, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
  return dir;
}

test('.env.local wins over .env, and nothing that is set is replaced', (context) => {
  const dir = folder(context, { '.env.local': 'A=local\n', '.env': 'A=shared\nB="two words"\nC=file\nD=file\n' });
  const env = withEnvFiles({ C: 'set', D: '' }, 'dev', dir);
  assert.deepEqual(env, { A: 'local', B: 'two words', C: 'set', D: '' });
});

test('off and an empty word read nothing, and dev reads nothing in a folder without the files', (context) => {
  const dir = folder(context, {});
  for (const word of ['off', '', 'dev']) assert.deepEqual(withEnvFiles({ A: '1' }, word, dir), { A: '1' });
});

test('a written file alone is read, and must be there', (context) => {
  const dir = folder(context, { '.env': 'A=1', 'mine.env': 'B=2' });
  assert.deepEqual(withEnvFiles({}, 'mine.env', dir), { B: '2' });
  assert.throws(() => withEnvFiles({}, 'none.env', dir), /ENV_FILE: cannot read .*none\.env/);
});

test('a file is not named by the text of a key, which an error would print', () => {
  const key = '-----BEGIN PRIVATE KEY-----\nMIIC';
  assert.throws(() => withEnvFiles({}, key), new Error('ENV_FILE: the value is not the path of a file'));
});

test('a byte order mark is no part of the first name, and UTF-16 is refused', (context) => {
  const dir = folder(context, { 'mark.env': '\uFEFFA=1\r\nB=2\r\n' });
  assert.deepEqual(withEnvFiles({}, 'mark.env', dir), { A: '1', B: '2' });
  writeFileSync(join(dir, 'wide.env'), '\uFEFFA=1\n', 'utf16le');
  const path = join(dir, 'wide.env');
  assert.throws(
    () => withEnvFiles({}, 'wide.env', dir),
    new Error(`ENV_FILE: cannot read ${path}: it is not UTF-8. Save it as UTF-8`),
  );
});

for (const line of [
  'RATE_LIMIT: 100/s',
  '\uFEFFRATE_LIMIT: 100/s',
  '\texport  RATE_LIMIT = 100/s',
  'RATE_LIMIT 100/s',
  'set RATE_LIMIT=100/s',
])
  test(`a setting is refused that Node does not read: ${JSON.stringify(line)}`, (context) => {
    const dir = folder(context, { '.env': `A=1\n# STORE=file\n${line}\n` });
    // The version of Node and the line above decide whether Node loses a line.
    assert.throws(
      () => withEnvFiles({}, 'dev', dir, () => ({ A: '1' })),
      new Error(
        `${join(dir, '.env')}: the line of RATE_LIMIT sets nothing. Write RATE_LIMIT=value outside of quotes, without spaces around this line and the one above it`,
      ),
    );
  });

test('no Node loses a setting in silence', (context) => {
  const texts = [
    'A= \nRATE_LIMIT=1/s',
    ' # indented\nRATE_LIMIT=1/s',
    'garbage\nRATE_LIMIT=1/s',
    'RATE_LIMIT: 1/s',
    'A="open\nRATE_LIMIT=1/s\nB="b"',
  ];
  const dir = folder(context, {});
  for (const text of texts) {
    writeFileSync(join(dir, '.env'), text);
    const read = attempt(() => withEnvFiles({}, 'dev', dir).RATE_LIMIT, 'refused');
    assert.ok(read === '1/s' || read === 'refused', text);
  }
});

const DEV_ALONE = 'gatefold dev sets it, and every other start takes it from the environment';
for (const [name, reason] of [
  ['NODE_ENV', DEV_ALONE],
  ['NODE_OPTIONS', 'Node reads it before any file, so set it in the environment'],
  ['ENV_FILE', 'a file cannot name the file to read'],
  ['node_env', DEV_ALONE],
] as const)
  test(`${name} in a file is refused with a line that names the file and the cure`, (context) => {
    const dir = folder(context, { '.env': `A=1\n${name}=x\n` });
    assert.throws(
      () => withEnvFiles({ [name]: 'set' }, 'dev', dir),
      new Error(`${join(dir, '.env')}: ${name} is refused here: ${reason}`),
    );
  });

test('a Node without parseEnv says in one line that it cannot read the file', (context) => {
  const dir = folder(context, { '.env': 'A=1' });
  assert.throws(
    () => withEnvFiles({}, 'dev', dir, null as never),
    /cannot read it: use 20\.12 or newer, or ENV_FILE=off$/,
  );
});

test('no message repeats a key that was given as a path', () => {
  const key = '-----BEGIN PRIVATE KEY-----';
  assert.throws(
    () => withEnvFiles({}, key),
    (error: Error) => !error.message.includes('BEGIN'),
  );
});

test('envFileOf takes the flag, then the variable, then the files of dev', () => {
  assert.equal(envFileOf(['--dev', '--env-file', 'a'], { ENV_FILE: 'b' }), 'a');
  assert.equal(envFileOf(['--dev'], { ENV_FILE: 'b' }), 'b');
  assert.equal(envFileOf(['--dev'], { ENV_FILE: '' }), 'dev');
  assert.equal(envFileOf([], {}), 'off');
});
