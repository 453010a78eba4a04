// A test that takes long says what its process has open.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';

/** The test calls the report itself, when everything is open. */
const SOURCE = `
  import { spawn } from 'node:child_process';
  import { once } from 'node:events';
  import { connect, createServer } from 'node:net';
  import { describe, test } from 'node:test';
  const { setTimeout } = globalThis;
  const reports = [];
  globalThis.setTimeout = (report, ms) => { reports.push(report); return setTimeout(() => {}, ms); };
  const { reportLongTests } = await import('./test/support/long-tests.mjs');
  globalThis.setTimeout = setTimeout;
  reportLongTests(1e9);
  test('long', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = connect(server.address().port, '127.0.0.1');
    await once(client, 'connect');
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
    reports[0]();
    child.kill('SIGKILL');
    client.destroy();
    server.close();
  });
  describe('many at once', { concurrency: true }, () => {
    for (let i = 0; i < 20; i++) test(String(i), () => new Promise((resolve) => setTimeout(resolve, 20)));
  });`;

const { NODE_TEST_CONTEXT: _, ...env } = process.env;

test('a long test is reported with the processes, servers and connections of its process', () => {
  const words = ['--input-type=module', '-e', SOURCE];
  const { stderr, status } = spawnSync(process.execPath, words, { env, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  assert.match(stderr, /^"long" takes 1000000 s\. Its process has open:$/m);
  const lines = [
    /^ {2}process \d+: .* -e setInterval/m,
    /^ {2}server at .*:\d+\}$/m,
    /^ {2}connection from \d+ to \d+/m,
  ];
  for (const line of lines) assert.match(stderr, line);
  assert.doesNotMatch(stderr, /Warning/);
});
