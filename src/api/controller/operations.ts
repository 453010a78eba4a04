// The types of `static operations`, the settings that a controller declares for its operations.
// groups/operation-settings.ts reads the settings and refuses wrong ones.
import type { ControllerParams } from '../controller.ts';
import type { Reply } from './reply.ts';
import type { AccessParams, AccessParamsOf } from './service.ts';

/** A schema object of zod, valibot, arktype, … by the interface of https://standardschema.dev. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => unknown;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** The keywords that contract/schema/json-schema.ts reads. */
type JsonSchemaKeyword =
  | ('type' | 'enum' | 'const' | 'anyOf' | 'not' | 'format' | 'pattern' | 'minLength' | 'maxLength' | 'multipleOf')
  | ('minimum' | 'maximum' | 'exclusiveMinimum' | 'exclusiveMaximum' | 'minItems' | 'maxItems' | 'uniqueItems')
  | ('items' | 'prefixItems' | 'additionalItems' | 'properties' | 'required' | 'additionalProperties')
  | ('patternProperties' | 'title' | 'description' | 'default' | 'deprecated' | 'examples' | 'definitions')
  | `$${'schema' | 'id' | 'comment' | 'defs' | 'ref'}`;

/** A JSON Schema of the keywords that the check implements. Those of TypeBox have their type in `static`. */
export interface JsonSchema<Data = unknown> extends Readonly<Partial<Record<JsonSchemaKeyword, unknown>>> {
  readonly static?: Data;
  readonly '~standard'?: undefined;
}

/**
 * One condition on the caller:
 * - `'anyone'`: no condition.
 * - `'application'`: the request has a valid credential; else the answer is 401.
 * - `{ scope }`: the request has a credential with that scope; else the answer is 403.
 * - `'user'`: `authenticate` of the service file has found a user; else the answer is 401.
 * - `'caller'`: the request has a valid credential or a user; else the answer is 401.
 * - A function: it returns `true` to let the caller in; else the answer is 403.
 */
export type AccessRule<User = unknown> =
  | 'anyone'
  | 'application'
  | 'user'
  | 'caller'
  | { readonly scope: string }
  // TypeScript compares the parameters of methods bivariantly, so a function for a narrower type of user is accepted.
  | { bivariance(params: AccessParamsOf<User>): boolean | Promise<boolean> }['bivariance'];

/** The callers of an operation: one rule, or a list of rules that must all hold. */
export type Access<User = unknown> = AccessRule<User> | readonly AccessRule<User>[];

/** The argument of `by`: a request before its body has arrived. */
export interface LimitParams
  extends Pick<AccessParams, 'path' | 'query' | 'address'>,
    Pick<ControllerParams, 'headers'> {
  /** The user whom `authenticate` of the service file has found. */
  readonly user?: unknown;
}

export interface Limit {
  /** `100/s`, `20/15m` or `5000/h burst 200`. */
  readonly rate: string;
  /** Returns a further text that calls are counted by, beside the address. It must be synchronous. */
  readonly by?: (params: LimitParams) => string;
  /** With `'failures'`, an answer below 400 gives back what the call has taken. */
  readonly count?: 'failures';
}

/** The settings of one operation. Each schema must produce the type of the parameter or result that it describes. */
export interface OperationSettings<Data = unknown, Query = unknown, Result = unknown, Path = unknown> {
  /**
   * Media types or ranges (`image/*`) of bodies that become a `Blob`, beside JSON, forms and text. A list that names
   * one of these, such as `['application/json']`, is exact: any other body is refused with 415.
   */
  readonly accepts?: readonly string[];
  /** The longest body in bytes, after decompression; default: the service's `BODY_LIMIT`. */
  readonly bodyLimit?: number;
  /**
   * The longest time in milliseconds in which the body must arrive; default: the service's `REQUEST_TIMEOUT`. A body
   * that is read as a stream has no such limit by default, and must come at 1 KiB a second.
   */
  readonly bodyTimeout?: number;
  /** The longest run time in milliseconds; default: the service's `OPERATION_TIMEOUT`. */
  readonly timeout?: number;
  /** The callers that may call the operation (else 401 or 403); default: `'anyone'`. */
  readonly access?: Access;
  /**
   * The rate limit of each caller, such as `100/s` or `5000/h burst 200`. A caller is a credential, or else an address.
   * A call above the limit gets 429 `RATE_LIMITED`.
   */
  readonly limit?: string | Limit;
  /** A schema for the body, or `'stream'`: then `data` is a `ReadableStream` of the bytes, which are not buffered. */
  readonly body?: StandardSchema<unknown, Data> | JsonSchema<Data> | 'stream';
  /** A schema for the query: for `params.query`, and for `data` when the data is the query. */
  readonly query?: StandardSchema<unknown, Query> | JsonSchema<Query>;
  /** A schema for `params.path`, the values of the segments that the route names. They are texts. */
  readonly path?: StandardSchema<unknown, Path> | JsonSchema<Path>;
  /**
   * A schema for the result, for the OpenAPI document. With `results: 'declared'`, its output is sent. The schema may
   * declare a `Date` as its text, and leave out fields.
   */
  readonly result?: StandardSchema<unknown, Result> | JsonSchema<Result>;
  /** With `'declared'`, a result is sent without the fields that its type does not declare; default: all fields. */
  readonly results?: 'declared';
  /** The status of a result that is no `Reply`: 200 to 299, but not 204 and 205, which have no body; default: 200. */
  readonly status?: number;
  /** Whether a request with a field that its types do not declare is refused (422); default: the field is dropped. */
  readonly closed?: boolean;
  /** Whether requests are not checked by the operation's types, but only by schemas; default: `false`. */
  readonly unchecked?: boolean;
  /** One line for the OpenAPI document, instead of the first sentence of the doc comment. */
  readonly summary?: string;
  /** Whether the OpenAPI document leaves the operation out; default: `false`. */
  readonly hidden?: boolean;
  /**
   * Whether agents may call the operation as a tool, when the setting `MCP` is on; default: `false`. A text is the name
   * of the tool, such as `find_book`. With `true`, the name is made from the group and the operation.
   */
  readonly tool?: boolean | string;
}

/** The names of a controller's public methods, which can be operations. */
export type OperationName<Controller> = {
  [Name in keyof Controller]: Controller[Name] extends (...parameters: never[]) => unknown ? Name : never;
}[keyof Controller] &
  string;

/**
 * The settings of a controller. Key: the name of an operation, or `'*'` for all. A setting of one operation wins over
 * `'*'`. A class inherits the settings of its ancestors, and its own settings win.
 *
 * @example
 * static operations: Operations<UserController> = { created: { access: 'application' }, '*': { timeout: 5000 } };
 */
export type Operations<Controller> = {
  readonly [Name in OperationName<Controller>]?: SettingsOf<Name, Controller[Name]>;
} & { readonly '*'?: OperationSettings };

type RouteBy<Verb extends string> = Verb | `${Verb} ${string}`;
/** Operations whose `data` is always the query. */
type QueryIsData = 'index' | 'deleted' | RouteBy<'GET' | 'HEAD' | 'DELETE'>;
/** Operations whose `data` is always the body. The `data` of all others is the body, or else the query. */
type BodyIsData = 'created' | 'red' | 'patch' | RouteBy<'POST' | 'PUT' | 'PATCH'>;

type SettingsOf<Name, Method> = Name extends QueryIsData
  ? SettingsWith<Method, DataOf<Method> & PartOf<Method, 'query'>>
  : Name extends BodyIsData
    ? SettingsWith<Method, PartOf<Method, 'query'>>
    :
        | (SettingsWith<Method, PartOf<Method, 'query'>> & { readonly body: unknown })
        | (SettingsWith<Method, DataOf<Method> & PartOf<Method, 'query'>> & { readonly body?: undefined });

type SettingsWith<Method, Query> = OperationSettings<DataOf<Method>, Query, ResultOf<Method>, PartOf<Method, 'path'>>;

/** The type of a method's first parameter; `unknown` when the method has none. */
type DataOf<Method> = Method extends (...parameters: infer Parameters) => unknown
  ? Parameters extends [(infer Data)?, ...unknown[]]
    ? Data
    : unknown
  : unknown;

/** The type of `params.query`, for example, in a method's second parameter; `unknown` when the method has none. */
type PartOf<Method, Part extends string> = Method extends (...parameters: infer Parameters) => unknown
  ? Parameters extends [unknown?, (infer Params)?, ...unknown[]]
    ? Params extends { readonly [Key in Part]: infer Value }
      ? Value
      : unknown
    : unknown
  : unknown;

type ResultOf<Method> = Method extends (...parameters: never[]) => infer Result
  ? Sent<BodyOf<Awaited<Result>>>
  : unknown;

type BodyOf<Result> = Result extends Reply<number, infer Body> ? Body : Result;

/**
 * The types that a result schema may declare for the type `T` of a result. A `Date` may be declared as its text. Fields
 * may be left out, such as the `passwordHash` of a row, because `results: 'declared'` does not send them.
 */
type Sent<T> = unknown extends T
  ? unknown
  : T extends { toJSON(...parameters: never[]): infer Text }
    ? T | Text
    : T extends object
      ? T extends readonly (infer Item)[]
        ? // A list of itself, as in any JSON value, is not mapped before it is needed.
          Item[] extends T
          ? readonly Sent<Item>[]
          : { readonly [Index in keyof T]: Sent<T[Index]> }
        : { readonly [Key in keyof T]?: Sent<T[Key]> }
      : T;
