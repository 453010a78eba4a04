// A table of 100,000 rows is read, changed and written without blocking the event loop, and its size is limited.
import assert from 'node:assert/strict';
import { readFileSync, renameSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createCredentials } from '../../../src/callers/credentials/credentials.ts';
import { MAX_BYTES } from '../../../src/callers/credentials/table/live-table.ts';
import { runAtOnce, runInSlices } from '../../../src/callers/credentials/table/slices.ts';
import { compileTable } from '../../../src/callers/credentials/table/table.ts';
import { createRow, MAX_APPLICATIONS } from '../../../src/callers/credentials/write/changes.ts';
import { updateTable } from '../../../src/callers/credentials/write/table-file.ts';
import { createFolder, createMemoryLog, makeRow, until, writeTable } from '../../support/credentials-bench.ts';

/** The rows as one text, because creating so many rows takes long. */
function largeTable(rows: number, ...first: object[]): string {
  const { row } = makeRow();
  const others = Array.from(
    { length: rows },
    (_, i) =>
      `{"id":"${String(i).padStart(12, 'A')}","name":"number ${i}","hash":"${row.hash}","owner":{"issuer":"https://id.example","subject":"${i}"}}`,
  );
  return `{"production":[${[...first.map((item) => JSON.stringify(item)), ...others].join(',\n')}]}`;
}

test('compileTable pauses every few rows, and returns the same table in slices as at once', async () => {
  const bytes = Buffer.from(largeTable(1000, makeRow({ methods: 5 }).row));
  let steps = 0;
  const work = compileTable(bytes);
  for (let step = work.next(); !step.done; step = work.next()) steps++;
  assert.ok(steps >= 1000 / 64, `${steps} pauses`);
  const [sliced, whole] = [await runInSlices(compileTable(bytes), 0), runAtOnce(compileTable(bytes))];
  assert.deepEqual([...sliced.rows.values()], [...whole.rows.values()]);
  assert.deepEqual(sliced.quarantined, whole.quarantined);
});

test('runInSlices lets the event loop run between two slices', async () => {
  const order: string[] = [];
  function* work() {
    for (let i = 0; i < 3; i++) {
      order.push(`slice ${i}`);
      setImmediate(() => order.push(`turn ${i}`));
      yield;
    }
    return 'done';
  }
  assert.equal(await runInSlices(work(), 0), 'done');
  assert.deepEqual(order, ['slice 0', 'turn 0', 'slice 1', 'turn 1', 'slice 2', 'turn 2']);
});

test('a table above the size limit is neither read nor written, and the last good table stays live', async (t) => {
  const folder = createFolder(t);
  const file = join(folder, 'production.json');
  const one = makeRow();
  writeTable(folder, one.row);
  const log = createMemoryLog();
  const credentials = await createCredentials({ dataDir: folder, sessionKey: undefined, log });
  t.after(() => credentials.close());
  writeFileSync(`${file}.new`, '');
  truncateSync(`${file}.new`, MAX_BYTES + 1);
  renameSync(`${file}.new`, file);
  await until(() => log.lines.some(({ event }) => event === 'credentials-reload-failed'));
  assert.equal((await credentials.identify(one.token)).kind, 'row');
  assert.match(credentials.status().lastFailure ?? '', /it is larger than 536870912 bytes$/);
  const { row } = createRow({ name: 'n' }, Date.now());
  await assert.rejects(
    updateTable(folder, (table) => table.append(row)),
    /it is larger than 536870912 bytes$/,
  );
  writeFileSync(file, `{"padding":"${'x'.repeat(900)}","production":[]}`);
  await assert.rejects(
    updateTable(folder, (table) => table.append(row), { maxBytes: 1000 }),
    /it would be larger than 1000 bytes$/,
  );
  const text = readFileSync(file, 'utf8');
  await updateTable(folder, (table) => table.append(row));
  const { size: maxBytes } = statSync(file);
  for (const [limit, isLarger] of [
    [maxBytes - 1, true],
    [maxBytes, false],
  ] as const) {
    writeFileSync(file, text);
    const update = updateTable(folder, (table) => table.append(row), { maxBytes: limit });
    if (isLarger) await assert.rejects(update, /it would be larger/);
    else await update;
  }
});

test('register refuses an identity that has the maximum of live applications', async (t) => {
  const folder = createFolder(t);
  const owner = { issuer: 'https://id.example', subject: 's' };
  const rows = Array.from({ length: MAX_APPLICATIONS }, (_, i) => makeRow({ name: `app ${i}`, owner }).row);
  writeTable(folder, ...rows);
  const credentials = await createCredentials({ dataDir: folder, sessionKey: undefined, log: createMemoryLog() });
  t.after(() => credentials.close());
  await assert.rejects(credentials.register({ owner, name: 'one more' }), {
    code: 'TOO_MANY_APPLICATIONS',
    status: 409,
  });
  writeTable(folder, ...rows.slice(1), { ...rows[0], revoked_at: '2026-01-01' });
  await credentials.register({ owner, name: 'one more' });
  await credentials.register({ owner: { ...owner, subject: 't' }, name: 'another one' });
});
