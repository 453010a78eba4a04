// docs/PROFILING.md and the log files of docs/OPERATING.md: which flags of Node work in a worker, and which way of
// rotating a log.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, truncateSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createFolder, SERVER } from '../support/cluster-server.ts';
import { freePorts } from '../support/ports.ts';
import { reap } from '../support/reaper.ts';

const CONTROLLER = `export default class { index() { return { pid: process.pid }; }
  spin() { for (const end = Date.now() + 300; Date.now() < end;); return { pid: process.pid }; } }`;
const PATIENCE = 120_000;

async function until(what: string, isTrue: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = performance.now() + PATIENCE; !(await isTrue()); await sleep(20))
    assert.ok(performance.now() < end, `it does not come: ${what}`);
}

/** Starts a service by a shell. @param redirect where standard error goes, after the command */
async function start(t: TestContext, { flags = [] as string[], options = '', redirect = '2>/dev/null' } = {}) {
  const dir = createFolder(t, { 'HelloController.mjs': CONTROLLER });
  const root = dirname(dir);
  const [port = 0] = await freePorts(1);
  for (const name of ['data', 'profiles']) mkdirSync(join(root, name));
  const settings = {
    PORT: String(port),
    HOST: '127.0.0.1',
    WORKERS: '1',
    LOG_LEVEL: 'info',
    DATA_DIR: join(root, 'data'),
  };
  const { NODE_TEST_CONTEXT, NODE_OPTIONS, ...outer } = process.env;
  const env = { ...outer, ...settings, CONTROLLERS_DIR: dir, ...(options && { NODE_OPTIONS: options }) };
  const service = spawn('sh', ['-c', `exec "$0" "$@" ${redirect}`, process.execPath, ...flags, SERVER], {
    ...{ cwd: join(root, 'profiles'), env, detached: true },
    stdio: 'ignore',
  });
  reap(service);
  const exited = once(service, 'exit');
  const stop = async () => {
    service.kill('SIGTERM');
    await exited;
  };
  t.after(() => (service.exitCode === null && service.signalCode === null ? stop() : undefined));
  const ask = async (operation: string): Promise<{ pid: number }> =>
    (await (await fetch(`http://127.0.0.1:${port}/api/hello${operation}`)).json()) as { pid: number };
  await until('an answer', () =>
    ask('').then(
      () => true,
      () => service.exitCode !== null,
    ),
  );
  const files = (kind: string) =>
    readdirSync(join(root, 'profiles'))
      .filter((name) => name.endsWith(kind))
      .map((name) => join(root, 'profiles', name));
  return { service, root, ask, files, stop };
}

/** Returns whether a file is complete JSON that contains a text. */
function isWhole(path: string, text: string): boolean {
  try {
    const content = readFileSync(path, 'utf8');
    JSON.parse(content);
    return content.includes(text);
  } catch {
    return false;
  }
}

describe('a profile of Node', () => {
  test('of --cpu-prof is written by a worker that SIGHUP replaces, with the name of the operation', async (t) => {
    const { service, ask, files } = await start(t, { flags: ['--cpu-prof'] });
    const { pid } = await ask('/spin');
    service.kill('SIGHUP');
    const profile = () => files('.cpuprofile').find((path) => path.includes(`.${pid}.`));
    await until('the profile of the worker', () => isWhole(profile() ?? '', '"spin"'));
    assert.notEqual((await ask('')).pid, pid);
  });

  test('by NODE_OPTIONS works from Node 22 on, and Node 20 refuses to start', async (t) => {
    const { service, ask, files, stop } = await start(t, { options: '--cpu-prof' });
    if (Number.parseInt(process.versions.node, 10) < 22) return assert.equal(service.exitCode, 9);
    await ask('/spin');
    await stop();
    assert.equal(files('.cpuprofile').length, 2, 'one of the supervisor, and one of the worker');
  });

  test('of the heap is written by a worker at a signal, and the worker serves on', async (t) => {
    const { ask, files } = await start(t, { options: '--heapsnapshot-signal=SIGUSR2' });
    const { pid } = await ask('');
    process.kill(pid, 'SIGUSR2');
    await until('the snapshot', () => files('.heapsnapshot').some((path) => isWhole(path, 'HelloController')));
    assert.equal((await ask('')).pid, pid);
  });
});

describe('a log file', () => {
  const logged = (path: string) => readFileSync(path, 'utf8');

  test('that is appended to can be copied and truncated', async (t) => {
    const { root, ask } = await start(t, { redirect: '2>>../log' });
    const log = join(root, 'log');
    await until('a line', () => logged(log).includes('/api/hello'));
    copyFileSync(log, `${log}.1`);
    truncateSync(log);
    await ask('/spin');
    await until('a line of the next request', () => logged(log).includes('/api/hello/spin'));
    assert.ok(logged(log).startsWith('{'));
    for (const line of logged(log).trimEnd().split('\n')) JSON.parse(line);
  });

  test('that is renamed gets the next lines, also after SIGHUP', async (t) => {
    const { service, root, ask } = await start(t, { redirect: '2>>../log' });
    const log = join(root, 'log');
    renameSync(log, `${log}.1`);
    service.kill('SIGHUP');
    await until('the next generation', () => logged(`${log}.1`).includes('"generation":2'));
    await ask('/spin');
    await until('a line of the next request', () => logged(`${log}.1`).includes('/api/hello/spin'));
    assert.equal(existsSync(log), false);
  });
});
