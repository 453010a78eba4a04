// The parts of a request besides its body and query: declared headers, a schema for the path, and closed types.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { GATEFOLD, type LogLine, type Service, startService } from '../support/service.ts';

const SCHEMA = `const schema = { '~standard': { version: 1, vendor: 'test', validate: (value: any) =>
  /^\\d+$/.test(value.id) ? { value: { id: Number(value.id) } } : { issues: [{ message: 'no id', path: ['id'] }] } } };\n`;
const CONTROLLER = `import type { ControllerParams, Int, Uuid } from '${GATEFOLD}';
${SCHEMA}
interface Headers {
  /** The key. @minLength 2 @maxLength 5000 */
  'idempotency-key'?: string;
  'x-count'?: Int;
  'x-tag'?: string[];
  'x-kind'?: 'a' | 'b';
  'x-at'?: Date;
  constructor?: string;
}
interface Filter { a?: string; nested?: { b?: string }; list?: { c?: string }[] }
type Tagged = { kind: 'a'; a: string } | { kind: 'b'; b: string };
export default class XController {
  static operations = {
    closed: { closed: true },
    tagged: { closed: true },
    either: { closed: true },
    open: { closed: true },
    'GET closed': { closed: true },
    'GET both': { closed: true },
    'GET none': { closed: true },
    'GET any': { closed: true },
    'GET json': { closed: true, query: { type: 'object', properties: { a: { type: 'string' } } } },
    'GET {id}': { path: schema },
  };
  headers(data: unknown, { headers }: ControllerParams<{ headers: Headers }>) {
    return { ...headers, own: Object.keys(headers).sort() };
  }
  all(data: unknown, { headers }: ControllerParams) { return { host: typeof headers.host, x: headers['x-a'] ?? null }; }
  required(data: unknown, { headers }: ControllerParams<{ headers: { 'x-a': Int } }>) { return headers; }
  none(data: unknown, { headers }: ControllerParams<{ headers: {} }>) { return { headers }; }
  closed(data: Filter) { return data; }
  tagged(data: Tagged) { return data; }
  either(data: { a: string; at?: Date } | { b: { c: string }[] } | string) { return { data }; }
  open(data: Record<string, string>) { return data; }
  'GET closed'(data: Filter) { return data; }
  'GET none'() { return {}; }
  'GET any'(data: Record<string, string>, { query }: ControllerParams<{ query: { b?: Int } }>) { return { data, query }; }
  'GET json'(data: { a?: string }) { return data; }
  'GET both'(data: { a?: string }, { query }: ControllerParams<{ query: { b?: Int } }>) { return { ...data, ...query }; }
  'GET {id}'(data: unknown, { path }: ControllerParams<{ path: { id: number } }>) { return { path }; }
}
`.replace(`'${GATEFOLD}'`, "'gatefold'");

let service: Service;
before(async () => {
  service = await startService({ controllers: { 'XController.ts': CONTROLLER } });
});
after(() => service.close());

type Problem = { in: string; pointer: string; code: string; message: string };

async function ask(path: string, init: RequestInit = {}): Promise<unknown> {
  const response = await fetch(`${service.url}/api/x${path}`, init);
  const body = (await response.json()) as Record<string, unknown>;
  if (response.status !== 422) return body;
  const problems = body.errors as Problem[];
  for (const { code, message } of problems)
    if (code === 'additionalProperties') assert.equal(message, 'is not declared');
  return problems.map((problem) => `${problem.in} ${problem.pointer} ${problem.code}`);
}

describe('a declared header', () => {
  const LONG = 'x'.repeat(5001);
  const rows: [name: string, headers: [string, string][], expected: unknown][] = [
    ['that is left out', [], { own: [] }],
    ['of any case', [['Idempotency-KEY', 'abc']], { 'idempotency-key': 'abc', own: ['idempotency-key'] }],
    ['that becomes a number', [['x-count', '7']], { 'x-count': 7, own: ['x-count'] }],
    ['that is no number', [['x-count', 'seven']], ['header /x-count type']],
    ['that is too short', [['idempotency-key', 'a']], ['header /idempotency-key minLength']],
    ['that is too long', [['idempotency-key', LONG]], ['header /idempotency-key maxLength']],
    ['that is empty', [['idempotency-key', '']], ['header /idempotency-key minLength']],
    ['that is no literal', [['x-kind', 'c']], ['header /x-kind enum']],
    ['that becomes a date', [['x-at', '2026-01-01T00:00:00Z']], { 'x-at': '2026-01-01T00:00:00.000Z', own: ['x-at'] }],
    [
      'twice, where the type is a text',
      [
        ['x-kind', 'a'],
        ['X-Kind', 'a'],
      ],
      ['header /x-kind enum'],
    ],
    [
      'twice, where the type is a list',
      [
        ['x-tag', 'a'],
        ['X-Tag', 'b'],
      ],
      { 'x-tag': ['a', 'b'], own: ['x-tag'] },
    ],
    ['once, where the type is a list', [['x-tag', 'a, b']], { 'x-tag': ['a, b'], own: ['x-tag'] }],
    ['with a name that objects inherit', [['constructor', 'a']], { constructor: 'a', own: ['constructor'] }],
    [
      'beside others',
      [
        ['x-other', '1'],
        ['__proto__', '1'],
      ],
      { own: [] },
    ],
  ];
  for (const [name, headers, expected] of rows)
    test(name, async () => {
      const lines = headers.map(([header, value]) => `${header}: ${value}\r\n`).join('');
      const answer = await service.raw(`POST /api/x/headers HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n${lines}\r\n`);
      const body = JSON.parse(answer.slice(answer.indexOf('{')));
      const problems = (body.errors as Problem[] | undefined)?.map(
        (problem) => `${problem.in} ${problem.pointer} ${problem.code}`,
      );
      assert.deepEqual(problems ?? body, expected);
    });

  test('is required', async () =>
    assert.deepEqual(await ask('/required', { method: 'POST' }), ['header /x-a required']));

  test('is none where the type has no name', async () =>
    assert.deepEqual(await ask('/none', { method: 'POST', headers: { 'X-A': '7' } }), { headers: {} }));
  test('leaves all headers to operations that declare none', async () =>
    assert.deepEqual(await ask('/all', { method: 'POST', headers: { 'X-A': '7' } }), { host: 'string', x: '7' }));
});

describe('a schema for the path', () => {
  test('converts it', async () => assert.deepEqual(await ask('/7'), { path: { id: 7 } }));
  test('refuses it', async () => assert.deepEqual(await ask('/seven'), ['path /id library']));
});

describe('closed: true', () => {
  const post = (body: unknown): RequestInit => ({
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const form = (body: string): RequestInit => ({ method: 'POST', body: new URLSearchParams(body) });
  const many = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`x${i}`, 1]));
  const rows: [name: string, path: string, init: RequestInit, expected: unknown][] = [
    ['accepts declared fields', '/closed', post({ a: 'x', nested: { b: 'y' } }), { a: 'x', nested: { b: 'y' } }],
    ['refuses another field', '/closed', post({ a: 'x', z: 1 }), ['body /z additionalProperties']],
    ['refuses it in an object', '/closed', post({ nested: { z: 1 } }), ['body /nested/z additionalProperties']],
    ['refuses it in a list', '/closed', post({ list: [{ c: '' }, { z: 1 }] }), ['body /list/1/z additionalProperties']],
    [
      'refuses __proto__',
      '/closed',
      post('{"constructor":1,"a":1}'),
      ['body /a type', 'body /constructor additionalProperties'],
    ],
    [
      'refuses 50 fields at most',
      '/closed',
      post(many),
      Object.keys(many)
        .slice(0, 50)
        .map((name) => `body /${name} additionalProperties`),
    ],
    ['refuses a field of a form', '/closed', form('a=x&z=1'), ['body /z additionalProperties']],
    [
      'refuses a field of another part of a union',
      '/tagged',
      post({ kind: 'a', a: '', b: '' }),
      ['body /b additionalProperties'],
    ],
    ['accepts all fields of a record', '/open', post({ a: 'x', z: 'y' }), { a: 'x', z: 'y' }],
    ['accepts the fields of several parts of a union', '/either', post({ a: 'x', b: [] }), { data: { a: 'x', b: [] } }],
    [
      'refuses a field that no part of a union declares',
      '/either',
      post({ a: 'x', at: '2030-01-01T00:00:00Z', b: [{ c: 'x', y: 1 }], z: 1 }),
      ['body /b/0/y additionalProperties', 'body /z additionalProperties'],
    ],
    ['refuses what fits no part of a union', '/either', post({ z: 1 }), ['body  anyOf']],
    ['refuses a name in the query', '/closed?a=x&z=1', {}, ['query /z additionalProperties']],
    ['accepts the names of data and params.query', '/both?a=x&b=7', {}, { a: 'x', b: 7 }],
    ['refuses each name, when no type declares a query', '/none?z=1', {}, ['query /z additionalProperties']],
    ['refuses it beside a body', '/closed?z=1', post({ a: 'x' }), ['query /z additionalProperties']],
    ['refuses it by a JSON Schema', '/json?a=x&z=1', {}, ['query /z additionalProperties']],
    ['accepts a request without a query', '/none', {}, {}],
    ['accepts each name of a record beside a type', '/any?a=x&b=7', {}, { data: { a: 'x', b: '7' }, query: { b: 7 } }],
    ['refuses a name that neither declares', '/both?a=x&b=7&z=1', {}, ['query /z additionalProperties']],
  ];
  for (const [name, path, init, expected] of rows)
    test(name, async () => assert.deepEqual(await ask(path, init), expected));
});

describe('a file is refused', () => {
  const params = (shape: string) =>
    `created(data: unknown, params: import('gatefold').ControllerParams) {}`.replace(
      "import('gatefold').ControllerParams",
      `ControllerParams<${shape}>`,
    );
  const rows: [name: string, body: string, error: RegExp][] = [
    [
      'for a header in upper case',
      params("{ headers: { 'X-A': string } }"),
      /X-A is no name of a header in lower case.*write 'x-a'/,
    ],
    ['for a header with a blank', params("{ headers: { 'x a': string } }"), /x a is no name of a header/],
    ['for headers without names', params('{ headers: Record<string, string> }'), /must name each header.*or no type/],
    [
      'for a schema of a path without a route',
      'static operations = { created: { path: schema } }; created(data: unknown) {}',
      /it has no route, so its path is empty/,
    ],
    [
      'for a path that is no schema',
      "static operations = { 'GET {id}': { path: {} } }; 'GET {id}'() {}",
      /path must be a Standard Schema/,
    ],
    [
      'for closed that is a text',
      "static operations = { created: { closed: 'yes' } }; created(data: unknown) {}",
      /closed must be true or false/,
    ],
    [
      'for a file as the whole data without accepts',
      'created(data: File) {}',
      /created: its data is a file, and it takes no body of bytes; write static operations = \{ 'created': \{ accepts:/,
    ],
  ];
  for (const [data, error] of [
    [
      'data: {}',
      /created: closed: true has no effect: the type of data takes any field: declare its fields, or write closed: false for it/,
    ],
    [
      'data: unknown',
      /closed: true has no effect: data is not checked \(its type is unknown or any\): declare its fields, or/,
    ],
    ['data: object', /takes any field/],
  ] as const)
    rows.push([`for closed with ${data}`, `static operations = { '*': { closed: true } }; created(${data}) {}`, error]);
  for (const [settings, error] of [
    [
      '{ closed: true, body: schema }',
      /has no effect: a library checks its requests: make its schema strict, or write/,
    ],
    ['{ closed: true, unchecked: true }', /has no effect: data is not checked \(static operations says so\)/],
  ] as const)
    rows.push([
      `for ${settings}`,
      `static operations = { created: ${settings} }; created(data: { a: string }) {}`,
      error,
    ]);
  for (const [name, body, error] of rows)
    test(name, async () => {
      const source = `import type { ControllerParams } from 'gatefold';\n${SCHEMA}export default class XController { ${body} }\n`;
      const refused = await startService({
        controllers: { 'XController.ts': source },
        expectedErrors: ['request-failed', 'group-not-loadable'],
      });
      const response = await fetch(`${refused.url}/api/x`, { method: 'POST' });
      await response.text();
      await refused.close();
      assert.equal(response.status, 500);
      assert.match(refused.lines.map(({ error: text }: LogLine) => String(text)).join('\n'), error);
    });
});
