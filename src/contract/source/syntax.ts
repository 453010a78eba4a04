// The syntax tree that the parser builds: declarations, their members, and types as written. This file has only
// TypeScript types. In every node, `at` is the offset of the node in its source.
import type { Tokens } from './tokens.ts';

/**
 * A type, as written. A `word` is a built-in type such as `string`. An `unsupported` type is an error only for an
 * operation whose request needs it.
 */
export type TypeNode = { readonly at: number } & (
  | { readonly kind: 'word'; readonly name: string }
  | { readonly kind: 'literal'; readonly value: string | number | boolean | null }
  | { readonly kind: 'array'; readonly element: TypeNode }
  | { readonly kind: 'tuple'; readonly items: readonly TupleItem[] }
  | { readonly kind: 'union' | 'intersection'; readonly parts: readonly TypeNode[] }
  | { readonly kind: 'object'; readonly members: readonly Member[] }
  | NameNode
  | { readonly kind: 'keyof' | 'readonly'; readonly operand: TypeNode }
  | { readonly kind: 'indexed'; readonly object: TypeNode; readonly key: TypeNode }
  | { readonly kind: 'typeof'; readonly name: string }
  | { readonly kind: 'template'; readonly texts: readonly string[]; readonly types: readonly TypeNode[] }
  | {
      readonly kind: 'mapped';
      readonly param: string;
      readonly keys: TypeNode;
      readonly value: TypeNode;
      /** The sign `?`, `+?` or `-?`, as written. The text is empty without a sign. */
      readonly optionalSign: string;
    }
  | { readonly kind: 'unsupported'; readonly form: string }
  /** A type with a tag or a decorator that has no effect there. The message says what to write instead. */
  | { readonly kind: 'mistake'; readonly message: string }
);

export interface NameNode {
  readonly kind: 'name';
  readonly at: number;
  /** The name, with or without dots. The name is `*` for `import('…')` without a name after it. */
  readonly name: string;
  readonly args: readonly TypeNode[];
  /** The specifier in `import('…').Name`. */
  readonly from?: string;
}

export interface TupleItem {
  readonly type: TypeNode;
  readonly isOptional: boolean;
  readonly isRest: boolean;
}

export interface Member {
  readonly kind: 'property' | 'method' | 'index' | 'accessor' | 'spread' | 'other';
  /** The member's name. The text is empty for a computed name, and for a member without a name. */
  readonly name: string;
  /**
   * The name inside a computed name: `KEY` for `[KEY]`, `Symbol.iterator` for `[Symbol.iterator]`. The text is empty
   * for another expression. The field is undefined when the member's name is not computed.
   */
  readonly computed?: string | undefined;
  readonly modifiers: readonly string[];
  readonly isOptional: boolean;
  readonly doc: string | undefined;
  /** The type of a property or an index signature; the result type of a method. */
  readonly type: TypeNode | undefined;
  /** The parameters of a method; the key of an index signature. */
  readonly params: readonly Param[];
  readonly typeParams?: readonly TypeParam[];
  /** Whether the method has a body. Overload signatures and abstract methods have no body. */
  readonly hasBody: boolean;
  /** The value of a property of an object. The field is undefined when the value is no ValueNode. */
  readonly value?: ValueNode | undefined;
  readonly at: number;
}

export interface Param {
  /** The parameter's name. The text is empty for a destructuring pattern. */
  readonly name: string;
  readonly isOptional: boolean;
  readonly isRest: boolean;
  readonly type: TypeNode | undefined;
  /**
   * Offset of the token after the type. For a type from a JSDoc comment, both this offset and the type's `at` are the
   * offset of the function.
   */
  readonly typeEnd?: number;
  /** Whether the parameter is also a field: `constructor(readonly x: T)`. */
  readonly declaresField?: boolean;
  readonly doc?: string | undefined;
}

export interface FunctionNode {
  readonly kind: 'function';
  readonly params: readonly Param[];
  readonly result: TypeNode | undefined;
  readonly typeParams: readonly TypeParam[];
  /** The comment directly before a function that is a value: `created: /** … *\/ (data) => data`. */
  readonly doc?: string | undefined;
}

/** A value that can lead to operations. All other expressions have no node. */
export type ValueNode =
  | FunctionNode
  | { readonly kind: 'class'; readonly declaration: Declaration }
  | { readonly kind: 'object'; readonly members: readonly Member[] }
  /** `name`, `object.name` */
  | { readonly kind: 'reference'; readonly name: string }
  /** `new X<Args>(…)` */
  | { readonly kind: 'new'; readonly callee: ValueNode; readonly args: readonly TypeNode[] };

export interface TypeParam {
  readonly name: string;
  readonly constraint: TypeNode | undefined;
  /** `T = Fallback` */
  readonly fallback: TypeNode | undefined;
}

export interface Declaration {
  readonly kind: 'interface' | 'alias' | 'class' | 'enum' | 'const' | 'function';
  readonly name: string;
  /** The namespace around the declaration, with its dot: `Shop.`. */
  readonly namespace: string;
  readonly typeParams: readonly TypeParam[];
  /** The types after `extends`, without those after `implements`. */
  readonly parents: readonly TypeNode[];
  readonly members: readonly Member[];
  /** The type of an alias; the annotation of a constant. */
  readonly type: TypeNode | undefined;
  /**
   * The start and end offsets of the literal of a constant, or of the braces of an enum. Both offsets are equal when
   * the value is no literal.
   */
  readonly literalRange: readonly [number, number] | undefined;
  /**
   * Whether the value at run time can differ from the literal in the source: the declaration is a `let` or `var`, or a
   * name in a destructuring pattern. The literal of a `let` therefore has a widened type (`string`).
   */
  readonly isValueUncertain?: boolean;
  /** The value of a function or a constant. The field is undefined when the value is no ValueNode. */
  readonly value: ValueNode | undefined;
  /** The `constructor.name` of a class at run time. */
  readonly className: string;
  readonly doc: string | undefined;
  readonly at: number;
}

export interface Import {
  readonly from: string;
  /** The imported name; `*` for the whole module. */
  readonly name: string;
}

export interface Module {
  readonly source: string;
  readonly docOffsets: Tokens['docOffsets'];
  /**
   * Declarations by namespace and name. Several declarations under one name are merged interfaces, or overloads of a
   * function.
   */
  readonly declarations: ReadonlyMap<string, readonly Declaration[]>;
  readonly imports: ReadonlyMap<string, Import>;
  /** Exported name → local name, or the import that is re-exported. */
  readonly exports: ReadonlyMap<string, string | Import>;
  /** Specifiers of `export * from '…'`. */
  readonly starExports: readonly string[];
}
