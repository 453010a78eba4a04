// `gatefold contracts` with the types of real packages: requests that must pass and that must not, and each made type
// against its original by TypeScript's own assignability. Run: npm --prefix judges ci && npm --prefix judges run judge
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import ts from 'typescript';

const root = resolve(import.meta.dirname, '..');
const run = promisify(execFile);

const TYPES = `
import { integer, jsonb, pgTable, text, timestamp } from 'drizzle-orm/pg-core';
import type { ColumnType, Generated } from 'kysely';
import { z } from 'zod';
export const users = pgTable('users', {
  id: integer().primaryKey().generatedAlwaysAsIdentity(),
  name: text().notNull(),
  age: integer(),
  role: text({ enum: ['admin', 'user'] }).notNull().default('user'),
  settings: jsonb().$type<{ theme: 'dark' | 'light' }>(),
  at: timestamp().defaultNow(),
});
export type NewUser = typeof users.$inferInsert;
export interface UserTable { id: Generated<number>; name: string; created_at: ColumnType<string, string | undefined, never> }
export interface User { id: number; name: string; tags: string[]; address?: { street: string; zip: string | null } }
export const load = async (id: number) => ({ id, name: 'a', on: true });
export const DEFAULTS = { page: 1, size: 10, sort: null as null | 'name' };
export type Event = { type: 'a'; x: number } | { type: 'b'; y: string };
export type DeepPartial<T> = T extends (infer U)[] ? DeepPartial<U>[] : T extends object ? { [K in keyof T]?: DeepPartial<T[K]> } : T;
export interface Tagged { id: number; /** @minLength 3 */ name: string }
export const schema = z.object({ id: z.string(), name: z.string().min(3) });
/** Supabase generates such types. */
export type Json = string | number | boolean | null | { [key: string]: Json | undefined } | Json[];
export interface Database { public: { Tables: { users: { Insert: { id?: number; name: string; meta?: Json | null } } } } }
export type TablesInsert<T extends keyof Database['public']['Tables']> = Database['public']['Tables'][T] extends { Insert: infer I } ? I : never;
`;

const OURS = (...names) => `import type { ${names.join(', ')} } from '../src/types.ts';`;
const KYSELY = (name) => `import type { ${name} } from 'kysely';\n${OURS('UserTable')}`;
const FEST = (name, ...names) => `import type { ${name} } from 'type-fest';\n${OURS(...names)}`;
const MADE = {
  Insert: [OURS('users'), 'typeof users.$inferInsert'],
  Alias: [OURS('NewUser'), 'NewUser'],
  Model: [`import type { InferInsertModel } from 'drizzle-orm';\n${OURS('users')}`, 'InferInsertModel<typeof users>'],
  Select: [OURS('users'), "Omit<typeof users.$inferSelect, 'id' | 'at'>"],
  Insertable: [KYSELY('Insertable'), 'Insertable<UserTable>'],
  Updateable: [KYSELY('Updateable'), 'Updateable<UserTable>'],
  Optional: [FEST('SetOptional', 'User'), "SetOptional<User, 'name'>"],
  Partial: [FEST('PartialDeep', 'User'), 'PartialDeep<User>'],
  Except: [FEST('Except', 'User'), "Except<User, 'id'>"],
  Simplify: [FEST('Simplify', 'User'), 'Simplify<User & { extra: 1 | 2 }>'],
  OneOf: [FEST('RequireExactlyOne', 'Event'), "RequireExactlyOne<{ a: string; b: number }, 'a' | 'b'>"],
  Deep: [OURS('DeepPartial', 'User'), 'DeepPartial<User>'],
  Extract: [OURS('Event'), "Extract<Event, { type: 'a' }>"],
  Result: [OURS('load'), "Omit<Awaited<ReturnType<typeof load>>, 'id'>"],
  Cond: [OURS('User'), 'User extends { id: number } ? User : never'],
  Defaults: [OURS('DEFAULTS'), 'typeof DEFAULTS'],
  Supabase: [OURS('TablesInsert'), "TablesInsert<'users'>"],
};
// `prisma generate` of Prisma 7 and `supabase gen types` have written the files of the folder `generated`.
const SUPABASE = (...names) => `import type { ${names.join(', ')} } from '../generated/database.types.ts';`;
const QUERY = (name) => `import type { ${name} } from '../src/query.ts';`;
const PRISMA = "import type { Prisma, Role, User } from '../generated/prisma/client.ts';";
const QUERIES = `
import { createClient } from '@supabase/supabase-js';
import type { Database } from '../generated/database.types.ts';
const client = createClient<Database>('http://localhost', 'key');
export const query = client.from('posts').select('id, title, users ( email )');
export const findPost = async (id: number) => client.from('posts').select('id, title, meta').eq('id', id).single();
`;
const GENERATED = {
  SbInsert: [SUPABASE('TablesInsert'), "TablesInsert<'posts'>"],
  SbUpdate: [SUPABASE('TablesUpdate'), "TablesUpdate<'users'>"],
  SbRow: [SUPABASE('Tables'), "Omit<Tables<'users'>, 'created_at'>"],
  SbView: [SUPABASE('Tables'), "Tables<'post_counts'>"],
  SbNamed: [SUPABASE('TablesInsert'), "TablesInsert<{ schema: 'public' }, 'users'>"],
  SbEnum: [SUPABASE('Enums'), "{ role: Enums<'role'> }"],
  SbArgs: [SUPABASE('Database'), "Database['public']['Functions']['search_posts']['Args']"],
  SbComposite: [SUPABASE('CompositeTypes'), "CompositeTypes<'address'>"],
  SbQuery: [
    `import type { QueryData } from '@supabase/supabase-js';\n${QUERY('query')}`,
    'QueryData<typeof query>[number]',
  ],
  SbClient: [QUERY('findPost'), "NonNullable<Awaited<ReturnType<typeof findPost>>['data']>"],
  PrPost: [PRISMA, 'Prisma.PostUncheckedCreateInput'],
  PrUser: [PRISMA, "Omit<Prisma.UserCreateInput, 'posts'>"],
  PrMany: [PRISMA, 'Prisma.UserCreateManyInput'],
  PrPick: [PRISMA, "Pick<Prisma.UserCreateManyInput, 'email' | 'name' | 'role'>"],
  PrUpdate: [PRISMA, 'Prisma.PostUncheckedUpdateInput'],
  PrModel: [PRISMA, "Omit<User, 'balance'>"],
  PrPayload: [PRISMA, 'Prisma.UserGetPayload<{ select: { email: true; posts: { select: { title: true } } } }>'],
  PrRole: [PRISMA, '{ role: Role }'],
};
/** No field distinguishes the parts of these unions, or they have more types than a made type may have. */
const UNDISTINGUISHED = {
  PrNested: [PRISMA, 'Prisma.UserCreateInput'],
  PrWhere: [PRISMA, 'Prisma.UserWhereInput'],
};
const REFUSED = {
  Tag: [FEST('Except', 'Tagged'), "Except<Tagged, 'id'>", /would lose the tag @minLength/],
  Schema: [
    `import type { z } from 'zod';\n${FEST('Except', 'schema')}`,
    "Except<z.infer<typeof schema>, 'id'>",
    /would lose the schema/,
  ],
  Missing: ["import type { Nothing } from 'nothing';", 'Nothing', /is not resolved/],
};

let service;
let url;
let work;
let told = '';

before(async () => {
  work = mkdtempSync(join(import.meta.dirname, 'work-'));
  const write = (name, text) => {
    mkdirSync(dirname(join(work, name)), { recursive: true });
    writeFileSync(join(work, name), text);
  };
  write('package.json', '{ "type": "module" }');
  const options = {
    target: 'es2023',
    module: 'nodenext',
    allowImportingTsExtensions: true,
    noEmit: true,
    strict: true,
  };
  write(
    'tsconfig.json',
    JSON.stringify({
      compilerOptions: { ...options, skipLibCheck: true, types: [] },
      include: ['controllers', 'src', 'generated'],
    }),
  );
  write('src/types.ts', TYPES);
  write('src/query.ts', QUERIES);
  cpSync(join(import.meta.dirname, 'generated'), join(work, 'generated'), { recursive: true });
  for (const [name, [imports, type]] of Object.entries({ ...MADE, ...GENERATED, ...UNDISTINGUISHED, ...REFUSED }))
    write(
      `controllers/${name}Controller.ts`,
      `${imports}\ntype Data = ${type};\nexport default class ${name}Controller { created(data: Data) { return { data }; } }\n`,
    );
  const env = { ...process.env, CONTROLLERS_DIR: join(work, 'controllers'), DATA_DIR: work };
  const contracts = (...words) =>
    run(process.execPath, [join(root, 'dist/cli.js'), 'contracts', ...words], { env, cwd: work });
  told = await contracts().catch(({ stderr }) => stderr);
  service = spawn(process.execPath, [join(root, 'dist/server.js')], {
    env: { ...env, PORT: '0', HOST: '127.0.0.1', WORKERS: '1', LOG_LEVEL: 'warn' },
    cwd: work,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  for await (const line of createInterface({ input: service.stdout })) {
    url = /http:\/\/127[^\s"]+/.exec(line)?.[0];
    if (url !== undefined) break;
  }
});
after(() => {
  service?.kill();
  if (work !== undefined) rmSync(work, { recursive: true, force: true });
});

const user = { id: 1, name: 'a', tags: ['x'] };
const rows = [
  ['insert', { name: 'a', at: '2026-01-01T00:00:00Z' }, { name: 'a', at: '2026-01-01T00:00:00.000Z' }],
  ['insert', { name: 'a', role: 'root', settings: { theme: 'x' } }, '/role /settings/theme'],
  ['insert', {}, '/name'],
  ['alias', { name: 'a', more: 1, role: 'admin' }, { name: 'a', role: 'admin' }],
  ['alias', { name: 1 }, '/name'],
  ['model', { name: 'a', age: null }, { name: 'a', age: null }],
  ['model', { name: 'a', age: 'x' }, '/age'],
  ['select', { name: 'a', age: 1, role: 'user', settings: null }, { name: 'a', age: 1, role: 'user', settings: null }],
  ['select', { name: 'a' }, '/age /role /settings'],
  ['insertable', { name: 'a', id: 1 }, { name: 'a', id: 1 }],
  ['insertable', { id: 'x' }, '/id /name'],
  ['updateable', {}, {}],
  ['updateable', { name: 1 }, '/name'],
  ['optional', { id: 1, tags: [] }, { id: 1, tags: [] }],
  ['optional', { id: 1 }, '/tags'],
  ['partial', { address: { zip: null } }, { address: { zip: null } }],
  ['partial', { address: { zip: 1 } }, '/address/zip'],
  ['except', { name: 'a', tags: [], id: 9 }, { name: 'a', tags: [] }],
  ['except', { name: 'a' }, '/tags'],
  ['simplify', { ...user, extra: 2 }, { ...user, extra: 2 }],
  ['simplify', { ...user, extra: 3 }, '/extra'],
  ['oneOf', { a: 'x' }, { a: 'x' }],
  ['oneOf', {}, ''],
  ['deep', { address: {} }, { address: {} }],
  ['deep', { tags: [1] }, '/tags/0'],
  ['extract', { type: 'a', x: 1 }, { type: 'a', x: 1 }],
  ['extract', { type: 'b', y: 'x' }, '/type /x'],
  ['result', { name: 'a', on: true }, { name: 'a', on: true }],
  ['result', { name: 'a', on: 'yes' }, '/on'],
  ['cond', user, user],
  ['cond', {}, '/id /name /tags'],
  ['defaults', { page: 1, size: 2, sort: null }, { page: 1, size: 2, sort: null }],
  ['defaults', { page: 1, size: 2, sort: 'id' }, '/sort'],
  ['supabase', { name: 'a', meta: { a: [1, null, { b: 'x' }] } }, { name: 'a', meta: { a: [1, null, { b: 'x' }] } }],
  ['supabase', { meta: 1 }, '/name'],
  ['sbInsert', { author_id: 'a', title: 't', meta: { a: [1] } }, { author_id: 'a', title: 't', meta: { a: [1] } }],
  ['sbInsert', { author_id: 'a', title: 't', id: 7, tags: [1] }, '/id /tags/0'],
  ['sbUpdate', { role: 'admin' }, { role: 'admin' }],
  ['sbUpdate', { role: 'root', email: null }, '/email /role'],
  ['sbRow', { email: 'e', id: 'i', role: 'user' }, { email: 'e', id: 'i', role: 'user' }],
  ['sbRow', { email: 'e', id: 1 }, '/id /role'],
  ['sbView', { author_id: null, count: 3 }, { author_id: null, count: 3 }],
  ['sbView', { author_id: null }, '/count'],
  ['sbNamed', { email: 'e' }, { email: 'e' }],
  ['sbNamed', { created_at: 1 }, '/created_at /email'],
  ['sbEnum', { role: 'user' }, { role: 'user' }],
  ['sbEnum', { role: 'x' }, '/role'],
  ['sbArgs', { term: 't', max_results: 3 }, { term: 't', max_results: 3 }],
  ['sbArgs', { max_results: '3' }, '/max_results /term'],
  ['sbComposite', { street: null, zip: 'z' }, { street: null, zip: 'z' }],
  ['sbComposite', { street: 1 }, '/street /zip'],
  ['sbQuery', { id: 1, title: 't', users: { email: 'e' } }, { id: 1, title: 't', users: { email: 'e' } }],
  ['sbQuery', { id: 1, title: 't', users: {} }, '/users/email'],
  ['sbClient', { id: 1, title: 't', meta: [{ a: null }] }, { id: 1, title: 't', meta: [{ a: null }] }],
  ['sbClient', { id: '1', title: 't' }, '/id /meta'],
  ['prPost', { title: 't', authorId: 1, tags: ['a'] }, { title: 't', authorId: 1, tags: ['a'] }],
  ['prPost', { title: 1, authorId: 'x' }, '/title /authorId'],
  ['prUser', { email: 'e', balance: '1.5', settings: { a: 1 } }, { email: 'e', balance: '1.5', settings: { a: 1 } }],
  ['prUser', { role: 'ROOT', balance: true }, '/email /role /balance'],
  ['prMany', { email: 'e', at: '2026-01-01T00:00:00Z', more: 1 }, { email: 'e', at: '2026-01-01T00:00:00.000Z' }],
  ['prMany', { email: 'e', id: 'x' }, '/id'],
  ['prPick', { email: 'e', role: 'ADMIN', id: 7 }, { email: 'e', role: 'ADMIN' }],
  ['prPick', { role: 'admin' }, '/email /role'],
  [
    'prUpdate',
    { title: { set: 't' }, authorId: { increment: 1 } },
    { title: { set: 't' }, authorId: { increment: 1 } },
  ],
  ['prUpdate', { authorId: { increment: 'x' } }, '/authorId/increment'],
  ['prModel', { id: 1 }, '/at /email /name /role /settings'],
  ['prPayload', { email: 'e', posts: [{ title: 't' }] }, { email: 'e', posts: [{ title: 't' }] }],
  ['prPayload', { email: 'e', posts: [{}] }, '/posts/0/title'],
  ['prRole', { role: 'ADMIN' }, { role: 'ADMIN' }],
  ['prRole', { role: 'admin' }, '/role'],
];

describe('a request is checked by the made type', () => {
  for (const [name, body, expected] of rows)
    test(`${name} ${JSON.stringify(body)}`, async () => {
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(`${url}/api/${name}`, { method: 'POST', headers, body: JSON.stringify(body) });
      const answer = await response.json();
      const actual = response.status === 422 ? answer.errors.map(({ pointer }) => pointer).join(' ') : answer.data;
      assert.deepEqual(actual, expected, JSON.stringify(answer));
    });
});

test('each made type is the same as its original for TypeScript, both ways', () => {
  const { config } = ts.readConfigFile(join(work, 'tsconfig.json'), ts.sys.readFile);
  const { fileNames, options } = ts.parseJsonConfigFileContent(config, ts.sys, work);
  const program = ts.createProgram({ rootNames: fileNames, options });
  const checker = program.getTypeChecker();
  const path = join(work, 'controllers/contracts.gen.ts');
  const made = new Map(
    checker
      .getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(path)))
      .map((symbol) => [symbol.name, checker.getDeclaredTypeOfSymbol(symbol)]),
  );
  const { entries } = JSON.parse(/\/\*gatefold (.*)\*\/\s*$/.exec(readFileSync(path, 'utf8'))[1]);
  const inControllers = Object.keys(entries).filter((key) => !key.startsWith('..'));
  assert.ok(inControllers.length >= Object.keys(MADE).length, inControllers.join('\n'));
  for (const [key, [name]] of Object.entries(entries)) {
    const [, file, at, kind] = /^(.*)@(\d+) (\w+)$/.exec(key);
    const isKind = { name: ts.isTypeReferenceNode, union: ts.isUnionTypeNode }[kind] ?? ts.isTypeNode;
    const source = program.getSourceFile(join(work, 'controllers', file));
    let node;
    const visit = (inner) => {
      if (node === undefined && isKind(inner) && inner.getStart(source) === Number(at)) node = inner;
      ts.forEachChild(inner, visit);
    };
    visit(source);
    const original = checker.getTypeAtLocation(node);
    const both = [
      checker.isTypeAssignableTo(original, made.get(name)),
      checker.isTypeAssignableTo(made.get(name), original),
    ];
    // A made type leaves out what JSON has not: a class such as Decimal, and an object with the function toJSON.
    const isNarrower = /Decimal|InputJsonValue/.test(node.getText(source));
    assert.deepEqual(both, [!isNarrower, true], `${key} ${node.getText(source)}`);
  }
});

test('nested writes and filters of Prisma refuse their files, and the command says why', async () => {
  for (const name of ['prNested', 'prWhere'])
    assert.equal((await fetch(`${url}/api/${name}`, { method: 'POST' })).status, 500);
  assert.match(String(told), /it has more than 3000 types; write out the fields that clients may send/);
  assert.doesNotMatch(String(told), /#private is any/);
});

describe('a type is not written out', () => {
  for (const [, type, expected] of Object.values(REFUSED)) test(type, () => assert.match(String(told), expected));
});
