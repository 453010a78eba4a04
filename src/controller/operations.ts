// What a controller says about its operations beside the code: `static operations`. Types alone; what is read of it at
// load, and refused, is groups/operation-settings.ts.
import type { Reply } from './reply.ts';

/** Any schema object of the Standard Schema convention (zod, valibot, arktype, …); https://standardschema.dev. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => unknown;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** Who may call: anybody, any live credential (else 401), or a credential with the scope (else 403). */
export type Access = 'anyone' | 'application' | { readonly scope: string };

/** `Data`, `Query` and `Result` are what the operation takes and answers: a schema for one of them must make that. */
export interface OperationSettings<Data = unknown, Query = unknown, Result = unknown> {
  /** Media types or ranges (`image/*`) let in beside JSON, forms and text; their `data` is a `Blob`. */
  readonly accepts?: readonly string[];
  /** Bytes, counted after inflating; default: the service's `BODY_LIMIT`. */
  readonly bodyLimit?: number;
  /** Milliseconds; default: the service's `OPERATION_TIMEOUT`. */
  readonly timeout?: number;
  /** Default: `'anyone'`. */
  readonly access?: Access;
  /**
   * How often one caller may call it, by credential, else by address: `100/s`, `5000/h burst 200`; more get 429
   * `RATE_LIMITED`.
   */
  readonly limit?: string;
  /**
   * A schema for the body; or `'stream'`: `data` is a `ReadableStream` of its bytes, which are never held in memory.
   */
  readonly body?: StandardSchema<unknown, Data> | 'stream';
  /** A schema for the query: `params.query`, and `data` where the data is the query. */
  readonly query?: StandardSchema<unknown, Query>;
  /** A schema for the result: it documents. A `Date` may stand in it as the text that it is sent as. */
  readonly result?: StandardSchema<unknown, Result>;
  /** Of an answer that is no `Reply`: 200 to 299, without 204 and 205, which have no body. Default: 200. */
  readonly status?: number;
  /**
   * `true` says aloud that the types of this operation's request are not checked. Schemas still check it. Default:
   * `false`.
   */
  readonly unchecked?: boolean;
  /** One line for the document. */
  readonly summary?: string;
  /** Not in the document. */
  readonly hidden?: boolean;
}

/** The public methods of a controller that can be operations. */
export type OperationName<Controller> = {
  [Name in keyof Controller]: Controller[Name] extends (...parameters: never[]) => unknown ? Name : never;
}[keyof Controller] &
  string;

/**
 * `static operations: Operations<UserController> = { created: { access: 'application' }, '*': { timeout: 5000 } }`: for
 * one operation, or `'*'` for all. What one operation says wins over `'*'`; what an ancestor says holds until a class
 * says otherwise.
 */
export type Operations<Controller> = {
  readonly [Name in OperationName<Controller>]?: SettingsOf<Name, Controller[Name]>;
} & { readonly '*'?: OperationSettings };

/** Of these `data` is the query, of those the body; of an operation with a name of its own it is what there is. */
type QueryIsData = 'index' | 'deleted' | `${'GET' | 'HEAD' | 'DELETE'} ${string}`;
type BodyIsData = 'created' | 'red' | 'patch' | `${'POST' | 'PUT' | 'PATCH'} ${string}`;

type SettingsOf<Name, Method> = Name extends QueryIsData
  ? OperationSettings<DataOf<Method>, DataOf<Method> & QueryOf<Method>, ResultOf<Method>>
  : Name extends BodyIsData
    ? OperationSettings<DataOf<Method>, QueryOf<Method>, ResultOf<Method>>
    :
        | (OperationSettings<DataOf<Method>, QueryOf<Method>, ResultOf<Method>> & { readonly body: unknown })
        | (OperationSettings<DataOf<Method>, DataOf<Method> & QueryOf<Method>, ResultOf<Method>> & {
            readonly body?: undefined;
          });

/** What its first parameter is; anything, when it has none. */
type DataOf<Method> = Method extends (...parameters: infer Parameters) => unknown
  ? Parameters extends [(infer Data)?, ...unknown[]]
    ? Data
    : unknown
  : unknown;

/** What the params say of their query; anything, when it takes none. */
type QueryOf<Method> = Method extends (...parameters: infer Parameters) => unknown
  ? Parameters extends [unknown?, (infer Params)?, ...unknown[]]
    ? Params extends { readonly query: infer Query }
      ? Query
      : unknown
    : unknown
  : unknown;

type ResultOf<Method> = Method extends (...parameters: never[]) => infer Result
  ? Sent<BodyOf<Awaited<Result>>>
  : unknown;

type BodyOf<Result> = Result extends Reply<number, infer Body> ? Body : Result;

/** As it may be written down: a `Date` as itself or as its text. */
type Sent<T> = unknown extends T
  ? unknown
  : T extends { toJSON(...parameters: never[]): infer Text }
    ? T | Text
    : T extends object
      ? { readonly [Key in keyof T]: Sent<T[Key]> }
      : T;
