// `@default` fills in a field that a request leaves out, where its type writes the field with `?`. `@trim` removes the
// white space at both ends of a text before the constraints are checked.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Service, startService } from '../support/service.ts';

const TYPES = `import type { ControllerParams, Int } from 'gatefold';
interface New {
  /** @default 3 */
  n?: Int;
  /** @default open */
  state?: 'open' | 'done';
  /** @default ["a"] */
  tags?: string[];
  /** @default null */
  owner?: string | null;
  /** @default 2026-01-01T00:00:00Z */
  at?: Date;
  inner?: {
    /** @default true */
    on?: boolean;
  };
  /** @default here */
  constructor?: string;
}
interface Text {
  /** @trim @minLength 2 @maxLength 3 */
  name: string;
  /** @trim */
  note?: string | null;
}
interface Required1 {
  /** @default 3 */
  n: Int;
}
`;
const CONTROLLER = `${TYPES}export default class XController {
  body(data: New) { data.tags?.push('seen'); return { ...data, isDate: data.at instanceof Date }; }
  list(data: New[]) { return data; }
  partial(data: Partial<New>) { return data; }
  mapped(data: { [K in keyof New]?: New[K] }) { return data; }
  picked(data: Pick<New, 'n'>) { return data; }
  omitted(data: Omit<New, 'tags' | 'at' | 'state' | 'owner' | 'constructor'>) { return data; }
  extended(data: Pick<New, 'n'> & { x?: string }) { return data; }
  first(data: Pick<New, 'n'> & { n?: Int }) { return data; }
  second(data: { n?: Int } & Pick<New, 'n'>) { return data; }
  all(data: Required<Pick<New, 'n'>>) { return data; }
  required(data: Required1) { return data; }
  union(data: { kind: 'a'; /** @default 1 */ a?: Int } | { kind: 'b' }) { return data; }
  record(data: { [name: string]: unknown; /** @default 1 */ a?: Int }) { return data; }
  optional(data?: { /** @default 1 */ a?: Int }) { return { data }; }
  patch(data: Pick<New, 'n'>, { query }: ControllerParams<{ query: Pick<New, 'n'> }>) { return { data, query }; }
  'PATCH part'(data: Pick<New, 'n'>) { return data; }
  text(data: Text) { return data; }
  index(data: { /** @default 20 */ limit?: Int; /** @trim */ q?: string }) { return data; }
  headers(data: unknown, { headers }: ControllerParams<{ headers: { /** @default 7 */ 'x-n'?: Int } }>) { return headers; }
}
`;
const ANY_VERB = `${TYPES}export default class YController {
  change(data: Pick<New, 'n'>) { return data; }
  patch(data: Pick<New, 'n'>) { return data; }
}
`;
const NEW = {
  n: 3,
  state: 'open',
  tags: ['a', 'seen'],
  owner: null,
  at: '2026-01-01T00:00:00.000Z',
  constructor: 'here',
};

let service: Service;
before(async () => {
  service = await startService({ controllers: { 'XController.ts': CONTROLLER, 'YController.ts': ANY_VERB } });
});
after(() => service.close());

async function ask(path: string, body?: unknown, method = 'POST'): Promise<unknown> {
  const response = await fetch(`${service.url}/api/x${path}`, {
    method,
    ...(body !== undefined && { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }),
  });
  const answer = (await response.json()) as { errors?: { pointer: string; code: string }[] };
  return response.status === 422 ? answer.errors?.map(({ pointer, code }) => `${pointer} ${code}`) : answer;
}

describe('@default', () => {
  const rows: [name: string, path: string, body: unknown, expected: unknown, method?: string][] = [
    ['fills in fields of all kinds', '/body', {}, { ...NEW, isDate: true }],
    ['fills in a fresh value each time', '/body', {}, { ...NEW, isDate: true }],
    ['fills in fields of an inner object', '/body', { inner: {} }, { ...NEW, inner: { on: true }, isDate: true }],
    [
      'leaves null and a given value',
      '/body',
      { n: 0, owner: null, tags: [], state: 'done', at: null },
      ['/at format'],
    ],
    ['fills in fields in a list', '/list', [{ n: 1 }], [{ ...NEW, tags: ['a'], n: 1 }]],
    ['documents only, where Partial makes the field optional', '/partial', {}, {}],
    ['documents only, where a mapped type makes the field optional', '/mapped', {}, {}],
    ['fills in a field of Pick', '/picked', {}, { n: 3 }],
    ['fills in a field of Omit', '/omitted', {}, { n: 3 }],
    ['fills in a field of an intersection', '/extended', { x: 'y' }, { n: 3, x: 'y' }],
    ['documents only a field of Required', '/all', {}, ['/n required']],
    ['documents only a field that is required', '/required', {}, ['/n required']],
    ['fills in the part of a union', '/union', { kind: 'a' }, { kind: 'a', a: 1 }],
    ['fills in beside an index signature', '/record', { b: 2 }, { a: 1, b: 2 }],
    ['fills in a field of two types, of which the first has the default', '/first', {}, { n: 3 }],
    ['fills in a field of two types, of which the second has the default', '/second', {}, { n: 3 }],
    ['fills in an empty query that is optional data', '/optional', undefined, { data: { a: 1 } }],
    ['fills in the query', '', undefined, { limit: 20 }, 'GET'],
    ['fills in headers', '/headers', undefined, { 'x-n': 7 }],
    ['never fills in the body of patch', '', { n: undefined }, { data: {}, query: { n: 3 } }, 'PATCH'],
    ['never fills in the body of a PATCH route', '/part', {}, {}, 'PATCH'],
    ['never fills in the body of a request by PATCH', '/../y/change', {}, {}, 'PATCH'],
    ['never fills in the body of patch by POST', '/../y/patch', {}, {}],
    ['fills in the body of the same operation by POST', '/../y/change', {}, { n: 3 }],
  ];
  for (const [name, path, body, expected, method] of rows)
    test(name, async () => assert.deepEqual(await ask(path, body, method), expected));

  for (const [name, field, error] of [
    ['a text for a number', '/** @default many */ n?: number', /@default "many" must be a number/],
    ['a number for a text', '/** @default 3 */ n?: string', /@default 3 must be a string/],
    ['no literal of the type', "/** @default c */ n?: 'a' | 'b'", /@default "c" must be "a" or "b"/],
    ['a text that is too short', '/** @default a @minLength 2 */ n?: string', /@default "a" must have at least 2/],
    ['an object that lacks a field', '/** @default {} */ n?: { a: string }', /@default \{\} \/a is missing/],
    ['a date that is none', '/** @default now */ n?: Date', /@default "now" must be a date and time/],
  ] as const)
    test(`refuses the file for ${name}`, async () => {
      const refused = await startService({
        controllers: { 'XController.ts': `export default class XController { created(data: { ${field} }) {} }\n` },
        expectedErrors: ['request-failed', 'group-not-loadable'],
      });
      const response = await fetch(`${refused.url}/api/x`, { method: 'POST' });
      await response.text();
      await refused.close();
      assert.equal(response.status, 500);
      assert.match(refused.lines.map(({ error: text }) => String(text)).join('\n'), error);
    });
});

describe('@trim', () => {
  const rows: [name: string, path: string, body: unknown, expected: unknown, method?: string][] = [
    ['removes white space at both ends', '/text', { name: ' \t ab\n', note: ' x ' }, { name: 'ab', note: 'x' }],
    ['comes before the constraints', '/text', { name: '  a  ' }, ['/name minLength']],
    ['makes a long text fit', '/text', { name: ' abc '.padEnd(50) }, { name: 'abc' }],
    ['leaves null', '/text', { name: 'ab', note: null }, { name: 'ab', note: null }],
    ['refuses a number', '/text', { name: 'ab', note: 7 }, ['/note anyOf']],
    ['holds for a query', '?q=%20a%20', undefined, { limit: 20, q: 'a' }, 'GET'],
  ];
  for (const [name, path, body, expected, method] of rows)
    test(name, async () => assert.deepEqual(await ask(path, body, method), expected));
});
