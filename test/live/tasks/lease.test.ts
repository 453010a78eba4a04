// Tests the lease on a file: two processes never both have it, and a failure names the file.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Cell, createFileCell, Lease, parseTasks, serviceOf } from '../../../src/live/tasks/lease.ts';
import { createFolder } from '../../support/folder.ts';

const dataOf = (t: TestContext): string => join(dirname(createFolder(t)), 'data');

test('of many leases on one file, one is held, also when all sync at once', async (t) => {
  const data = dataOf(t);
  let now = 0;
  // Each is of another machine, whose processes cannot be seen from here.
  const leases = Array.from({ length: 5 }, (_, i) => new Lease(createFileCell(data), () => now, `1-1-m${i}`));
  const held = () => leases.filter(({ isHeld }) => isHeld);
  for (let second = 0; second < 40; second++) {
    now += 1000;
    await Promise.all(leases.map((lease) => lease.sync()));
    assert.equal(held().length, 1);
  }
  const [first] = held() as [Lease];
  first.records.set('report', { accounted: 5 });
  await first.sync();
  const others = leases.filter((lease) => lease !== first);
  for (let second = 0; second < 14; second++) {
    now += 1000;
    await Promise.all(others.map((lease) => lease.sync()));
    assert.deepEqual(
      held().filter((lease) => lease !== first),
      [],
    );
  }
  assert.equal(first.isHeld, false, 'it is given up before another takes it');
  now += 3000;
  await Promise.all(others.map((lease) => lease.sync()));
  const [second] = held() as [Lease];
  assert.notEqual(second, first);
  assert.equal(second.records.get('report')?.accounted, 5);
  assert.equal(await first.sync(), false);
  await second.sync('');
  assert.equal(second.isHeld, false);
  await first.sync();
  assert.equal(first.isHeld, true, 'a lease that was given back is free at once');
});

test('the lease of a process of this machine that has ended is free at once', async (t) => {
  const data = dataOf(t);
  const clock = () => 0;
  const alive = new Lease(createFileCell(data), clock);
  await alive.sync();
  const other = new Lease(createFileCell(data), clock);
  assert.equal(await other.sync(), false, 'the process lives');
  const path = join(data, 'tasks.json');
  // No process has this id.
  writeFileSync(path, readFileSync(path, 'utf8').replace(/"holder":"\d+-/, '"holder":"400000000-'));
  assert.equal(await other.sync(), true);
});

test('a failure names the file and its reason, and a broken file is not replaced', async (t) => {
  const data = dataOf(t);
  mkdirSync(join(data, 'tasks.json'), { recursive: true });
  const cell = createFileCell(data);
  const lease = new Lease(cell, () => 0);
  await assert.rejects(lease.sync(), /data\/tasks\.json: it is a folder$/);
  await assert.rejects(cell.write('', 'x'), /data\/tasks\.json: it is a folder$/);
  rmSync(join(data, 'tasks.json'), { recursive: true });
  for (const text of ['{', '[]', '{}', '{"holder":1,"tasks":{}}', '{"holder":"","tasks":{"a":1}}']) {
    writeFileSync(join(data, 'tasks.json'), text);
    await assert.rejects(lease.sync(), /the state of the tasks is broken/);
    assert.equal(readFileSync(join(data, 'tasks.json'), 'utf8'), text);
  }
  assert.deepEqual(parseTasks(''), { holder: '', records: new Map() });
});

test('serviceOf names a service by its package.json', (t) => {
  const dir = createFolder(t);
  assert.equal(serviceOf(dir), 'service');
  writeFileSync(join(dirname(dir), 'package.json'), '{ "name": "shop" }');
  assert.equal(serviceOf(dir), 'shop');
});

test('a lease is sure for less than 10 s, and free for another machine after more than 15 s', async () => {
  let [now, version, text] = [0, 0, ''];
  const cell: Cell = {
    read: async () => ({ version: text && String(version), text }),
    async write(expected, newText) {
      if (expected !== (text && String(version))) return false;
      [version, text] = [version + 1, newText];
      return true;
    },
  };
  const [first, second] = ['1-1-a', '1-1-b'].map((name) => new Lease(cell, () => now, name)) as [Lease, Lease];
  assert.equal(await first.sync(), true);
  now = 9999;
  assert.equal(first.isHeld, true);
  now = 10_000;
  assert.equal(first.isHeld, false);
  assert.equal(await second.sync(), false, 'it has just seen the last renewal');
  now = 25_000;
  assert.equal(await second.sync(), false);
  now = 25_001;
  assert.deepEqual([await second.sync(), second.isHeld], [true, true]);
});
