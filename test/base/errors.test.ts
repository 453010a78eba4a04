// The error codes of the code are those of docs/ERRORS.md. The constructor of HttpError refuses invalid arguments.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { rawRefusal } from '../../src/base/envelope.ts';
import { CATALOGUE, HttpError, isHttpError, refusal } from '../../src/base/errors.ts';
import { LOAD_ERROR_CODES } from '../../src/base/load-refusal.ts';

test('docs/ERRORS.md documents every code with its status, and no other', () => {
  const text = readFileSync(new URL('../../docs/ERRORS.md', import.meta.url), 'utf8');
  const documented = Array.from(
    text.matchAll(/^\| `([A-Z_]+)` \| (\d{3}) \|/gm),
    ([, code, status]) => `${code} ${status}`,
  ).sort();
  const known = Object.entries(CATALOGUE)
    .map(([code, { status }]) => `${code} ${status}`)
    .sort();
  assert.deepEqual(documented, known);
  for (const [code, { message }] of Object.entries(CATALOGUE)) assert.match(message, /^[A-Z].* /, code);
});

test('docs/ERRORS.md documents every code of a file that does not load, and no other', () => {
  const text = readFileSync(new URL('../../docs/ERRORS.md', import.meta.url), 'utf8');
  const documented = Array.from(text.matchAll(/^\| `([A-Z_]+)` \| (?!\d{3} )/gm), ([, code]) => code);
  assert.deepEqual(documented.sort(), [...LOAD_ERROR_CODES].sort());
});

describe('HttpError', () => {
  const rows: [name: string, args: unknown[], message?: string][] = [
    ['a status below 400', [399, 'X', 'x'], 'HttpError: the status is 399, it must be a whole number from 400 to 599'],
    ['a status above 599', [600, 'X', 'x']],
    ['a status that is a fraction', [400.5, 'X', 'x']],
    [
      'a status that is a text',
      ['400', 'X', 'x'],
      'HttpError: the status is "400", it must be a whole number from 400 to 599',
    ],
    [
      'headers of the class Headers',
      [400, 'X', 'x', { headers: new Headers({ a: 'b' }) }],
      'HttpError: headers must be a plain object',
    ],
    ['a code in lower case', [400, 'x', 'x'], 'HttpError: the code is "x", it must look like NAME_TAKEN'],
    ['an empty code', [400, '', 'x']],
    ['a code that is a number', [400, 1, 'x']],
    ['a message that is an object', [400, 'X', {}], 'HttpError: the message must be a string'],
    ['details that are an object', [400, 'X', 'x', { details: {} }], 'HttpError: details must be a list'],
  ];
  for (const [name, args, message] of rows) {
    const expected = message === undefined ? TypeError : new TypeError(message);
    test(`refuses ${name}`, () => assert.throws(() => new HttpError(...(args as [number, string, string])), expected));
  }

  test('accepts every status from 400 to 599', () => {
    assert.deepEqual(
      [400, 599].map((status) => new HttpError(status, 'X', 'x').status),
      [400, 599],
    );
  });

  test('is recognised by its brand across copies of the package, and a look-alike is not', () => {
    class Foreign extends Error {
      status = 404;
    }
    Object.defineProperty(Foreign.prototype, Symbol.for('gatefold.HttpError'), { value: true });
    assert.ok(isHttpError(new Foreign()));
    assert.ok(isHttpError(refusal('NOT_FOUND')));
    assert.ok(!isHttpError(Object.assign(new Error('x'), { status: 404, code: 'X' })));
    assert.ok(!isHttpError({ [Symbol.for('gatefold.HttpError')]: true }));
    assert.equal(String(new HttpError(404, 'X', 'gone')), 'HttpError: gone');
  });
});

test('rawRefusal writes a status without a name', () => {
  const text = rawRefusal(refusal('NOT_FOUND'), 'r1', ['X-A', '1'], { status: 599, text: 'öl' });
  const [head, body] = text.split('\r\n\r\n') as [string, string];
  assert.match(head, /^HTTP\/1\.1 599 unknown\r\nDate: [^\r]+\r\nX-A: 1\r\n/);
  assert.match(head, /\r\nX-Request-Id: r1\r\nContent-Length: 3\r\nConnection: close$/);
  assert.equal(body, 'öl');
});
