// What was read of a controller's types, as others see it: the dispatcher (through the checks made of it), the commands
// and the OpenAPI document. Types alone; it knows neither TypeScript source nor requests.

/**
 * A JSON Schema of draft 2020-12, plain JSON. References are `#/$defs/Name` into the `defs` of its group. What only the
 * check has to know (a `Date`, a `File`) hangs on symbols, which JSON leaves out.
 */
export type Schema = { readonly [keyword: string]: unknown };

/** One way an operation may answer. */
export interface ResultContract {
  /** 200, or what `Reply<201, …>` says. */
  readonly status: number;
  /** `json`: by `schema`. `bytes`: a stream, a blob, a web response. `events`: server-sent events. `none`: no body. */
  readonly body: 'json' | 'bytes' | 'events' | 'none';
  /** Undefined: anything, or nothing is known. */
  readonly schema: Schema | undefined;
}

export interface OperationContract {
  /** As in `params.method`: `created`, `find`, `GET {id}`. */
  readonly name: string;
  /** The first sentence or line of the doc comment. */
  readonly summary: string | undefined;
  /** The rest of the doc comment, without its tags. */
  readonly description: string | undefined;
  readonly deprecated: boolean;
  /** What `data` is checked against: the body, or the query where there is no body. Undefined: not checked. */
  readonly data: Schema | undefined;
  /** `data` may be left out: `data?: T`, a default. Without a body it is then undefined. */
  readonly optional: boolean;
  /** Of `params.query`: an object schema. Undefined: not checked. */
  readonly query: Schema | undefined;
  /** Of `params.path`: an object schema. Undefined: not checked. */
  readonly path: Schema | undefined;
  /** Why `data` is not checked: `it has no annotation`. Undefined: it is, or there is no parameter that takes it. */
  readonly unchecked: string | undefined;
  /** At least one. */
  readonly results: readonly ResultContract[];
  /** What of the result's type was not understood, in one line; it is then not documented. */
  readonly undocumented: string | undefined;
  /** `UserController.ts:12`, where the operation is declared. */
  readonly at: string | undefined;
}

/** The contract of a handler group. */
export interface GroupContract {
  readonly group: string;
  readonly summary: string | undefined;
  readonly description: string | undefined;
  /** By name, in the order of the source. */
  readonly operations: ReadonlyMap<string, OperationContract>;
  /** What the schemas of all its operations refer to. Names are `[A-Za-z0-9_.-]+` and unique within the group. */
  readonly defs: Readonly<Record<string, Schema>>;
}

/** One mistake of a request. Never holds a value that the client sent. */
export interface Problem {
  readonly in: 'body' | 'query' | 'path';
  /** JSON pointer (RFC 6901) into that part; empty for the whole. */
  readonly pointer: string;
  /** `must be a number`, `is missing`. */
  readonly message: string;
}
