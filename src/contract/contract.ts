// The declarations in the source of a controller, from which the checks of requests, the output of the commands and the
// OpenAPI document are made.
import type { ErrorDetail } from '../base/errors.ts';

/**
 * A JSON Schema of draft 2020-12. A reference has the form `#/$defs/Name` and points into the `defs` of the group. The
 * schema of a `Date` or a `File` also has the symbol `IS_DATE` or `IS_FILE` (schema/schema.ts) as a key. Only the check
 * needs this mark. A symbol does not appear in the printed document, because `JSON.stringify` leaves out symbols.
 */
export interface Schema extends Readonly<Partial<Record<NumberKeyword, number>>> {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly pattern?: string;
  readonly uniqueItems?: boolean;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly required?: readonly string[];
  readonly items?: Schema | boolean;
  readonly prefixItems?: readonly Schema[];
  readonly [keyword: string | symbol]: unknown;
}

/** The schemas that others refer to, by name. Names match `[A-Za-z0-9_.-]+` and are unique within the group. */
export type Definitions = Readonly<Record<string, Schema>>;

type NumberKeyword =
  | ('minLength' | 'maxLength' | 'minItems' | 'maxItems')
  | ('minimum' | 'maximum' | 'exclusiveMinimum' | 'exclusiveMaximum' | 'multipleOf');

export interface ResultContract {
  /** The status: 201 for `Reply<201, …>`, and 200 for any result that is no `Reply`. */
  readonly status: number;
  /** `bytes`: a stream, a blob or a web response. `events`: server-sent events. */
  readonly body: 'json' | 'bytes' | 'events' | 'none';
  /** The schema of a `json` body as the client gets it: 7 as `{ "data": 7 }`. Without a schema, any body is allowed. */
  readonly schema?: Schema | undefined;
  /** The schema of the returned value, or of the data of the events. Without a schema, any value is allowed. */
  readonly returnedSchema?: Schema | undefined;
  readonly isReplyWithBody?: boolean;
  /** Whether the type of the result, or of the body of a `Reply`, includes undefined. */
  readonly mayBeAbsent?: boolean;
  /**
   * Whether the type is a union with undefined or null, such as `User | null`. For undefined and null, the service
   * sends its success message instead of a body that fits `schema`.
   */
  readonly mayBeSuccessMessage?: true;
}

export interface OperationContract {
  /** The name that the controller gives to the operation: `created`, `find`, `GET {id}`. */
  readonly name: string;
  /** The first sentence or paragraph of the doc comment. */
  readonly summary?: string | undefined;
  readonly description?: string | undefined;
  readonly isDeprecated: boolean;
  /** The schema of `data`: the body, or the query when the request has no body; undefined for unchecked data. */
  readonly data?: Schema | undefined;
  /** Whether `data` may be left out of a request, as with `data?: T`. The operation then receives undefined. */
  readonly dataIsOptional: boolean;
  /** The object schemas of parts of `params`, with the names of headers in lower case; undefined without a check. */
  readonly query?: Schema | undefined;
  readonly path?: Schema | undefined;
  readonly headers?: Schema | undefined;
  /** Whether the type of `params.user` requires a user; undefined when the type says nothing about a user. */
  readonly user?: 'required' | 'optional' | undefined;
  /** Why `data` or `params` is not checked: `it has no annotation`; undefined when both are checked or unused. */
  readonly uncheckedReason?: string | undefined;
  /** The kinds of answers that the operation declares, at least one. */
  readonly results: readonly ResultContract[];
  /** Why the result's type is not in the document, in one line; undefined for a documented result. */
  readonly undocumentedReason?: string | undefined;
  /** Where the document allows any value, because the schema of a library cannot be written; undefined for no place. */
  readonly schemaGaps?: string | undefined;
  /** Whether the check of its requests calls the schema of a library, which is code of the author. */
  readonly runsAuthorsCode?: true;
  /** The place of the declaration: `/path/UserController.ts:12:5`; undefined when it is not found in the source. */
  readonly at?: string | undefined;
}

export interface GroupContract {
  readonly summary?: string | undefined;
  readonly description?: string | undefined;
  /** By the operation's name, in the order of the source. */
  readonly operations: ReadonlyMap<string, OperationContract>;
  readonly defs: Definitions;
}

/** The `uncheckedReason` of `find(data: unknown)`. */
export const TYPE_IS_UNKNOWN = 'its type is unknown or any';

/** One mistake of a request. It never contains a value that the client sent. */
export interface Problem extends Required<Pick<ErrorDetail, 'in' | 'pointer' | 'message' | 'params'>> {
  /** The keyword of JSON Schema that the value breaks; `depth`, `steps` or `library` for what has no keyword. */
  readonly code: string;
}
