// What the parser makes of a file: its declarations, their members, and types as they are written. Types alone.
import type { Tokens } from './tokens.ts';

/** A type, as written. `other` is one outside of the subset: an error only for who needs it. */
export type TypeNode = { readonly at: number } & (
  | { readonly kind: 'word'; readonly name: string }
  | { readonly kind: 'literal'; readonly value: string | number | boolean | null }
  | { readonly kind: 'array'; readonly of: TypeNode }
  | { readonly kind: 'tuple'; readonly items: readonly TupleItem[] }
  | { readonly kind: 'union' | 'intersection'; readonly of: readonly TypeNode[] }
  | { readonly kind: 'object'; readonly members: readonly Member[] }
  | NameNode
  | { readonly kind: 'keyof' | 'readonly'; readonly of: TypeNode }
  | { readonly kind: 'at'; readonly object: TypeNode; readonly key: TypeNode }
  | { readonly kind: 'typeof'; readonly name: string }
  | { readonly kind: 'template'; readonly texts: readonly string[]; readonly types: readonly TypeNode[] }
  | {
      readonly kind: 'mapped';
      readonly param: string;
      readonly keys: TypeNode;
      readonly of: TypeNode;
      readonly optional: string;
    }
  | { readonly kind: 'other'; readonly what: string }
  /** A type beside which something is written that nothing reads, and what to do about it. */
  | { readonly kind: 'mistake'; readonly message: string }
);

export interface NameNode {
  readonly kind: 'name';
  readonly at: number;
  /** May be dotted; `*` for the whole of an `import('…')`. */
  readonly name: string;
  readonly args: readonly TypeNode[];
  /** The file of a type by `import()`. */
  readonly from?: string;
}

export interface TupleItem {
  readonly type: TypeNode;
  readonly optional: boolean;
  readonly rest: boolean;
}

export interface Member {
  readonly kind: 'property' | 'method' | 'index' | 'accessor' | 'spread' | 'other';
  /** Empty for a member that has no name, or a computed one. */
  readonly name: string;
  /**
   * The name behind `[` when that is a plain one: `KEY`, `Symbol.iterator`. Empty: another expression. Undefined: not
   * computed.
   */
  readonly computed?: string | undefined;
  readonly modifiers: readonly string[];
  readonly optional: boolean;
  readonly doc: string | undefined;
  /** Of a property and of an index signature; of a method its result. */
  readonly type: TypeNode | undefined;
  /** Of a method; of an index signature its key. */
  readonly params: readonly Param[];
  /** The type parameters of a method. */
  readonly typeParams?: readonly TypeParam[];
  /** A method that has a body, so no overload signature and not abstract. */
  readonly body: boolean;
  /** The value of a property of an object, where it is followed. */
  readonly value?: ValueNode | undefined;
  readonly at: number;
}

export interface Param {
  /** Empty for a pattern. */
  readonly name: string;
  readonly optional: boolean;
  readonly rest: boolean;
  readonly type: TypeNode | undefined;
  /** Offset behind its type; where that stands in a comment, the place of both is that of the function. */
  readonly end?: number;
  /** `constructor(readonly x: T)`: it declares a field as well. */
  readonly declares?: boolean;
  readonly doc?: string | undefined;
}

export interface FunctionNode {
  readonly kind: 'function';
  readonly params: readonly Param[];
  readonly result: TypeNode | undefined;
  readonly typeParams: readonly TypeParam[];
  /** The comment right before a function that is a value: `created: /** … *\/ (data) => data`. */
  readonly doc?: string | undefined;
}

/** A value that is followed to the operations in it. Every other expression has no node. */
export type ValueNode =
  | FunctionNode
  | { readonly kind: 'class'; readonly declaration: Declaration }
  | { readonly kind: 'object'; readonly members: readonly Member[] }
  /** `name`, `object.name` */
  | { readonly kind: 'reference'; readonly name: string }
  /** `new X<Args>(…)` */
  | { readonly kind: 'new'; readonly maker: ValueNode; readonly args: readonly TypeNode[] };

export interface TypeParam {
  readonly name: string;
  /** `T extends Constraint` */
  readonly constraint: TypeNode | undefined;
  /** `T = Fallback` */
  readonly fallback: TypeNode | undefined;
}

export interface Declaration {
  readonly kind: 'interface' | 'alias' | 'class' | 'enum' | 'const' | 'function';
  readonly name: string;
  /** The namespace around it, with its dot: `Shop.`. */
  readonly inside: string;
  readonly params: readonly TypeParam[];
  readonly parents: readonly TypeNode[];
  readonly members: readonly Member[];
  /** Of an alias; of a constant its annotation. */
  readonly type: TypeNode | undefined;
  /** The place of the literal of a constant or an enum, from and to; empty where the value is no plain literal. */
  readonly literal: readonly [number, number] | undefined;
  /** A `let` or `var`: its value may change, and a literal says less of its type. */
  readonly isVariable?: boolean;
  /** The value of a function or a constant, where it is followed. */
  readonly value: ValueNode | undefined;
  /** Of a class: what `constructor.name` will be. */
  readonly className: string;
  readonly doc: string | undefined;
  readonly at: number;
}

/** `name` is `*` for all of it. */
export interface Import {
  readonly from: string;
  readonly name: string;
}

export interface Module {
  readonly source: string;
  /** The offset of each doc comment. */
  readonly docs: Tokens['docs'];
  /** By name with its namespace. Interfaces of one name are merged by who reads them; functions may be overloads. */
  readonly declarations: ReadonlyMap<string, readonly Declaration[]>;
  readonly imports: ReadonlyMap<string, Import>;
  /** Exported name → local name, or what it is re-exported from. */
  readonly exports: ReadonlyMap<string, string | Import>;
  readonly stars: readonly string[];
}
