// A worker process as its supervisor sees it: a real process, and a test that gives it its orders.
import assert from 'node:assert/strict';
import type { SendHandle } from 'node:child_process';
import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { openPort } from '../../src/supervisor/port.ts';
import { type FromWorker, seal, type ToWorker, unseal } from '../../src/worker/messages.ts';
import { controller, createFolder, write } from '../support/folder.ts';

function heard<K extends FromWorker['kind']>(worker: Worker, kind: K): Promise<Extract<FromWorker, { kind: K }>> {
  return new Promise((done) => {
    worker.on('message', function listen(message) {
      const said = unseal<FromWorker>(message);
      if (said?.kind !== kind) return;
      worker.off('message', listen);
      done(said as Extract<FromWorker, { kind: K }>);
    });
  });
}

test('a new group answers when the supervisor has said that every worker has it, and not before', async (t) => {
  const dir = createFolder(t, { 'SteadyController.js': controller('steady') });
  cluster.setupPrimary({ exec: resolve(import.meta.dirname, '../../src/worker.ts') });
  const worker = cluster.fork({ CONTROLLERS_DIR: dir, DATA_DIR: dir, LOG_LEVEL: 'error' });
  const port = await openPort(0, '127.0.0.1');
  const order = (message: ToWorker, socket?: unknown) => worker.send(seal(message), socket as SendHandle);
  t.after(async () => {
    port.close();
    worker.process.kill('SIGKILL');
    await once(worker, 'exit');
  });
  await heard(worker, 'booted');
  const loaded = heard(worker, 'loaded');
  order({ kind: 'load', files: ['SteadyController.js'], skip: [] });
  await loaded;
  const listening = heard(worker, 'listening');
  order({ kind: 'listen' }, port.socket);
  await listening;
  const url = `http://127.0.0.1:${port.number}/api`;

  write(dir, 'NewController.js', controller('new'));
  let isAnswered = false;
  const imported = heard(worker, 'imported');
  const answer = fetch(`${url}/new`).then(({ status }) => {
    isAnswered = true;
    return status;
  });
  assert.deepEqual((await imported).group, { group: 'New', file: 'NewController.js', ok: true });
  // Each of these answers is later than that of the new group would be.
  for (let i = 0; i < 5; i++) assert.equal((await fetch(`${url}/steady`)).status, 200);
  assert.equal(isAnswered, false);
  order({ kind: 'shared', group: 'New' });
  assert.equal(await answer, 200);
});
