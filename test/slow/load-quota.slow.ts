// A machine that gives a worker a tenth of its processor: a file that computes for long loads, and one that hangs does
// not. The test itself stops the worker for a second after each tenth of a second of its CPU, as a quota does.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuTimeOf } from '../../src/base/load-clock.ts';
import { type SpawnedService, spawnService } from '../support/cluster-server.ts';

const compute = (milliseconds: number) =>
  `const used = () => Object.values(process.cpuUsage()).reduce((sum, part) => sum + part / 1000, 0);
  for (const before = used(); used() - before < ${milliseconds}; );
  export default class { index() { return { pid: process.pid }; } }`;

describe('a tenth of a processor', { timeout: 600_000, skip: process.platform !== 'linux' }, () => {
  it('a file that needs 1.5 s of CPU loads, although that takes longer than LOAD_TIMEOUT by the clock', async (test) => {
    const files = { 'HeavyController.js': compute(1500) };
    const service = spawnService(test, { files, env: { WORKERS: '1', LOAD_TIMEOUT: '10s' } });
    throttle(test, service);
    const port = await service.listening;
    assert.equal((await fetch(`http://127.0.0.1:${port}/api/heavy`)).status, 200);
    assert.deepEqual(
      service.lines.filter(({ event }) => event === 'worker-died'),
      [],
    );
  });

  it('a loop without an end is out of time, and the log says how much CPU it got', async (test) => {
    const files = { 'LoopController.js': compute(1e9), 'GoodController.js': compute(1) };
    const service = spawnService(test, { files, env: { WORKERS: '1', LOAD_TIMEOUT: '1s' } });
    const { reason } = await service.logged('worker-died');
    assert.match(
      String(reason),
      /^its event loop did not turn for \d+ s; the machine gave it \d+\.\d s of CPU in \d+\.\d s$/,
    );
    assert.equal((await fetch(`http://127.0.0.1:${await service.listening}/api/good`)).status, 200);
  });
});

/** Stops the workers of a service for a second after each tenth of a second of CPU that they have used. */
function throttle(test: TestContext, service: SpawnedService): void {
  let isOver = false;
  const signal = (name: NodeJS.Signals) => {
    for (const pid of childrenOf(service.process.pid)) {
      try {
        process.kill(pid, name);
      } catch {
        // The worker has ended.
      }
    }
  };
  const used = () => childrenOf(service.process.pid).reduce((sum, pid) => sum + (cpuTimeOf(pid) || 0), 0);
  const cycle = async () => {
    for (let before = 0; !isOver; before = used()) {
      while (used() < before + 100 && !isOver) await sleep(5);
      signal('SIGSTOP');
      await sleep(1000);
      signal('SIGCONT');
    }
  };
  const end = cycle();
  test.after(() => end);
  const stop = () => {
    isOver = true;
  };
  service.listening.then(stop);
  service.exited.then(stop);
}

function childrenOf(parent: number | undefined): number[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      const fields = readFileSync(`/proc/${name}/stat`, 'latin1').split(') ').at(-1)?.split(' ') ?? [];
      return Number(fields[1]) === parent ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}
