// GET /api/openapi.json and GET /api/docs over a socket: the document is made again only when controllers change. Also
// the setting DOCS, and `gatefold openapi`, which prints the same document. document.test.ts has its content.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { startTest, type TestApi } from '../../src/api/testing.ts';
import { createLog } from '../../src/base/log.ts';
import { createDocs } from '../../src/documents/docs-endpoints.ts';
import { createGroups } from '../../src/live/load/registry.ts';
import { runCommand } from '../../src/operate/cli/command.ts';
import { command } from '../../src/operate/cli/openapi.ts';
import { makeProject, runHere } from '../support/command-bench.ts';
import { serviceFolder } from '../support/document-table.ts';
import { createFolder } from '../support/folder.ts';
import { inspectHere } from '../support/inspection-here.ts';

interface Document {
  readonly info: object;
  readonly paths: object;
  readonly components: { readonly schemas: object };
}

const BOOKSHOP = join(import.meta.dirname, 'bookshop');
async function loadGroups() {
  const log = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
  return createGroups({ dir: BOOKSHOP, log }).all();
}
const read = async (api: TestApi) => (await (await api.fetch('/openapi.json')).json()) as Document;

describe('the document of the bookshop', () => {
  let api: TestApi;
  before(async () => {
    api = await startTest({ controllers: BOOKSHOP });
  });
  after(() => api?.close());

  test('is sent to GET and HEAD with ETag and 304; POST is 404', async () => {
    const first = await api.fetch('/openapi.json');
    const etag = first.headers.get('etag') ?? '';
    assert.match(etag, /^"[\w-]{27}"$/);
    assert.equal(first.headers.get('content-type'), 'application/json; charset=UTF-8');
    assert.equal(first.headers.get('cache-control'), 'no-cache');
    assert.equal((await api.fetch('/openapi.json', { headers: { 'If-None-Match': etag } })).status, 304);
    assert.equal((await api.fetch('/openapi.json', { method: 'HEAD' })).headers.get('etag'), etag);
    assert.equal((await api.fetch('/openapi.json', { method: 'POST' })).status, 404);
  });

  test('equals the output of gatefold openapi', async (t) => {
    inspectHere(t);
    const { code, out, err } = await runHere(
      (argv, io) => runCommand(command, argv, io),
      ['--controllers-dir', BOOKSHOP],
      {
        cwd: join(BOOKSHOP, '..'),
      },
    );
    assert.equal(err, '');
    assert.equal(code, 0);
    assert.deepEqual(JSON.parse(out), await read(api));
  });
});

test('the document is made again only when the groups have changed', async () => {
  const groups = [...(await loadGroups())];
  const docs = createDocs({
    ...{ access: 'on', groups: async () => [...groups], info: () => ({ title: 'x', version: '1' }), basePath: '/api' },
    ...{ service: () => undefined, readPage: () => '' },
  });
  const first = await docs.openapi(undefined, {});
  assert.equal(await docs.openapi(undefined, {}), first);
  groups.pop();
  assert.notEqual(await docs.openapi(undefined, {}), first);
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
  inspectHere(t);
  const cwd = makeProject(t, {
    'package.json': '{"type":"module","name":"shop","version":"1.2.3","description":"Sells."}',
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
    assert.deepEqual(JSON.parse(text).info, { title: 'shop', version: '1.2.3', description: 'Sells.' });
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
  inspectHere(t);
  const cwd = makeProject(t, {
    'package.json': '{"type":"module","name":" ","version":"","description":1}',
    'controllers/AController.mjs': 'export default { index() {} };',
    'controllers/BController.mjs': 'export default {',
  });
  const { code, out, err } = await runHere((argv, io) => runCommand(command, argv, io), ['--json'], { cwd });
  assert.equal(code, 1);
  assert.match(err, /controllers\/BController\.mjs.* does not load and is not in the document/);
  const { paths, info } = JSON.parse(out) as Document;
  assert.deepEqual([Object.keys(paths), info], [['/api/a'], { title: basename(cwd), version: '0.0.0' }]);
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
    const text = await page.text();
    const hashOf = (element: RegExp) =>
      createHash('sha256')
        .update(element.exec(text)?.[1] ?? '')
        .digest('base64');
    assert.equal(
      page.headers.get('content-security-policy'),
      `default-src 'none'; script-src 'sha256-${hashOf(/<script[^>]*>([\s\S]*?)<\/script>/)}'; ` +
        `style-src 'sha256-${hashOf(/<style[^>]*>([\s\S]*?)<\/style>/)}'; connect-src 'self'; img-src data: blob:; ` +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    assert.deepEqual(
      [page.headers.get('referrer-policy'), page.headers.get('cache-control')],
      ['no-referrer', 'no-cache'],
    );
    assert.equal(
      (await api.fetch('/docs', { headers: { 'If-None-Match': page.headers.get('etag') ?? '' } })).status,
      304,
    );
    assert.match(text, /^<!doctype html>/);
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
      assert.deepEqual(
        [page.headers.get('www-authenticate'), page.headers.get('cache-control')],
        ['Bearer', 'no-store'],
      );
      assert.match(await page.text(), /^<!doctype html>/);
      const caller = api.as({ application: { name: 'tool' } });
      assert.equal((await caller.fetch('/openapi.json')).status, 200);
      assert.equal((await caller.fetch('/docs')).status, 200);
    },
    'application',
  );
});

test('DOCS=application accepts a key in keyHeader, and the docs page names that header', async (t) => {
  const controllers = createFolder(t, serviceFolder("authenticate: () => undefined, keyHeader: 'X-Api-Key',"));
  const api = await startTest({ controllers, env: { DOCS: 'application' } });
  t.after(() => api.close());
  const key = await issueKey(api);
  const statusOf = async (headers: Record<string, string>) => (await api.fetch('/openapi.json', { headers })).status;
  assert.equal(await statusOf({}), 401);
  assert.equal(await statusOf({ 'x-api-key': 'nothing' }), 401);
  assert.equal(await statusOf({ 'x-api-key': key }), 200);
  assert.equal(await statusOf({ 'x-api-key': key, authorization: 'Token ann' }), 200);
  const page = await api.fetch('/docs');
  assert.equal(page.status, 401);
  assert.match(await page.text(), /id="caller" data-key-header="x-api-key"/);
});

/** `as` sends its own credential in Authorization. The test needs the same one as a text. */
async function issueKey(api: Awaited<ReturnType<typeof startTest>>): Promise<string> {
  const { fetch: real } = globalThis;
  let key = '';
  globalThis.fetch = async (url, init) => {
    key = new Headers(init?.headers).get('authorization')?.replace('Bearer ', '') ?? '';
    return real(url, init);
  };
  try {
    await api.as({ application: { name: 'tool' } }).fetch('/note/anyone');
  } finally {
    globalThis.fetch = real;
  }
  return key;
}
