// Every operation at run time is found in the source, and its annotations are the check. An operation in a form that
// is not read refuses a TypeScript file, and is reported in JavaScript. An operation without types is
// unchecked and reported.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import type { GroupLoad } from '../../src/live/load/group-load.ts';
import { createGroups } from '../../src/live/load/registry.ts';

/** Texts that rows share: `%U%` in a row stands for the text U. */
const PARTS: Readonly<Record<string, string>> = {
  U: 'interface User { name: string; age: number }\n',
  E: 'export interface User { name: string; age: number }\n',
  P: "import type { ControllerParams } from 'gatefold';\n",
  D: '$',
  X: 'x'.repeat(300),
  H: 'interface Row { id: string }\nfunction clean(row: Row): Row { return row; }\nvoid clean;\n',
};

type Rows = Readonly<Record<string, string>>;

/**
 * Controllers by file extension and name of the case. A line `// a.ts` begins another file, which the controller
 * imports as `./HERE/a.ts`.
 */
const ROWS: Readonly<Record<'refused' | 'checked' | 'unchecked', Readonly<Record<string, Rows>>>> = {
  refused: {
    ts: {
      'params whose type comes from a satisfied interface':
        '%P%interface Api { created(_: unknown, params: ControllerParams<{ query: { a: number } }>): unknown }\nexport default { created(_: undefined, { query }) { return query; } } satisfies Api;',
      'a method without annotations that overrides the one of a base class':
        '%U%class Base { created(data: User) { return data; } }\nexport default class A extends Base { created(data) { return data; } }',
      'a method without annotations of a class with an interface':
        '%U%interface Api { created(data: User): unknown }\nexport default class A implements Api { created(data) { return data; } }',
      'params without annotations of a class with an interface':
        '%P%interface Api { created(_: unknown, params: ControllerParams<{ query: { a: number } }>): unknown }\nexport default class A implements Api { created(_: unknown, { query }) { return query; } }',
      'an arrow function in a constant with a type':
        '%U%const f: (data: User) => unknown = (data) => data;\nexport default { created: f };',
      'an arrow function in a constant with the name of a type':
        '%U%type H = (data: User) => unknown;\nconst f: H = (data) => data;\nexport default { created: f };',
      'an arrow function with satisfies':
        '%U%const f = ((data) => data) satisfies (data: User) => unknown;\nexport default { created: f };',
      'a method of a constant with a type':
        '%U%interface Api { created(data: User): unknown }\nconst api: Api = { created(data) { return data; } };\nexport default api;',
      'rest arguments of an object with a type assertion':
        '%U%interface Api { created(data: User): unknown }\nexport default { created(...args) { return args; } } as Api;',
      'a class of an awaited import, under the name of a global':
        "const { Map } = await import('./HERE/a.ts');\nexport default class A extends Map {}\n// a.ts\n%E%export class Map { created(data: User) { return data; } }",
      'a default export from an awaited import':
        "const { Impl } = await import('./HERE/a.ts');\nexport default Impl;\n// a.ts\n%E%export class Impl { created(data: User) { return data; } }",
      'a class expression as an ancestor':
        '%U%export default class extends class { created(data: User) { return data; } } {}',
      'a field that overrides an inherited method':
        '%U%class Base { created(data: unknown) { return data; } }\nexport default class A extends Base { created = (data: User) => data; }',
      'a concatenated property name':
        "%U%const wrap = (f) => (...a) => f(...a);\nexport default { ['creat' + 'ed']: wrap((data: User) => data) };",
      'overloads, the first without types':
        '%U%export default class A { created(data): unknown; created(data: User): unknown; created(data) { return data; } }',
      'a function in a wrapper of a builder':
        '%U%class Builder { made: Record<string, Function> = {}; post(f: Function) { this.made.created = (...a: unknown[]) => f(...a); return this; } end() { return this.made; } }\nexport default new Builder().post((data: User) => data).end();',
      'operation names that code derives from other names':
        '%U%const a = (f) => (...x) => f(...x);\nconst H = { onCreated: (data: User) => data };\nexport default Object.fromEntries(Object.entries(H).map(([k, f]) => [k.slice(2).toLowerCase(), a(f)]));',
      'a method bound by its name':
        "%U%class A { make(data: User) { return data; } }\nconst a = new A();\nconst bind = (o, k) => o[k].bind(o);\nexport default { created: bind(a, 'make') };",
      'operations from a map of method names':
        "%U%class A { make(data: User) { return data; } }\nconst a = new A();\nconst names = { created: 'make' };\nexport default Object.fromEntries(Object.entries(names).map(([k, v]) => [k, (...all) => a[v](...all)]));",
      'an operation that is destructured from the result of a helper':
        "import { a } from './HERE/a.ts';\n%U%const make = (data: User) => data;\nconst { run: created } = a(make);\nexport default { created };\n// a.ts\nexport const a = (f) => ({ run: (...x) => f(...x) });",
      'operations from a list of handlers':
        "%U%const a = (f) => (...x) => f(...x);\nconst all = [{ run: (data: User) => data, name: 'created' }];\nexport default Object.fromEntries(all.map(({ name, run }) => [name, a(run)]));",
      'a conditional with an imported class, beside another function of the name':
        "import { Real } from './HERE/a.ts';\nfunction created(data) { return data; }\nvoid created;\nexport default process.env.NOPE ? class { } : Real;\n// a.ts\n%U%export class Real { created(data: User) { return data; } }",
      'a spread of an imported object, beside another function of the name':
        "import { ops } from './HERE/a.ts';\nfunction created(data) { return data; }\nvoid created;\nexport default { ...ops };\n// a.ts\n%U%export const ops = { created(data: User) { return data; } };",
      'a later spread that overrides the operation':
        '%U%const ops = { created: (data: User) => data };\nexport default { created(data) { return data; }, ...ops };',
      'a later spread of a namespace that overrides the operation':
        "import * as ops from './HERE/a.ts';\nexport default { created(data) { return data; }, ...ops };\n// a.ts\n%U%export function created(data: User) { return data; }",
      'a spread of a namespace with a renamed export':
        "import * as ops from './HERE/a.ts';\nexport default { ...ops };\n// a.ts\n%U%function create(data: User) { return data; }\nexport { create as created };",
      'a spread of a namespace that re-exports a constant':
        "import * as ops from './HERE/index.ts';\nexport default { ...ops };\n// index.ts\nexport { create as created } from './a.ts';\n// a.ts\n%U%export const create = (data: User) => data;",
      'a renamed import in a wrapper':
        "import { create as makeUser } from './HERE/a.ts';\nconst wrap = (f) => (...all) => f(...all);\nexport default { created: wrap(makeUser) };\n// a.ts\n%U%export const create = async (data: User) => data;",
      'a default import in a wrapper':
        "import create from './HERE/a.ts';\nconst wrap = (f) => (...all) => f(...all);\nexport default { created: wrap(create) };\n// a.ts\n%U%export default async (data: User) => data;",
      'a bound function behind two aliases':
        '%U%const create = (data: User) => data;\nconst alias = create;\nconst beta = alias;\nexport default { created: beta.bind(null) };',
      'a variable that is assigned again':
        '%U%let create = (data) => data;\ncreate = (data: User) => data;\nexport default { created: create };',
      'a function that is destructured under another name':
        '%U%const ops = { make: (data: User) => data };\nconst { make: created } = ops;\nexport default { created };',
      'an object from Object.fromEntries':
        "%U%const create = (data: User) => data;\nexport default Object.fromEntries([['created', create]]);",
      'a static method of a class':
        '%U%class H { static make(data: User) { return data; } }\nexport default { created: H.make };',
      'a method of a prototype':
        '%U%class H { make(data: User) { return data; } }\nexport default { created: H.prototype.make };',
      'a function from an inline call': '%U%export default { created: (() => (data: User) => data)() };',
      'a wrapper around an arrow function and a named function':
        '%U%const once = (o, f) => f;\nconst create = (data: User) => data;\nexport default { created: once((x) => x, create) };',
      'an imported function in an imported pipe':
        "import { pipe } from './HERE/p.ts';\nimport { create as c } from './HERE/a.ts';\nexport default { created: pipe(c) };\n// p.ts\nexport const pipe = (...fs) => (data, params) => fs.reduce((d, f) => f(d, params), data);\n// a.ts\n%U%export const create = (data: User) => data;",
      'two methods with the same name':
        '%U%export default class A { created(data) { return data; } created(data: User) { return data; } }',
      'a method and a computed method with the same name':
        "%U%const k = 'created';\nexport default class A { created(data) { return data; } [k](data: User) { return data; } }",
      'a method with a concatenated name':
        "%U%export default class A { ['cre' + 'ated'](data: User) { return data; } }",
      'a mixin that assigns to the prototype':
        "import { mix } from './HERE/m.ts';\nimport { impl } from './HERE/i.ts';\nclass A { index() { return 1; } }\nmix(A, impl);\nexport default A;\n// m.ts\nexport const mix = (C, o) => Object.assign(C.prototype, o);\n// i.ts\n%U%function make(data: User) { return data; }\nexport const impl = { created: make };",
      'an imported factory with a renamed function':
        "import { crud } from './HERE/c.ts';\nexport default crud();\n// c.ts\nimport { make as m } from './d.ts';\nexport const crud = () => ({ created: m });\n// d.ts\n%U%export const make = (data: User) => data;",
      'a factory that takes the name of the operation':
        "%U%const one = (name, f) => ({ [name]: f });\nconst make = (data: User) => data;\nexport default one('created', make);",
      'a builder that takes the name of the operation':
        "%U%class B { o = {}; on(n, f) { this.o[n] = f; return this; } build() { return this.o; } }\nconst make = (data: User) => data;\nexport default new B().on('created', make).build();",
      'a function of an awaited import':
        "const ns = await import('./HERE/a.ts');\nexport default { created: ns.create };\n// a.ts\n%U%export const create = (data: User) => data;",
      'spread of an awaited import':
        "export default { ...(await import('./HERE/a.ts')) };\n// a.ts\n%U%const create = (data: User) => data;\nexport { create as created };",
      'overloads with an untyped implementation':
        '%U%export default class A { created(data: User): User\n created(data) { return data } }',
      'a typed method that a spread replaces with an untyped one':
        '%U%const base = { created(data) { return data; } };\nexport default { created(data: User) { return data; }, ...base };',
      'a factory with typed dependencies':
        "%P%%H%interface Db { find(id: string): unknown }\nconst db: Db = { find(id: string) { return id; } };\nfunction make(db: Db) { return { created(data: unknown) { return [data, db.find('a')]; } }; }\nexport default make(db);",
      'a factory of a class with typed dependencies':
        "%P%%H%interface Db { find(id: string): unknown }\nconst db: Db = { find(id: string) { return id; } };\nconst make = (db: Db) => class { created(data: unknown) { return [data, db.find('a')]; } };\nexport default make(db);",
      'an inline function in a typed wrapper':
        '%P%%H%type Handler = (data: unknown, params: ControllerParams) => unknown;\nconst audit = (f: Handler): Handler => async (data, params) => { return await f(data, params); };\nexport default { created: audit((data: unknown) => data) };',
      'a named function in a typed wrapper':
        '%P%%H%type Handler = (data: unknown, params: ControllerParams) => unknown;\nconst audit = (f: Handler): Handler => async (data, params) => { return await f(data, params); };\nfunction create(data: unknown) { return data; }\nexport default { created: audit(create) };',
      'a named function in an imported wrapper':
        "%P%%H%import { audit } from './HERE/audit.ts';\nfunction create(data: unknown) { return data; }\nexport default { created: audit(create) };\n// audit.ts\ntype Handler = (data: unknown, params: unknown) => unknown;\nfunction log(line: string) { return line; }\nexport function audit(f: Handler): Handler { return async (data, params) => { log('x'); return await f(data, params); }; }",
      'a bound function':
        '%P%%H%function create(this: object, data: unknown) { return data; }\nexport default { created: create.bind({}) };',
      'a spread of an imported object':
        "%P%import { ops } from './HERE/ops.ts';\nexport default { ...ops, index() { return 1; } };\n// ops.ts\n%H%export const ops = { created(data: unknown) { return clean(data as Row); } };",
      'a factory whose service has a typed method of the same name':
        "%P%import { UserService } from './HERE/service.ts';\nconst make = (service: UserService) => ({ created(data: unknown) { return service.created(data as { name: string }); } });\nexport default make(new UserService());\n// service.ts\nexport class UserService { created(data: { name: string }) { return data; } }",
      'a mixin with an untyped operation':
        '%P%%H%const Creates = <T extends new (...args: any[]) => object>(Base: T) => class extends Base { created(data: unknown) { return data; } };\nexport default class A extends Creates(Object) { }',
      'an imported memo wrapper':
        "%P%import { memo } from './HERE/memo.ts';\nconst load = (id: string) => id;\nexport default { created: memo(async (data: unknown) => load(String(data))) };\n// memo.ts\nexport function memo<A extends unknown[], R>(f: (...args: A) => R, key: (...args: A) => string = (...args) => JSON.stringify(args)): (...args: A) => R { const kept = new Map<string, R>(); return (...args) => { const k = key(...args); if (!kept.has(k)) kept.set(k, f(...args)); return kept.get(k) as R; }; }",
      'a composition of imported middlewares':
        "%P%import { compose, requireUser, limit } from './HERE/mw.ts';\nconst secure = compose(requireUser, limit(10));\nexport default { created: secure((data: unknown) => data) };\n// mw.ts\ntype Next = (data: unknown, params: unknown) => unknown;\ntype Mw = (next: Next) => Next;\nexport const compose = (...all: Mw[]): Mw => (next) => all.reduceRight((inner, mw) => mw(inner), next);\nexport const requireUser: Mw = (next) => (data, params) => next(data, params);\nexport const limit = (n: number): Mw => (next) => (data, params) => (n > 0 ? next(data, params) : null);",
      'a function that wraps all operations of an object':
        "%P%import { wrapAll } from './HERE/w.ts';\nexport default wrapAll({ created(data: unknown) { return data; } });\n// w.ts\ntype F = (...all: unknown[]) => unknown;\nexport function wrapAll<T extends Record<string, F>>(ops: T): T { const out: Record<string, F> = {}; for (const [name, f] of Object.entries(ops)) out[name] = (...all) => f(...all); return out as T; }",
      'a function that wraps all methods of a class':
        "%P%import { traced } from './HERE/t.ts';\nexport default traced(class A { created(data: unknown) { return data; } });\n// t.ts\nexport function traced<T extends new () => object>(C: T): T { for (const key of Object.getOwnPropertyNames(C.prototype)) { if (key === 'constructor') continue; const own = C.prototype[key]; C.prototype[key] = function (...all: unknown[]) { return own.apply(this, all); }; } return C; }",
      'one of two objects, chosen by &&':
        '%U%const a = { created(data: unknown) { return data; } };\nconst b = { created(data: User) { return data; } };\nexport default a && b;',
      'one of two objects, chosen by && on the next line':
        '%U%const a = { created(data: unknown) { return data; } };\nconst b = { created(data: User) { return data; } };\nexport default a\n  && b;',
      'a shorthand variable that is assigned again':
        '%U%let created = (data: unknown) => data;\ncreated = (data: User) => data;\nexport default { created };',
      'a later property whose name code computes':
        "%U%const key = () => 'created';\nexport default { created(data: unknown) { return data; }, [key()]: (data: User) => data };",
      'a later method whose name code computes':
        "%U%const key = () => 'created';\nexport default class A { created(data: unknown) { return data; } [key()](data: User) { return data; } }",
      'a name from a package, over an inherited method':
        'import { name } from \'shop\';\nclass Base { created(data: unknown) { return data; } }\nexport default class A extends Base { [name](data: { a: string }) { return data; } }\n// node_modules/shop/index.js\nexport const name = \'created\';\n// node_modules/shop/package.json\n{"type":"module","exports":"./index.js"}',
      'a name from a package, behind a method':
        'import { name } from \'shop\';\nexport default class A { created(data: unknown) { return data; } [name](data: { a: string }) { return data; } }\n// node_modules/shop/index.js\nexport const name = \'created\';\n// node_modules/shop/package.json\n{"type":"module","exports":"./index.js"}',
      'a base class made by a call':
        '%U%const Creates = (Base: new () => object) => class extends Base { created(data: User) { return data; } };\nexport default class A extends Creates(Object) {}',
      'an object with __proto__':
        '%U%const base = { created(data: User) { return data; } };\nexport default { __proto__: base };',
      'Object.create': '%U%const base = { created(data: User) { return data; } };\nexport default Object.create(base);',
      'an instantiation expression':
        '%U%class Crud<T> { created(data: T) { return data; } }\nexport default Crud<User>;',
      'the second constant of a statement':
        '%U%const A = class { created(data: User) { return data; } }, B = class extends A {};\nexport default B;',
      'a namespace as the default in an export list':
        "import * as ops from './HERE/a.ts';\nexport { ops as default };\n// a.ts\n%U%function create(data: User) { return data; }\nexport { create as created };",
      'an exported function of a namespace':
        "import * as h from './HERE/a.ts';\nexport default { created: h.create };\n// a.ts\n%U%export function create(data: User) { return data; }",
      'an exported function of a namespace that another file exports':
        "import { h } from './HERE/index.ts';\nexport default { created: h.create };\n// index.ts\nexport * as h from './a.ts';\n// a.ts\n%U%export function create(data: User) { return data; }",
      'a function with a non-null assertion':
        '%U%const create: ((data: User) => User) | undefined = (data: User) => data;\nexport default { created: create! };',
      'a key from a constant object':
        "%U%const K = { c: 'created' } as const;\nexport default { [K.c]: (data: User) => data };",
      'an imported constant as a key':
        "import { K, type User } from './HERE/k.ts';\nexport default { [K]: async (data: User) => data };\n// k.ts\n%E%export const K = 'created';",
      'a re-exported class of another file':
        "export { default } from './HERE/a.ts';\n// a.ts\n%U%export default class { created(data: User) { return data; } }",
      'an instance of an imported class, beside another function of the name':
        "import { Real } from './HERE/a.ts';\nfunction created(data) { return data; }\nvoid created;\nexport default new Real();\n// a.ts\n%U%export class Real { created(data: User) { return data; } }",
      'an instance': '%U%class A { created(data: User) { return data; } }\nexport default new A();',
      'an instance of a class without a name':
        '%U%export default new (class { created(data: User) { return data; } })();',
      'a class in brackets': '%U%export default (class A { created(data: User) { return data; } });',
      'a frozen object with satisfies and a type assertion':
        '%U%export default Object.freeze({ created(data: User) { return data; } } satisfies object) as object;',
      'all exports of another file':
        "export * as default from './HERE/a.ts';\n// a.ts\n%U%export function created(data: User) { return data; }",
      'a function of an object':
        '%U%const all = { make(data: User) { return data; } };\nexport default { created: all.make };',
      'an untyped method with a computed name':
        "%H%const k = 'created';\nexport default class A { [k](data: unknown) { return data; } }",
      'an untyped function of a namespace':
        "%P%import * as h from './HERE/h.ts';\nexport default { created: h.create };\n// h.ts\n%H%export async function create(data: unknown, params: unknown) { return [data]; }",
      'a class expression': '%U%const A = class { created(data: User) { return data; } };\nexport default A;',
      'an operation without parameters from a function':
        'const make = () => ({ created() { return 1; } });\nexport default make();',
      'a class that an imported file re-exports':
        "import { Real } from './HERE/index.ts';\nexport default Real;\n// index.ts\nexport { Real } from './a.ts';\n// a.ts\n%U%export class Real { created(data: User) { return data; } }",
      'a parent class that an imported file imports and exports':
        "import { Real } from './HERE/index.ts';\nexport default class A extends Real {}\n// index.ts\nimport { Real } from './a.ts';\nexport { Real };\n// a.ts\n%U%export class Real { created(data: User) { return data; } }",
      'a parent class of a namespace':
        "import * as all from './HERE/a.ts';\nexport default class A extends all.Real {}\n// a.ts\n%U%export class Real { created(data: User) { return data; } }",
      'a function from a package':
        'import { created } from \'shop\';\nexport default { created };\n// node_modules/shop/index.js\nexport const created = (data) => data;\n// node_modules/shop/package.json\n{"type":"module","exports":"./index.js"}',
    },
  },
  checked: {
    ts: {
      'an interpreter in the first line':
        '#!/usr/bin/env -S node --title="(\n%U%export default class { created(data: User) { return data; } }',
      'a type of a namespace that another file exports':
        "import type { types } from './HERE/index.ts';\nexport default class { created(data: types.User) { return data; } }\n// index.ts\nexport type * as types from './a.ts';\n// a.ts\n%E%",
      'a class whose parent is a class of JavaScript':
        '%U%export default class extends EventTarget { created(data: User) { return data; } }',
      'a class whose parent is made by an expression':
        '%U%export default class extends class { a = 1 } { created(data: User) { return data; } }',
      'an operation beside the type of a generic function':
        '%U%type Same = <T>(value: T) => T;\nexport default class { created(data: User) { return data; } }',
      'an async arrow function in parentheses': '%U%export default { created: (async (data: User) => data) };',
      'a literal type, beside a call of the operation':
        "export default class A { index() { return this.created('yes'); } created(data: 'yes') { return data; } }",
      'a method that the constructor binds':
        '%U%export default class A { constructor() { this.created = this.created.bind(this); } created(data: User) { return data; } }',
      'a declared field over an inherited method':
        '%U%class Base { created(data: User) { return data; } }\nexport default class A extends Base { declare created: (data: User) => User; }',
      'an alias of an imported class, beside another function of the name':
        "import Real from './HERE/a.ts';\nfunction created(data) { return data; }\nvoid created;\nconst x = Real;\nexport default x;\n// a.ts\n%U%export default class { created(data: User) { return data; } }",
      'an object with two properties of the same name':
        '%U%export default { created(data) { return data; }, created: (data: User) => data };',
      'an object with a later template key of the same name':
        '%U%export default { created(data) { return data; }, [`created`]: (data: User) => data };',
      'a default import from a file with the name of the operation':
        "import created from './HERE/created.ts';\nexport default { created };\n// created.ts\n%U%export default (data: User) => data;",
      'a typed method that is wrapped afterwards':
        "%U%class A { created(data: User) { return data; } }\nfor (const name of ['created'] as const) { const own = A.prototype[name]; A.prototype[name] = function (...all) { return own.apply(this, all); }; }\nexport default A;",
      'a method between regular expressions that look like a comment':
        '%U%const u = / \\/*/; export default class A { index() { return 1; } created(data: User) { return data; } } const w = /a*/; void u; void w;\nfunction created(data) { return data; } void created;',
      'a method between templates that look like a comment':
        '%U%const u = `/*`; export default class A { index() { return 1; } created(data: User) { return data; } } const w = `*/`; void u; void w;\nfunction created(data) { return data; } void created;',
      'a method behind a template with two slashes':
        '%U%const u = `//`; export default class A { index() { return 1; } created(data: User) { return data; } }\nvoid u;\nfunction created(data) { return data; } void created;',
      'a method behind a regular expression with two slashes':
        '%U%const u = /[//]/; export default class A { index() { return 1; } created(data: User) { return data; } }\nvoid u;\nfunction created(data) { return data; } void created;',
      'a parenthesis in a comment':
        '%U%export default class XController { created( // 1) what to make\n data: User) { return data; } }',
      'a parenthesis in a string':
        "export default class XController { created({ name = ')' }: { name?: string }) { return name; } }",
      'a name with an escape':
        '%U%// created(data)\nexport default class XController { cre\\u0061ted(data: User) { return data; } }',
      'a method beside a function of the same name':
        '%U%function created(data: unknown) { return data; }\nexport default class XController { index() { return created(1); } created(data: User) { return data; } }',
      'a method with a type parameter':
        '%U%export default class XController { created<T extends string>(data: User, _?: unknown) { const t = "" as T; return [data, t]; } }',
      'a type parameter with a constraint':
        '%U%export default class XController { created<T extends User>(data: T) { return data; } }',
      'a type parameter that hides a type of the file':
        'interface Data { n?: unknown }\nexport default class XController { created<Data extends { n: number }>(data: Data) { return data; } }',
      'an asynchronous arrow function with a type parameter':
        '%U%export default { created: async <T>(data: User) => data };',
      'a parameter with a default':
        "export default class XController { created(data: { a: string } = { a: 'x' }) { return data; } }",
      'a parameter called this':
        '%U%export default class XController { created(this: unknown, data: User) { return data; } }',
      'a method beside symbol members':
        '%U%const tag = Symbol();\nexport default class A { created(data: User) { return data; } [tag]() {} [Symbol.dispose]() {} }',
      'a method beside a key from a package':
        "%U%import { inspect } from 'node:util';\nexport default class A { created(data: User) { return data; } [inspect.custom]() { return 1; } }",
    },
    js: {
      'a function of a TypeScript file, imported by name':
        "import { create } from './HERE/b.ts';\nexport default { created: create };\n// b.ts\n%U%export const create = (data: User) => data;",
    },
  },
  unchecked: {
    ts: {
      'a method whose params have no annotation':
        'export default class A { created(_: undefined, params) { return params; } }',
      'a method without annotations in a constant of type any':
        'const api: any = { created(data) { return data; } };\nexport default api;',
      'a function without annotations in an object with a type':
        'function created(data) { return data; }\nexport default { created } satisfies { created: unknown };',
      'a method without annotations of a class without a parent':
        'interface Api { created(data: string): unknown }\nvoid (0 as unknown as Api);\nexport default class A { created(data) { return data; } }',
      'a method with unknown that overrides the one of a base class':
        '%U%class Base { created(data: User) { return data; } }\nexport default class A extends Base { created(data: unknown) { return [data] as any; } }',
      'a method without annotations in an object, as const':
        'export default { created(data) { return data; } } as const;',
      'an imported object that Object.assign adds to the prototype':
        "import { ops } from './HERE/a.ts';\nclass A { created(data) { return data; } }\nObject.assign(A.prototype, ops);\nexport default A;\n// a.ts\n%U%export const ops = { created(data: User) { return data; } };",
      'an imported object that Object.assign adds to the controller':
        "import { ops } from './HERE/a.ts';\nconst base = { created(data) { return data; } };\nObject.assign(base, ops);\nexport default base;\n// a.ts\n%U%export const ops = { created(data: User) { return data; } };",
      'an assignment to a quoted name':
        "%U%const o: any = { created(data) { return data; } };\no['created'] = (data: User) => data;\nexport default o;",
      'an assignment of a named function':
        '%U%const create = (data: User) => data;\nconst o: any = { created(data) { return data; } };\no.created = create;\nexport default o;',
      'an assignment to a name in a variable':
        "%U%const key = 'created';\nconst o: any = { created(data) { return data; } };\no[key] = (data: User) => data;\nexport default o;",
      'an assignment to a quoted name of the prototype':
        "%U%class A { created(data) { return data; } }\nA.prototype['created'] = (data: User) => data;\nexport default A;",
      'an assignment to the prototype in a variable':
        '%U%class A { created(data) { return data; } }\nconst p = A.prototype;\np.created = (data: User) => data;\nexport default A;',
      'an assignment of a named function to the prototype':
        '%U%class A { created(data) { return data; } }\nconst make = (data: User) => data;\nA.prototype.created = make;\nexport default A;',
      'an assignment to the prototype over several lines':
        '%U%class A { created(data) { return data; } }\nA\n  .prototype\n  .created = (data: User) => data;\nexport default A;',
      'a method that Object.assign replaces':
        '%U%class A { created(data) { return data; } }\nObject.assign(A.prototype, { created(data: User) { return data; } });\nexport default A;',
      'a method that Object.assign replaces with an arrow function':
        '%U%class A { created(data) { return data; } }\nObject.assign(A.prototype, { created: (data: User) => data });\nexport default A;',
      'a method that Object.defineProperty replaces':
        "%U%class A { created(data) { return data; } }\nObject.defineProperty(A.prototype, 'created', { value: (data: User) => data });\nexport default A;",
      'a method that Object.defineProperties replaces':
        '%U%class A { created(data) { return data; } }\nObject.defineProperties(A.prototype, { created: { value(data: User) { return data; } } });\nexport default A;',
      'a method that Reflect.set replaces':
        "%U%class A { created(data) { return data; } }\nReflect.set(A.prototype, 'created', (data: User) => data);\nexport default A;",
      'a method that an imported mixin replaces':
        "import { mix } from './HERE/m.ts';\nimport { impl } from './HERE/i.ts';\nclass A { created(data) { return data; } }\nmix(A, impl);\nexport default A;\n// m.ts\nexport const mix = (C, o) => Object.assign(C.prototype, o);\n// i.ts\n%U%export const impl = { created(data: User) { return data; } };",
      'a base class whose own file replaces the method':
        "import { Base } from './HERE/b.ts';\nexport default class A extends Base {}\n// b.ts\n%U%export class Base { created(data) { return data; } }\nBase.prototype.created = function (data: User) { return data; };",
      'an untyped function beside a typed function with the same text':
        'const other = function (data: { a: string }) { return data; };\nvoid other;\nexport default { created: (data) => { return data; } };',
      'an untyped method beside a typed method of another class':
        'class Other { created(data: { a: string }) { return data; } }\nvoid Other;\nexport default class A { created(data: unknown) { return [data, String(data)]; } }',
      'rest arguments of unknown':
        'export default { created(...all: unknown[]) { return all[0]; }, red: (data: unknown) => data };',
      'an untyped method that is wrapped afterwards':
        "%P%%H%class A { created(data: unknown) { return data; } }\nfor (const name of ['created'] as const) { const own = A.prototype[name]; A.prototype[name] = async function (this: A, data: unknown) { return own.call(this, data); }; }\nexport default A;",
      'an untyped method over a typed method of the base class':
        "%P%import { Base } from './HERE/base.ts';\nexport default class A extends Base { created(data: unknown) { return [data]; } }\n// base.ts\nexport class Base { created(data: { a: string }) { return data; } }",
      'a controller whose service has a typed method of the same name':
        "%P%import { UserService } from './HERE/service.ts';\nconst service = new UserService();\nexport default class A { created(data: unknown) { return service.created(data as { name: string }); } }\n// service.ts\nexport class UserService { created(data: { name: string }) { return data; } }",
      'an untyped method beside a property of the name on another object':
        '%P%const cycle: Record<string, unknown> = {};\ncycle.created = (a: number) => a;\nexport default class A { created(data: unknown) { return data; } }',
      'an untyped default import':
        "%P%import create from './HERE/h.ts';\nexport default { created: create };\n// h.ts\n%H%export default async function create(data: unknown, params: unknown) { return [data]; }",
      'an untyped method with a long body': [
        '%P%%H%export default class A { async created(data: unknown, { query }: ControllerParams) {',
        "    const { name = 'x', ...rest } = (data ?? {}) as Partial<Record<string, string>>;",
        '    const re = /[a-z]\\/\\d+/giu;',
        '    const map = new Map<string, { a: number; b?: Row[] }>();',
        '    for (const [key, value] of Object.entries(rest)) { if (value === undefined) continue; map.set(key, { a: value.length }); }',
        "    type Local = { kind: 'a' } | { kind: 'b'; x: number };",
        '    interface Inner { y: string }',
        "    const local = { kind: 'a' } as Local as unknown as Local;",
        '    const inner: Inner | undefined = undefined;',
        '    const list = [...map].sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, { a }]): [string, number] => [key, a]);',
        "    const out = `%D%{name}-%D%{list.length ? `%D%{list[0]![0]}` : 'none'}`;",
        "    switch (local.kind) { case 'a': { break; } default: throw new Error(`no %D%{local.kind}`); }",
        '    label: for (let i = 0; i < 3; i++) { if (i === 1) continue label; }',
        '    try { await Promise.resolve(1 as const); } catch (error: unknown) { if (error instanceof TypeError) return null; }',
        '    const f = async <T,>(value: T, ...more: T[]): Promise<T | undefined> => (more.length > 0 ? more[0] : value);',
        '    return { out, list, inner, query: query.page ?? null, f: await f<string>(name), ok: re.test(out) satisfies boolean, undef: undefined };',
        '  } }',
      ].join('\n'),
      'untyped data beside an alias of ControllerParams':
        '%P%type Params = ControllerParams;\nexport default class A { created(data: unknown, params: Params) { return [data, params.slugs]; } }',
      'a base class from a package':
        'import { Crud } from \'shop\';\nexport default class A extends Crud { index() { return 1; } }\n// node_modules/shop/index.js\nexport class Crud { created(data) { return data; } }\n// node_modules/shop/package.json\n{"type":"module","exports":"./index.js"}',
      'a wrapped operation with unchecked: true':
        '%U%const wrap = (f: (data: User) => unknown) => (...all: unknown[]) => f(all[0] as User);\nexport default { operations: { created: { unchecked: true } }, created: wrap((data: User) => data) };',
      'a typed operation with unchecked: true for all':
        "%U%export default class A { static operations = { '*': { unchecked: true } }; created(data: User) { return data; } }",
      'an untyped method of an object': '%U%export default { created(data) { return data; } };',
    },
    js: {
      'a frozen object': 'export default Object.freeze({ created(data) { return data; } });',
      'an instance': 'class A { created(data) { return data; } }\nexport default new A();',
      'a function from a TypeScript file':
        "import * as b from './HERE/b.ts';\nexport default { created: b.create };\n// b.ts\n%U%export const create = (data: User) => data;",
      'a method with JSDoc':
        'export default class A { /** @param {{ name: string }} data */ created(data) { return data; } }',
      'a parameter with JSDoc': 'export default { created: (/** @type {{ name: string }} */ data) => data };',
      'a wrapped constant with JSDoc':
        'const wrap = (f) => (...a) => f(...a);\n/** @param {{ name: string }} data */\nconst created = wrap((data) => data);\nexport default { created };',
      'an assigned prototype method with JSDoc':
        'class A { created(data) { return data; } }\n/** @param {{ name: string, age: number }} data */\nA.prototype.created = function (data) { return data; };\nexport default A;',
      'an assigned function with JSDoc':
        'const o = { created(data) { return data; } };\n/** @param {{ name: string, age: number }} data */\no.created = (data) => data;\nexport default o;',
      'a method with JSDoc that Object.assign adds':
        'class A { created(data) { return data; } }\nObject.assign(A.prototype, { /** @param {{ name: string, age: number }} data */ created(data) { return data; } });\nexport default A;',
      'a factory with a long comment below JSDoc':
        'const make = () => ({ /** @param {{ name: string, age: number }} data */\n // %X%\n created: async (data) => data });\nexport default make();',
      'a bound import with JSDoc':
        "import { create as c } from './HERE/a.js';\nexport default { created: c.bind(null) };\n// a.js\n/** @param {{ name: string, age: number }} data */\nexport function create(data) { return data; }",
      'a function in a wrapper with JSDoc':
        "import { audit } from './HERE/audit.js';\nexport default { created: audit(async (data) => data), index: audit(() => 1) };\n// audit.js\n/**\n * @param {(data: any) => any} f\n * @param {string} [name]\n */\nexport function audit(f, name) { return async (data, params) => f(data, params); }\n/** @param {string} id */\nexport function find(id) { return id; }",
      'factory with JSDoc':
        "import { crud } from './HERE/crud.js';\nexport default crud('rows');\n// crud.js\n/** @param {string} table */\nexport function crud(table) { return { created(data) { return { table, data }; } }; }",
      'factory of arrow functions':
        "import { crud } from './HERE/crud.js';\nexport default crud('rows');\n// crud.js\n/** @param {string} table */\nexport const crud = (table) => ({ created: (data) => ({ table, data }) });",
      'an empty object that Object.assign fills':
        'const a = {};\nObject.assign(a, { created(data) { return data; } });\nexport default a;',
    },
  },
};

const rows = Object.entries(ROWS).flatMap(([expected, byExtension]) =>
  Object.entries(byExtension).flatMap(([extension, texts]) =>
    Object.entries(texts).map(([name, text]) => ({
      expected,
      extension,
      name,
      text: text.replace(/%(\w)%/g, (_, part) => PARTS[part] ?? ''),
    })),
  ),
);

let dir: string;
let loads: readonly GroupLoad[];
let groups: ReturnType<typeof createGroups>;
before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'gatefold-found-operations-'));
  writeFileSync(join(dir, 'package.json'), '{"type":"module"}');
  for (const [i, { extension, text }] of rows.entries()) {
    const [source = '', ...others] = text
      .replaceAll('./HERE/', `./${i}/`)
      .replaceAll("'shop'", `'shop${i}'`)
      .split(/^(?=\/\/ [\w./]+\n)/m);
    mkdirSync(join(dir, `${i}`));
    writeFileSync(join(dir, `W${i}Controller.${extension}`), source);
    for (const other of others) {
      const [line = ''] = other.slice(3).split('\n');
      const name = line.replace('/shop/', `/shop${i}/`);
      const path = join(dir, name.startsWith('node_modules') ? '.' : `${i}`, name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, other.slice(other.indexOf('\n') + 1));
    }
  }
  groups = createGroups({ dir, log: createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } }) });
  loads = await groups.loadAll({ skip: new Map(), onLoading: () => {} });
});
after(() => rmSync(dir, { recursive: true, force: true }));

for (const kind of Object.keys(ROWS)) {
  describe(`the operation created is ${kind} in`, () => {
    for (const [i, { expected, name, extension }] of rows.entries()) {
      if (expected !== kind) continue;
      test(`${name} (.${extension})`, async () => {
        const { code = '', error, at } = loads.find(({ group }) => group === `W${i}`) ?? {};
        const group = error === undefined ? await groups.find(`w${i}`) : undefined;
        const isChecked = group?.operations.get('created')?.check !== undefined;
        const isRefused = /^UNREAD_(?:OPERATION|TYPE)$/.test(code);
        assert.equal(isRefused ? 'refused' : (error ?? (isChecked ? 'checked' : 'unchecked')), expected);
        if (isRefused) assert.match(at ?? '', /Controller\.m?[jt]s:\d+$/);
        // The commands and the start report this reason.
        if (expected === 'unchecked')
          assert.match(group?.contract.operations.get('created')?.uncheckedReason ?? '', /^(?:its|it|static) /);
      });
    }
  });
}
