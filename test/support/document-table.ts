// Folders of controllers, each with the lines that the OpenAPI document has for it. The table is run in one process
// (documents/document.test.ts) and over workers (slow/document.slow.ts).
import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { GATEFOLD } from './service.ts';

const IMPORTS = `import { ifMatch } from '${GATEFOLD}';
import type { ControllerParams, EventStream, Int, Reply } from 'gatefold';`;

const ORDER = `${IMPORTS}
/**
 * The orders
 *
 * of the shop.
 */
export default class OrderController {
  static operations = {
    deleted: { summary: 'Removes it', status: 202 },
    secret: { hidden: true },
    scoped: { access: { scope: 'orders:write' } },
    keyed: { access: 'application' },
  };
  /**
   * A list
   *
   * of orders.
   * @deprecated
   */
  index(data: Page, params: ControllerParams<{ query: {
    sort?: string; /** Tries. */ dryRun?: boolean } }>): string[] { return []; }
  created(data: { page: Int }): { n: Int } { return { n: 1 }; }
  red(data?: { page: Int }) {}
  patch(data: { page?: Int }): void {}
  /** Deletes it */
  deleted(): void {}
  options(): void {}
  hello(): boolean { return true; }
  find(data: unknown): string | null { return null; }
  updated(data: any, params: unknown): void {}
  secret(data: Hidden): void {}
  scoped(): void {}
  keyed(): void {}
}
interface Page { /** Counts from 1. @deprecated */ page: Int; sort?: 'a' | 'b' }
interface Hidden { id: string }`;

const BARE = `${IMPORTS}
type Either = { a: string } | { b: Int };
/**
 * Methods without a pattern:
 *
 * All of them.
 */
export default class BareItemController {
  static operations = { POST: { accepts: ['application/octet-stream'] } };
  /** Ends here. */
  GET(data: Either | { c: Int }): void {}
  HEAD(): void {}
  POST(data: File): void {}
  PUT(data: { cover: File; page?: Int }): void {}
  PATCH(data: { level: { items: { file: File }[] }[] }): void {}
  'PATCH all'(data: Record<string, File>): void {}
  'PATCH none'(data: { none: File | null }): void {}
  DELETE(): void {}
  OPTIONS(): void {}
  find(): void {}
}`;

const ROUTES = `${IMPORTS}
type Id = ControllerParams<{ path: { /** The number. */ id: Int } }>;
export default class RouteController {
  static operations = {
    PUT: { accepts: ['image/*'] },
    PATCH: { accepts: ['application/x-www-form-urlencoded'] },
    'POST lines': { accepts: ['text/csv'] },
    'POST number': { accepts: ['application/json'] },
    'POST stream': { body: 'stream' },
    'PUT stream': { body: 'stream', accepts: ['application/json'] },
  };
  'GET {id}/items/{item}'(_: undefined, params: ControllerParams<{ path: { id: Int; item: string } }>): void {}
  'PUT files/{path*}'(): void {}
  'PUT files/{file}'(): void {}
  'POST files/{file}'(): void {}
  'POST files/{path*}'(): void {}
  'GET export.csv'(data?: { a: string }): void {}
  'GET {id}.pdf'(): void {}
  'GET a.b'(): void {}
  'GET a_b'(data: { page?: Int } & Record<string, string | number>): void {}
  'GET {id}'(): void {}
  'DELETE {order}'(_: undefined, params: ControllerParams<{ path: { order: Int } }>): Reply<204> { return null as never; }
  'PUT {id}'(data: { a: string }, params: Id): void { ifMatch(params, '"1"', { required: true }); }
  'PATCH {id}'(data: { a: string }, params: Id): void { ifMatch(params, '"1"'); }
  'PUT'(data: File): void {}
  'PATCH'(data: { a: string }): void {}
  'POST lines'(data: { a: string }): void {}
  'POST stream'(data: unknown): void {}
  'PUT stream'(data: unknown): void {}
  'POST tree'(data: Tree): void {}
  'POST number'(data: Int): void {}
  'PUT none'(_: undefined, params: ControllerParams): void {}
  hello(): void {}
  updated(): void {}
}
interface Tree { a?: Tree; b?: Tree; c?: Tree; d?: Tree; e?: Tree; f?: Tree }`;

/** Two groups whose types have the same names. Hidden operations use `Plain` and `Secret`. */
const SCHEMAS = {
  'AController.ts': `import type { Int } from 'gatefold';
    interface Shared { a: string; next?: Shared }
    interface User { id: Id }
    interface Id { at: string }
    interface Error { why: string }
    interface List { errors: Error[] }
    interface Plain { b: Choice; one: One; mixed: Mixed; flag: Flag; file: Doc }
    type Choice = 'a' | 'b'; type One = 1; type Mixed = 1 | 'a'; type Flag = true; type Doc = File;
    interface Secret { secret: string }
    export default class {
      static operations = { secret: { hidden: true } };
      index(): User { return null as never; }
      created(data: { shared: Shared; list: List }): void {}
      red(data: Plain): void {}
      secret(data: Secret): void {}
    }`,
  'BController.ts': `import type { Int } from 'gatefold';
    interface Shared { a: string; next?: Shared }
    interface User { id: Id }
    interface Id { at: Int }
    interface Plain { c: string }
    interface Secret { d: string }
    export default class {
      static operations = { '*': { hidden: true }, index: { hidden: false }, created: { hidden: false } };
      index(): User { return null as never; }
      created(data: { shared: Shared }): void {}
      red(data: Plain): void {}
      secret(data: Secret): void {}
    }`,
  'HiddenController.mjs': 'export default { operations: { index: { hidden: true } }, index() {} };',
};

const RESULTS = `${IMPORTS}
interface User { id: Int; name: string }
/** A schema as of zod 4: JSON Schema has no transform, and no date. */
const zod = (lacking: string[]) => ({ '~standard': { version: 1, vendor: 'zod', validate: (value: unknown) => ({ value }), jsonSchema: { input: input.bind(null, lacking), output: (options: object) => ({ ...input(lacking, options), additionalProperties: false }) } } });
const schema = zod(['any', 'transform', 'optional']);
function input(lacking: string[], { libraryOptions }: { libraryOptions?: any }) {
  if (libraryOptions?.unrepresentable !== 'any') throw new Error('Date cannot be represented in JSON Schema\\nmore');
  const at = {};
  libraryOptions.override({ zodSchema: { _zod: { def: { type: 'date' } } }, jsonSchema: at });
  for (const type of lacking) libraryOptions.override({ zodSchema: { _zod: { def: { type } } }, jsonSchema: {} });
  return { type: 'object', properties: { at, name: { type: 'string' }, length: {} }, required: ['at', 'name'] };
}
const broken = { '~standard': { version: 1, vendor: 'x', validate: (value: unknown) => ({ value }), jsonSchema: { input() { throw new Error('no'); } } } };
export default class XController {
  static operations = {
    'PUT {id}': { path: { '~standard': { version: 1, vendor: 'x', validate: (value: unknown) => ({ value }), jsonSchema: { input: () => ({ type: 'object', properties: { id: { type: 'integer' } } }) } } } },
    'GET some': { query: schema },
    library: { body: schema, result: schema },
    broken: { body: broken },
    plain: { body: { '~standard': { version: 1, vendor: 'x', validate: (value: unknown) => ({ value }) } } },
    dated: { body: zod(['unknown']) },
    scalar: { result: { anyOf: [{ type: 'string' }, { type: 'array' }, { type: 'null' }] } },
    closed: { result: { type: 'object', properties: { id: { $ref: '#/$defs/Id' }, additionalProperties: { const: 'a', default: { additionalProperties: false } } }, additionalProperties: false, $defs: { Id: { type: 'object', properties: { n: { type: 'integer' } }, additionalProperties: false } } } },
    literal: { result: { anyOf: [{ enum: ['a', 'b'] }, { const: 7 }, { $ref: '#/$defs/Name' }, { const: true }], $defs: { Name: { type: ['string', 'null'] } } } },
  };
  'GET'(data: unknown, params: ControllerParams<{ headers: { /** The key. @minLength 2 */ 'idempotency-key'?: string; 'x-count': Int } }>): User[] { return []; }
  'GET some'(data: unknown, params: ControllerParams): void {}
  'PUT {id}'(data: User, params: ControllerParams<{ path: { id: number } }>): Promise<User> { return data as never; }
  events(): EventStream<User> { return undefined as never; }
  maybe(): User | null { return null; }
  bytes(): Uint8Array { return undefined as never; }
  both(): User | Reply<200, { queued: Int }> | Reply<202, undefined> | Reply<204> | Reply<299> { return undefined as never; }
  library(data: unknown) {}
  broken(data: unknown): void {}
  plain(data: unknown): void {}
  dated(data: unknown): void {}
  scalar() { return 'x'; }
  closed() { return { id: 1, more: 2 }; }
  literal() { return 'a'; }
  untyped() { return {}; }
}`;

const USERS = "authenticate: ({ authorization }) => (authorization === 'Token ann' ? { id: 'ann' } : undefined),";
const TOKEN = "token: { type: 'apiKey', in: 'header', name: 'Authorization', description: 'Token …' },";
const SCHEMES = `securitySchemes: { ${TOKEN} session: { type: 'apiKey', in: 'cookie', name: 'session' } },`;
const NOTES = `export default class NoteController {
  static operations = {
    'GET user': { access: 'user' },
    'GET both': { access: ['user', 'application'] },
    'GET caller': { access: 'caller' },
    'GET scope': { access: { scope: 'notes' } },
    'GET function': { access: () => true },
    'GET mine': { access: ['user', () => true] },
    'GET twice': { access: ['user', 'caller'] },
    'GET anyone': { access: 'anyone' },
  };
  'GET user'(): void {}
  'GET both'(): void {}
  'GET caller'(): void {}
  'GET scope'(): void {}
  'GET function'(): void {}
  'GET mine'(): void {}
  'GET twice'(): void {}
  'GET anyone'(): void {}
  'GET {id}'(): void {}
}`;
/** A folder with a service file. `Problem` is the body that its formatError may make. */
export const serviceFolder = (
  options: string,
  controllers: Readonly<Record<string, string>> = { 'NoteController.ts': NOTES },
) => ({
  'service.ts': `import { defineService, ErrorReply as Formatted } from '${GATEFOLD}';
    import type { ErrorReply } from 'gatefold';
    import type { Problem } from './problem.ts';
    export default defineService({ ${options} });`,
  'problem.ts': `/** A problem. */
    export interface Problem { title: string; causes: Cause[] }
    interface Cause { at: string }`,
  'TagController.mjs': 'export default { index() {}, find() {} };',
  ...controllers,
});

export interface DocumentFolder {
  readonly files: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  /** The lines of the document. A line with four more spaces belongs to the line before. */
  readonly lines: string;
  /** The lines about errors. */
  readonly ends: readonly string[];
}

const answersOf = (content: string, texts: Readonly<Record<string, string>>) =>
  Object.entries(texts).map(([name, text]) => `answer ${name}: ${text}, ${content}`);
const TEXTS = {
  Refused: 'Refused, or failed',
  InvalidData: 'The data is not valid: errors names each wrong field',
  CredentialRequired: 'The credential is missing or not valid',
  UserRequired: 'No user is signed in, or the credential is missing or not valid',
  ScopeMissing: 'The credential lacks a scope that the operation requires',
  PreconditionFailed: 'The entity tag of If-Match is not the current one',
  PreconditionRequired: 'The header If-Match is required',
  AccessDenied: 'The caller may not call the operation',
};
const FORMAT = 'The service formats its errors itself, and may send another status';
/** The answers of a service whose formatError makes the bodies. */
const CUSTOM = { ...TEXTS, Refused: `Refused, or failed. ${FORMAT}`, InvalidData: `The data is not valid. ${FORMAT}` };
const KEY =
  'scheme application {"type":"http","scheme":"bearer","description":"The credential of a registered application"}';
/** The lines of a service without formatError. */
const ENVELOPE = [
  'schema Error { status: any {"const":"error"}, error_code: string {"examples":["GROUP_NOT_FOUND"]}, message: string, ' +
    'timestamp: integer {"description":"Unix time in seconds."}, ' +
    'request_id: string {"description":"The id of the request in the log of the service."}, errors?: FieldError[] } ' +
    '{"description":"Every error has this shape."}',
  'schema FieldError { in?: any {"enum":["body","query","path","header"]}, ' +
    'pointer: string {"description":"A JSON pointer (RFC 6901); empty: the part itself."}, message: string, ' +
    'code?: string {"description":"The keyword of JSON Schema that the value breaks.","examples":["minLength"]}, ' +
    'params?: object {"description":"The values in the message.","examples":[{"limit":3}]} }',
  ...answersOf('json Error', TEXTS),
];

export const DOCUMENTS: Readonly<Record<string, DocumentFolder>> = {
  operations: {
    files: {
      ...{ 'OrderController.ts': ORDER, 'BareItemController.ts': BARE, 'RouteController.ts': ROUTES },
      'OneController.mjs': `export default class {
        static operations = { hello: { status: 202 } }; 'GET {id}'(data) {} hello() {} }`,
    },
    ends: ENVELOPE,
    lines: `
      servers [{"url":"/"}]; security nothing | application
      tag bareItem Methods without a pattern: All of them.
      tag one
      tag order The orders. of the shop.
      tag route
      get /api/bareItem bareItem_GET; {"summary":"Ends here"}; query query: (Either | { c: integer })
          {"style":"form","explode":true}; ok; 422 InvalidData
      head /api/bareItem bareItem_HEAD; ok
      post /api/bareItem bareItem_POST; body application/octet-stream bytes; ok; 422 InvalidData
      put /api/bareItem bareItem_PUT; body multipart/form-data { cover: file, page?: integer }; ok; 422 InvalidData
      patch /api/bareItem bareItem_PATCH; body multipart/form-data { level: { items: { file: file }[] }[] }; ok; 422
          InvalidData
      delete /api/bareItem bareItem_DELETE; ok
      options /api/bareItem bareItem_OPTIONS; ok
      patch /api/bareItem/all bareItem_PATCH_all; body(false) multipart/form-data object
          {"additionalProperties":{"type":"string","contentMediaType":"application/octet-stream","format":"binary"}}; ok; 422
          InvalidData
      patch /api/bareItem/none bareItem_PATCH_none; body multipart/form-data { none: string,null
          {"contentMediaType":"application/octet-stream","format":"binary"} }; ok; 422 InvalidData
      post /api/bareItem/find bareItem_find; ok
      get /api/one/{id} one_GET_by_id; path id: string; 200 OK, json any
      post /api/one/hello one_hello; 202 Accepted, json any
      get /api/order order_index; {"summary":"A list","description":"of orders.","deprecated":true}; query page:
          integer {"description":"Counts from 1.","deprecated":true}; query sort?: string; query dryRun?: boolean
          {"description":"Tries."}; 200 OK, json string[]; 422 InvalidData
      post /api/order order_created; body json { page: integer }; 200 OK, json { n: integer }; 422 InvalidData
      put /api/order order_red; body(false) json { page: integer }; 200 OK, json any; 422 InvalidData
      patch /api/order order_patch; body(false) json { page?: integer }; ok; 422 InvalidData
      delete /api/order order_deleted; {"summary":"Removes it"}; 202 Accepted, json Success
      options /api/order order_options; ok
      get /api/order/hello order_hello; 200 OK, json ({ data: boolean } | Success)
      post /api/order/find order_find; body(undefined) json any; 200 OK, json ({ data: string } | Success)
      put /api/order/updated order_updated; body(undefined) json any; ok
      get /api/order/scoped order_scoped; ok; 401 CredentialRequired; 403 ScopeMissing; security
          application(orders:write)
      get /api/order/keyed order_keyed; ok; 401 CredentialRequired; security application
      get /api/route/{id}/items/{item} route_GET_by_id_items_by_item; path id: integer; path item: string; ok; 422
          InvalidData
      put /api/route/files/{path} route_PUT_files_by_file; path path: string; ok
      x-put-rest /api/route/files/{path} route_PUT_files_by_path; path path: string; ok
      post /api/route/files/{path} route_POST_files_by_file; path path: string; ok
      x-post-rest /api/route/files/{path} route_POST_files_by_path; path path: string; ok
      get /api/route/export.csv route_GET_export_csv; query a?: string; ok; 422 InvalidData
      get /api/route/{id}.pdf route_GET_by_id_pdf; path id: string; ok
      get /api/route/a.b route_GET_a_b; ok
      get /api/route/a_b route_GET_a_b_2; query query?: object
          {"additionalProperties":{"anyOf":[{"type":"string"},{"type":"number"}]}} {"style":"form","explode":true}; query
          page?: integer; ok; 422 InvalidData
      get /api/route/{id} route_GET_by_id; path id: string; ok
      delete /api/route/{id} route_DELETE_by_order; path id: integer; 204 No Content; 422 InvalidData
      put /api/route/{id} route_PUT_by_id; path id: integer {"description":"The number."}; header if-match?: string
          {"description":"The entity tag of what the client has read."}; body json { a: string }; ok; 412
          PreconditionFailed; 422 InvalidData; 428 PreconditionRequired
      patch /api/route/{id} route_PATCH_by_id; path id: integer {"description":"The number."}; header if-match?:
          string {"description":"The entity tag of what the client has read."}; body json { a: string }; ok; 412
          PreconditionFailed; 422 InvalidData
      put /api/route route_PUT; body image/* bytes; ok; 422 InvalidData
      patch /api/route route_PATCH; body application/x-www-form-urlencoded { a: string }; ok; 422 InvalidData
      post /api/route/lines route_POST_lines; body json { a: string }, text/csv bytes; ok; 422 InvalidData
      post /api/route/stream route_POST_stream; body application/octet-stream bytes; ok; 422 InvalidData
      put /api/route/stream route_PUT_stream; body json bytes; ok; 422 InvalidData
      post /api/route/tree route_POST_tree; body(false) json Tree; ok; 422 InvalidData
      post /api/route/number route_POST_number; body json integer; ok; 422 InvalidData
      put /api/route/none route_PUT_none; ok
      post /api/route/hello route_hello; ok
      post /api/route/updated route_updated; ok
      schema Either ({ a: string } | { b: integer })
      schema Tree { a?: Tree, b?: Tree, c?: Tree, d?: Tree, e?: Tree, f?: Tree }`,
  },
  'two groups with types of the same names': {
    files: SCHEMAS,
    ends: ENVELOPE,
    lines: `
      servers [{"url":"/"}]; security nothing | application
      tag a
      tag b
      get /api/a a_index; 200 OK, json a.User
      post /api/a a_created; body json { shared: Shared, list: a.List }; ok; 422 InvalidData
      put /api/a a_red; body multipart/form-data Plain; ok; 422 InvalidData
      get /api/b b_index; 200 OK, json b.User
      post /api/b b_created; body json { shared: Shared }; ok; 422 InvalidData
      schema Choice string {"enum":["a","b"]}
      schema Doc file
      schema Flag boolean {"const":true}
      schema Mixed any {"enum":[1,"a"]}
      schema One number {"const":1}
      schema Plain { b: Choice, one: One, mixed: Mixed, flag: Flag, file: Doc }
      schema Shared { a: string, next?: Shared }
      schema a.Error { why: string }
      schema a.Id { at: string }
      schema a.List { errors: a.Error[] }
      schema a.User { id: a.Id }
      schema b.Id { at: integer }
      schema b.User { id: b.Id }`,
  },
  'results and schemas of a library': {
    files: { 'XController.ts': RESULTS },
    env: { BASE_PATH: '/v1' },
    ends: ENVELOPE,
    lines: `
      servers [{"url":"/v1"}]; security nothing | application
      tag x
      get /x x_GET; header idempotency-key?: string {"minLength":2} {"description":"The key."}; header x-count:
          integer; 200 OK, json User[]; 422 InvalidData
      get /x/some x_GET_some; query at: string {"format":"date-time"}; query name: string; query length?: any; ok; 422
          InvalidData
      put /x/{id} x_PUT_by_id; path id: integer; body json User; 200 OK, json User; 422 InvalidData
      post /x/events x_events; 200 OK, text/event-stream string
          {"contentMediaType":"application/json","contentSchema":{"$ref":"#/components/schemas/User"}}
      post /x/maybe x_maybe; 200 OK, json (User | Success)
      post /x/bytes x_bytes; 200 OK, */* bytes
      post /x/both x_both; 200 OK, json (User | { queued: integer }); 202 Accepted; 204 No Content; 299 Done, json any
      post /x/library x_library; body json { at: string {"format":"date-time"}, name: string, length?: any }; 200 OK,
          json { at: string {"format":"date-time"}, name: string, length?: any }; 422 InvalidData
      post /x/broken x_broken; body json any; ok; 422 InvalidData
      post /x/plain x_plain; body json any; ok; 422 InvalidData
      post /x/dated x_dated; body json { at: string {"format":"date-time"}, name: string, length?: any }; ok; 422
          InvalidData
      post /x/scalar x_scalar; 200 OK, json (({ data: string } | array) | Success)
      post /x/closed x_closed; 200 OK, json { id?: Id, additionalProperties?: string
          {"default":{"additionalProperties":false},"const":"a"} }
      post /x/literal x_literal; 200 OK, json (({ data: string {"enum":["a","b"]} } | { data: number {"const":7} } | {
          data: Name } | { data: boolean {"const":true} }) | Success)
      post /x/untyped x_untyped; 200 OK, json any
      schema Id { n?: integer }
      schema Name string,null
      schema User { id: integer, name: string }`,
  },
  'users and a media type of errors': {
    files: serviceFolder(`${USERS} ${SCHEMES} formatError({ status, message }): ErrorReply<Problem> {
      return new Formatted(status, { title: message, causes: [] }, { 'Content-Type': 'application/Problem+json; a=b' });
    },`),
    ends: answersOf('application/problem+json Problem', CUSTOM),
    lines: `
      servers [{"url":"/"}]; security nothing | application | token | session
      tag note
      tag tag
      get /api/note/user note_GET_user; ok; 401 UserRequired; security token | session
      get /api/note/both note_GET_both; ok; 401 UserRequired; security token + application | session + application
      get /api/note/caller note_GET_caller; ok; 401 UserRequired; security token | session | application
      get /api/note/scope note_GET_scope; ok; 401 CredentialRequired; 403 ScopeMissing; security application(notes)
      get /api/note/function note_GET_function; ok; 403 AccessDenied
      get /api/note/mine note_GET_mine; ok; 401 UserRequired; 403 AccessDenied; security token | session
      get /api/note/twice note_GET_twice; ok; 401 UserRequired; security token | session
      get /api/note/anyone note_GET_anyone; ok
      get /api/note/{id} note_GET_by_id; path id: string; ok
      get /api/tag tag_index; 200 OK, json any
      get /api/tag/find tag_find; 200 OK, json any
      schema Cause { at: string }
      schema Problem { title: string, causes: Cause[] } {"description":"A problem."}
      scheme token {"type":"apiKey","in":"header","name":"Authorization","description":"Token …"}
      scheme session {"type":"apiKey","in":"cookie","name":"session"}`,
  },
  'access for all operations, and a header for keys': {
    files: serviceFolder(
      `${USERS} securitySchemes: { ${TOKEN} }, access: 'user', keyHeader: 'X-Api-Key', strict: true,`,
    ),
    ends: ENVELOPE,
    lines: `
      servers [{"url":"/"}]; security nothing | application | applicationKey | token
      tag note
      tag tag
      get /api/note/user note_GET_user; ok; 401 UserRequired; security token
      get /api/note/both note_GET_both; ok; 401 UserRequired; security token + application | token + applicationKey
      get /api/note/caller note_GET_caller; ok; 401 UserRequired; security token | application | applicationKey
      get /api/note/scope note_GET_scope; ok; 401 CredentialRequired; 403 ScopeMissing; security application(notes) |
          applicationKey(notes)
      get /api/note/function note_GET_function; ok; 403 AccessDenied
      get /api/note/mine note_GET_mine; ok; 401 UserRequired; 403 AccessDenied; security token
      get /api/note/twice note_GET_twice; ok; 401 UserRequired; security token
      get /api/note/anyone note_GET_anyone; ok
      get /api/note/{id} note_GET_by_id; path id: string; ok; 401 UserRequired; security token
      get /api/tag tag_index; 200 OK, json any; 401 UserRequired; security token
      post /api/tag/find tag_find; 200 OK, json any; 401 UserRequired; security token
      scheme applicationKey {"type":"apiKey","in":"header","name":"x-api-key","description":"The credential of a
          registered application, in a header of its own"}
      scheme token {"type":"apiKey","in":"header","name":"Authorization","description":"Token …"}`,
  },
  'users without schemes': {
    files: serviceFolder(`${USERS} formatError: ({ message }): Problem => ({ title: message, causes: [] }),`),
    ends: answersOf('json Problem', CUSTOM),
    lines: `
      servers [{"url":"/"}]; security nothing | application
      tag note
      tag tag
      get /api/note/user note_GET_user; ok; 401 UserRequired
      get /api/note/both note_GET_both; ok; 401 UserRequired; security application
      get /api/note/caller note_GET_caller; ok; 401 UserRequired; security application
      get /api/note/scope note_GET_scope; ok; 401 CredentialRequired; 403 ScopeMissing; security application(notes)
      get /api/note/function note_GET_function; ok; 403 AccessDenied
      get /api/note/mine note_GET_mine; ok; 401 UserRequired; 403 AccessDenied
      get /api/note/twice note_GET_twice; ok; 401 UserRequired
      get /api/note/anyone note_GET_anyone; ok
      get /api/note/{id} note_GET_by_id; path id: string; ok
      get /api/tag tag_index; 200 OK, json any
      get /api/tag/find tag_find; 200 OK, json any
      schema Cause { at: string }
      schema Problem { title: string, causes: Cause[] } {"description":"A problem."}`,
  },
  'formatError without a type, a root group and folders': {
    files: serviceFolder(`${SCHEMES} folders: true, formatError: ({ message }) => ({ title: message }),`, {
      'Controller.mjs': "export default { 'GET'() {}, created() {} };",
      'a1/XController.mjs': 'export default { index() {} };',
    }),
    env: { BASE_PATH: '/' },
    ends: answersOf('json any', CUSTOM),
    lines: `
      servers [{"url":"/"}]; security nothing | application
      tag /
      tag a1/x
      tag tag
      get / root_GET; 200 OK, json any
      post / root_created; 200 OK, json any
      get /a1/x a1_x_index; 200 OK, json any
      get /tag tag_index; 200 OK, json any
      get /tag/find tag_find; 200 OK, json any
      scheme token {"type":"apiKey","in":"header","name":"Authorization","description":"Token …"}
      scheme session {"type":"apiKey","in":"cookie","name":"session"}`,
  },
};

interface Schema {
  readonly [keyword: string]: unknown;
  readonly $ref?: string;
  readonly type?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
}
interface Answer {
  readonly $ref?: string;
  readonly description: string;
  readonly content?: Content;
}
type Content = Readonly<Record<string, { readonly schema: Schema }>>;
interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly {
    readonly in: string;
    readonly name: string;
    readonly required?: true;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, Answer>>;
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
}

export function documentPath({ env = {} }: DocumentFolder): string {
  return `${(env.BASE_PATH ?? '/api').replace(/\/$/, '')}/openapi.json`;
}

/** Writes each fact of a document in a line that a person can read. */
export function linesOf(text: string): string[] {
  const { openapi, info, servers, security, tags, paths, components, ...others } = JSON.parse(text);
  const { schemas, responses, securitySchemes, ...otherComponents } = components;
  assert.deepEqual([openapi, info.version, others, otherComponents], ['3.1.0', '0.0.0', {}, {}]);
  const each = <Value>(
    values: Readonly<Record<string, Value>>,
    write: (name: string, value: Value) => string | string[],
  ) => Object.entries(values).flatMap(([name, value]) => write(name, value));
  return [
    `servers ${JSON.stringify(servers)}; security ${securityText(security)}`,
    ...tags.map(({ name, description }: Record<string, string>) => `tag ${name} ${description ?? ''}`.trim()),
    ...each<Record<string, Operation>>(paths, (path, verbs) =>
      each(verbs, (verb, operation) => `${verb} ${path} ${operationText(operation)}`),
    ),
    ...each<Schema>(schemas, (name, schema) => `schema ${name} ${schemaText(schema)}`),
    ...each<Answer>(responses, (name, answer) => `answer ${name}: ${answerText(answer)}`),
    ...each(securitySchemes, (name, scheme) => `scheme ${name} ${JSON.stringify(scheme)}`),
  ];
}

function operationText({
  operationId,
  tags,
  parameters,
  requestBody,
  responses,
  security,
  ...texts
}: Operation): string {
  const [tag = '', ...otherTags] = tags;
  assert.deepEqual(otherTags, []);
  assert.ok(operationId.startsWith(`${tag === '/' ? 'root' : tag.replace('/', '_')}_`), operationId);
  const { default: refused, ...answers } = responses;
  assert.deepEqual(refused, { $ref: '#/components/responses/Refused' });
  const { required, content } = requestBody ?? {};
  assert.notDeepEqual(parameters, []);
  return [
    operationId,
    ...(isDeepStrictEqual(texts, {}) ? [] : [JSON.stringify(texts)]),
    ...(parameters ?? []).map(
      ({ in: place, name, required = '?', schema, ...rest }) =>
        `${place} ${name}${required === true ? '' : required}: ${schemaText(schema)}${restText(rest)}`,
    ),
    ...(content === undefined ? [] : [`body${required === true ? '' : `(${required})`} ${contentText(content)}`]),
    ...Object.entries(answers).map(([status, answer]) => `${status} ${answerText(answer)}`),
    ...(security === undefined ? [] : [`security ${securityText(security)}`]),
  ]
    .join('; ')
    .replace('200 OK, json Success', 'ok');
}

/** Writes alternatives, each with the schemes that it needs together and their scopes: `token + key(read) | key`. */
function securityText(alternatives: NonNullable<Operation['security']>): string {
  const schemeText = ([name, scopes]: [string, readonly string[]]) =>
    scopes.length === 0 ? name : `${name}(${scopes})`;
  return alternatives.map((schemes) => Object.entries(schemes).map(schemeText).join(' + ') || 'nothing').join(' | ');
}

function answerText({ $ref, description, content, ...rest }: Answer): string {
  assert.deepEqual(rest, {});
  if ($ref !== undefined) return $ref.replace('#/components/responses/', '');
  return content === undefined ? description : `${description}, ${contentText(content)}`;
}

function contentText(content: Content): string {
  return Object.entries(content)
    .map(([type, { schema }]) => `${type.replace(/^application\/json$/, 'json')} ${schemaText(schema)}`)
    .join(', ');
}

const SUCCESS = {
  type: 'object',
  properties: {
    status: { type: 'string', const: 'success' },
    message: { type: 'string' },
    timestamp: { type: 'integer' },
  },
  required: ['status', 'message', 'timestamp'],
};
const BYTES = { type: 'string', format: 'binary' };
const FILE = { ...BYTES, contentMediaType: 'application/octet-stream' };

function schemaText(schema: Schema): string {
  for (const [name, known] of Object.entries({ Success: SUCCESS, bytes: BYTES, file: FILE }))
    if (isDeepStrictEqual(schema, known)) return name;
  const { $ref, type = 'any', properties, required = [], items, anyOf, ...rest } = schema;
  assert.equal(type, $ref || anyOf ? 'any' : properties ? 'object' : items ? 'array' : type);
  if ($ref !== undefined) return $ref.replace('#/components/schemas/', '') + restText(rest);
  if (anyOf !== undefined) return `(${anyOf.map(schemaText).join(' | ')})${restText(rest)}`;
  if (items !== undefined) return `${schemaText(items)}[]${restText(rest)}`;
  if (properties === undefined) return type + restText(rest);
  const fields = Object.entries(properties).map(
    ([name, field]) => `${name}${required.includes(name) ? '' : '?'}: ${schemaText(field)}`,
  );
  return `{ ${fields.join(', ')} }${restText(rest)}`;
}

const restText = (rest: object) => (isDeepStrictEqual(rest, {}) ? '' : ` ${JSON.stringify(rest)}`);

/** All lines of a document that the table has. The schemes of a service file come last. */
export function expectedLines({ lines, ends }: DocumentFolder): string[] {
  const own = lines
    .trim()
    .split(/\n {6}(?! )/)
    .map((line) => line.replaceAll(/\s+/g, ' '));
  const isScheme = (line: string) => line.startsWith('scheme ');
  return [...own.filter((line) => !isScheme(line)), ...ends, KEY, ...own.filter(isScheme)];
}
