// The service while nobody reads its log: it answers, takes up edits, and ends when it is told to.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { ask, json } from '../support/cluster-client.ts';
import { startService } from '../support/cluster-server.ts';
import { controller, createFolder, write } from '../support/folder.ts';

const SLOW =
  'export default class { index() { return { value: 0 }; } wait() { process.stdout.write("waiting\\n"); return new Promise(() => {}); } }';

/** Its standard error is a pipe that is full and never read. */
async function startUnread(test: TestContext) {
  const dir = createFolder(test, { 'TestController.js': SLOW });
  const logFile = join(dirname(dir), 'log');
  execFileSync('mkfifo', [logFile]);
  const reader = openSync(logFile, constants.O_RDONLY | constants.O_NONBLOCK);
  test.after(() => closeSync(reader));
  const service = await startService(test, { dir, logFile });
  // Each leaves a line of 4 kB.
  const long = `/api/test/${'x'.repeat(8000)}`;
  await Promise.all(Array.from({ length: 60 }, () => ask(service.port, long)));
  return service;
}

describe('a service whose log nobody reads', { timeout: 110_000 }, () => {
  it('answers, takes up an edit, and ends on SIGTERM with 0', async (test) => {
    const { port, dir, process: server, exited } = await startUnread(test);
    write(dir, 'TestController.js', controller('edited'));
    while (json(await ask(port, '/api/test')).value !== 'edited');
    server.kill('SIGTERM');
    assert.deepEqual(await exited, { code: 0, signal: null });
  });

  it('ends on the second SIGTERM while a request is under way', async (test) => {
    const { port, process: server, exited } = await startUnread(test);
    const waiting = new Promise<void>((resolve) => server.stdout?.on('data', (text) => String(text).includes('waiting') && resolve()));
    ask(port, '/api/test/wait').catch(() => {});
    await waiting;
    server.kill('SIGTERM');
    // Those that come within some milliseconds are one: terminals and npm deliver a signal twice.
    const again = setInterval(() => server.kill('SIGTERM'), 100);
    test.after(() => clearInterval(again));
    assert.deepEqual(await exited, { code: 1, signal: null });
  });
});
