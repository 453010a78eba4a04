// GET /api/openapi.json and GET /api/docs over a socket: the document of real controllers, which is made again only
// when they change. Also the setting DOCS, and `gatefold openapi`, which prints the same document.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { startTest, type TestApi } from '../../src/api/testing.ts';
import { runCommand } from '../../src/operate/cli/command.ts';
import { command } from '../../src/operate/cli/openapi.ts';
import { makeProject, runHere } from '../support/command-bench.ts';

interface Operation {
  readonly operationId: string;
  readonly summary?: string;
  readonly parameters?: readonly { readonly name: string; readonly schema: object; readonly required?: boolean }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object }>> };
  readonly responses: Readonly<Record<string, object>>;
  readonly security?: readonly object[];
}

interface Document {
  readonly openapi: string;
  readonly info: { readonly title: string };
  readonly tags: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
}

const BOOKSHOP = join(import.meta.dirname, 'bookshop');
const read = async (api: TestApi) => (await (await api.fetch('/openapi.json')).json()) as Document;

describe('the document of the bookshop', () => {
  let document: Document;
  let api: TestApi;
  const at = (path: string, verb: string) => document.paths[path]?.[verb] as Operation;

  test('is OpenAPI 3.1 with every operation that is not hidden', async () => {
    api = await startTest({ controllers: BOOKSHOP });
    document = await read(api);
    assert.equal(document.openapi, '3.1.0');
    assert.equal(Object.values(document.paths).flatMap(Object.keys).length, 24);
    assert.equal(document.paths['/api/book/rebuild'], undefined);
    assert.deepEqual(
      document.tags.map(({ name }) => name),
      ['book', 'customer', 'order', 'report', 'session'],
    );
    assert.match(document.tags[0]?.description ?? '', /^The catalogue/);
  });
  after(() => api?.close());

  test('has the parameters, bodies and statuses of the types in the source', () => {
    const index = at('/api/book', 'get');
    assert.equal(index.summary, 'Books, a page at a time');
    assert.deepEqual(
      index.parameters?.map(({ name, required = false }) => [name, required]),
      ['page', 'size', 'genre', 'sort', 'tag'].map((name) => [name, false]),
    );
    assert.deepEqual(index.parameters?.[1]?.schema, { type: 'integer', minimum: 1, maximum: 100, default: 20 });
    assert.deepEqual(at('/api/book', 'post').requestBody?.content, {
      'application/json': { schema: { $ref: '#/components/schemas/NewBook' } },
    });
    assert.deepEqual(Object.keys(at('/api/book', 'post').responses), ['201', '422', 'default']);
    assert.deepEqual(
      at('/api/order/{id}/items/{line}', 'put').parameters?.map(({ schema }) => schema),
      [{ type: 'integer' }, { type: 'integer' }],
    );
    assert.deepEqual(
      at('/api/order/{id}', 'delete').parameters?.map(({ name }) => name),
      ['id'],
    );
  });

  test('has forms, bytes, streams and security requirements', () => {
    const typeOf = (operation: Operation) => Object.keys(operation.requestBody?.content ?? {});
    assert.deepEqual(typeOf(at('/api/book/{id}/scans', 'post')), ['multipart/form-data']);
    assert.deepEqual(typeOf(at('/api/book/{id}/cover', 'put')), ['image/*']);
    assert.deepEqual(at('/api/book/{id}', 'delete').security, [{ application: ['books:write'] }]);
    assert.deepEqual(at('/api/report', 'get').security, [{ application: [] }]);
    assert.ok('content' in (at('/api/order/events', 'post').responses[200] ?? {}));
  });

  test('is sent to GET and HEAD with ETag, 304 and CORS; POST is 404', async () => {
    const first = await api.fetch('/openapi.json');
    const etag = first.headers.get('etag') ?? '';
    assert.match(etag, /^"[\w-]+"$/);
    assert.equal(first.headers.get('content-type'), 'application/json; charset=UTF-8');
    assert.equal(first.headers.get('access-control-allow-origin'), '*');
    assert.equal((await api.fetch('/openapi.json', { headers: { 'If-None-Match': etag } })).status, 304);
    assert.equal((await api.fetch('/openapi.json', { method: 'HEAD' })).headers.get('etag'), etag);
    assert.equal((await api.fetch('/openapi.json', { method: 'POST' })).status, 404);
  });

  test('equals the output of gatefold openapi', async () => {
    const { code, out, err } = await runHere(
      (argv, io) => runCommand(command, argv, io),
      ['--controllers-dir', BOOKSHOP],
      {
        cwd: join(BOOKSHOP, '..'),
      },
    );
    assert.equal(err, '');
    assert.equal(code, 0);
    assert.deepEqual(JSON.parse(out), document);
  });
});

test('a new group is in the document at the next request', async () => {
  const controllers = mkdtempSync(join(tmpdir(), 'gatefold-docs-'));
  writeFileSync(join(controllers, 'AController.mjs'), 'export default { index() {} };');
  const api = await startTest({ controllers });
  try {
    assert.deepEqual(Object.keys((await read(api)).paths), ['/api/a']);
    writeFileSync(join(controllers, 'BController.mjs'), 'export default { index() {} };');
    assert.deepEqual(Object.keys((await read(api)).paths), ['/api/a', '/api/b']);
  } finally {
    await api.close();
    rmSync(controllers, { recursive: true });
  }
});

test('the document and the docs page contain nothing that only hidden operations use', async (t) => {
  const cwd = makeProject(t, {
    'controllers/OrderController.ts': `
      /** A code of an order. @minLength 2 */ type Code = string;
      interface Order { n: number; code: Code }
      /** The master key of the warehouse. */
      interface SecretPayload { /** Thirty-seven percent. */ secretDiscount: number; code: Code; next?: SecretPayload }
      export default class OrderController {
        static operations = { danger: { hidden: true } };
        created(data: Order): Order[] { return [data]; }
        danger(data: SecretPayload): SecretPayload { return data; }
      }`,
    'controllers/BackOfficeController.ts': `
      interface SecretList { secretField: SecretEntry[] }
      interface SecretEntry { a: string }
      /** Secret summary of the group. */
      export default class BackOfficeController {
        static operations = { '*': { hidden: true } };
        created(data: SecretList) { return data; }
      }`,
  });
  const api = await startTest({ controllers: join(cwd, 'controllers') });
  try {
    const text = await (await api.fetch('/openapi.json')).text();
    assert.doesNotMatch(text, /secret|master key|thirty-seven|danger|backOffice/i);
    assert.deepEqual(Object.keys((JSON.parse(text) as Document).components.schemas), [
      'Code',
      'Order',
      'Error',
      'FieldError',
    ]);
    const printed = await runHere((argv, io) => runCommand(command, argv, io), ['--json'], { cwd });
    assert.deepEqual(JSON.parse(printed.out), JSON.parse(text));
    assert.doesNotMatch(await (await api.fetch('/docs')).text(), /SecretPayload|danger/);
  } finally {
    await api.close();
  }
});

test('gatefold openapi reports a controller that does not load, and exits with 1', async (t) => {
  const cwd = makeProject(t, {
    'controllers/AController.mjs': 'export default { index() {} };',
    'controllers/BController.mjs': 'export default {',
  });
  const { code, out, err } = await runHere((argv, io) => runCommand(command, argv, io), ['--json'], { cwd });
  assert.equal(code, 1);
  assert.match(err, /controllers\/BController\.mjs.* does not load and is not in the document/);
  assert.deepEqual(Object.keys((JSON.parse(out) as Document).paths), ['/api/a']);
});

describe('the setting DOCS', () => {
  const row = (name: string, run: (api: TestApi) => Promise<void>, DOCS?: string) =>
    test(name, async () => {
      const api = await startTest({ controllers: BOOKSHOP, env: DOCS === undefined ? {} : { DOCS } });
      try {
        await run(api);
      } finally {
        await api.close();
      }
    });

  row('by default makes the page public, with a CSP that allows only its own script', async (api) => {
    const page = await api.fetch('/docs');
    assert.equal(page.status, 200);
    assert.equal(page.headers.get('content-type'), 'text/html; charset=UTF-8');
    assert.match(
      page.headers.get('content-security-policy') ?? '',
      /^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'; connect-src 'self'/,
    );
    assert.equal(
      (await api.fetch('/docs', { headers: { 'If-None-Match': page.headers.get('etag') ?? '' } })).status,
      304,
    );
    assert.match(await page.text(), /^<!doctype html>/);
  });

  row(
    'off makes the page and the document 404',
    async (api) => {
      for (const path of ['/docs', '/openapi.json']) {
        const answer = await api.fetch(path);
        assert.equal(answer.status, 404);
        assert.equal(((await answer.json()) as { error_code: string }).error_code, 'GROUP_NOT_FOUND');
      }
    },
    'off',
  );

  row(
    'application makes the page and the document need a credential',
    async (api) => {
      const refused = await api.fetch('/openapi.json');
      assert.deepEqual([refused.status, refused.headers.get('www-authenticate')], [401, 'Bearer']);
      assert.equal(((await refused.json()) as { error_code: string }).error_code, 'CREDENTIAL_REQUIRED');
      assert.equal((await api.fetch('/openapi.json', { headers: { Authorization: 'Basic x' } })).status, 401);
      const page = await api.fetch('/docs');
      assert.equal(page.status, 401);
      assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'/);
      assert.match(await page.text(), /^<!doctype html>/);
      const caller = api.as({ application: { name: 'tool' } });
      assert.equal((await caller.fetch('/openapi.json')).status, 200);
      assert.equal((await caller.fetch('/docs')).status, 200);
    },
    'application',
  );
});
