// The document says what answers hold: the envelope of an empty result, the events of a stream, the precondition of
// `ifMatch`, headers. The schema of a library loses only the place that JSON Schema cannot express.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { createDocument } from '../../src/documents/openapi.ts';
import { createGroups } from '../../src/live/load/registry.ts';
import { GATEFOLD } from '../support/service.ts';

const CONTROLLER = `import { ifMatch } from '${GATEFOLD}';
import type { ControllerParams, EventStream, Int, Reply } from 'gatefold';
interface User { id: Int; name: string }
/** A schema as of zod 4: JSON Schema has no transform, and no date. */
const zod = (lacking: string[]) => ({ '~standard': { version: 1, vendor: 'zod', validate: (value: unknown) => ({ value }), jsonSchema: { input: input.bind(null, lacking), output: input.bind(null, lacking) } } });
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
    library: { body: schema, result: schema },
    broken: { body: broken },
    dated: { body: zod(['unknown']) },
  };
  'GET'(data: unknown, params: ControllerParams<{ headers: { /** The key. @minLength 2 */ 'idempotency-key'?: string; 'x-count': Int } }>): User[] { return []; }
  'PUT {id}'(data: User, params: ControllerParams<{ path: { id: number } }>): Promise<User> { ifMatch(params, '"1"', { required: true }); return data as never; }
  'PATCH {id}'(data: User, params: ControllerParams<{ path: { id: Int } }>): Promise<User> { ifMatch(params, '"1"'); return data as never; }
  'DELETE {id}'(data: unknown, params: ControllerParams<{ path: { id: Int } }>): void {}
  events(): EventStream<User> { return undefined as never; }
  maybe(): User | null { return null; }
  flag(): boolean { return true; }
  both(): User | Reply<200, { queued: Int }> | Reply<202, undefined> | Reply<204> { return undefined as never; }
  library(data: unknown) {}
  broken(data: unknown): void {}
  dated(data: unknown): void {}
  untyped() { return {}; }
}
`;
const SUCCESS = {
  type: 'object',
  properties: {
    status: { type: 'string', const: 'success' },
    message: { type: 'string' },
    timestamp: { type: 'integer' },
  },
  required: ['status', 'message', 'timestamp'],
};
const USER = { $ref: '#/components/schemas/User' };

interface Described {
  readonly parameters?: readonly Readonly<Record<string, unknown>>[];
  readonly requestBody?: unknown;
  readonly responses: Readonly<Record<string, unknown>>;
}

let paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
let undocumented: readonly unknown[] | undefined;
before(async () => {
  const dir = mkdtempSync(join(tmpdir(), 'gatefold-document-'));
  writeFileSync(join(dir, 'XController.ts'), CONTROLLER);
  const log = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
  const groups = createGroups({ dir, log, reportsOperations: true });
  const [load] = await groups.loadAll({ skip: new Map(), onLoading: () => {} });
  assert.equal(load?.error, undefined);
  undocumented = load?.notes?.flatMap(({ event, reason }) => (event === 'operation-undocumented' ? [reason] : []));
  ({ paths } = JSON.parse(JSON.stringify(createDocument(await groups.all(), { title: 'x', version: '1' }))));
  rmSync(dir, { recursive: true });
});

const at = (path: string, verb = 'post'): Described => paths[`/api/x${path}`]?.[verb] as Described;
const json = (schema: unknown) => ({ 'application/json': { schema } });
const contentOf = ({ responses }: Described, status: number) =>
  (responses[status] as { content?: unknown } | undefined)?.content;

describe('the document has', () => {
  test('declared headers', () =>
    assert.deepEqual(at('', 'get').parameters, [
      { name: 'idempotency-key', in: 'header', description: 'The key.', schema: { type: 'string', minLength: 2 } },
      { name: 'x-count', in: 'header', required: true, schema: { type: 'integer' } },
    ]));
  test('422 for headers', () => assert.ok('422' in at('', 'get').responses));
  test('the schema of a path', () => assert.deepEqual(at('/{id}', 'put').parameters?.[0]?.schema, { type: 'integer' }));

  test('412 and 428 with the header for ifMatch that is required', () => {
    const { parameters, responses } = at('/{id}', 'put');
    assert.deepEqual(Object.keys(responses), ['200', '412', '422', '428', 'default']);
    assert.equal(parameters?.at(-1)?.name, 'if-match');
  });
  test('412 alone for ifMatch that is not required', () =>
    assert.deepEqual(Object.keys(at('/{id}', 'patch').responses), ['200', '412', '422', 'default']));
  test('neither without ifMatch', () =>
    assert.deepEqual(Object.keys(at('/{id}', 'delete').responses), ['200', '422', 'default']));

  const rows: [name: string, operation: () => Described, status: number, content: unknown][] = [
    ['the envelope for void', () => at('/{id}', 'delete'), 200, json(SUCCESS)],
    ['the envelope beside a type for null', () => at('/maybe'), 200, json({ anyOf: [USER, SUCCESS] })],
    [
      'the envelope beside a boolean, for true',
      () => at('/flag'),
      200,
      json({ anyOf: [{ type: 'object', properties: { data: { type: 'boolean' } }, required: ['data'] }, SUCCESS] }),
    ],
    [
      'the item of an event stream',
      () => at('/events'),
      200,
      {
        'text/event-stream': { schema: { type: 'string', contentMediaType: 'application/json', contentSchema: USER } },
      },
    ],
    [
      'all types of one status',
      () => at('/both'),
      200,
      json({ anyOf: [USER, { type: 'object', properties: { queued: { type: 'integer' } }, required: ['queued'] }] }),
    ],
    ['no body for a Reply of undefined', () => at('/both'), 202, undefined],
    ['no body for 204', () => at('/both'), 204, undefined],
    [
      'the schema of a library without the place that is no JSON Schema',
      () => at('/library'),
      200,
      json({
        type: 'object',
        properties: { at: { type: 'string', format: 'date-time' }, name: { type: 'string' }, length: {} },
        required: ['at', 'name'],
      }),
    ],
  ];
  for (const [name, operation, status, content] of rows)
    test(name, () => assert.deepEqual(contentOf(operation(), status), content));
});

test('the load names what is not documented', () =>
  assert.deepEqual(undocumented, [
    'library: its schema has no JSON Schema in one place (result: transform; body: transform)',
    'broken: its schema has no JSON Schema in one place (body: no)',
    'untyped: its result has no type in the source, so it is unknown: annotate it',
  ]));
