// The syntax tree that the parser builds: declarations, their members, and types as written. In every node, `at` is the
// offset of the node in its source. A `doc` is a doc comment with its `/**` and `*/`, or several such comments joined.

/** A type, as written. A `word` is a built-in type such as `string`. */
export type TypeNode = { readonly at: number } & (
  | { readonly kind: 'word'; readonly name: string }
  | { readonly kind: 'literal'; readonly value: string | number | boolean | null }
  | { readonly kind: 'array'; readonly element: TypeNode }
  | { readonly kind: 'tuple'; readonly items: readonly TupleItem[] }
  | { readonly kind: 'union' | 'intersection'; readonly parts: readonly TypeNode[] }
  | { readonly kind: 'object'; readonly members: readonly Member[] }
  /** `Page<Order>`. The name is `Order`, `Enum.Member` or `imported.Order`. */
  | { readonly kind: 'name'; readonly name: string; readonly args: readonly TypeNode[] }
  | { readonly kind: 'keyof' | 'readonly'; readonly operand: TypeNode }
  | { readonly kind: 'indexed'; readonly object: TypeNode; readonly key: TypeNode }
  | { readonly kind: 'typeof'; readonly name: string }
  | { readonly kind: 'template'; readonly texts: readonly string[]; readonly types: readonly TypeNode[] }
  | {
      readonly kind: 'mapped';
      readonly param: string;
      readonly keys: TypeNode;
      readonly value: TypeNode;
      /** The sign `?`, `+?` or `-?`, as written; empty without a sign. */
      readonly optionalSign: string;
    }
  /** A type that is not read, such as `a conditional type`. It is an error only when a request needs the type. */
  | { readonly kind: 'unsupported'; readonly form: string; readonly cure?: string }
  /** A type with a tag or a decorator that would have no effect. The message says what to write instead. */
  | { readonly kind: 'mistake'; readonly message: string }
);

export type NameNode = Extract<TypeNode, { kind: 'name' }>;

export interface TupleItem {
  readonly type: TypeNode;
  readonly isOptional: boolean;
  readonly isRest: boolean;
}

export interface Member {
  readonly kind: 'property' | 'method' | 'index' | 'accessor' | 'spread' | 'other';
  /** Empty for a computed name, and for a member without a name. */
  readonly name: string;
  /**
   * The name in brackets: `KEY` for `[KEY]`, `Symbol.iterator` for `[Symbol.iterator]`. The field is empty for another
   * expression in brackets, and undefined for `['text']` and for a name without brackets.
   */
  readonly computed?: string | undefined;
  /** Whether the name is written as a number: `keyof { 1: T }` is the number 1, and `keyof { '1': T }` is a text. */
  readonly isNumberKey?: boolean | undefined;
  /** With `#` for a private name. */
  readonly modifiers: readonly string[];
  readonly isOptional: boolean;
  readonly doc: string | undefined;
  /** The type of a property or an index signature; the result type of a method; undefined when it is not written. */
  readonly type: TypeNode | undefined;
  /** The parameters of a method; the key of an index signature. */
  readonly params: readonly Param[];
  readonly typeParams?: readonly TypeParam[];
  /** Whether the method has a body. Overload signatures and abstract methods have no body. */
  readonly hasBody: boolean;
  /** The value of an object's property; undefined when it is none of the forms of a ValueNode. */
  readonly value?: ValueNode | undefined;
  readonly at: number;
}

export interface Param {
  /** The names that it declares: several for a pattern such as `{ a, b: [c] }`, also the key `b`. */
  readonly names: readonly string[];
  /** Empty for a pattern. */
  readonly name: string;
  readonly isOptional: boolean;
  readonly isRest: boolean;
  readonly type: TypeNode | undefined;
  /** The start and the end of the type in the source. The place of a mistake in it may be in between. */
  readonly span?: readonly [number, number];
  /** Whether the parameter is also a field: `constructor(readonly x: T)`. */
  readonly declaresField?: boolean;
  readonly doc?: string | undefined;
}

export interface FunctionNode {
  readonly kind: 'function';
  readonly params: readonly Param[];
  readonly result: TypeNode | undefined;
  readonly typeParams: readonly TypeParam[];
  /** Whether TypeScript infers the types of parameters from a type outside of the function: `… satisfies T`. */
  readonly hasOuterType?: boolean;
  /** The comment directly before a function that is a value: `created: /** … *\/ (data) => data`. */
  readonly doc?: string | undefined;
}

/** A value from which a controller's operations can come. A field for any other expression is undefined. */
export type ValueNode =
  | FunctionNode
  | { readonly kind: 'object'; readonly members: readonly Member[]; readonly hasOuterType?: boolean }
  | { readonly kind: 'reference'; readonly name: string };

export interface TypeParam {
  readonly name: string;
  readonly constraint: TypeNode | undefined;
  readonly fallback: TypeNode | undefined;
}

export interface Declaration {
  readonly kind: 'interface' | 'alias' | 'class' | 'enum' | 'const' | 'function';
  readonly name: string;
  readonly typeParams: readonly TypeParam[];
  /** The types after `extends`. Those after `implements` are left out. */
  readonly parents: readonly TypeNode[];
  /** Whether a class or an interface has `extends` or `implements`. */
  readonly isDerived?: boolean;
  readonly members: readonly Member[];
  /** The type of an alias; the annotation of a constant. */
  readonly type: TypeNode | undefined;
  /** The range of a constant's literal or an enum's braces, up to the next token. Empty for any other value. */
  readonly literalRange: readonly [number, number] | undefined;
  /** Whether the value can differ from the literal: the name is declared by `let` or `var`, or in a pattern. */
  readonly isValueUncertain?: boolean;
  /** The value of a function or a constant; undefined when it is none of the forms of a ValueNode. */
  readonly value: ValueNode | undefined;
  readonly doc: string | undefined;
  readonly at: number;
}

export interface Import {
  /** The specifier: `./types.ts`. */
  readonly from: string;
  /** The name in the other module; `*` for the whole module. */
  readonly name: string;
}

export interface Module {
  readonly source: string;
  /** By name. Several interfaces or overloads can share a name, and a type and a value. */
  readonly declarations: ReadonlyMap<string, readonly Declaration[]>;
  /** Key: the local name. */
  readonly imports: ReadonlyMap<string, Import>;
  /** Key: the exported name. Value: the local name, or the import that is exported again. */
  readonly exports: ReadonlyMap<string, string | Import>;
  readonly starExports: readonly string[];
}
