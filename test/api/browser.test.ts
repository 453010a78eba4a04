// The typed client in a page of another origin, and the page at /api/docs under a service file: its fields for users and
// keys, and its marks of operations. Both use one browser.
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { buildSync } from 'esbuild';
import type { Browser, Page } from 'playwright-core';
import type * as GatefoldClient from '../../src/api/client.ts';
import type { EventStream, Reply } from '../../src/api/controller.ts';
import { startTest, type TestApi } from '../../src/api/testing.ts';
import { launchChromium, noChromium, openPage } from '../support/chromium.ts';
import { makeProject } from '../support/command-bench.ts';
import { moduleUrl } from '../support/own-modules.ts';
import { GATEFOLD, type Service, startService } from '../support/service.ts';

const CONTROLLER = `
import { eventStream, HttpError, Reply } from ${JSON.stringify(moduleUrl('src/api/controller'))};
export default class BookController {
  index(query) { return { query }; }
  created(data, params) {
    const cover = data.cover instanceof File ? { name: data.cover.name, size: data.cover.size } : undefined;
    return { title: data.title, cover, authorization: params.request.headers.authorization };
  }
  red(data) { return new Reply(201, data, { ETag: '"1"' }); }
  async *#two() { yield { event: 'first', id: '1', data: { n: 1 } }; yield 2; }
  patch() { return new Reply(204); }
  'GET events'() { return eventStream(this.#two()); }
  'GET cover'() { return new Blob(['PNG'], { type: 'image/png' }); }
  'GET moved'() { return Reply.redirect('/api/book?title=moved'); }
  deleted() { throw new HttpError(409, 'BOOK_LENT', 'The book is lent'); }
  slow(_, { signal }) { return new Promise((done) => signal.addEventListener('abort', () => done())); }
}`;

/** The client as a page has it: the bundle of client.ts under a global name. */
declare const gatefold: typeof GatefoldClient;
declare class BookController {
  index(query: { title?: string; year?: number }): { query: unknown };
  created(data: { title: string; cover?: File }): {
    title: string;
    cover?: { name: string; size: number };
    authorization?: string;
  };
  deleted(): void;
  red(data: { n: number }): Reply<201, { n: number }>;
  patch(): Reply<204>;
  'GET events'(): EventStream<{ n: number } | number>;
  'GET cover'(): Blob;
  'GET moved'(): { query: unknown };
  slow(): void;
}

const SERVICE_FILE = `
import { defineService } from '${GATEFOLD}';
export default defineService({
  strict: true,
  keyHeader: 'X-Api-Key',
  securitySchemes: {
    token: { type: 'apiKey', in: 'header', name: 'Authorization', description: 'Token …' },
    legacy: { type: 'apiKey', in: 'query', name: 'session_key' },
    session: { type: 'apiKey', in: 'cookie', name: 'session' },
  },
  authenticate: ({ authorization }) => (authorization === 'Token ann' ? { id: 'ann' } : undefined),
  formatError: ({ message }): { title: string } => ({ title: message }),
});`;
const NOTE = `
import type { ControllerParams } from 'gatefold';
export default class NoteController {
  static operations = { 'GET user': { access: 'user' }, 'GET both': { access: ['user', 'application'] }, 'GET key': { access: { scope: 'notes' } } };
  'GET anyone'() { return {}; }
  'GET user'(_: unknown, { user }: ControllerParams<{ user: { id: string } }>) { return { id: user.id }; }
  'GET both'() { return {}; }
  'GET key'() { return {}; }
}`;

let browser: Browser | undefined;
before(async () => {
  if (noChromium === false) browser = await launchChromium();
});
after(() => browser?.close());

describe('the client in a page of another origin', { skip: noChromium }, () => {
  let page: Page;
  let origin: Server;
  let service: Service;

  before(async () => {
    service = await startService({ controllers: { 'BookController.mjs': CONTROLLER } });
    origin = createServer((_request, response) =>
      response.setHeader('Content-Type', 'text/html').end('<!doctype html><title>page</title>'),
    );
    await new Promise<void>((listening) => origin.listen(0, '127.0.0.1', listening));
    page = await openPage(browser as Browser);
    await page.goto(`http://127.0.0.1:${(origin.address() as AddressInfo).port}/`);
    const { outputFiles } = buildSync({
      entryPoints: ['src/api/client.ts'],
      bundle: true,
      format: 'iife',
      globalName: 'gatefold',
      write: false,
    });
    await page.addScriptTag({ content: outputFiles[0]?.text ?? '' });
  });
  after(async () => {
    await page?.close();
    origin?.closeAllConnections();
    origin?.close();
    await service?.close();
  });

  test('sends a query, a body, a file and a credential', async () => {
    const got = await page.evaluate(async (url) => {
      const api = gatefold.createClient<{ book: typeof BookController }>(url, { authorization: 'Bearer foreign' });
      const { query } = await api.book.index({ title: 'Tea & more', year: 1900 });
      const { title, authorization } = await api.book.created({ title: 'Tea' });
      const { cover } = await api.book.created({
        title: 'Tea',
        cover: new File(['PNG'], 'cover.png', { type: 'image/png' }),
      });
      return { query, title, authorization, cover };
    }, service.url);
    assert.deepEqual(got, {
      query: { title: 'Tea & more', year: '1900' },
      title: 'Tea',
      authorization: 'Bearer foreign',
      cover: { name: 'cover.png', size: 3 },
    });
  });

  test('returns bodies, headers, undefined for 204, bytes and every event', async () => {
    const got = await page.evaluate(async (url) => {
      const api = gatefold.createClient<{ book: typeof BookController }>(url);
      const call = api.book.red({ n: 1 });
      const events: unknown[] = [];
      for await (const event of await api.book['GET events']()) events.push(event);
      const etag = (await call.response).headers.get('etag');
      return [await call, etag, await api.book.patch(), await (await api.book['GET cover']()).text(), events];
    }, service.url);
    const events = [
      { event: 'first', id: '1', data: { n: 1 } },
      { event: 'message', id: '1', data: 2 },
    ];
    assert.deepEqual(got, [{ n: 1 }, '"1"', undefined, 'PNG', events]);
  });

  test('throws an error with its code and request id', async () => {
    const got = await page.evaluate(async (url) => {
      const api = gatefold.createClient<{ book: typeof BookController }>(url);
      const error = await api.book.deleted().catch((thrown: GatefoldClient.ApiError) => thrown);
      if (!(error instanceof gatefold.ApiError)) throw new Error('it was not refused');
      return {
        status: error.status,
        code: error.code,
        id: error.requestId,
        header: error.response?.headers.get('x-request-id'),
      };
    }, service.url);
    assert.deepEqual([got.status, got.code], [409, 'BOOK_LENT']);
    assert.ok(got.id !== undefined && got.id === got.header);
  });

  test('follows a redirect, but not with headers, because the browser hides where it leads', async () => {
    const got = await page.evaluate(async (url) => {
      const headersOf = (headers?: Record<string, string>) =>
        gatefold.createClient<{ book: typeof BookController }>(url, headers === undefined ? {} : { headers });
      const refused = await headersOf({ 'X-Api-Key': 'secret' })
        .book['GET moved']()
        .catch(({ status, code }: GatefoldClient.ApiError) => [status, code]);
      return [await headersOf().book['GET moved'](), refused];
    }, service.url);
    assert.deepEqual(got, [{ query: { title: 'moved' } }, [0, 'REDIRECT_REFUSED']]);
  });

  test('rejects an aborted call, a timed-out call, and a call to a missing service', async () => {
    const got = await page.evaluate(async (url) => {
      const api = gatefold.createClient<{ book: typeof BookController }>(url);
      const abort = new AbortController();
      const calls = [
        api.book.slow(undefined, { signal: abort.signal }),
        api.book.slow(undefined, { timeout: 50 }),
        gatefold.createClient<{ book: typeof BookController }>('http://127.0.0.1:1').book.index(),
      ];
      abort.abort();
      const settled = await Promise.allSettled<unknown>(calls);
      return settled.map(
        (one) =>
          one.status === 'rejected' && (one.reason instanceof gatefold.ApiError ? one.reason.code : one.reason.name),
      );
    }, service.url);
    assert.deepEqual(got, ['AbortError', 'TIMEOUT', 'NETWORK_ERROR']);
  });
});

describe('the docs page under a service file', { skip: noChromium }, () => {
  let api: TestApi;
  let page: Page;
  const complaints: string[] = [];
  const cleanUp: (() => void)[] = [];

  before(async () => {
    const cwd = makeProject(
      { after: (clean) => cleanUp.push(clean) },
      { 'controllers/service.ts': SERVICE_FILE, 'controllers/NoteController.ts': NOTE },
    );
    api = await startTest({ controllers: `${cwd}/controllers` });
    page = await openPage(browser as Browser, { viewport: { width: 1280, height: 860 } });
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(`${api.url}/api/docs`);
    await page.waitForSelector('h1');
  });
  after(async () => {
    await page?.close();
    await api?.close();
    for (const clean of cleanUp) clean();
    assert.deepEqual(complaints, []);
  });

  const field = (label: string) => page.getByLabel(label, { exact: true });
  async function panel(name: string) {
    await page.goto(`${api.url}/api/docs#/note/note_GET_${name}`);
    const found = page.locator(`details.panel[open]#note_GET_${name}`);
    await found.locator('form').waitFor();
    return found;
  }
  async function requestOf(name: string) {
    const found = await panel(name);
    const [request] = await Promise.all([
      page.waitForRequest((one) => one.url().includes(`/api/note/${name}`)),
      found.getByRole('button', { name: 'Send' }).click(),
    ]);
    await found.locator('form:not(.running)').waitFor();
    return request;
  }

  test('has a labelled field for each credential in a header or in the query', async () => {
    const labels = await page.locator('#caller label span').allInnerTexts();
    assert.deepEqual(labels.sort(), ['x-api-key', 'legacy', 'token'].sort());
    assert.equal(await field('token').getAttribute('placeholder'), 'Token …');
  });

  test('marks each operation that needs a caller with the accepted schemes', async () => {
    const marks = async (name: string) => (await panel(name)).locator('.locked').allInnerTexts();
    assert.deepEqual(await marks('anyone'), []);
    assert.deepEqual(await marks('user'), ['token or legacy or session']);
    assert.deepEqual(await marks('key'), ['credential']);
    assert.match(await (await panel('key')).locator('.access').innerText(), /^Needs a credential with notes\.$/);
    assert.match(await (await panel('both')).locator('.access').innerText(), /token and credential/);
  });

  test('sends the user in Authorization and the key in its header', async () => {
    await field('token').fill('Token ann');
    const found = await panel('user');
    const request = await requestOf('user');
    assert.equal((await request.allHeaders()).authorization, 'Token ann');
    assert.match(await found.locator('.answer pre').first().innerText(), /"id": "ann"/);
    await field('x-api-key').fill('gfk_secretsecretsecret');
    await field('legacy').fill('old-session-of-ann');
    const line = await (await panel('both')).locator('.curl code').innerText();
    assert.match(line, /x-api-key: gfk_secrets…/i);
    assert.doesNotMatch(line, /secretsecret|old-session-of-ann/);
    const both = await requestOf('both');
    const { authorization, 'x-api-key': key } = await both.allHeaders();
    assert.deepEqual([authorization, key], ['Token ann', 'gfk_secretsecretsecret']);
    assert.equal(new URL(both.url()).searchParams.get('session_key'), 'old-session-of-ann');
  });

  test('shows that the service refuses the document to an invalid key', async () => {
    await page.reload();
    await page.getByText('The service refuses the document').waitFor();
    assert.equal(await field('x-api-key').inputValue(), 'gfk_secretsecretsecret');
    await field('x-api-key').fill('');
    await field('x-api-key').press('Enter');
    await page.locator('nav a.group').waitFor();
  });

  test('keeps typed credentials over a reload and shows the error format', async () => {
    await page.reload();
    await page.locator('nav a.group').waitFor();
    assert.equal(await field('token').inputValue(), 'Token ann');
    assert.equal(await field('legacy').inputValue(), 'old-session-of-ann');
    const answers = (await (await panel('user')).locator('.right').textContent()) ?? '';
    assert.match(answers, /401\s*No user is signed in/);
    assert.match(answers, /may send another status/);
    assert.match(answers, /title: string/);
  });

  test('fits a screen 360 pixels wide', async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    assert.ok((await page.evaluate<number>('document.documentElement.scrollWidth')) <= 360);
    await page.setViewportSize({ width: 1280, height: 860 });
  });

  test('asks for a key when the document needs one, and sends it in keyHeader', async () => {
    await page.route('**/api/openapi.json', (route) => route.fulfill({ status: 401, json: { title: 'No' } }));
    await page.evaluate('sessionStorage.clear()');
    await page.reload();
    await page.getByText('No document').waitFor();
    assert.equal(await page.evaluate('document.activeElement.previousSibling.textContent'), 'x-api-key');
    const [asked] = await Promise.all([
      page.waitForRequest('**/api/openapi.json'),
      page.keyboard.type('gfk_a').then(() => page.keyboard.press('Enter')),
    ]);
    assert.equal((await asked.allHeaders())['x-api-key'], 'gfk_a');
  });
});
