// Tests the header lines that answers share. test/support/cors-table.ts has them over a socket.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CorsPolicy } from '../../src/callers/access/cors.ts';
import { createHeaderSets } from '../../src/request/answer/answer-headers.ts';

const cors: CorsPolicy = {
  namesOrigins: true,
  isOpen: false,
  dependsOnRequest: false,
  methods: 'GET',
  preflightStatus: 200,
  allows: (origin) => origin.endsWith('.example'),
  credentials: false,
  exposeHeaders: undefined,
  allowHeaders: undefined,
  maxAge: 60,
};

test('header sets are kept for 100 origins, and the oldest is dropped first', () => {
  const setOf = createHeaderSets({ cors, headers: [], keyHeader: undefined });
  const first = setOf('https://0.example');
  for (let i = 1; i < 100; i++) setOf(`https://${i}.example`);
  assert.equal(setOf('https://0.example'), first);
  setOf('https://100.example');
  assert.notEqual(setOf('https://0.example'), first);
});

test('answers vary by the header for keys, also with the open CORS headers and for origins that are not allowed', () => {
  const varyOf = (policy: CorsPolicy | undefined, keyHeader: string | undefined) => {
    const lines = createHeaderSets({ cors: policy, headers: [], keyHeader })(undefined).json;
    return lines.filter((_, i) => lines[i - 1] === 'Vary');
  };
  assert.deepEqual(varyOf(undefined, 'x-api-key'), ['x-api-key']);
  assert.deepEqual(varyOf(cors, 'x-api-key'), ['Origin, x-api-key']);
  assert.deepEqual(varyOf({ ...cors, allows: undefined }, 'x-api-key'), ['x-api-key']);
  assert.deepEqual(varyOf({ ...cors, allows: undefined }, undefined), []);
});
