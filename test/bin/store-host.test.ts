// The process of the store-host, with a database that nobody runs. The test is the supervisor.
import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { FromHost } from '../../src/operate/store/messages.ts';
import { LOADER, modulePath } from '../support/own-modules.ts';

/** Runs before the store-host, and ends after its supervisor. */
const OUTLIVE = `data:text/javascript,await new Promise((resolve) => process.once('disconnect', resolve));`;

function start(t: TestContext, table: string, flags: readonly string[] = []): { child: ChildProcess; data: string } {
  const data = mkdtempSync(join(tmpdir(), 'gatefold-store-host-'));
  writeFileSync(join(data, 'production.json'), table);
  const env = { ...process.env, STORE: 'postgres://user:@127.0.0.1:1/none', DATA_DIR: data, CONTROLLERS_DIR: data };
  const child = fork(modulePath('src/bin/store-host'), { env, execArgv: [...LOADER, ...flags] });
  t.after(() => {
    child.kill('SIGKILL');
    rmSync(data, { recursive: true, force: true, maxRetries: 5 });
  });
  return { child, data };
}

/** Resolves with the first message of this kind. */
function heard<K extends FromHost['kind']>(child: ChildProcess, kind: K): Promise<Extract<FromHost, { kind: K }>> {
  return new Promise((resolve) => {
    child.on('message', (message: FromHost) => {
      if (message.kind === kind) resolve(message as Extract<FromHost, { kind: K }>);
    });
  });
}

test('a store-host answers calls, and ends with its channel, not by a signal; without a table it ends with 1', async (t) => {
  const [good, bad] = [start(t, '{"production":[]}'), start(t, 'no table')];
  const badEnd = once(bad.child, 'exit');
  // Its supervisor ends while it boots, before it can listen for the end of the channel.
  const { child: orphan } = start(t, '{"production":[]}', ['--import', OUTLIVE]);
  const orphanEnd = once(orphan, 'exit');
  orphan.disconnect();
  const failed = heard(bad.child, 'failed');
  const { state } = await heard(good.child, 'state');
  assert.equal(state.hasTable, true);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) good.child.kill(signal);
  const answered = heard(good.child, 'answer');
  good.child.send({ call: 7, request: { kind: 'look' } });
  const { call, answer } = await answered;
  assert.equal(call, 7);
  assert.match(String(answer.error), /^127\.0\.0\.1:1: /);
  const goodEnd = once(good.child, 'exit');
  good.child.disconnect();
  assert.deepEqual(await goodEnd, [0, null]);
  const { reason } = await failed;
  assert.match(reason, /^Cannot read .*production\.json: /);
  assert.ok(reason.includes(bad.data));
  assert.deepEqual(await badEnd, [1, null]);
  assert.deepEqual(await orphanEnd, [0, null]);
});
