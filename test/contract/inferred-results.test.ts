// Results whose types a library infers from a schema, over a real socket: whole, in a list, and as the body of a `Reply`.
// The schema is in the document, and with `results: 'declared'` its output is sent.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { createGroups } from '../../src/live/load/registry.ts';
import { GATEFOLD, type Service, startService } from '../support/service.ts';

const SOURCE = `import type { z } from 'zod';
import type { Static } from 'typebox';
import type { Reply } from 'gatefold';
import { Reply as Answer } from '${GATEFOLD}';
const json = { type: 'object', properties: { name: { type: 'string' }, kid: { $ref: '#' } }, required: ['name'] };
const output = () => json;
const check = (v: any) => (typeof v?.name === 'string' ? { value: { name: v.name } } : { issues: [{ message: 'no', path: ['name'] }] });
const make = (validate: (v: any) => any) => ({ '~standard': { version: 1, vendor: 'zod', validate, jsonSchema: { output } } });
export const User = make(check);
export const Slow = make(async (v) => check(v));
const Tag = { type: 'object', properties: {}, additionalProperties: false };
export const Plain = { type: 'object', properties: { name: { type: 'string' }, tag: { $ref: '#/$defs/Tag' } }, required: ['name'], $defs: { Tag } };
type User = z.infer<typeof User>;
type Users = User[];
const row = { name: 'a', secret: 's' };
const reply = (status: any, body: any): any => new Answer(status, body);
export default class UserController {
  static operations = { '*': { results: 'declared' } } as const;
  index(): Users { return [row, { toJSON: () => row }] as any; }
  one(): Promise<User> { return Promise.resolve(row) as any; }
  slow(): Promise<z.infer<typeof Slow>[]> { return Promise.resolve([row, row]) as any; }
  created(): Reply<201, User> { return reply(201, row); }
  many(): Promise<Reply<202, Array<User>>> { return Promise.resolve(reply(202, [row])); }
  plain(): Static<typeof Plain>[] { return [row] as any; }
  wrong(): User[] { return [{ name: 1 }] as any; }
  none(): User[] { return row as any; }
  mixed(): User | null { return row as any; }
}`;

let service: Service;
before(async () => {
  service = await startService({ controllers: { 'UserController.ts': SOURCE }, expectedErrors: ['request-failed'] });
});
after(() => service.close());

describe('a result that a schema declares is sent without its other fields', () => {
  const rows: [method: string, path: string, status: number, body: unknown][] = [
    ['GET', 'user', 200, [{ name: 'a' }, { name: 'a' }]],
    ['POST', 'user/one', 200, { name: 'a' }],
    ['POST', 'user/slow', 200, [{ name: 'a' }, { name: 'a' }]],
    ['POST', 'user', 201, { name: 'a' }],
    ['POST', 'user/many', 202, [{ name: 'a' }]],
    ['POST', 'user/plain', 200, [{ name: 'a' }]],
  ];
  for (const [method, path, status, body] of rows)
    test(`${method} ${path}`, async () => {
      const response = await fetch(`${service.url}/api/${path}`, { method });
      assert.deepEqual([response.status, await response.json()], [status, body]);
    });
  for (const path of ['wrong', 'none'])
    test(`${path} does not fit, so nothing is sent`, async () => {
      const response = await fetch(`${service.url}/api/user/${path}`, { method: 'POST' });
      assert.equal(response.status, 500);
    });
});

test('the document has the schema in its place, and the reason where a type is only made of it', async () => {
  const log = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
  const group = await createGroups({ dir: service.dir, log }).find('user');
  const resultOf = (name: string) => group?.contract?.operations.get(name)?.results[0];
  const items = { $ref: '#/$defs/index_result' };
  assert.deepEqual(resultOf('created'), { status: 201, body: 'json', isReplyWithBody: true, schema: items });
  assert.deepEqual(resultOf('index')?.schema, { type: 'array', items });
  assert.equal(resultOf('many')?.status, 202);
  const { schema, returnedSchema } = resultOf('plain') ?? {};
  assert.deepEqual(returnedSchema, schema, 'a closed definition has one name, in the types and in the document');
  assert.match(
    group?.contract?.operations.get('mixed')?.undocumentedReason ?? '',
    /inferred from the schema User is the whole data, query, path or result; write a schema for this type, such as/,
  );
});
