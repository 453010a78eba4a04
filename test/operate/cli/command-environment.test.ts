// A key command has the variables of the server beside it: real processes of `gatefold dev` and `gatefold serve`, and
// commands that run in their folder.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { uptime } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { describe, type TestContext, test } from 'node:test';
import { processName } from '../../../src/base/folder-lock.ts';
import { commandEnvironment } from '../../../src/operate/cli/command-environment.ts';
import { runGatefold } from '../../../src/operate/cli/commands.ts';
import { createFolder, type ServiceOptions, startService, write } from '../../support/cluster-server.ts';

const CONTROLLER = `export default class {
  index() { return { word: process.env.WORD ?? null, workers: process.env.WORKERS, mode: process.env.NODE_ENV }; }
}`;

describe('files of variables', { timeout: 300_000 }, () => {
  test('gatefold dev reads .env.local and .env; after a change, no command changes keys until it starts again', async (context) => {
    const { root, start, run } = project(context, { '.env': 'WORD=one\n', '.env.local': 'WORKERS=2\n' });
    const service = await start(['--dev'], { PORT: '0' });
    assert.deepEqual(await word(service.port), { word: 'one', workers: '2', mode: 'development' });
    const issue = () => run(['credentials', 'issue', '--name', 'a']);
    assert.equal((await issue()).code, 0);

    rmSync(join(root, '.env.local'));
    assert.match(String((await service.logged('env-file-changed')).file), /\.env\.local$/);
    assert.equal((await word(service.port)).word, 'one');
    assert.match((await issue()).err, /start gatefold dev again/);
    assert.equal((await run(['routes'])).code, 0);
    service.process.kill('SIGTERM');
    await service.exited;
    assert.equal((await issue()).code, 0);
  });

  test('gatefold serve reads the file of --env-file, or else of ENV_FILE', async (context) => {
    const { root, start } = project(context, { 'mine.env': 'WORD=mine\n' });
    const service = await start(['--workers=1', '--env-file', join(root, 'mine.env')], { ENV_FILE: 'none.env' });
    assert.equal((await word(service.port)).word, 'mine');
    await assert.rejects(start([], { ENV_FILE: 'none.env' }), /exit 1: gatefold: ENV_FILE: cannot read .*none\.env/);
  });

  test('a key command is beside the server that runs, or ran last', async (context) => {
    const { root, start, run } = project(context, { '.env': 'DATA_DIR=./dev-data\nWORD=one\n' });
    const rows = (folder: string) => {
      const path = join(root, folder, 'production.json');
      return existsSync(path) ? (readFileSync(path, 'utf8').match(/"id"/g) ?? []).length : 0;
    };
    const issue = (env?: Env) => run(['credentials', 'issue', '--name', 'a'], env);

    const refused = await issue();
    assert.equal(refused.code, 1);
    assert.match(refused.err, /\.env sets DATA_DIR, which gatefold dev reads .*: set ENV_FILE to dev or to off\n$/);

    const dev = await start(['--dev', '--workers=1']);
    assert.equal((await issue()).code, 0);
    assert.deepEqual([rows('dev-data'), rows('data')], [1, 0]);
    dev.process.kill('SIGTERM');
    await dev.exited;
    assert.match((await issue()).err, /set ENV_FILE to dev or to off/, 'no server runs');

    assert.equal((await issue({ ENV_FILE: 'off' })).code, 0);
    const serve = await start(['--workers=1']);
    assert.equal((await word(serve.port)).word, null, 'serve reads no .env');
    assert.equal((await issue()).code, 0);
    assert.deepEqual([rows('dev-data'), rows('data')], [1, 2], 'serve runs, and dev does not');

    await start(['--dev', '--workers=1']);
    assert.match((await issue()).err, /set ENV_FILE to dev or to off/, 'both run');
    assert.equal((await issue({ ENV_FILE: 'dev' })).code, 0);
    assert.deepEqual([rows('dev-data'), rows('data')], [2, 2]);
    serve.process.kill('SIGTERM');
    await serve.exited;
  });

  test('the record in the data folder says whose variables a command has', (context) => {
    const { root } = project(context, { '.env': 'STORE=postgres://db.example/a\n', 'mine.env': 'STORE=mine\n' });
    const record = (fields: object) => write(join(root, 'data'), 'generation.json', JSON.stringify(fields));
    const store = (flags = {}, env: Env = {}, reads?: readonly ['store']) =>
      commandEnvironment({ env, cwd: root }, flags, reads ?? ['store']).STORE;
    const ended = { pid: 2 ** 30, state: 'serving' };

    assert.throws(() => store(), /\.env sets STORE, /);
    assert.equal(store({}, { STORE: 'set' }), 'set');
    assert.equal(commandEnvironment({ env: {}, cwd: root }, {}, ['basePath']).STORE, undefined);
    record({ ...ended, dev: { folder: root, envFile: 'dev' } });
    assert.equal(store(), 'postgres://db.example/a');
    assert.equal(store({ 'env-file': 'off' }), undefined);
    record({ ...ended, dev: { folder: root, envFile: 'mine.env' } });
    assert.equal(store(), 'mine');
    record({ ...ended, dev: { folder: dirname(root), envFile: 'dev' } });
    assert.equal(store(), undefined, 'dev of another folder has not read this file');
    record(ended);
    assert.equal(store(), undefined, 'serve ran last');
    // A file that looks older than the start of the machine, because the clock was set forward.
    record({
      ...ended,
      pid: process.pid,
      process: processName(),
      dev: { folder: root, envFile: 'dev', fingerprints: [] },
    });
    utimesSync(join(root, 'data/generation.json'), 0, 0);
    assert.throws(() => store(), /\.env has changed since gatefold dev began/);
    // A record without the name of its process counts as running if it is younger than the start of the machine.
    record({ pid: process.pid, state: 'serving', dev: { folder: root, envFile: 'dev', fingerprints: [] } });
    const begin = Date.now() / 1000 - uptime();
    utimesSync(join(root, 'data/generation.json'), begin + 5, begin + 5);
    assert.throws(() => store(), /\.env has changed since gatefold dev began/);
    utimesSync(join(root, 'data/generation.json'), begin - 5, begin - 5);
    assert.equal(store(), 'postgres://db.example/a');
  });
});

type Env = Record<string, string>;

function project(context: TestContext, files: Env) {
  const dir = createFolder(context, { 'WordController.js': CONTROLLER });
  const root = dirname(dir);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(root, name), text);
  const start = (flags: string[], env: Env = {}) => {
    // An empty variable is set, so the file does not replace it. Only variables that are absent come from the files.
    const options: ServiceOptions = {
      dir,
      flags: [...flags],
      env,
      cwd: root,
      without: ['DATA_DIR', 'WORKERS'],
    };
    return startService(
      context,
      flags.includes('--dev') ? { ...options, env: { NODE_ENV: 'development', ...env } } : options,
    );
  };
  const run = async (words: string[], env: Env = {}) => {
    let err = '';
    const sink = (add: (text: string) => void) =>
      new Writable({
        write(chunk, _encoding, done) {
          add(String(chunk));
          done();
        },
      });
    const io = {
      stdin: Readable.from([]),
      stdout: sink(() => {}),
      stderr: sink((text) => (err += text)),
      isTTY: false,
    };
    return { code: await runGatefold(words, { ...io, env, cwd: root }), err };
  };
  return { root, start, run };
}

async function word(port: number) {
  const response = await fetch(`http://127.0.0.1:${port}/api/word`, { headers: { Connection: 'close' } });
  return (await response.json()) as { word: string | null; workers: string; mode: string };
}
