// The step that finds out whose key a request brings, alone: each answer of the table, and the two headers of a key.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { HttpError } from '../../../src/api/controller.ts';
import type { CallerRow } from '../../../src/callers/access/credential-rights.ts';
import { type Caller, createIdentifyCaller } from '../../../src/callers/access/key-check.ts';
import type { Exchange } from '../../../src/request/exchange.ts';

const row = { application: { id: 'app' } } as unknown as CallerRow;
const VALID: Caller = { kind: 'row', row };

/** Runs the step. The table knows the values of `callers`, and any other value is foreign. */
async function identify(callers: Readonly<Record<string, Caller>>, headers: readonly string[], keyHeader?: string) {
  const caller: Record<string, unknown> = {};
  const seen: string[] = [];
  let rateChecks = 0;
  const at = headers.findIndex((text, i) => i % 2 === 0 && text.toLowerCase() === 'authorization');
  const authorization = at < 0 ? undefined : headers[at + 1];
  const exchange = { head: { authorization }, caller, request: { rawHeaders: headers } } as unknown as Exchange;
  const step = createIdentifyCaller(
    {
      identify: (value) => {
        seen.push(value);
        const found = callers[value] ?? { kind: 'foreign' };
        return value.endsWith('late') ? Promise.resolve(found) : found;
      },
    },
    () => void rateChecks++,
    keyHeader,
  );
  let error: HttpError | undefined;
  try {
    await step(exchange);
  } catch (thrown) {
    error = thrown as HttpError;
  }
  const { code, cause, headers: sent } = error ?? {};
  return { caller, seen, rateChecks, code, reason: (cause as Error | undefined)?.message, sent };
}

const used = (key: string, keyHeader: string) => ({ keyHeader, row, credentialId: 'app', key });
const refused = (id?: string): Caller => ({ kind: 'refused', reason: 'it has expired', ...(id && { id }) });

describe('the key of a request', () => {
  for (const key of ['k', 'k late'])
    test(`is used when the table has it: ${key}`, async () => {
      const { caller, rateChecks, code } = await identify({ [key]: VALID }, ['Authorization', key]);
      assert.deepEqual([caller, rateChecks, code], [used(key, 'authorization'), 0, undefined]);
    });

  test('is not asked for without a header', async () => {
    const { caller, seen, code } = await identify({}, ['x-key', 'k']);
    assert.deepEqual([caller, seen, code], [{}, [], undefined]);
  });

  test('stays with the operation when it is of another service', async () => {
    const { caller, code } = await identify({}, ['authorization', 'Token a']);
    assert.deepEqual([caller, code], [{ foreignAuthorization: 'Token a' }, undefined]);
  });

  for (const id of ['app', undefined])
    test(`is refused with its reason, and counts as a call of the address: ${id}`, async () => {
      const made = await identify({ k: refused(id) }, ['authorization', 'k']);
      assert.deepEqual([made.code, made.reason, made.rateChecks], ['INVALID_CREDENTIAL', 'it has expired', 1]);
      assert.deepEqual(made.caller, { credentialId: id ?? '' });
    });

  for (const key of ['k', 'k late'])
    test(`gets 503 while the table is too old: ${key}`, async () => {
      const made = await identify({ [key]: { kind: 'away' } }, ['authorization', key]);
      assert.deepEqual([made.code, made.sent, made.rateChecks], ['STORE_AWAY', { 'Retry-After': '5' }, 0]);
      assert.deepEqual(made.caller, {});
    });
});

describe('a header of its own for keys', () => {
  for (const [key, value] of [
    ['Bearer k', 'k'],
    ['k', 'k'],
    ['k late', 'k late'],
    ['Bearer k', 'Bearer k'],
    ['Own k', 'Own k'],
  ] as const)
    test(`has the key ${key} as ${value}, by any case of its name`, async () => {
      const { caller, code } = await identify({ [key]: VALID }, ['A', 'x-key', 'X-Key', value], 'x-key');
      assert.deepEqual([caller, code], [used(key, 'x-key'), undefined]);
    });

  test('is refused without a second look when its value is a key that is not valid', async () => {
    const made = await identify({ k: refused('app'), 'Bearer k': VALID }, ['x-key', 'k'], 'x-key');
    assert.deepEqual([made.code, made.reason, made.seen], ['INVALID_CREDENTIAL', 'it has expired', ['k']]);
  });

  test('may be left out, and Authorization still has a key', async () => {
    const { caller, seen } = await identify({ k: VALID }, ['authorization', 'k', 'a', 'x-key'], 'x-key');
    assert.deepEqual([caller, seen], [used('k', 'authorization'), ['k']]);
  });

  test('stands beside an Authorization of another service', async () => {
    const headers = ['authorization', 'Token a', 'x-key', 'k'];
    const { caller, code } = await identify({ 'Bearer k': VALID }, headers, 'x-key');
    assert.deepEqual([caller, code], [{ ...used('Bearer k', 'x-key'), foreignAuthorization: 'Token a' }, undefined]);
  });

  test('is refused beside another key, and when it comes twice', async () => {
    const callers = { k: VALID, 'Bearer k': VALID };
    for (const other of ['authorization', 'x-key']) {
      const made = await identify(callers, [other, 'k', 'x-key', 'k'], 'x-key');
      assert.equal(made.code, 'DUPLICATE_AUTHORIZATION', other);
    }
  });

  test('is refused when its value is no key of this service', async () => {
    const made = await identify({}, ['x-key', 'Token a'], 'x-key');
    assert.deepEqual([made.code, made.rateChecks], ['INVALID_CREDENTIAL', 1]);
    assert.match(made.reason ?? '', /the header x-key holds no key of this service/);
    assert.deepEqual(made.seen, ['Token a', 'Bearer Token a']);
  });
});
