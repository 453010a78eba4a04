// A service that npm has started ends with npm. A service that a shell has started outlives the shell.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { createFolder, SERVER, write } from '../../support/cluster-server.ts';

/** npm sets these variables for every script. */
const NPM: NodeJS.ProcessEnv = { npm_lifecycle_event: 'start', npm_command: 'run' };
const NO_NPM = { npm_lifecycle_event: undefined, npm_command: undefined };
const CLI = SERVER.replace(/server\.js$/, 'cli.js');

it('gatefold dev reports error details and runs one worker', { timeout: 200_000 }, async (test) => {
  const service = await start(test, process.execPath, [CLI, 'dev'], '');
  test.after(() => service.child.kill('SIGTERM'));
  const failed = (await (await fetch(`${service.url}/fail`)).json()) as { detail?: { message: string } };
  assert.match(JSON.stringify(failed.detail), /on purpose/);
  const pids = new Set<number>();
  for (let i = 0; i < 20; i++) {
    const response = await fetch(service.url, { headers: { Connection: 'close' } });
    pids.add(((await response.json()) as { pid: number }).pid);
  }
  assert.equal(pids.size, 1);
});

describe('gatefold serve', { timeout: 200_000 }, () => {
  for (const [name, signal, script] of [
    ['a SIGTERM', 'SIGTERM', 'serve'],
    ['a SIGTERM in gatefold dev', 'SIGTERM', 'dev'],
  ] as const) {
    it(`ends when npm has ended by ${name}`, async (test) => {
      const service = await start(test, 'npm', ['start'], `"${process.execPath}" "${CLI}" ${script} && true`);
      service.child.kill(signal);
      await service.closed;
      assert.match(service.output(), /launcher-exited.*stopping.*stopped/s);
      await assert.rejects(fetch(service.url));
    });
  }

  it('outlives the shell that started it in the background', async (test) => {
    const line = '"$0" "$1" serve & echo "pid $!"; wait';
    const service = await start(test, 'sh', ['-c', line, process.execPath, CLI], '', NO_NPM);
    const pid = Number(/^pid (\d+)$/m.exec(service.output())?.[1]);
    test.after(() => process.kill(pid, 'SIGTERM'));
    service.child.kill('SIGKILL');
    await once(service.child, 'exit');
    // The time of three checks. On a slow machine the service has checked fewer times, and the test then proves less.
    await wait(1700);
    assert.equal((await fetch(service.url)).status, 200);
  });
});

/** Starts a command in a project whose start script is given, and waits until the service answers. */
async function start(test: TestContext, command: string, args: readonly string[], script: string, env = NPM) {
  const dir = createFolder(test, {
    'TestController.js': `export default class {
      index() { return { pid: process.pid }; }
      fail() { throw new Error('on purpose'); }
    }`,
  });
  write(dirname(dir), 'package.json', JSON.stringify({ type: 'module', scripts: { start: script } }));
  const child = spawn(command, args, {
    cwd: dirname(dir),
    env: {
      ...(({ WORKERS, NODE_ENV, ...rest }) => rest)(process.env),
      ...{ PORT: '0', HOST: '127.0.0.1', CONTROLLERS_DIR: dir, DATA_DIR: join(dirname(dir), 'data') },
      ...{ npm_config_update_notifier: 'false', ...env },
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const port = await new Promise<string>((resolve, reject) => {
    const read = (text: string) => {
      output += text;
      const found = /^gatefold listening on http:\S+:(\d+)$/m.exec(output)?.[1];
      if (found !== undefined) resolve(found);
    };
    child.stdout.setEncoding('utf8').on('data', read);
    child.stderr.setEncoding('utf8').on('data', read);
    child.once('close', (code) => reject(new Error(`exit ${code}: ${output}`)));
  });
  // The service holds the pipes, so they close when its last process has ended.
  const closed = once(child, 'close');
  return { child, closed, root: dirname(dir), output: () => output, url: `http://127.0.0.1:${port}/api/test` };
}
