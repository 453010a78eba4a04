// Words that nearly match others, and keys that occur twice in a JSON text.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { repeatedKeys } from '../../src/base/json-keys.ts';
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

test('lettersOf returns the letters in lower case without separators', () => {
  for (const name of ['expires_at', 'expiresAt', 'EXPIRES-AT', ' expires at '])
    assert.equal(lettersOf(name), 'expiresat');
});

test('repeatedKeys returns the key and the path of each key that an object repeats', () => {
  const rows: [text: string, ...repeated: [key: string, ...path: (string | number)[]][]][] = [
    ['{"a":1,"b":{"a":2}}'],
    ['[{"a":1},{"a":1}]'],
    ['{"a":1,"a":2}', ['a']],
    ['{"a" : 1,\n"a"\t: 2}', ['a']],
    ['{"a":1,"\\u0061":2}', ['a']],
    ['{"b":{"c":[7,{"a":1,"a":null}]}}', ['a', 'b', 'c', 1]],
    ['[[1,2],{},{"a":{"b":1,"b":2},"a":3,"a":4}]', ['b', 2, 'a'], ['a', 2], ['a', 2]],
    ['{"a":"\\":","b":"x\\\\"}'],
    ['{"a":"\\":","b":1,"b":2}', ['b']],
    ['{"a":"{\\"b\\":1,\\"b\\":2}"}'],
    ['{"":1,"":2}', ['']],
    ['{"__proto__":1,"a":{"__proto__":2}}'],
    ['"a"'],
    [`${'['.repeat(100_000)}${']'.repeat(100_000)}`],
  ];
  for (const [text, ...repeated] of rows) {
    const expected = repeated.map(([key, ...path]) => ({ key, path }));
    assert.deepEqual(repeatedKeys(text, JSON.parse(text)), expected, text.slice(0, 100));
  }
});

test('repeatedKeys returns an empty list for the output of JSON.stringify', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(0, 2), (value, space) => {
      const text = JSON.stringify(value, null, space);
      assert.deepEqual(repeatedKeys(text, JSON.parse(text)), []);
    }),
  );
});
