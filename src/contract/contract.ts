// The contract of a controller: the types that were read from its source. The checks of requests, the commands and the
// OpenAPI document are made from it. This file has types and a name, and does not know TypeScript source or requests.

/**
 * A JSON Schema of draft 2020-12. Its references are `#/$defs/Name`, into the `defs` of its group. Symbols mark a
 * `Date` and a `File` for the check; `JSON.stringify` leaves them out.
 */
export type Schema = { readonly [keyword: string]: unknown };

/** One kind of answer that an operation declares. */
export interface ResultContract {
  /** The status of `Reply<201, …>`, else 200. */
  readonly status: number;
  /** `bytes`: a stream, a blob or a web response. `events`: server-sent events. `none`: the answer has no body. */
  readonly body: 'json' | 'bytes' | 'events' | 'none';
  /** The schema of a `json` body. Undefined: any value. */
  readonly schema: Schema | undefined;
  /** The schema of the value that the operation returns, or of the data of an event. Undefined: any value. */
  readonly returned?: Schema | undefined;
  /** Whether the result is a `Reply`. */
  readonly isReply?: boolean;
  /** Whether the operation may return undefined, also as the body of a `Reply`. */
  readonly mayBeAbsent?: boolean;
  /** Whether the value may be undefined or null, for which the service sends its plain success. */
  readonly mayBeEmpty?: true;
}

/** The reason for data of the type `unknown` or `any`, as in `_: unknown`. */
export const TYPE_IS_UNKNOWN = 'its type is unknown or any';

export interface OperationContract {
  /** The value of `params.method`: `created`, `find`, `GET {id}`. */
  readonly name: string;
  /** The first sentence or line of the doc comment. */
  readonly summary: string | undefined;
  /** The rest of the doc comment, without its tags. */
  readonly description: string | undefined;
  readonly deprecated: boolean;
  /** The schema of `data`: of the body, or of the query of a request without a body. Undefined: not checked. */
  readonly data: Schema | undefined;
  /** Whether `data` may be missing, as in `data?: T`. A request without a body then gives undefined. */
  readonly optional: boolean;
  /** The object schema of `params.query`. Undefined: not checked. */
  readonly query: Schema | undefined;
  /** The object schema of `params.path`. Undefined: not checked. */
  readonly path: Schema | undefined;
  /** Whether the type of `params.user` lets it be absent. Undefined: the type says nothing about a user. */
  readonly user: 'required' | 'optional' | undefined;
  /** The reason why `data` is not checked: `it has no annotation`. Undefined: checked, or no parameter takes it. */
  readonly unchecked: string | undefined;
  /** At least one. */
  readonly results: readonly ResultContract[];
  /** The reason, in one line, why the result's type cannot be documented. */
  readonly undocumented: string | undefined;
  /** The place of the declaration: `/path/UserController.ts:12:5`. */
  readonly at: string | undefined;
}

/** The contract of a handler group. */
export interface GroupContract {
  readonly group: string;
  readonly summary: string | undefined;
  readonly description: string | undefined;
  /** By name, in the order of the source. */
  readonly operations: ReadonlyMap<string, OperationContract>;
  /** The named schemas of all operations. Names match `[A-Za-z0-9_.-]+` and are unique within the group. */
  readonly defs: Readonly<Record<string, Schema>>;
}

/** One mistake of a request. No field contains a value that the client sent. */
export interface Problem {
  readonly in: 'body' | 'query' | 'path';
  /** A JSON pointer (RFC 6901) into that part; empty: the part itself. */
  readonly pointer: string;
  /** `must be a number`, `is missing`. */
  readonly message: string;
}
