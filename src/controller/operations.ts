// What a controller says about its operations beside the code: `static operations`. Types alone; what is read of it at load,
// and refused, is groups/operation-settings.ts.

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

/** `Data` is what the operation takes: a schema for its body must make that. */
export interface OperationSettings<Data = unknown> {
  /** Media types or ranges (`image/*`) let in beside JSON, forms and text; their `data` is a `Blob`. */
  readonly accepts?: readonly string[];
  /** Bytes, counted after inflating; default: the service's `BODY_LIMIT`. */
  readonly bodyLimit?: number;
  /** Milliseconds; default: the service's `OPERATION_TIMEOUT`. */
  readonly timeout?: number;
  /** Default: `'anyone'`. */
  readonly access?: Access;
  /** How often one caller may call it, by credential, else by address: `100/s`, `5000/h burst 200`; more get 429 `RATE_LIMITED`. */
  readonly limit?: string;
  /** A schema for the body; or `'stream'`: `data` is a `ReadableStream` of its bytes, which are never held in memory. */
  readonly body?: StandardSchema<unknown, Data> | 'stream';
  /** A schema for the query. */
  readonly query?: StandardSchema;
  /** A schema for the result: it documents. */
  readonly result?: StandardSchema;
  /** Of an answer that is no `Reply`: 200 to 299, without 204 and 205, which have no body. Default: 200. */
  readonly status?: number;
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
 * `static operations: Operations<UserController> = { created: { access: 'application' }, '*': { timeout: 5000 } }`: for one
 * operation, or `'*'` for all. What one operation says wins over `'*'`; what an ancestor says holds until a class says otherwise.
 */
export type Operations<Controller> = {
  readonly [Name in OperationName<Controller>]?: OperationSettings<DataOf<Controller[Name]>>;
} & { readonly '*'?: OperationSettings };

/** What its first parameter is; anything, when it has none. */
type DataOf<Method> = Method extends (...parameters: infer Parameters) => unknown
  ? Parameters extends [infer Data, ...unknown[]]
    ? Data
    : unknown
  : unknown;
