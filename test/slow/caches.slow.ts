// A service whose folder is so large that its workers use the caches of earlier processes. Requests are checked by the
// present sources, not by stale caches.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { startService } from '../support/cluster-server.ts';
import { createFolder, write } from '../support/folder.ts';

const COUNT = 31;
const types = (field: string) => `export interface Order { ${field}: number }\n`;
const CONTROLLER =
  "import type { Order } from './types.ts';\nexport default class { created(data: Order) { return { data }; } }\n";

test('every worker checks by the current types file, also after a restart and with damaged caches', async (t) => {
  const dir = createFolder(t, { 'types.ts': types('a') });
  for (let i = 0; i < COUNT; i++) write(dir, `G${i}Controller.ts`, CONTROLLER);
  const TMPDIR = join(dirname(dir), 'tmp');
  mkdirSync(TMPDIR);
  const start = () => startService(t, { dir, env: { WORKERS: '2', TMPDIR } });
  let service = await start();
  /** Sends each field several times, each time on a new connection, so that both workers answer. */
  async function acceptedFields(): Promise<string[]> {
    const accepted = new Set<string>();
    for (let i = 0; i < 8; i++) {
      for (const field of ['a', 'b', 'c']) {
        const answer = await fetch(`http://127.0.0.1:${service.port}/api/g${i}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', connection: 'close' },
          body: JSON.stringify({ [field]: 1 }),
        });
        await answer.text();
        if (answer.status === 200) accepted.add(field);
        else assert.equal(answer.status, 422);
      }
    }
    return [...accepted];
  }
  async function change(field: string, generation: number): Promise<void> {
    write(dir, 'types.ts', types(field));
    await service.logged('generation-serving', (line) => line.generation === generation);
  }
  const file = (): string => {
    const [own = ''] = readdirSync(TMPDIR).filter((name) => /^gatefold-\d+$/.test(name));
    const [folder = ''] = readdirSync(join(TMPDIR, own));
    return join(TMPDIR, own, folder, 'contracts');
  };
  async function saved(field: string): Promise<void> {
    for (;;) {
      try {
        if (readFileSync(file(), 'utf8').includes(`"required":["${field}"]`)) return;
      } catch {
        // No worker has written the cache yet.
      }
      await new Promise((later) => setTimeout(later, 50));
    }
  }
  assert.deepEqual(await acceptedFields(), ['a']);
  await saved('a');
  await change('b', 2);
  assert.deepEqual(await acceptedFields(), ['b']);
  await saved('b');
  await change('a', 3);
  assert.deepEqual(await acceptedFields(), ['a']);
  await saved('a');

  service.process.kill('SIGTERM');
  await service.exited;
  write(dir, 'types.ts', types('c'));
  service = await start();
  assert.deepEqual(await acceptedFields(), ['c']);
  await saved('c');

  service.process.kill('SIGTERM');
  await service.exited;
  // The damaged text has the same length, but names another field as required.
  writeFileSync(file(), readFileSync(file(), 'utf8').replaceAll('"c"', '"b"'));
  service = await start();
  assert.deepEqual(await acceptedFields(), ['c']);
});
