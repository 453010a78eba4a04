// The code and the params of each mistake, for translations: over a socket, and as docs/ERRORS.md has them.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { FAULTS, type Fault } from '../../src/contract/check/messages.ts';
import { GATEFOLD, type Service, startService } from '../support/service.ts';

const CONTROLLER = `import type { DateOnly, Int, Uuid, ControllerParams } from 'gatefold';
  type Tree = { next?: Tree };
  interface Body {
    /** @minLength 3 @maxLength 5 */ text?: string;
    /** @minLength 1 */ filled?: string;
    /** @pattern ^[a-z]+$ */ word?: string;
    /** @pattern ^.*a.*b$ */ slow?: string;
    /** @minimum 1 @maximum 9 */ between?: number;
    /** @exclusiveMinimum 1 @exclusiveMaximum 9 */ inside?: number;
    /** @multipleOf 5 */ step?: number;
    /** @minItems 2 @maxItems 3 @uniqueItems */ list?: number[];
    whole?: Int; flag?: boolean; day?: DateOnly; id?: Uuid; at?: Date; nested?: { deep: string };
    mode?: 'fast' | 'slow'; kind?: 'only'; many?: 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12;
    maybe?: string | null; either?: Int | 'auto'; never?: undefined; tree?: Tree;
    form?: { a: string } | { b: string } | null;
    shape?: { kind: 'a'; a: string } | { kind: 'b' }; any?: Record<string, unknown>;
  }
  export default class {
    created(data: Body) { return data }
    'GET {n}'(data: { page: Int }, { path }: ControllerParams<{ path: { n: Int } }>) { return path }
  }`;
const deep = JSON.parse(`${'{"next":'.repeat(150)}{}${'}'.repeat(150)}`);

type Row = readonly [body: object, pointer: string, code: string, params: object, message: string];
const ROWS: readonly Row[] = [
  [{ text: 'ab' }, '/text', 'minLength', { limit: 3 }, 'must have at least 3 characters'],
  [{ filled: '' }, '/filled', 'minLength', { limit: 1 }, 'must not be empty'],
  [{ text: 'abcdef' }, '/text', 'maxLength', { limit: 5 }, 'must have at most 5 characters'],
  [{ text: 7 }, '/text', 'type', { type: 'string' }, 'must be a string'],
  [{ word: 'A' }, '/word', 'pattern', { pattern: '^[a-z]+$' }, 'must match ^[a-z]+$'],
  [{ between: 0 }, '/between', 'minimum', { limit: 1 }, 'must be at least 1'],
  [{ between: 10 }, '/between', 'maximum', { limit: 9 }, 'must be at most 9'],
  [{ between: '5' }, '/between', 'type', { type: 'number' }, 'must be a number'],
  [{ inside: 1 }, '/inside', 'exclusiveMinimum', { limit: 1 }, 'must be more than 1'],
  [{ inside: 9 }, '/inside', 'exclusiveMaximum', { limit: 9 }, 'must be less than 9'],
  [{ step: 7 }, '/step', 'multipleOf', { multipleOf: 5 }, 'must be a multiple of 5'],
  [{ list: [1] }, '/list', 'minItems', { limit: 2 }, 'must have at least 2 entries'],
  [{ list: [1, 2, 3, 4] }, '/list', 'maxItems', { limit: 3 }, 'must have at most 3 entries'],
  [{ list: [1, 1] }, '/list', 'uniqueItems', {}, 'must not contain the same entry twice'],
  [{ list: 1 }, '/list', 'type', { type: 'array' }, 'must be a list'],
  [{ list: [1, 'x'] }, '/list/1', 'type', { type: 'number' }, 'must be a number'],
  [{ whole: 1.5 }, '/whole', 'type', { type: 'integer' }, 'must be a whole number'],
  [{ flag: 'true' }, '/flag', 'type', { type: 'boolean' }, 'must be true or false'],
  [{ day: '2026-13-01' }, '/day', 'format', { format: 'date' }, 'must be a date like 2026-12-31'],
  [{ id: 'x' }, '/id', 'format', { format: 'uuid' }, 'must be a UUID'],
  [{ at: 'x' }, '/at', 'format', { format: 'date-time' }, 'must be a date and time like 2026-12-31T23:59:59Z'],
  [{ at: 7 }, '/at', 'format', { format: 'date-time' }, 'must be a date and time like 2026-12-31T23:59:59Z'],
  [{ nested: {} }, '/nested/deep', 'required', {}, 'is missing'],
  [{ nested: 7 }, '/nested', 'type', { type: 'object' }, 'must be an object'],
  [{ mode: 'x' }, '/mode', 'enum', { allowedValues: ['fast', 'slow'] }, 'must be "fast" or "slow"'],
  [{ kind: 'x' }, '/kind', 'const', { allowedValue: 'only' }, 'must be "only"'],
  [
    { many: 13 },
    '/many',
    'enum',
    { allowedValues: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], count: 12 },
    'must be one of 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, … (12 in all)',
  ],
  [{ maybe: 7 }, '/maybe', 'anyOf', { type: ['string', 'null'] }, 'must be a string or null'],
  [
    { either: true },
    '/either',
    'anyOf',
    { type: ['integer'], allowedValues: ['auto'] },
    'must be a whole number or "auto"',
  ],
  [{ form: {} }, '/form', 'anyOf', { type: ['object', 'null'] }, 'must be one of 2 kinds of object'],
  [{ form: 1 }, '/form', 'anyOf', { type: ['object', 'null'] }, 'must be an object or null'],
  [{ never: 1 }, '/never', 'not', {}, 'must be left out'],
  [{ shape: { kind: 'c' } }, '/shape/kind', 'enum', { allowedValues: ['a', 'b'] }, 'must be "a" or "b"'],
  [{ shape: {} }, '/shape/kind', 'required', {}, 'is missing'],
  [{ slow: 'a'.repeat(100_000) }, '/slow', 'steps', {}, 'is too long for its pattern'],
  [{ tree: deep }, `/tree${'/next'.repeat(99)}`, 'depth', { limit: 100 }, 'is nested deeper than 100'],
  [
    { nested: { deep: 'x', ...Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [`k${i}`, 0])) } },
    '/nested',
    'maxProperties',
    { limit: 10_000 },
    'must have at most 10000 fields',
  ],
];

describe('a mistake', () => {
  let service: Service;
  before(async () => {
    service = await startService({
      controllers: {
        'XController.ts': CONTROLLER,
        'LibraryController.mjs': `const validate = (value) => ({ issues: [{ message: 'Zu kurz', path: ['name'], code: 'x' }, {}] });
          export default class { static operations = { created: { body: { '~standard': { version: 1, vendor: 'v', validate } } } }; created() {} }`,
      },
    });
  });
  after(() => service.close());
  const errorsOf = async (path: string, body?: object) => {
    const init = { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
    const response = await fetch(`${service.url}/api/${path}`, body && init);
    assert.equal(response.status, 422);
    return ((await response.json()) as { errors: (Fault & { in: string; pointer: string })[] }).errors;
  };

  for (const [body, pointer, code, params, message] of ROWS) {
    it(`of ${JSON.stringify(body).slice(0, 60)} has the code ${code}`, async () => {
      const errors = await errorsOf('x', body);
      assert.deepEqual(errors, [{ in: 'body', pointer, code, params, message }]);
    });
  }

  it('of the query and the path has a code, too', async () => {
    const mistakes = (await errorsOf('x/a?page=b')).map((error) => [error.in, error.pointer, error.code, error.params]);
    assert.deepEqual(mistakes, [
      ['path', '/n', 'type', { type: 'integer' }],
      ['query', '/page', 'type', { type: 'integer' }],
    ]);
  });

  it('of the schema of a library has the code library', async () => {
    assert.deepEqual(await errorsOf('library', {}), [
      { in: 'body', pointer: '/name', code: 'library', message: 'Zu kurz', params: {} },
      { in: 'body', pointer: '', code: 'library', message: 'is not valid', params: {} },
    ]);
  });
});

it('docs/ERRORS.md has a table of every code with the names of its params, and no other', () => {
  const faults = Object.values(FAULTS).flatMap((entry): Fault[] => {
    if (typeof entry !== 'function') return [entry];
    const make = entry as (...args: unknown[]) => Fault;
    if (entry === FAULTS.notInUnion) return [make('a', ['string'], ['x'])];
    return entry === FAULTS.notLiteral ? [make(['x']), make(['x', 'y'])] : [make(3)];
  });
  const known = new Map(faults.map(({ code, params }) => [code, Object.keys(params).sort().join()]));
  assert.ok(known.size > 15);
  const text = readFileSync(new URL('../../docs/ERRORS.md', import.meta.url), 'utf8');
  const [, table = ''] = /## Codes of mistakes\n([\s\S]*?)(?=\n## |$)/.exec(text) ?? [];
  const documented = Array.from(
    table.matchAll(/^\| `(\w+)` \| ([^|]*) \|/gm),
    ([, code, params = '']): [string, string] => [
      String(code),
      Array.from(params.matchAll(/`(\w+)`/g), ([, name]) => name)
        .filter((name) => name !== 'count')
        .sort()
        .join(),
    ],
  );
  assert.deepEqual(new Map(documented.sort()), new Map([...known].sort()));
  // request-parts.test.ts has the code of `closed: true`.
  const covered = new Set([...ROWS.map(([, , code]) => code), 'library', 'additionalProperties']);
  assert.deepEqual(
    [...known.keys()].filter((code) => !covered.has(code)),
    [],
  );
});

describe('formatError', () => {
  it('gets the request and the user, translates by code and params, and its echo has neither', async (t) => {
    const service = await startService({
      controllers: {
        'service.mjs': `import { defineService } from '${GATEFOLD}';
          const TEXTS = { de: { minLength: ({ limit }) => 'mindestens ' + limit + ' Zeichen' } };
          export default defineService({
            authenticate: ({ cookies }) => (cookies.u === undefined ? undefined : { id: cookies.u }),
            formatError: (refusal) => ({
              echo: { ...refusal }, id: refusal.user?.id ?? null, keys: Object.keys(refusal),
              texts: refusal.errors?.map(({ code, params }) => TEXTS[refusal.request?.headers['accept-language']]?.[code]?.(params)),
            }),
          });`,
        'XController.ts': CONTROLLER,
      },
    });
    t.after(service.close);
    const headers = { 'content-type': 'application/json', cookie: 'u=ann', 'accept-language': 'de' };
    const response = await fetch(`${service.url}/api/x`, { method: 'POST', headers, body: '{"text":"a"}' });
    const body = (await response.json()) as { echo: object; id: string; keys: string[]; texts: string[] };
    assert.deepEqual([body.id, body.texts], ['ann', ['mindestens 3 Zeichen']]);
    for (const hidden of ['request', 'user', 'cause']) assert.ok(!body.keys.includes(hidden) && !(hidden in body.echo));
    const early = await service.raw('GET / HTTP/9.9\r\n\r\n');
    assert.match(early, /"id":null/);
  });
});
