import type * as Other from './other.ts';
import type Thing from './other.ts';
import type { Addr, Address, Id, LEVELS, Money, Page, Role, Third as T3 } from './other.ts';

// a comment with { braces and 'quotes
/* interface Fake { a: string } */
const text = 'interface Fake { a: string }';
const regex = /interface Fake2 \{ ['"`/[}]/g;
const tpl = `interface Fake3 { ${'a'} }`;
export type A001 = string;
export type A002 = number;
export type A003 = boolean;
export type A004 = null;
export type A005 = unknown;
export type A006 = 'a';
export type A007 = 42;
export type A008 = -1.5;
export type A009 = true;
export type A010 = 'a' | 'b' | 'c';
export type A011 = 1 | 2 | 3;
export type A012 = 'a' | 1 | true | null;
export type A013 = string | number;
export type A014 = string | null;
export type A015 = string[];
export type A016 = Array<number>;
export type A017 = readonly boolean[];
export type A018 = ReadonlyArray<string | null>;
export type A019 = string[][];
export type A020 = (string | number)[];
export type A021 = [string, number];
export type A022 = [string, number?];
export type A023 = [string, ...number[]];
export type A024 = [name: string, age: number];
export type A025 = readonly [1, 'x'];
export type A026 = [];
export type A027 = { a: string };
export type A028 = { a: string; b?: number };
export type A029 = { a: string; readonly b: number };
export type A030 = { 'quoted-name': string; 1: number };
export type A031 = { a: { b: { c: string } } };
export type A032 = { a: string } | { b: number };
export type A033 = { kind: 'circle'; r: number } | { kind: 'square'; side: number };
export type A034 = { a: string } & { b: number };
export type A035 = { a: string } & ({ b: number } | { c: boolean });
export type A036 = Record<string, number>;
export type A037 = Record<'x' | 'y', number>;
export type A038 = { [key: string]: string };
export type A039 = { [key: string]: string | number; a: string };
export type A040 = Partial<{ a: string; b: number }>;
export type A041 = Required<{ a?: string; b?: number }>;
export type A042 = Pick<{ a: string; b: number; c?: boolean }, 'a' | 'c'>;
export type A043 = Omit<{ a: string; b: number; c?: boolean }, 'a'>;
export type A044 = Readonly<{ a: string }>;
export type A045 = NonNullable<string | null | undefined>;
export type A046 = Exclude<'a' | 'b' | 'c', 'b'>;
export type A047 = Extract<'a' | 'b' | 'c', 'b' | 'z'>;
export type A048 = Record<Role, { n: number }>;
export type A049 = Partial<Record<Role, string[]>>;
export interface A050 {
  a: string;
  b?: number | null;
}
export interface A051 extends A050 {
  c: boolean;
}
export interface A052 extends A050, Address {
  d: 1;
}
export interface A053 {
  self?: A053;
  kids: A053[];
}
export type A054 = { value: number; left: A054 | null; right: A054 | null };
export type A055 = string | number | boolean | null | A055[] | { [key: string]: A055 };
export type A056 = Page<A050>;
export type A057 = Page<string>;
export type A058 = Page<Page<number>>;
export interface A059<T = string> {
  of: T;
}
export type A060 = A059;
export type A061 = A059<number>;
export type A062<T, E = string> = { ok: true; value: T } | { ok: false; error: E };
export type A063 = A062<A050>;
export type A064 = Address['zip'];
export type A065 = Address[keyof Address];
export type A066 = keyof Address;
export type A067 = Page<A050>['items'][number];
export type A068 = (typeof LEVELS)[number];
export type A069 = typeof LEVELS;
const LOCAL = { host: 'x', port: 80, deep: { on: true } } as const;
export type A070 = typeof LOCAL;
export type A071 = keyof typeof LOCAL;
export type A072 = (typeof LOCAL)['port'];
const WIDE = { host: 'x', port: 80, list: [1, 2] };
export type A073 = typeof WIDE;
const SIZES = { s: 'small', l: 'large' } as const;
export type A074 = (typeof SIZES)[keyof typeof SIZES];
export type A075 = `id-${number}`;
export type A076 = `${'a' | 'b'}/${string}`;
export type A077 = `v${1 | 2}.${number}`;
export type A401 = `${number}.${number}.${number}`;
export type A402 = `${number}-${number}-${number}`;
export type A403 = `${number}.${number}.${number}.${number}`;
export type A404 = `${string}-${number}`;
export type A405 = `${string}${number}`;
export type A406 = `${number}${string}`;
export type A407 = `${number | 'auto'}x${number | 'auto'}`;
export type A408 = `${string}: ${number}`;
export type A409 = `<${A404}|${boolean}>`;
export type A410 = `${string}.${'png' | 'jpg'}`;
export type A411 = `${number}${'px' | 'em'} ${number}${'px' | 'em'}`;
export type A412 = `${string}${'.' | ','}${number}`;
export type A413 = `${number}e${number}`;
export type A414 = `${number}0${number}`;
export type A415 = `${string}-${number | 'x'}`;
export type A416 = `${string}[]${string}`;
export type A430 = Record<number, string>;
export type A431 = { [n: number]: { a: string }; name?: string };
export type A432 = { [K in number]: boolean } & { a: string };
export type A433 = Omit<{ [n: number]: string; a: string; b: string }, 'a'>;
export interface A434 extends A430 {
  a: string;
}
export type A417 = string | (number | A417)[];
type Leaf = number;
export type A418 = Leaf | (Leaf | A418)[];
export type A419 = { a: string } | ({ a: string } | A419)[];
type Twig = string | { b: Branch };
type Branch = number | (Twig | Branch)[];
export type A420 = { t: Twig; b: Branch };
type OrText = A421 | string;
export type A421 = { a: OrText | A421 };
export type A078 = { [K in Role]: number };
export type A079 = { [K in keyof Address]: boolean };
export type A080 = { [K in keyof Address]?: Address[K] };
export type A081 = { readonly [K in keyof Address]-?: Address[K] };
export type A082 = { [K in string]: number };
export type A083 = Addr;
export type A084 = Thing;
export type A085 = T3;
export type A086 = Money;
export type A087 = Other.Address;
export type A088 = Other.Page<Other.Id>;
import type { Role as OtherRole } from './other.ts';
import type Named from './third.ts';
export type A089 = OtherRole;
export type A090 = object;
export type A091 = { a: object };
export type A092 = { a: any; b: unknown };
export type A093 = { a?: never; b: string };
export type A094 = { a: string | undefined };
export type A095 = { list: { id: number; tags?: string[] }[] };
export interface A096 {
  a: string;
}
export interface A096 {
  b: number;
}
export class A097 {
  a!: string;
  b?: number;
  readonly c: boolean = true;
  static s = 1;
  private p?: string;
  constructor(readonly z?: string) {}
}
export type A098 =
  | 'one'
  | 'two' // a comment
  | /* inner */ 'three';
export type A099 = { a: string /** doc */; b: number /* x */ };
export type A100 = string;
export type A101 = { a: (string | null)[]; b: (1 | 2)[] };
export type A102 = { 'a-b'?: 'x' | null; 'c d': string[] };
export type A103 = Omit<A050 & Address, 'zip' | 'b'>;
export type A104 = Partial<A050> & Pick<Address, 'street'>;
export type A105 = Omit<A033, 'kind'>;
export type A106 = Required<Pick<A050, 'b'>>;
export type A107 = Promise<Address>;
export type A108 = { when: 'now' | { at: string } };
export type A109 = [Address, ...Role[]];
export type A110 = Array<{ id: Id } & Partial<Money>>;
export type A111 = { a: string } & { a: 'x' | 'y' };
export type A112 = ('a' | 'b') & ('b' | 'c');
export type A113 = string & {};
export type A114 = Record<string, unknown>;
export type A115 = Record<string, Record<string, number[]>>;
export type A116 = { [k: `x-${string}`]: string };
export type A117 = A116 | null;
export type A118 = Uppercase<'a' | 'b'>;
export type A119 = T extends string ? 1 : 2;
type T = string;
export type A120 = () => void;
export type A121 = { f(): void; a: string };
export type A122 = Map<string, number>;
export type A123 = bigint;
export type A124 = ReturnType<typeof JSON.parse>;
export type A125 = Awaited<Promise<string>>;
export type A126 = { id: Id & { readonly __brand: 'Id' } };
export type A127 = { a: 1 } | { a: 2; b: string } | null;
export type A128 = { t: 'a'; v: string } | { t: 'b' | 'c'; v: number } | { t: 'd' };
export type A129 = string | string[];
export type A130 = number | 'auto';
export type A131 = { n: 0x10 | 1e3 | 1_000 };
export type A132 = { constructor: string; toString?: string };
export type A133 = { a?: string }[] | { a: number };
export type A134 = Record<number, string>;
export type A135 = { [n: number]: string; length: number };
export type A136 = Pick<A039, 'a'>;
export type A137 = { a: A010; b: A013; c?: A033 };
export type A138 = Exclude<A013, string>;
export type A139 = Extract<A033, { kind: 'circle' }>;
export type A140 = Exclude<keyof Address, 'zip'>;
export type A141 = Pick<Address, Exclude<keyof Address, 'zip'>>;
export type A142 = { [K in keyof Address as `x_${K}`]: string };
export type A143 = Partial<A033>;
export type A144 = Array<Array<Partial<Address>>>;
export type A145 = { a: { b?: { c?: { d: string }[] } } };
export type A146 = [[number, number], [number, number]];
export type A147 = { data: A062<string, 'E1' | 'E2'>; meta?: Record<string, string> };
export type A148 = {
  type: 'Feature';
  geometry: { type: 'Point'; coordinates: [number, number] } | { type: 'LineString'; coordinates: [number, number][] };
  properties: Record<string, unknown> | null;
};
export type A149 = { a: string; b: number } | [string, number] | string;
export type A150 = { items?: readonly { readonly id: string }[] | null };
enum Color {
  Red,
  Green = 5,
  Blue,
}
enum Shade {
  Dark = 'dark',
  Light = 'light',
}
export type A151 = Color;
export type A152 = Shade | null;
export type A153 = { shade: Shade.Dark };
export type A154 = `${Shade}`;
export type A155 = keyof typeof Shade;
export type A156 = { a: string | undefined | null; b?: 'x' | undefined };
export type A157 = Date;
export type A158 = { at: Date };
export type A159 = symbol;
export type A160 = void;
let widened = 'x';
export type A161 = { a: typeof widened };
enum Tone {
  Low = 'low',
}
enum Tone {
  High = `high`,
}
export type A162 = Tone;
enum Flag {
  One = 1,
  Two = One << 1,
}
export type A163 = Flag;
const CAST = { x: 1 } as { x: number; y?: string };
export type A164 = typeof CAST;
const FIRST = ['x', 'y'][0];
export type A165 = { a: typeof FIRST };
const LENGTH = 'x'.length;
export type A166 = { a: typeof LENGTH };
const CHOICE = true ? 1 : 'x';
export type A167 = { a: typeof CHOICE };
const MET = { k: 'v' } satisfies { k: 'v' | 'w' };
export type A168 = typeof MET;
const EXACT = { k: 'v' } as const satisfies { k: 'v' | 'w' };
export type A169 = typeof EXACT;
const COUNT = 3 satisfies number;
export type A170 = typeof COUNT;
type Each<T> = { -readonly [K in keyof T]: T[K] };
type EachMaybe<T> = { [K in keyof T]?: T[K] };
type Either = { k: 'a'; n: number } | { k: 'b'; s: string };
export type A171 = Each<Either>;
export type A172 = EachMaybe<Either>;
export type A173 = { a: Each<Either | null> };
type EachOfBoth = { [K in keyof Either]: Either[K] };
export type A174 = EachOfBoth;
export type A176 = (string | null) & {};
export type A177 = Each<{ a: number; [key: string]: unknown }>;
type Start = [string?];
export type A178 = [...Start, number];
declare const MARK: unique symbol;
export interface A179 {
  [MARK]?: 1;
  id: string;
}
interface Chain {
  next?: Chain;
  a: string;
}
interface Knot {
  next?: Knot;
  b: number;
}
export type A180 = Chain & Knot;
interface Ring {
  back: Arc | null;
  a: string;
}
interface Arc {
  back: Ring | null;
  b: number;
}
export type A181 = { pair: Ring & Arc };
type Fork = { k: 'leaf'; a: string } | { k: 'fork'; left: Fork; right?: Fork };
interface Counted {
  left?: Counted;
  n: number;
}
export type A182 = Fork & Counted;
export type A183 = Chain & { next: { next: Knot } };
type Key = string;
export type A184 = Record<Key & string, number>;
const STATES = { 1: 'open', 0x10: 'done', '3': 'late' } as const;
export type A185 = { state: keyof typeof STATES; counts: Record<keyof typeof STATES, number> };
export type A186 = { [K in keyof { 1: 0; 1_0: 0; b: 0 }]: { k: K } };
export type A187 = keyof (Partial<Record<1 | 2, string>> & { x: 1 });
export type A188 = keyof ({ 1: 0; a: 0 } | { 1: 1; b: 0 });
export type A189 = { second: [string, number?][1]; each: [string, number?][number] };
export type A190 = { [K in `name_${'en' | 'fr'}`]?: string } & Record<`${1 | 2}-x`, 1>;
export type A191 = (Either | { k: 'c' | 'd'; b: boolean }) & { k: 'a' | 'd'; id: number };
type EachOf<T, K extends keyof T = keyof T> = { [P in K]: string };
type Taken<T, K extends keyof T> = { [P in K]: T[P] };
export type A192 = EachOf<{ a?: 1; b: 2 }>;
interface Chosen<T, K extends keyof T = keyof T> {
  by: { [P in K]: boolean };
}
export type A195 = Chosen<{ a?: 1; b: 2 }>;
export type A196 = Exclude<'a' | null, null> | Exclude<Either | undefined, null | undefined>;
export type A198 = { a: Exclude<'a' | null, never>; b: null | Exclude<'a', 'a'>; c: Exclude<boolean | null, null> };
export type A197 = { a: Extract<'a' | 1 | null, 'a' | null>; b: Exclude<string | null, null>; c: Extract<null | {}, null> };
export type A193 = Required<Taken<{ a?: 1 | null; b: 2 }, 'a'>>;
export type A194 = { a: Named; b: Other.Named };
interface Wolf {
  k: 'wolf';
  size?: number;
}
interface Crow {
  k: 'crow';
  size?: string;
  note?: string;
}
type Beast = Wolf | Crow;
type Filled<T> = { [K in keyof T]-?: boolean };
export type A199 = Filled<Beast | { k: 'fish'; fins?: 1 }>;
export type A200 = { picked: Pick<Beast, 'k' | 'size'>; rest: Omit<Beast | { k: 1; size: null; fins: 1 }, 'k'> };
export type A201 = Omit<Beast | { k: 1; [key: string]: number }, 'k'>;
interface Post {
  id: number;
  title: string | null;
  tags?: string[];
  at: [lat: number, lng?: number, ...more: (1 | 2)[]];
  reply?: Post | null;
  replies: Post[];
  any: unknown;
}
type DeepPart<T> = { [P in keyof T]?: DeepPart<T[P]> };
type DeepAll<T> = { readonly [P in keyof T]-?: DeepAll<T[P]> };
type OrNull<T> = { -readonly [K in keyof T]: T[K] | null };
type Named2<T> = { [K in keyof T]: { at: K; is: T[K] } };
export type A202 = DeepPart<Post>;
export type A203 = DeepAll<Post>;
export type A204 = { a: OrNull<readonly string[]>; b: OrNull<[1, 2?, ...'x'[]] | 'y'>; c: Named2<['a', 'b']>; d: Named2<5> };
export type A205 = DeepPart<{ kind: 'a'; is: { x: 1 }[] } | { kind: 'b'; is: Record<string, { y: 2 }> }>;
export type A206 = { set?: DeepPart<Post>['replies']; all?: OrNull<{}>; one: DeepPart<object> };
export interface A207 {
  '': 'x';
  '#text'?: string;
  readonly '#': { '': 1 } | null;
}
export interface A208 {
  id: string;
  parent?: A208['id'];
}
type Nil = null;
type Met<A, B> = A & B;
export type A209 = {
  nil: Met<Nil, null | 'x'>;
  none: Met<Nil, string> | 1;
  word: Met<'a', string> | Met<boolean, true>;
  odd: Met<'a', number> | Met<2, 3> | 4;
  begun: Met<'ab' | 'b', `a${string}`>;
  tag: Met<{ k: 'a' | 'b' }, { k: 'c' }> | 5;
};
void text;
void regex;
void tpl;
void WIDE;
widened = text;
void [STATES, CAST, FIRST, LENGTH, CHOICE, MET, EXACT, COUNT, widened];
