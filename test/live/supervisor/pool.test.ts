// The pool of workers, without a process.
import assert from 'node:assert/strict';
import cluster from 'node:cluster';
import { EventEmitter } from 'node:events';
import { describe, it } from 'node:test';
import { createPool } from '../../../src/live/supervisor/workers/pool.ts';

const EVENTS = {
  disconnected() {},
  died() {},
  gone() {},
  faulty() {},
  importReported() {},
  received() {},
};

function createWorker() {
  const process = { pid: 1, exitCode: 0, signalCode: null, kill() {} };
  return Object.assign(new EventEmitter(), { id: 1, process, isConnected: () => true, send() {} });
}

const countTimers = () => process.getActiveResourcesInfo().filter((type) => type === 'Timeout').length;

describe('createPool', () => {
  it('close clears every timer when all workers have ended', async (test) => {
    const before = countTimers();
    const worker = createWorker();
    test.mock.method(cluster, 'fork', () => worker);
    const pool = createPool({ events: EVENTS, drainTimeout: 30_000 });
    pool.fork();
    const closed = pool.close();
    worker.emit('disconnect');
    worker.emit('exit');
    assert.deepEqual(await closed, []);
    assert.equal(countTimers(), before);
  });
});
