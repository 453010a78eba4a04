// During a thousand generations the memory of the supervisor stays flat, and no process is left over. Takes minutes
// (`npm run soak`).
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { it } from 'node:test';
import { type Service, startService } from '../support/cluster-server.ts';
import { controller, write } from '../support/folder.ts';

const GENERATIONS = Number(process.env.SOAK_GENERATIONS ?? 1000);
/** The generations that fill caches. Memory may not grow after them. */
const WARM = Math.ceil(GENERATIONS / 10);
/**
 * Allowed growth a generation, in KiB. node:cluster itself keeps about 1; a worker that is not freed keeps 20 or more.
 */
const TOLERANCE_KIB = 2;
/** Makes the supervisor collect its garbage and log its memory on SIGUSR2. */
const PROBE = `if (process.env.NODE_UNIQUE_ID === undefined) process.on('SIGUSR2', () => {
  globalThis.gc();
  globalThis.gc();
  console.error(JSON.stringify({ event: 'memory', kib: Math.round(process.memoryUsage().heapUsed / 1024) }));
});`;

it(`the memory of the supervisor does not grow over ${GENERATIONS} generations`, {
  skip: process.platform !== 'linux',
}, async (test) => {
  const env = { WORKERS: '1', NODE_OPTIONS: `--expose-gc --import data:text/javascript,${encodeURIComponent(PROBE)}` };
  const service = await startService(test, { files: { 'TestController.js': controller(0) }, env });
  const pid = service.process.pid as number;
  let warm = 0;
  for (let generation = 1, edit = 0; generation < GENERATIONS; ) {
    write(service.dir, 'TestController.js', controller(++edit));
    const known = generation;
    generation = Number(
      (await service.logged('generation-serving', (line) => Number(line.generation) > known)).generation,
    );
    // The log lines of a thousand generations would fill the memory of the test.
    service.lines.length = 0;
    if (generation >= WARM && warm === 0) warm = await memory(service);
  }
  const last = await memory(service);
  test.diagnostic(`supervisor, heap in KiB: ${warm} after ${WARM} generations, ${last} after ${GENERATIONS}`);
  assert.ok(last - warm < TOLERANCE_KIB * (GENERATIONS - WARM), `the heap grew by ${last - warm} KiB`);
  assert.ok(
    childrenOf(pid) <= 4,
    'the supervisor has at most a serving worker, a reserve worker and two ending workers',
  );
});

async function memory(service: Service): Promise<number> {
  service.process.kill('SIGUSR2');
  return Number((await service.logged('memory')).kib);
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
