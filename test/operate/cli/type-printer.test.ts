// Types that `gatefold contracts` prints or refuses, in this process and with one TypeScript.
// test/slow/cli-contracts.slow.ts runs the command with each TypeScript.
import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type ts from 'typescript-5';
import { printType, Unprintable } from '../../../src/operate/cli/type-printer.ts';
import { findLoss, type TypeProject } from '../../../src/operate/cli/type-project.ts';
import { openTypeScript } from '../../../src/operate/cli/type-script.ts';
import { makeProject } from '../../support/command-bench.ts';

const ROOT = resolve(import.meta.dirname, '../../..');

/** Key: a type. Value: what is printed, then the notes and the helpers. */
const PRINTED: Readonly<Record<string, readonly string[]>> = {
  "'b' | 2 | 'a' | null | undefined": ['"a" | "b" | 2 | null | undefined'],
  'boolean | true | undefined': ['boolean | undefined'],
  '"numeric(10)" | "USD (US)" | { "a(b)"?: 1 }': ['("USD (US)") | ("numeric(10)") | ({\n  "a(b)"?: 1 | undefined;\n})'],
  any: ['unknown', 'T is any, so it is not checked'],
  unknown: ['unknown'],
  'never[]': ['Array<never>'],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the type is a template.
  '`id-${number}`': ['`id-${number}`'],
  object: ['object'],
  '{}': ['{}'],
  '{ b: string; "a-b"?: number; readonly c: void }': [
    '{\n  "a-b"?: number | undefined;\n  b: string;\n  c: undefined;\n}',
  ],
  'Record<string | number, 1>': ['{\n  [key: string]: 1;\n}'],
  'Record<string, 1 | 2> & { size: number }': ['({\n  [key: string]: 1 | 2;\n}) & ({\n  size: number;\n})'],
  '{ [name: string]: 1; size: 1 }': ['{\n  [key: string]: 1;\n  size: 1;\n}'],
  'string[] & { __brand: "Ids" }': ['(Array<string>) & ({\n  __brand: "Ids";\n})'],
  '{ [name: symbol]: string; a: string }': ['{\n  a: string;\n}'],
  // An object without fields that JSON has is no `{}`, which takes texts and numbers, too.
  '{ [name: symbol]: string } | { [Symbol.iterator]?: never }': ['(Record<never, never>)'],
  'string & { __brand: "Id" }': ['string'],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the type is a template.
  '`a${string}` & `${string}b`': ['`a${string}` & `${string}b`'],
  // Only the first part of this union can have a value.
  '({ kind: "a" } | { kind: "b"; x: 1 }) & { kind: "a" }': ['({\n  kind: "a";\n})'],
  '[...Tags, 1]': ['[...Array<(string)>, (1)]'],
  '[string, number?, ...boolean[]]': ['[(string), (number | undefined)?, ...Array<(boolean)>]'],
  'readonly (string | number)[]': ['Array<number | string>'],
  Tags: ['Array<string>'],
  Moment: ['Date'],
  'Date | File | Blob': ['Blob | Date | File'],
  'Pick<Tree, "name">': ['{\n  name: string;\n}'],
  Tree: ['Inner1_of_T', '{\n  first?: Inner1_of_T | undefined;\n  kids: Array<Inner1_of_T>;\n  name: string;\n}'],
  'number | bigint': ['number', 'T is bigint, which JSON has not: it is left out of its union'],
  '{ run?: () => void; big?: bigint; a: string }': [
    '{\n  a: string;\n  big?: never;\n  run?: never;\n}',
    'T.big is bigint, which JSON has not: clients must leave it out',
    'T.run is a function, which JSON has not: clients must leave it out',
  ],
};

const REFUSED: Readonly<Record<string, RegExp>> = {
  'string & string[]': /^T is a list and a scalar at once, which JSON has not$/,
  '() => void': /^T is a function, which JSON has not$/,
  '{ toISOString(): string }': /^T\.toISOString is a function, which JSON has not$/,
  'new () => object': /^T is a function, which JSON has not$/,
  'Map<string, string>': /^T is a Map, which JSON has not$/,
  '{ deep: { list: Set<number>[] } }': /^T\.deep\.list\[\] is a Set, which JSON has not$/,
  'bigint | null': /^T is bigint, which JSON has not$/,
  'symbol | undefined': /^T is symbol, which JSON has not$/,
  Infinite: /^T is Infinity, which JSON has not$/,
  'Uppercase<string>': /^T is Uppercase<string>, which is not understood$/,
  Hidden: /^T\.b is private, which JSON has not$/,
  Sharp: /^T\.#a is private, which JSON has not$/,
  Missing: /^T is not resolved: an import fails, or the file has a type error$/,
  'Endless<0>': /^T(?:\.next){101}: it grows without end; /,
  Wide: /^T\.\w{3}\.\w: it has more than 3000 types; /,
};

/** Key: a type. Value: what it would lose. */
const LOST: Readonly<Record<string, string | undefined>> = {
  'Pick<Tree, "name">': undefined,
  'Pick<Tagged, "name">': 'the tag @minLength',
  'Pick<Preset, "name">': 'the tag @default',
  'Pick<Counted, "count">': 'the constraint Int',
  'Pick<Mailed, "to">': undefined,
  'ReturnType<(typeof library)["load"]>': 'the tag @minLength',
  'ReturnType<typeof library.count>': undefined,
  'ReturnType<(typeof import("./library.ts"))["load"]>': 'the tag @minLength',
  'keyof typeof library': 'the tag @minLength',
  'Pick<Decorated, "a">': 'a decorator',
  'ReturnType<typeof parse>': 'the schema schema',
  'typeof built': 'the schema build()',
  // A package infers this type from its schema.
  Inferred: 'the schema model',
  'typeof taken': 'the schema build()',
  'ReturnType<typeof guard>': 'the schema guarded',
  // An own file adds to the types of the package.
  'Pick<Session, "name">': 'the tag @minLength',
};

const DECLARATIONS = `
import type { Inferred } from 'models';
import type { Session } from 'sessions/types';
declare module 'sessions/types' { interface Session { /** @minLength 3 */ name: string } }
import type { Int } from 'gatefold';
import type * as library from './library.ts';
interface Tags extends Array<string> {}
interface Moment { toISOString(): string; getTime(): number }
interface Tree { name: string; kids: Tree[]; first?: Tree }
declare const enum Limit { No = 1 / 0 }
type Infinite = Limit.No;
declare class Hidden { a: number; protected b: number }
declare class Sharp { #a: number; b: string }
interface Endless<N> { next: Endless<[N]> }
type Digit = 'a' | 'b' | 'c' | 'd' | 'e' | 'f' | 'g' | 'h' | 'i' | 'j';
type Wide = { [K in \`\${Digit}\${Digit}\${Digit}\`]: { [P in Digit]: K } };
interface Tagged { /** @minLength 3 */ name: string }
interface Preset { /** @default "Ada" */ name?: string }
interface Counted { count: Int }
type Email = string;
interface Mailed { to: Email }
declare function IsEmail(): any;
declare class Decorated { @IsEmail() a: string }
declare const schema: { '~standard': object };
const parse = () => schema;
declare const guarded: { withConstraint(): void };
const guard = () => guarded;
declare function build(): { safeParse(): void };
const built = [build()];
const { taken } = { taken: [build()] };
`;

describe('gatefold contracts', () => {
  let project: TypeProject;
  const nodes = new Map<string, ts.TypeNode>();

  const texts = [...new Set([PRINTED, REFUSED, LOST].flatMap((rows) => Object.keys(rows)))];
  const aliases = texts.map((text, i) => `export type T${i} = ${text};\n`).join('');
  const folder = makeProject(
    { after },
    {
      'src/types.ts': DECLARATIONS + aliases,
      // The library of workers has File and Blob, and half the size of that of pages.
      'tsconfig.json': '{"compilerOptions":{"lib":["es2022","webworker"],"types":[]},"include":["src"]}',
      'src/library.ts':
        'export const load = (): { /** @minLength 3 */ name: string } => ({ name: "Ada" });\nexport const count = () => 1;\n',
      'node_modules/gatefold/package.json': '{"name":"gatefold","version":"1.0.0","types":"i.d.ts"}',
      'node_modules/gatefold/i.d.ts': 'export type Int = number;\n',
      'node_modules/sessions/package.json': '{"name":"sessions","version":"1.0.0"}',
      'node_modules/sessions/types.d.ts': 'export interface Session { id: string }\n',
      'node_modules/models/package.json': '{"name":"models","version":"1.0.0","types":"i.d.ts"}',
      'node_modules/models/i.d.ts':
        "declare const model: { '~standard': { output: { a: string } } };\nexport type Inferred = Readonly<(typeof model)['~standard']['output']>;\n",
    },
  );

  before(async () => {
    symlinkSync(join(ROOT, 'node_modules/typescript-5'), join(folder, 'node_modules/typescript'));
    const path = join(folder, 'src/types.ts');
    // Printing needs none of the functions that `openTypeProject` adds.
    project = (await openTypeScript(folder, [path])) as TypeProject;
    const { ts, program } = project;
    const statements = program.getSourceFile(path)?.statements.filter(ts.isTypeAliasDeclaration) ?? [];
    for (const [i, text] of texts.entries())
      nodes.set(text, statements.find(({ name }) => name.text === `T${i}`)?.type as ts.TypeNode);
  });

  const print = (text: string) =>
    printType(project.checker.getTypeAtLocation(nodes.get(text) as ts.TypeNode), 'T', project);

  for (const [text, expected] of Object.entries(PRINTED))
    test(`prints ${text}`, () => {
      const printed = print(text);
      assert.deepEqual([printed.text, ...printed.notes, ...printed.helpers.values()], expected);
    });

  for (const [text, message] of Object.entries(REFUSED))
    test(`refuses ${text}`, () => {
      assert.throws(() => print(text), { constructor: Unprintable, message });
    });

  for (const [text, loss] of Object.entries(LOST))
    test(`says what ${text} would lose`, () => {
      assert.equal(findLoss(nodes.get(text) as ts.TypeNode, project, new Set()), loss);
    });
});
