// Words that are nearly others, and keys that a JSON text has twice.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { repeatedKey } from '../../src/base/json-keys.ts';
import { editDistance, lettersOf } from '../../src/base/near.ts';

test('editDistance counts letters that are added, left out, changed or swapped', () => {
  const rows: [string, string, number][] = [
    ['', '', 0],
    ['', 'abc', 3],
    ['before', 'before', 0],
    ['befor', 'before', 1],
    ['befroe', 'before', 1],
    ['beforre', 'before', 1],
    ['bofore', 'before', 1],
    ['bfeoer', 'before', 2],
    ['format', 'before', 5],
  ];
  for (const [from, to, distance] of rows) {
    assert.equal(editDistance(from, to), distance, `${from} ${to}`);
    assert.equal(editDistance(to, from), distance, `${to} ${from}`);
  }
});

test('lettersOf drops what separates words, and their case', () => {
  for (const name of ['expires_at', 'expiresAt', 'EXPIRES-AT', ' expires at ']) assert.equal(lettersOf(name), 'expiresat');
});

test('repeatedKey finds a key that one object has twice', () => {
  const rows: [text: string, key: string | undefined][] = [
    ['{"a":1,"b":{"a":2}}', undefined],
    ['[{"a":1},{"a":1}]', undefined],
    ['{"a":1,"a":2}', 'a'],
    ['{"a" : 1,\n"a"\t: 2}', 'a'],
    ['{"a":1,"\\u0061":2}', 'a'],
    ['{"b":{"c":[{"a":1,"a":null}]}}', 'a'],
    ['{"a":"\\":","b":"x\\\\"}', undefined],
    ['{"a":"\\":","b":1,"b":2}', 'b'],
    ['{"a":"{\\"b\\":1,\\"b\\":2}"}', undefined],
    ['{"":1,"":2}', ''],
    ['{"__proto__":1,"a":{"__proto__":2}}', undefined],
    ['"a"', undefined],
    [`${'['.repeat(100_000)}${']'.repeat(100_000)}`, undefined],
  ];
  for (const [text, key] of rows) assert.equal(repeatedKey(text, JSON.parse(text)), key, text.slice(0, 100));
});

test('repeatedKey finds none in what JSON.stringify writes', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(0, 2), (value, space) => {
      const text = JSON.stringify(value, null, space);
      assert.equal(repeatedKey(text, JSON.parse(text)), undefined);
    }),
  );
});
