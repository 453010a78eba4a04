// Controllers with the types of real libraries, which the built service reads: requests that must pass, and requests that
// must not. Run: npm --prefix judges ci && npm --prefix judges run judge
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';

const root = resolve(import.meta.dirname, '..');

const SCHEMAS = `
import { Type as T34, type Static as S34 } from '@sinclair/typebox';
import { type } from 'arktype';
import { integer, pgTable, text } from 'drizzle-orm/pg-core';
import { createInsertSchema } from 'drizzle-zod';
import { Schema } from 'effect';
import { Type, type Static } from 'typebox';
import * as v from 'valibot';
import { z } from 'zod';
export const ZUser = z.object({ name: z.string().min(2), age: z.coerce.number().default(3), at: z.string().transform((s) => s.length).optional() });
export type ZUser = z.infer<typeof ZUser>;
export const ZSlow = z.object({ name: z.string().refine(async (name) => name !== 'taken', 'is taken') });
export const ZPage = z.object({ page: z.coerce.number().int().min(1) });
export const VUser = v.object({ name: v.pipe(v.string(), v.minLength(2)) });
export const AUser = type({ name: 'string >= 2' });
export const EPlain = Schema.Struct({ name: Schema.NonEmptyString });
export const EUser = Schema.toStandardSchemaV1(Schema.Struct({ name: Schema.NonEmptyString }));
export const TUser = Type.Object({ name: Type.String({ minLength: 2 }), kind: Type.Union([Type.Literal('a'), Type.Literal('b')]) });
export type TUser = Static<typeof TUser>;
export const T34User = T34.Object({ name: T34.String({ minLength: 2 }), tree: T34.Optional(T34.Recursive((This) => T34.Object({ kids: T34.Array(This) }))) }, { additionalProperties: false });
export type T34User = S34<typeof T34User>;
export const T34Code = T34.Object({ n: T34.Transform(T34.String()).Decode(Number).Encode(String) });
export const Coded = Type.Object({ n: Type.Codec(Type.String()).Decode(Number).Encode(String) });
export const Refined = Type.Object({ n: Type.Refine(Type.String(), (n) => n.length > 2) });
export const Both = Type.Intersect([Type.Object({ a: Type.String() }), Type.Object({ b: Type.String() })]);
export const users = pgTable('users', { id: integer().primaryKey(), name: text().notNull() });
export const NewRow = createInsertSchema(users);
`;

/** By controller: its imports, and the type of its data. */
const TYPES = {
  Zod: ["import type { ZUser } from '../src/schemas.ts';", 'ZUser'],
  ZodOutput: [
    "import type { z } from 'zod';\nimport type { ZSlow } from '../src/schemas.ts';",
    'z.output<typeof ZSlow>',
  ],
  ZodStar: ["import * as z from 'zod';\nimport * as all from '../src/schemas.ts';", 'z.infer<typeof all.ZUser>'],
  Valibot: [
    "import type * as v from 'valibot';\nimport type { VUser } from '../src/schemas.ts';",
    'v.InferOutput<typeof VUser>',
  ],
  Arktype: ["import type { AUser } from '../src/schemas.ts';", 'typeof AUser.infer'],
  EffectField: ["import type { EUser } from '../src/schemas.ts';", 'typeof EUser.Type'],
  EffectType: [
    "import type { Schema } from 'effect';\nimport type { EUser } from '../src/schemas.ts';",
    'Schema.Schema.Type<typeof EUser>',
  ],
  Typebox: ["import type { TUser } from '../src/schemas.ts';", 'TUser'],
  Sinclair: ["import type { T34User } from '../src/schemas.ts';", 'T34User'],
  Drizzle: [
    "import type { z } from 'zod';\nimport type { NewRow } from '../src/schemas.ts';",
    'z.infer<typeof NewRow>',
  ],
};

const REFUSED = {
  ZodInput: [
    "import type { z } from 'zod';\nimport type { ZUser } from '../src/schemas.ts';",
    'z.input<typeof ZUser>',
    /is what a client sends/,
  ],
  ZodPart: [
    "import type { ZUser } from '../src/schemas.ts';",
    'Partial<ZUser>',
    /is the whole data, query, path or result/,
  ],
  EffectPlain: ["import type { EPlain } from '../src/schemas.ts';", 'typeof EPlain.Type', /toStandardSchemaV1/],
  SinclairCode: [
    "import type { Static } from '@sinclair/typebox';\nimport type { T34Code } from '../src/schemas.ts';",
    'Static<typeof T34Code>',
    /#\/properties\/n has code of its library/,
  ],
  TypeboxCode: [
    "import type { Static } from 'typebox';\nimport type { Coded } from '../src/schemas.ts';",
    'Static<typeof Coded>',
    /has code of its library/,
  ],
  TypeboxRefined: [
    "import type { Static } from 'typebox';\nimport type { Refined } from '../src/schemas.ts';",
    'Static<typeof Refined>',
    /has code of its library/,
  ],
  TypeboxBoth: [
    "import type { Static } from 'typebox';\nimport type { Both } from '../src/schemas.ts';",
    'Static<typeof Both>',
    /allOf/,
  ],
  DrizzleTable: [
    "import type { users } from '../src/schemas.ts';",
    'typeof users.$inferInsert',
    /createInsertSchema\(users\), of drizzle-zod/,
  ],
  Kysely: [
    "import type { Insertable } from 'kysely';\ninterface T { name: string }",
    'Insertable<T>',
    /write the type out/,
  ],
  TypeFest: [
    "import type { SetOptional } from 'type-fest';\ninterface T { name: string }",
    "SetOptional<T, 'name'>",
    /write the type out/,
  ],
};

let service;
let url;
let work;
const log = [];

before(async () => {
  // The folder is here, so that its files find the packages.
  work = mkdtempSync(join(import.meta.dirname, 'work-'));
  const write = (name, text) => {
    mkdirSync(dirname(join(work, name)), { recursive: true });
    writeFileSync(join(work, name), text);
  };
  write('package.json', '{ "type": "module" }');
  write('src/schemas.ts', SCHEMAS);
  for (const [name, [imports, type]] of Object.entries({ ...TYPES, ...REFUSED }))
    write(
      `controllers/${name}Controller.ts`,
      `${imports}\nexport default class ${name}Controller { created(data: ${type}) { return { data }; } }\n`,
    );
  write(
    'controllers/PageController.ts',
    `import type { ControllerParams } from 'gatefold';\nimport type { z } from 'zod';\nimport { TUser, type ZPage } from '../src/schemas.ts';
    export default class PageController {
      static operations = { created: { body: TUser } };
      index(query: z.infer<typeof ZPage>) { return { query }; }
      created(data: unknown) { return { data }; }
      patch(data: unknown, params: ControllerParams<{ query: z.infer<typeof ZPage> }>) { return { query: params.query }; }
    }`,
  );
  const env = { ...process.env, PORT: '0', LOG_LEVEL: 'warn', HOST: '127.0.0.1', WORKERS: '1', DATA_DIR: work };
  env.CONTROLLERS_DIR = join(work, 'controllers');
  service = spawn(process.execPath, [join(root, 'dist/server.js')], {
    env,
    cwd: work,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  createInterface({ input: service.stderr }).on('line', (line) => log.push(line));
  url = await new Promise((found) => {
    createInterface({ input: service.stdout }).on('line', (line) => {
      log.push(line);
      const address = /http:\/\/127[^\s"]+/.exec(line)?.[0];
      if (address !== undefined) found(address);
    });
  });
});
after(() => {
  service?.kill();
  if (work !== undefined) rmSync(work, { recursive: true, force: true });
});

async function send(method, path, body) {
  const init =
    body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
  const response = await fetch(`${url}/api/${path}`, { method, ...init });
  return [response.status, await response.json()];
}

const ab = { name: 'ab' };
const rows = [
  ['POST', 'zod', { name: 'ab', at: 'abc', more: 1 }, { data: { name: 'ab', age: 3, at: 3 } }],
  ['POST', 'zod', { name: 'ab', age: '7' }, { data: { name: 'ab', age: 7 } }],
  ['POST', 'zod', { name: 'a' }, '/name'],
  ['POST', 'zod', undefined, '/name'],
  ['POST', 'zodOutput', ab, { data: ab }],
  ['POST', 'zodOutput', { name: 'taken' }, '/name'],
  ['POST', 'zodStar', ab, { data: { name: 'ab', age: 3 } }],
  ['POST', 'zodStar', {}, '/name'],
  ['POST', 'valibot', ab, { data: ab }],
  ['POST', 'valibot', { name: 'a' }, '/name'],
  ['POST', 'arktype', ab, { data: ab }],
  ['POST', 'arktype', { name: 'a' }, '/name'],
  ['POST', 'effectField', ab, { data: ab }],
  ['POST', 'effectField', { name: '' }, '/name'],
  ['POST', 'effectType', ab, { data: ab }],
  ['POST', 'effectType', { name: '' }, '/name'],
  ['POST', 'typebox', { name: 'ab', kind: 'a', more: 1 }, { data: { name: 'ab', kind: 'a' } }],
  ['POST', 'typebox', { name: 'ab', kind: 'c' }, '/kind'],
  [
    'POST',
    'sinclair',
    { name: 'ab', tree: { kids: [{ kids: [] }] } },
    { data: { name: 'ab', tree: { kids: [{ kids: [] }] } } },
  ],
  ['POST', 'sinclair', { name: 'ab', tree: { kids: [{}] } }, '/tree/kids/0/kids'],
  ['POST', 'sinclair', { name: 'ab', more: 1 }, '/more'],
  ['POST', 'drizzle', { id: 1, name: 'a' }, { data: { id: 1, name: 'a' } }],
  ['POST', 'drizzle', { id: 1.5, name: 'a' }, '/id'],
  ['GET', 'page?page=2', undefined, { query: { page: 2 } }],
  ['GET', 'page?page=0', undefined, '/page'],
  ['PATCH', 'page?page=2', {}, { query: { page: 2 } }],
  ['PATCH', 'page', {}, '/page'],
  ['POST', 'page', { name: 'ab', kind: 'a' }, { data: { name: 'ab', kind: 'a' } }],
  ['POST', 'page', { name: 'ab' }, '/kind'],
];

describe('a request is checked by the schema from which its type is inferred', () => {
  for (const [method, path, body, expected] of rows)
    test(`${method} ${path} ${JSON.stringify(body)}`, async () => {
      const [status, answer] = await send(method, path, body);
      const actual = status === 422 ? answer.errors[0].pointer : answer;
      assert.deepEqual(actual, expected, JSON.stringify(answer));
    });
});

describe('a controller does not load for', () => {
  for (const [name, [, type, expected]] of Object.entries(REFUSED))
    test(type, () => {
      const line = log.find((text) => text.includes(`${name}Controller.ts`));
      assert.match(line ?? 'it loaded', expected);
    });
});
