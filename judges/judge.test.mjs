// Tools of other people read the OpenAPI document of the bookshop (test/documents/bookshop), which the built service
// serves: a linter, a generator of types with its client, another generator, and a page. Run: npm --prefix judges ci &&
// npm --prefix judges run judge
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { dirname, extname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';

const root = resolve(import.meta.dirname, '..');
const here = createRequire(import.meta.url);
const ours = createRequire(join(root, 'package.json'));
const run = promisify(execFile);
const bin = (name) => join(import.meta.dirname, 'node_modules/.bin', name);

let service;
let url;
let work;

before(async () => {
  // The output is in this folder, so that the generated code finds the packages that it imports.
  work = mkdtempSync(join(import.meta.dirname, 'work-'));
  writeFileSync(join(work, 'package.json'), '{ "type": "module" }');
  const env = {
    ...process.env,
    PORT: '0',
    LOG_LEVEL: 'warn',
    HOST: '127.0.0.1',
    WORKERS: '1',
    CONTROLLERS_DIR: join(root, 'test/documents/bookshop'),
    DATA_DIR: work,
  };
  service = spawn(process.execPath, [join(root, 'dist/server.js')], {
    env,
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface({ input: service.stdout })) {
    url = /http:\/\/\S+/.exec(line)?.[0];
    if (url !== undefined) break;
  }
  const document = await fetch(`${url}/api/openapi.json`);
  writeFileSync(join(work, 'openapi.json'), await document.text());
});
after(() => {
  service?.kill();
  if (work !== undefined) rmSync(work, { recursive: true, force: true });
});

test('gatefold openapi prints the document that the service sends', async () => {
  const { stdout } = await run(process.execPath, [
    join(root, 'dist/cli.js'),
    'openapi',
    '--controllers-dir',
    join(root, 'test/documents/bookshop'),
  ]);
  assert.deepEqual(JSON.parse(stdout), JSON.parse(readFileSync(join(work, 'openapi.json'), 'utf8')));
});

test('@redocly/cli finds no error by the rules of the specification', async () => {
  const { stdout } = await run(bin('redocly'), ['lint', '--extends', 'spec', '--format', 'json', 'openapi.json'], {
    cwd: work,
  });
  const { totals, problems } = JSON.parse(stdout.slice(stdout.indexOf('{')));
  assert.deepEqual([totals.errors, totals.warnings], [0, 0], JSON.stringify(problems, null, 2));
});

describe('openapi-typescript and openapi-fetch', () => {
  const GOOD = `
import createClient from 'openapi-fetch';
import type { paths } from './api.ts';
export async function calls(baseUrl: string) {
  const api = createClient<paths>({ baseUrl });
  const body = { title: 'Tea', isbn: '9780140449136', genre: 'novel', price: 7, authors: [{ name: 'Ada' }] } as const;
  const made = await api.POST('/api/book', { body: { ...body, authors: [...body.authors] } });
  const list = await api.GET('/api/book', { params: { query: { size: 1 } } });
  const wrong = await api.PATCH('/api/book/{id}', { params: { path: { id: 1 } }, body: { stock: 1.5 } });
  const title: string | undefined = made.data?.title;
  const total: number | undefined = list.data?.total;
  const pointer: string | undefined = wrong.error?.errors?.[0]?.pointer;
  return { status: made.response.status, title, total, pointer };
}`;
  const WRONG = [
    `await api.POST('/api/book', { body: { title: 'Tea' } });`,
    `await api.GET('/api/book', { params: { query: { size: 'one' } } });`,
    `await api.GET('/api/book/{id}', { params: { path: {} } });`,
    `await api.GET('/api/books');`,
    `await api.DELETE('/api/session', { body: {} });`,
    `const price: string = (await api.GET('/api/book/{id}', { params: { path: { id: 1 } } })).data!.price;`,
  ];
  const compile = (files) =>
    run(
      process.execPath,
      [
        here.resolve('typescript/bin/tsc'),
        ...files,
        '--noEmit',
        '--strict',
        '--target',
        'es2022',
        '--module',
        'esnext',
        '--moduleResolution',
        'bundler',
        '--allowImportingTsExtensions',
        '--skipLibCheck',
        '--lib',
        'es2022,dom',
      ],
      { cwd: work },
    );

  before(async () => {
    // Without this option, the generator makes a field with a default required in requests, too.
    const flags = ['--default-non-nullable', 'false'];
    await run(bin('openapi-typescript'), [`${url}/api/openapi.json`, '-o', 'api.ts', ...flags], { cwd: work });
    writeFileSync(join(work, 'good.ts'), GOOD);
  });

  test('compile and make correct calls', async () => {
    await compile(['good.ts']).catch(({ stdout }) => assert.fail(stdout));
    const { calls } = await load(join(work, 'good.ts'));
    assert.deepEqual(await calls(url), { status: 201, title: 'Tea', total: 1, pointer: '/stock' });
  });

  test('refuse each wrong call', async () => {
    const head = `import createClient from 'openapi-fetch';\nimport type { paths } from './api.ts';\nconst api = createClient<paths>({ baseUrl: '' });\n`;
    writeFileSync(join(work, 'wrong.ts'), `${head}${WRONG.join('\n')}\nexport { price };\n`);
    const { stdout } = await compile(['wrong.ts']).then(
      () => assert.fail('the wrong calls compile'),
      (error) => error,
    );
    const lines = new Set([...stdout.matchAll(/wrong\.ts\((\d+),/g)].map(([, line]) => Number(line) - 4));
    assert.deepEqual(
      [...lines].sort(),
      WRONG.map((_, i) => i),
      stdout,
    );
  });
});

test('oazapfts makes a client that calls three operations', async () => {
  await run(bin('oazapfts'), ['openapi.json', 'client.ts'], { cwd: work });
  const { bookGetById, orderCreated, customerCreated, defaults, ...others } = await load(join(work, 'client.ts'));
  defaults.baseUrl = url;
  assert.ok(typeof bookGetById === 'function', Object.keys(others).join(' '));
  assert.equal((await bookGetById(999)).data.error_code, 'BOOK_NOT_FOUND');
  const order = await orderCreated({ customer: 'ada@example.com', items: [{ book: 1, count: 2 }] });
  assert.deepEqual([order.status, order.data.state], [201, 'open']);
  assert.deepEqual(
    (await customerCreated({ name: 'Ada', email: 'nobody' })).data.errors.map(({ pointer }) => pointer),
    ['/email'],
  );
});

/** Milliseconds that the test waits for a state of the page. Beside other tests, the browser gets little of a core. */
const PATIENCE = 180_000;
const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
test('swagger-ui shows every operation without an error', {
  skip: CHROMIUM === undefined && 'no Chromium is installed',
}, async () => {
  const assets = dirname(here.resolve('swagger-ui-dist/package.json'));
  const types = { '.js': 'text/javascript; charset=utf-8', '.css': 'text/css' };
  const PAGE = `<!doctype html><link rel="stylesheet" href="/swagger-ui.css"><div id="ui"></div><script src="/swagger-ui-bundle.js"></script>
<script>SwaggerUIBundle({ url: ${JSON.stringify(`${url}/api/openapi.json`)}, dom_id: '#ui', docExpansion: 'list' })</script>`;
  const pages = createServer(({ url: path }, response) => {
    if (path === '/') return response.setHeader('Content-Type', 'text/html; charset=utf-8').end(PAGE);
    if (!/^\/swagger-ui[\w-]*\.(js|css)$/.test(path)) return response.writeHead(404).end();
    response.setHeader('Content-Type', types[extname(path)]).end(readFileSync(join(assets, path)));
  });
  await new Promise((listening) => pages.listen(0, '127.0.0.1', listening));
  const browser = await ours('playwright-core').chromium.launch({
    executablePath: CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu'],
    timeout: PATIENCE,
  });
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE);
    const complaints = [];
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on(
      'console',
      (message) => message.type() === 'error' && !/favicon|404/.test(message.text()) && complaints.push(message.text()),
    );
    await page.goto(`http://127.0.0.1:${pages.address().port}/`);
    await page.locator('.opblock').nth(23).waitFor();
    assert.equal(await page.locator('.opblock').count(), 24);
    // One operation of each tag with all of its parts. With all operations, the page takes most of a minute under load.
    const tags = page.locator('.opblock-tag-section');
    const count = await tags.count();
    assert.ok(count > 1, String(count));
    for (let index = 0; index < count; index++) {
      const operation = tags.nth(index).locator('.opblock').first();
      await operation.locator('.opblock-summary-control').click();
      await operation.locator('.responses-table .response').first().waitFor();
    }
    assert.equal(await page.locator('.errors-wrapper').count(), 0);
    assert.deepEqual(complaints, []);
  } finally {
    await browser.close();
    pages.closeAllConnections();
    pages.close();
  }
});

/** Compiles a TypeScript module with its imports. */
async function load(path) {
  const built = `${path}.mjs`;
  await ours('esbuild').build({
    entryPoints: [path],
    outfile: built,
    bundle: true,
    format: 'esm',
    platform: 'node',
    logLevel: 'error',
  });
  return import(built);
}
