// The reasons why an open stream ends. test/callers/credentials/open-streams.test.ts ends real streams by changes of
// the table.
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { HttpError } from '../../../src/api/controller.ts';
import type { CallerRow } from '../../../src/callers/access/credential-rights.ts';
import type { Caller, CallerTable } from '../../../src/callers/access/key-check.ts';
import { createStreamWatch } from '../../../src/callers/access/open-streams.ts';
import { createCredentials } from '../../../src/callers/credentials/credentials.ts';
import type { Exchange } from '../../../src/request/exchange.ts';
import { createFolder, createMemoryLog, makeRow, tableText } from '../../support/credentials-bench.ts';

const rows: readonly (readonly [caller: Caller, code: string, reason: RegExp])[] = [
  [{ kind: 'away' }, 'STORE_AWAY', /^$/],
  [{ kind: 'refused', reason: 'it has expired' }, 'INVALID_CREDENTIAL', /^it has expired$/],
  [{ kind: 'foreign' }, 'INVALID_CREDENTIAL', /^no row has it any more$/],
];
for (const [caller, code, reason] of rows)
  test(`a stream whose key is ${caller.kind} at a later check ends with ${code}`, (context) => {
    context.mock.timers.enable({ apis: ['setInterval'] });
    const refusals: HttpError[] = [];
    const watch = createStreamWatch({ identify: () => caller });
    const exchange = { caller: { row: {}, key: 'k' }, response: new EventEmitter() } as unknown as Exchange;
    watch(exchange, (refusal) => refusals.push(refusal as HttpError));
    context.mock.timers.tick(1000);
    assert.deepEqual(
      refusals.map((refusal) => refusal.code),
      [code],
    );
    assert.match((refusals[0]?.cause as Error | undefined)?.message ?? '', reason);
  });

/** Watches a stream of the group Order. Returns the refusals that have ended it. */
function watchOrders(credentials: CallerTable, row: CallerRow, key = 'k'): HttpError[] {
  const refusals: HttpError[] = [];
  const call = { verb: 'GET', groupInUrl: 'order', group: 'Order', operation: 'index' };
  const exchange = {
    ...call,
    caller: { row, key, application: row.application },
    response: new EventEmitter(),
  } as unknown as Exchange;
  createStreamWatch(credentials)(exchange, (refusal) => refusals.push(refusal as HttpError));
  return refusals;
}

test('a stream whose row allows the group is checked again only when the table has changed', (context) => {
  context.mock.timers.enable({ apis: ['setInterval'] });
  const groups = new Set(['Order']);
  const row = { application: { id: 'a', name: 'a' }, handler: undefined, groups, methods: undefined };
  let table = {};
  let checks = 0;
  const identify = (): Caller => {
    checks++;
    return { kind: 'row', row };
  };
  const refusals = watchOrders({ identify, table: () => table }, row);
  context.mock.timers.tick(1000);
  assert.deepEqual([checks, refusals], [1, []]);
  // The next check will end the stream, so the stream shows whether there was one.
  groups.clear();
  context.mock.timers.tick(5000);
  assert.deepEqual([checks, refusals], [1, []]);
  table = {};
  context.mock.timers.tick(1000);
  assert.deepEqual([checks, refusals.map(({ code }) => code)], [2, ['GROUP_NOT_ALLOWED']]);
});

test('a stream ends with STORE_AWAY when the copy of the table gets too old, although the table is the same', async (context) => {
  const dataDir = createFolder(context);
  const { row, token } = makeRow({ groups: ['order'] });
  writeFileSync(join(dataDir, 'production.json'), tableText(row));
  let isTooOld = false;
  const shared = { refresh: async () => {}, register: async () => {}, onChange() {}, onRowsChanged() {} };
  const credentials = await createCredentials({
    ...{ dataDir, sessionKey: undefined, log: createMemoryLog() },
    shared: { ...shared, isTooOld: () => isTooOld, sharesSessionKey: true },
  });
  context.after(() => credentials.close());
  const caller = (await credentials.identify(token)) as Caller;
  assert.equal(caller.kind, 'row');
  context.mock.timers.enable({ apis: ['setInterval'] });
  const refusals = watchOrders(credentials, caller.row, token);
  const sweep = async () => {
    context.mock.timers.tick(1000);
    await new Promise(setImmediate);
  };
  await sweep();
  assert.deepEqual(refusals, []);
  isTooOld = true;
  await sweep();
  assert.deepEqual(
    refusals.map(({ code }) => code),
    ['STORE_AWAY'],
  );
  isTooOld = false;
  const later = watchOrders(credentials, caller.row, token);
  await sweep();
  assert.deepEqual(later, []);
});
