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
  const setOf = createHeaderSets({ cors, headers: [] });
  const first = setOf('https://0.example');
  for (let i = 1; i < 100; i++) setOf(`https://${i}.example`);
  assert.equal(setOf('https://0.example'), first);
  setOf('https://100.example');
  assert.notEqual(setOf('https://0.example'), first);
});
