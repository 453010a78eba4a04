// The cross-origin rules of a service in Chromium. Without a service file, a page of any origin can read each answer. With
// one, a front end on another origin has a session cookie, and pages of unlisted origins try to read, to write and to
// post forms with that cookie.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, describe, it, test } from 'node:test';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { launchChromium, noChromium, openPage } from '../support/chromium.ts';
import { CORS_OPTIONS, CORS_SERVICES } from '../support/cors-table.ts';
import { GATEFOLD, type Service, startService } from '../support/service.ts';

const serviceFile = (origins: readonly string[]) => `
import { defineService } from '${GATEFOLD}';
interface User { id: string }
export default defineService<User>({
  access: 'user',
  cors: { origins: ${JSON.stringify(origins)}, credentials: true },
  authenticate: ({ cookies }) => cookies.session === undefined ? undefined : { id: cookies.session },
});
`;

const SESSION_CONTROLLER = `
import type { ControllerParams, Operations } from 'gatefold';
import { Reply } from '${GATEFOLD}';
interface User { id: string }
const notes: string[] = [];
export default class SessionController {
  static operations: Operations<SessionController> = { POST: { access: 'anyone' } };
  POST({ name }: { name: string }) {
    return new Reply(201, { name }, { 'Set-Cookie': \`session=\${name}; Path=/; HttpOnly; Secure; SameSite=None\` });
  }
  GET(_: undefined, { user }: ControllerParams<{ user: User }>) { return { name: user.id, notes }; }
  'POST note'(data: { text: string }, { user }: ControllerParams<{ user: User }>) {
    notes.push(\`\${user.id}: \${data.text}\`);
    return { notes };
  }
}
`;

/** A group that is not strict, so a GET can call `publish`. */
const NEWS_CONTROLLER = `
const runs: string[] = [];
export default class NewsController { index() { return runs; } publish() { runs.push('published'); return {}; } }
`;

interface Answer {
  readonly status: number;
  readonly body: unknown;
  /** Whether the page can read the id of the request. */
  readonly hasId: boolean;
}

describe('a front end with a session cookie', { skip: noChromium }, () => {
  let browser: Browser;
  let context: BrowserContext;
  let pages: Server;
  let service: Service;
  /** Three origins. The last one belongs to another site, too. */
  let listed: string;
  let unlisted: string;
  let otherPages: Server;
  let otherSite: string;
  const seen: { verb: string; cookie: string | undefined; origin: string | undefined }[] = [];

  before(async () => {
    pages = await servePages();
    otherPages = await servePages();
    listed = `http://127.0.0.1:${portOf(pages)}`;
    unlisted = `http://127.0.0.1:${portOf(otherPages)}`;
    otherSite = `http://localhost:${portOf(otherPages)}`;
    service = await startService({
      controllers: {
        'service.ts': serviceFile([listed]),
        'SessionController.ts': SESSION_CONTROLLER,
        'NewsController.ts': NEWS_CONTROLLER,
      },
    });
    service.app.server.prependListener('request', ({ method = '', rawHeaders }) => {
      const headerOf = (wanted: string) =>
        rawHeaders.find((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === wanted);
      seen.push({ verb: method, cookie: headerOf('cookie'), origin: headerOf('origin') });
    });
    browser = await launchChromium();
  });
  after(async () => {
    await browser?.close();
    for (const server of [pages, otherPages]) {
      server?.closeAllConnections();
      server?.close();
    }
    await service?.close();
  });
  beforeEach(async () => {
    await context?.close();
    context = await browser.newContext();
    const page = await open(listed);
    assert.equal((await call(page, 'POST', '/api/session', { name: 'ann' })).status, 201);
    seen.length = 0;
  });

  async function open(origin: string): Promise<Page> {
    const page = await openPage(context);
    await page.goto(`${origin}/`);
    return page;
  }

  /** Calls the service from a page, with cookies. Rejects when the page cannot read the answer. */
  function call(page: Page, verb: string, path: string, json?: unknown): Promise<Answer> {
    return page.evaluate(
      async ([url, method, body]) => {
        const headers: Record<string, string> = body === undefined ? {} : { 'Content-Type': 'application/json' };
        const response = await fetch(url, { method, credentials: 'include', headers, body: body ?? null });
        const hasId = response.headers.get('x-request-id') !== null;
        return { status: response.status, body: await response.json(), hasId };
      },
      [service.url + path, verb, json === undefined ? undefined : JSON.stringify(json)] as const,
    );
  }

  const formSource = () =>
    `<form method="post" action="${service.url}/api/session/note"><input name="text" value="form"></form>`;

  /** Posts a form from a page that the user has opened. Returns the text that the window then shows. */
  async function postForm(page: Page): Promise<string> {
    await page.setContent(formSource());
    const [response] = await Promise.all([
      page.waitForResponse((response) => response.url().endsWith('/note')),
      page.evaluate('document.forms[0].submit()'),
    ]);
    return `${response.status()} ${await response.text()}`;
  }

  function nextStatus(): Promise<number> {
    return new Promise((resolve) =>
      service.app.server.once('request', (_, response) => {
        response.once('finish', () => resolve(response.statusCode));
      }),
    );
  }

  /** Posts the form from a sandboxed frame. Returns the status of the service's answer. */
  async function postFromFrame(page: Page): Promise<number> {
    // The frame may post before Playwright is attached to it. So the status is read from the service, not from the
    // frame.
    const answered = nextStatus();
    const source = `${formSource()}<script>document.forms[0].submit()</script>`.replaceAll('"', '&quot;');
    await page.setContent(`<iframe sandbox="allow-scripts allow-forms" srcdoc="${source}"></iframe>`);
    return answered;
  }

  const notes = async () => ((await call(await open(listed), 'GET', '/api/session')).body as { notes: string[] }).notes;

  it('on a listed origin reads and writes with the cookie', async () => {
    const page = await open(listed);
    const read = await call(page, 'GET', '/api/session');
    assert.deepEqual([read.status, (read.body as { name: string }).name, read.hasId], [200, 'ann', true]);
    const before = await notes();
    const written = await call(page, 'POST', '/api/session/note', { text: 'json' });
    assert.deepEqual(written, { status: 200, body: { notes: [...before, 'ann: json'] }, hasId: true });
    const wrong = await call(page, 'POST', '/api/session/note', { text: 1 });
    assert.deepEqual([wrong.status, (wrong.body as { error_code: string }).error_code], [422, 'INVALID_DATA']);
    const nothing = await call(page, 'GET', '/api/nothing');
    assert.deepEqual([nothing.status, nothing.hasId], [404, true]);
    assert.match(await postForm(page), /^200 /);
    assert.deepEqual(await notes(), [...before, 'ann: json', 'ann: form']);
  });

  for (const [title, origin, cookie] of [
    ['on an unlisted origin', () => unlisted, 'session=ann'],
    // Chromium withholds the cookies of another site from fetch, and sends them with a form.
    ['on another site', () => otherSite, undefined],
  ] as const) {
    it(`${title} cannot read an answer`, async () => {
      const page = await open(origin());
      await assert.rejects(call(page, 'GET', '/api/session'), /Failed to fetch/);
      assert.deepEqual(seen, [{ verb: 'GET', cookie, origin: origin() }]);
    });

    it(`${title} cannot write JSON, because its preflight fails`, async () => {
      const before = await notes();
      const page = await open(origin());
      seen.length = 0;
      await assert.rejects(call(page, 'POST', '/api/session/note', { text: 'stolen' }), /Failed to fetch/);
      assert.deepEqual(seen, [{ verb: 'OPTIONS', cookie: undefined, origin: origin() }]);
      assert.deepEqual(await notes(), before);
    });

    it(`${title} cannot post a form, even with the cookie`, async () => {
      const before = await notes();
      const page = await open(origin());
      seen.length = 0;
      await page.evaluate(async (url) => {
        const body = new URLSearchParams({ text: 'stolen' });
        await fetch(url, { method: 'POST', mode: 'no-cors', credentials: 'include', body });
      }, `${service.url}/api/session/note`);
      assert.match(await postForm(page), /^403 .*ORIGIN_NOT_ALLOWED/);
      assert.deepEqual(seen, [
        { verb: 'POST', cookie, origin: origin() },
        { verb: 'POST', cookie: 'session=ann', origin: origin() },
      ]);
      assert.deepEqual(await notes(), before);
    });
  }

  it('on an unlisted origin cannot call what changes something by an image or a link, even with the cookie', async () => {
    const target = `${service.url}/api/news/publish`;
    const page = await open(unlisted);
    seen.length = 0;
    // Chromium hides the answer to an image that is none. So the status is read from the service.
    const statusAfter = async (act: string): Promise<number> => {
      const [status] = await Promise.all([nextStatus(), page.evaluate(act)]);
      return status;
    };
    assert.equal(await statusAfter(`void (new Image().src = '${target}')`), 403);
    assert.equal(await statusAfter(`void (location.href = '${target}')`), 403);
    const request = { verb: 'GET', cookie: 'session=ann', origin: undefined };
    assert.deepEqual(seen, [request, request]);
    const own = await open(`${service.url}/api/news`);
    assert.deepEqual((await call(own, 'GET', '/api/news')).body, []);
    assert.equal((await call(own, 'GET', '/api/news/publish')).status, 200);
  });

  it('in a sandboxed frame, with the origin null, cannot post a form', async () => {
    const before = await notes();
    const page = await open(unlisted);
    seen.length = 0;
    assert.equal(await postFromFrame(page), 403);
    assert.equal(seen[0]?.origin, 'null');
    assert.deepEqual(await notes(), before);
  });

  it('on the origin of the service writes with the cookie', async () => {
    const page = await open(`${service.url}/api/session`);
    const written = await call(page, 'POST', '/api/session/note', { text: 'own' });
    assert.equal(written.status, 200);
    assert.equal(seen.at(-1)?.origin, service.url);
  });
});

test('a page of any origin reads each answer of a service without rules', { skip: noChromium }, async (t) => {
  const { files = {}, rows = [] } = CORS_SERVICES['no rules'] ?? {};
  const [pages, service] = [await servePages(), await startService({ ...CORS_OPTIONS, controllers: files })];
  const browser = await launchChromium();
  t.after(async () => {
    await browser.close();
    pages.closeAllConnections();
    pages.close();
    await service.close();
  });
  const page = await openPage(browser);
  await page.goto(`http://127.0.0.1:${portOf(pages)}/`);
  // A browser sends preflights itself, and sends no header that the parser refuses.
  const own = rows.filter(
    ({ request, lines }) => !request.startsWith('OPTIONS') && !lines.includes('Transfer-Encoding: x'),
  );
  assert.ok(own.length > 10);
  for (const { request, lines, body, answer } of own) {
    const [method = '', path] = request.split(' ');
    const headers = Object.fromEntries(lines.map((line) => line.split(': ')));
    const found = await page.evaluate(
      async ([url, init]) => {
        const response = await fetch(url, init);
        return { status: response.status, hasId: response.headers.has('x-request-id'), text: await response.text() };
      },
      [service.url + path, { method, headers, ...(body !== '' && { body }) }] as const,
    );
    assert.deepEqual([found.status, found.hasId], [answer.status, true], request);
    if (found.status >= 400) assert.equal(JSON.parse(found.text).status, 'error', request);
  }
});

async function servePages(): Promise<Server> {
  const server = createServer((_request, response) =>
    response.setHeader('Content-Type', 'text/html').end('<!doctype html><title>page</title>'),
  ).listen(0);
  await once(server, 'listening');
  return server;
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}
