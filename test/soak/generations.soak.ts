// A thousand generations: the memory of the supervisor stays flat, and no process is left over. Minutes long: `npm run soak`.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { it } from 'node:test';
import { ask, json } from '../support/cluster-client.ts';
import { controller, startService, write } from '../support/cluster-server.ts';

const GENERATIONS = Number(process.env.SOAK_GENERATIONS ?? 1000);
/** The first tenth fills caches; from there on nothing may grow. */
const WARM = Math.ceil(GENERATIONS / 10);
/** What the heap may stand higher or lower between two collections. */
const TOLERANCE_KIB = 8 * 1024;

it(`${GENERATIONS} generations leave the memory of the supervisor flat`, { skip: process.platform !== 'linux' }, async (test) => {
  const service = await startService(test, { files: { 'TestController.js': controller(0) }, env: { WORKERS: '1' } });
  const pid = service.process.pid as number;
  const samples: number[] = [];
  for (let generation = 2; generation <= GENERATIONS; generation++) {
    write(service.dir, 'TestController.js', controller(generation));
    await service.logged('generation-serving', (line) => line.generation === generation);
    // The lines of a thousand generations are the test's memory, not the service's.
    service.lines.length = 0;
    if (generation >= WARM) samples.push(residentKib(pid));
  }
  assert.equal(json(await ask(service.port, '/api/test')).value, GENERATIONS);
  const tenth = Math.max(1, Math.floor(samples.length / 10));
  const first = median(samples.slice(0, tenth));
  const last = median(samples.slice(-tenth));
  test.diagnostic(`supervisor, resident KiB: ${first} after ${WARM} generations, ${last} after ${GENERATIONS}`);
  assert.ok(last - first < TOLERANCE_KIB, `it grew by ${last - first} KiB`);
  assert.ok(childrenOf(pid) <= 4, 'one that serves, one in reserve, at most two that are about to end');
});

function residentKib(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

function childrenOf(pid: number): number {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && parentOf(name) === pid).length;
}

function parentOf(name: string): number | undefined {
  try {
    return Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${name}/status`, 'utf8'))?.[1]);
  } catch {
    return undefined;
  }
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
