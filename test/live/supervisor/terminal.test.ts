// The service in the foreground of a terminal: SIGHUP reloads it, but ends it when the terminal is closed.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { it } from 'node:test';
import { ask, json } from '../../support/cluster-client.ts';
import { createFolder, SERVER } from '../../support/cluster-server.ts';

const CONTROLLER = 'export default class { index() { return { supervisor: process.ppid }; } }';

// The terminal is made by `script` of util-linux. Those of other systems take other arguments.
const noScript = String(spawnSync('script', ['--version']).stdout).includes('util-linux')
  ? false
  : 'the script command of util-linux is not installed';

it('a service reloads on SIGHUP, and ends when its terminal is closed', {
  skip: noScript,
  timeout: 200_000,
}, async (test) => {
  const dir = createFolder(test, { 'TestController.js': CONTROLLER });
  const env = {
    PATH: process.env.PATH,
    PORT: '0',
    HOST: '127.0.0.1',
    WORKERS: '1',
    CONTROLLERS_DIR: dir,
    DATA_DIR: dir,
  };
  const command = `exec '${process.execPath}' '${SERVER}'`;
  const terminal = spawn('script', ['-qec', command, '/dev/null'], { env, stdio: ['pipe', 'pipe', 'inherit', 'pipe'] });
  // Every process of the service has this pipe open, and writes nothing to it.
  const held = terminal.stdio[3] as NodeJS.ReadableStream;
  const ended = once(held.resume(), 'end');
  let shown = '';
  terminal.stdout?.on('data', (text) => (shown += String(text)));
  const until = async (pattern: RegExp) => {
    for (;;) {
      const found = pattern.exec(shown);
      if (found !== null) return found;
      await once(terminal.stdout as NodeJS.ReadableStream, 'data');
    }
  };
  const [, port] = await until(/listening on \S+:(\d+)/);
  const { supervisor } = json(await ask(Number(port), '/api/test')) as { supervisor: number };
  test.after(() => {
    try {
      process.kill(supervisor, 'SIGKILL');
    } catch {
      // The supervisor has ended, as it should.
    }
  });
  process.kill(supervisor, 'SIGHUP');
  await until(/generation-serving[^\n]*signal/);
  assert.equal((await ask(Number(port), '/api/test')).status, 200);
  terminal.kill('SIGKILL');
  await ended;
});
