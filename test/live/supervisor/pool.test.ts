// The pool of workers, without a process.
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, it } from 'node:test';
import { createPool } from '../../../src/live/supervisor/workers/pool.ts';
import type { EarlyWorker } from '../../../src/live/supervisor/workers/prefork.ts';

const EVENTS = {
  disconnected() {},
  died() {},
  gone() {},
  faulty() {},
  requested() {},
  importReported() {},
  importedOnCall() {},
};

function createWorker() {
  const process = { pid: 1, exitCode: 0, signalCode: null, kill() {} };
  const worker = Object.assign(new EventEmitter(), { id: 1, process, isConnected: () => true, send() {} });
  const earlyWorker: EarlyWorker = {
    isAlive: () => true,
    adopt: (takeOver) => takeOver(worker as never),
    kill: async () => {},
  };
  return { worker, earlyWorker };
}

const countTimers = () => process.getActiveResourcesInfo().filter((type) => type === 'Timeout').length;

describe('createPool', () => {
  it('close clears every timer when all workers have ended', async () => {
    const before = countTimers();
    const { worker, earlyWorker } = createWorker();
    const pool = createPool({ earlyWorkers: [earlyWorker], events: EVENTS, drainTimeout: 30_000 });
    const closed = pool.close();
    worker.emit('disconnect');
    worker.emit('exit');
    assert.deepEqual(await closed, []);
    assert.equal(countTimers(), before);
  });
});
