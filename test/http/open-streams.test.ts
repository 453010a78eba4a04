// The reasons why an open stream ends. test/credentials/open-streams.test.ts ends real streams by changes of the table.
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import type { HttpError } from '../../src/controller.ts';
import type { Caller } from '../../src/http/caller.ts';
import type { Exchange } from '../../src/http/exchange.ts';
import { createStreamWatch } from '../../src/http/open-streams.ts';

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
    const exchange = { caller: {}, key: 'k', response: new EventEmitter() } as unknown as Exchange;
    watch(exchange, (refusal) => refusals.push(refusal as HttpError));
    context.mock.timers.tick(1000);
    assert.deepEqual(
      refusals.map((refusal) => refusal.code),
      [code],
    );
    assert.match((refusals[0]?.cause as Error | undefined)?.message ?? '', reason);
  });

test('a stream whose row allows the group continues, and is not checked again while the table is unchanged', (context) => {
  context.mock.timers.enable({ apis: ['setInterval'] });
  const refusals: unknown[] = [];
  const row = {
    application: { id: 'a', name: 'a' },
    handler: undefined,
    groups: new Set(['Order']),
    methods: undefined,
  };
  const watch = createStreamWatch({ identify: () => ({ kind: 'row', row }) });
  const call = { verb: 'GET', groupInUrl: 'order', group: 'Order', operation: 'index', application: row.application };
  const exchange = { ...call, caller: row, key: 'k', response: new EventEmitter() } as unknown as Exchange;
  watch(exchange, (refusal) => refusals.push(refusal));
  context.mock.timers.tick(1000);
  assert.deepEqual(refusals, []);
  row.groups.clear();
  context.mock.timers.tick(1000);
  assert.deepEqual(refusals, []);
});
