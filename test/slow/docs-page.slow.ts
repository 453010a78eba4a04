// Uses the page at /api/docs in a browser as people do: by keyboard alone, with right and wrong requests, on a phone
// and on a desktop, with 24 operations and with 500 groups.
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import type { Browser, Locator, Page } from 'playwright-core';
import { startTest, type TestApi } from '../../src/api/testing.ts';
import { UNKNOWN_RESULT } from '../../src/contract/results.ts';
import type { DocumentedGroup } from '../../src/documents/documented.ts';
import { createDocument } from '../../src/documents/openapi.ts';
import { launchChromium, noChromium, openPage } from '../support/chromium.ts';
import { createFolder } from '../support/folder.ts';
import { moduleUrl } from '../support/own-modules.ts';

const BOOKSHOP = join(import.meta.dirname, '../documents/bookshop');
/** Runs a command. Asynchronous, because the service that the command calls runs in this process. */
const runInShell = async (line: string) =>
  (await promisify(execFile)('sh', ['-c', line.replace(/^curl/, 'curl -s')])).stdout;
const LONG = 'aNameThatIsMuchLongerThanAnyTelephoneIsWide'.repeat(3);
const ODD = `import type { ControllerParams, Int } from 'gatefold';
import { Reply } from ${JSON.stringify(moduleUrl('src/api/controller'))};
type Shape = { kind: 'pair'; one: Shape; two: Shape } | { kind: 'leaf' };
interface Tree { name: string; left: Tree | null; right: Tree | null; shape: Shape | null; pair?: [number, string] }
type Named = Place;
interface Place { name: string; at: [string, Int?, ...boolean[]]; none: [] }
interface Facts {
  /** @minLength 1 */ some: string;
  /** @minLength 1
   *  @maxLength 3 */ few: string;
  whole: Int;
  /** @minimum 0
   *  @maximum 9007199254740991 */ count: Int;
  /** @minimum -9007199254740991 */ step: Int;
  /** @maxItems 1 */ one: string[];
  /** @maximum -5 */ cold: number;
  /** @exclusiveMinimum 0
   *  @exclusiveMaximum 1 */ part: number;
}
export default class OddController {
  'POST tree'(tree: Tree) { return tree; }
  'POST long'(data: { ${LONG}?: '${LONG}' }) { return data; }
  'GET broken'() {
    const half = new TextEncoder().encode('{"a":');
    return new Reply(200, new ReadableStream({ start: (to) => { to.enqueue(half); this.breakOff = () => to.error(new Error('broken')); } }));
  }
  private breakOff = () => {};
  'POST broken'() { this.breakOff(); }
  /** @returns a result with a field named \`errors\` */
  'POST errors'(data: { which: number }): unknown {
    const lists = [{ title: ['is missing'] }, 'none', 7, [null, 'no', {}, { in: 'a"b', pointer: 3, message: 'odd' }, { message: 'whole' }]];
    return { errors: lists[data.which] };
  }
  'POST facts'(data: Facts) { return data; }
  'DELETE {id}'() {}
  static operations = {
    'POST text': { accepts: ['text/plain'] },
    'POST form': { accepts: ['application/x-www-form-urlencoded'] },
  };
  'POST text'(text: string) { return { text }; }
  'POST form'(form: { name: string; tags: string[] }) { return form; }
  'ANY any'(data: { name: string }) { return data; }
  'POST named'(data: Named) { return data; }
  'GET either'(query: { kind: 'a'; some: string } | { kind: 'b'; other: Int }) { return query; }
  'GET boxed/{id}'(_: undefined, { path }: ControllerParams<{ path: { id: string }; query: { box: { a: Int } } }>) { return path; }
  'GET list'(query: { tags?: string[] }) { return query; }
  'HEAD head'() {}
  'GET torn'() { return new Reply(200, new Blob(['{"a":'], { type: 'application/json' })); }
}`;
const noCurl = spawnSync('curl', ['--version']).status === 0 ? false : 'no curl is installed';

describe('the docs page', { skip: noChromium }, () => {
  let api: TestApi;
  let browser: Browser;
  let page: Page;
  /** Errors and warnings of the browser's console. */
  const complaints: string[] = [];
  const asked = new Set<string>();

  before(async () => {
    api = await startTest({ controllers: BOOKSHOP });
    browser = await launchChromium();
    page = await open('');
  });
  after(async () => {
    await browser?.close();
    await api?.close();
  });

  async function open(hash: string, options: Parameters<Browser['newContext']>[0] = {}, url = api.url): Promise<Page> {
    const context = await browser.newContext({
      viewport: { width: 1280, height: 860 },
      permissions: ['clipboard-read', 'clipboard-write'],
      ...options,
    });
    const made = await openPage(context);
    made.on('pageerror', (error) => complaints.push(error.message));
    made.on('console', (message) => {
      // The browser also reports the error answers that the tests below provoke.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
        complaints.push(message.text());
    });
    made.on('request', (request) => asked.add(new URL(request.url()).origin.replace(url, 'its own')));
    await made.goto(`${url}/api/docs${hash}`);
    await made.waitForSelector('h1');
    return made;
  }

  /** Opens a panel by its address. Returns the open panel. */
  async function panel(id: string) {
    await page.goto(`${api.url}/api/docs#/${id}`);
    const found = page.locator(`details.panel[open]#${id.split('/')[1]}`);
    await found.locator('form').waitFor();
    return found;
  }

  /** Sends the form of a panel, and waits for the answer. Its status appears before its body. */
  async function send(found: Locator, status: 2 | 4): Promise<void> {
    await found.getByRole('button', { name: 'Send' }).click();
    await answered(found, status);
  }
  async function answered(found: Locator, status: 2 | 4): Promise<void> {
    await found.locator(`.status b.s${status}`).waitFor();
    await found.locator('form:not(.running)').waitFor();
  }

  test('finds and sends an operation by keyboard only', async () => {
    await page.keyboard.press('/');
    await page.keyboard.type('pays an order');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    const form = page.locator('details.panel[open] form');
    await form.waitFor();
    assert.equal(await page.evaluate('document.activeElement.tagName'), 'SUMMARY');
    await page.keyboard.press('Tab');
    await page.keyboard.type('7');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Control+Enter');
    const found = page.locator('details.panel[open]');
    await answered(found, 4);
    assert.match(await found.locator('.status').innerText(), /^404 Not Found/);
    assert.match(await found.locator('.answer pre').first().innerText(), /"ORDER_NOT_FOUND"/);
  });

  test('sends once by Control and Enter in an input: a browser sends the form for this key, too', async () => {
    const found = await panel('order/order_GET_by_id');
    await found.locator('input').fill('7');
    const key = `new KeyboardEvent('keydown', { key: 'Enter', ctrlKey: true, bubbles: true, cancelable: true })`;
    const isLeft = await page.evaluate(`document.querySelector('.panel[open] input').dispatchEvent(${key})`);
    assert.equal(isLeft, false);
    await answered(found, 4);
    await found.locator('input').press('Control+Enter');
    await answered(found, 4);
  });

  test('opens with an overview: the title, the description and the groups', async () => {
    const shown = async (own: Page) => (await own.locator('main').innerText()).split(/\s*\n\s*/).slice(0, 4);
    const own = await open('');
    assert.deepEqual(await shown(own), [
      'gatefold 0.1.0',
      'A JSON API server for Node with nothing installed at run time: drop a controller file into a folder and it answers.',
      'Groups',
      'book 9 operations',
    ]);
    assert.equal(await own.locator('main a').count(), 5);
    assert.equal(await own.locator(`nav [aria-current="page"]`).count(), 0);
    await own.getByRole('main').getByRole('link', { name: 'order' }).click();
    await own.locator('h1', { hasText: 'order' }).waitFor();
    assert.equal(await own.locator('nav [aria-current="page"]').innerText(), 'order\n8');
    await own.locator('#title').click();
    await own.locator('h1', { hasText: 'gatefold' }).waitFor();
    // No group has this name.
    await own.goto(`${api.url}/api/docs#/none/none_index`);
    assert.match((await shown(own))[0] ?? '', /^gatefold/);
    await own.context().close();
  });

  test('has its headings in order', async () => {
    const levels = async () =>
      page.evaluate<number[]>(
        "Array.from(document.querySelectorAll('h1, h2, h3, h4, h5, h6'), ({ tagName }) => Number(tagName[1]))",
      );
    await page.goto('about:blank');
    await page.goto(`${api.url}/api/docs`);
    await page.locator('h1').waitFor();
    assert.deepEqual(await levels(), [1, 2]);
    const found = await panel('book/book_POST_by_id_scans');
    const all = await levels();
    assert.equal(all[0], 1);
    assert.deepEqual(
      all.filter((level, i) => i > 0 && (level === 1 || level > (all[i - 1] as number) + 1)),
      [],
    );
    assert.equal(await found.getByRole('heading', { level: 2 }).innerText(), '/api/book/{id}/scans');
    assert.deepEqual(await found.getByRole('heading', { level: 3 }).allInnerTexts(), ['PATH', 'BODY', 'ANSWERS']);
  });

  test('shows a value of the path as {id} until it is typed', async () => {
    const found = await panel('order/order_PUT_by_id_items_by_line');
    const line = () => found.locator('.curl code').innerText();
    assert.match(await line(), /\/api\/order\/\{id\}\/items\/\{line\}'/);
    await found.locator('[data-key="id"] input').fill('7');
    assert.match(await line(), /\/api\/order\/7\/items\/\{line\}'/);
    await found.locator('[data-key="line"] input').fill('a/{b}');
    assert.match(await line(), /\/api\/order\/7\/items\/a%2F%7Bb%7D/);
    await found.locator('[data-key="line"] input').fill('');
    assert.match(await line(), /\/items\/\{line\}'/);
  });

  test('skips to the main content of the current group', async () => {
    await panel('order/order_index');
    await page.locator('.skip').focus();
    await page.keyboard.press('Enter');
    await page.waitForFunction('document.activeElement.id === "main"');
    assert.equal(await page.locator('h1').innerText(), 'order');
  });

  test('shows the type, the bounds and the description of a field', async () => {
    const found = await panel('book/book_created');
    const row = (key: string) => found.locator(`.field[data-key="${key}"]`).first().innerText();
    assert.match(await row('title'), /title\s*\*\s*string\s*1 to 200 characters\s*As printed on the title page\./);
    assert.match(await row('isbn'), /\/\^97\[89\]\\d\{10\}\$\//);
    assert.match(await row('price'), /number\s*at least 0\s*In euro\./);
    assert.match(await row('authors'), /Author\[\]\s*1 to 10 items/);
    assert.match(await found.locator('.right').innerText(), /201[\s\S]*stock: integer {2}\/\/ Copies on the shelf\./);
  });

  test('sends a valid request, and shows the answer', async () => {
    const found = await panel('book/book_created');
    await found.getByRole('button', { name: 'Fill in an example' }).click();
    await found.locator('[data-key="dryRun"] select').selectOption('false');
    await found.locator('.field[data-key="title"] input').fill('Tea & <b>more</b>');
    await send(found, 2);
    assert.match(await found.locator('.status').innerText(), /^201 Created\s*\d+ ms, \d+ bytes$/);
    assert.match(await found.locator('.answer pre').first().innerText(), /"title": "Tea & <b>more<\/b>"/);
    await found.locator('.answer summary').click();
    assert.match(await found.locator('.answer details').innerText(), /location: \/api\/book\/1/i);
    assert.equal(await found.locator('.wrong:not(:empty)').count(), 0);
  });

  test('shows each error beside its field, and all errors below the JSON view', async () => {
    const found = await panel('book/book_created');
    await found.locator('.field[data-key="isbn"] input').first().fill('12');
    await found.locator('.field[data-key="price"] input').first().fill('cheap');
    await found.locator('.field[data-key="authors"] .field[data-key="0"] .field[data-key="name"] input').fill('');
    await send(found, 4);
    const wrong = (key: string) => found.locator(`.field[data-key="${key}"] > .input > .wrong`).first().innerText();
    assert.match(await wrong('isbn'), /must/);
    assert.match(await wrong('price'), /number/);
    assert.match(
      await found.locator('[data-key="authors"] [data-key="0"] [data-key="name"] .wrong').innerText(),
      /missing/,
    );
    await found.getByRole('button', { name: 'as JSON' }).click();
    assert.match(await found.locator('textarea').inputValue(), /"price": "cheap"/);
    await found.getByRole('button', { name: 'Send' }).click();
    await found.locator('.lost p').first().waitFor();
    assert.match(await found.locator('.lost').innerText(), /\/price[\s\S]*number/);
    await found.getByRole('button', { name: 'as fields' }).click();
    assert.equal(await found.locator('.field[data-key="price"] input').first().inputValue(), 'cheap');
  });

  test('shows errors of a path and a query', async () => {
    const one = await panel('book/book_GET_by_id');
    await one.locator('input').first().fill('x');
    await send(one, 4);
    assert.match(await one.locator('.field[data-key="id"] .wrong:not(:empty)').innerText(), /number/);
    const all = await panel('book/book_index');
    await all.locator('[data-key="size"] input').fill('1000');
    await send(all, 4);
    assert.match(await all.locator('[data-key="size"] .wrong:not(:empty)').innerText(), /100/);
  });

  test('sends the token, and shortens it in the curl line', async () => {
    const found = await panel('report/report_count');
    assert.match(await found.locator('.access').innerText(), /Needs a credential/);
    await page.locator('#token').fill('Bearer not-a-token-of-ours');
    assert.match(await found.locator('.curl code').innerText(), /Authorization: Bearer not-…'/);
    const [request] = await Promise.all([
      page.waitForRequest((one) => one.url().endsWith('/api/report/count')),
      found.getByRole('button', { name: 'Send' }).click(),
    ]);
    assert.equal((await request.allHeaders()).authorization, 'Bearer not-a-token-of-ours');
    await found.locator('.status b').waitFor();
    await page.locator('#token').fill('');
  });

  test('copies a curl line that sends the same request', { skip: noCurl }, async () => {
    const found = await panel('book/book_created');
    await found.locator('.field[data-key="title"] input').fill(`it's $HOME "and" \\ more`);
    await found.getByRole('button', { name: 'Copy' }).click();
    await found.getByRole('button', { name: 'Copied' }).waitFor();
    const line = await page.evaluate<string>('navigator.clipboard.readText()');
    const { errors } = JSON.parse(await runInShell(line)) as { errors: object[] };
    assert.ok(errors.length > 0, line);
    await found.getByRole('button', { name: 'Fill in an example' }).click();
    await found.getByRole('button', { name: 'Copied' }).click();
    // The button still has the text of the first copy, so it does not show when the second is done.
    await page.waitForFunction('navigator.clipboard.readText().then((text) => text.includes("9780140449136"))');
    const good = await page.evaluate<string>('navigator.clipboard.readText()');
    const { isbn } = JSON.parse(await runInShell(good)) as { isbn: string };
    assert.equal(isbn, '9780140449136');
  });

  test('uploads a file, offers a download, and shows the events of a stream', async () => {
    const form = await panel('book/book_POST_by_id_scans');
    // Without a field, curl would send a GET.
    assert.match(await form.locator('.curl code').innerText(), /^curl -X POST /);
    await form.locator('[data-key="id"] input').first().fill('1');
    await form.locator('[data-key="title"] input').first().fill('pages');
    await form.getByRole('button', { name: 'Add to pages' }).click();
    await form
      .locator('input[type=file]')
      .setInputFiles({ name: 'one.png', mimeType: 'image/png', buffer: Buffer.from('PNG') });
    await send(form, 2);
    assert.match(await form.locator('.answer pre').first().innerText(), /"pages": 1/);
    const cover = await panel('book/book_GET_by_id_cover');
    await cover.locator('input').first().fill('1');
    await cover.getByRole('button', { name: 'Send' }).click();
    assert.equal(await cover.getByRole('link', { name: 'Save the file' }).getAttribute('download'), 'cover');
    const events = await panel('order/order_POST_events');
    await events.getByRole('button', { name: 'Send' }).click();
    await events.getByText('"order":3').waitFor();
  });

  test('shows HTML in a description as text', async () => {
    const found = await panel('book/book_PATCH_by_id');
    assert.match(await found.locator('.prose').first().innerText(), /<img src=x onerror=/);
    assert.equal(await page.locator('main img').count(), 0);
    assert.equal(await page.title(), 'gatefold');
  });

  for (const colorScheme of ['light', 'dark'] as const) {
    test(`fits the width of a phone, in ${colorScheme}`, async () => {
      const phone = await open('#/book/book_created', { viewport: { width: 360, height: 740 }, colorScheme });
      await phone.locator('form').waitFor();
      assert.ok((await phone.evaluate<number>('document.documentElement.scrollWidth')) <= 360);
      await phone.getByRole('button', { name: 'Groups' }).click();
      await phone.locator('nav a.group', { hasText: 'customer' }).click();
      await phone.locator('h1', { hasText: 'customer' }).waitFor();
      assert.equal(await phone.locator('nav').isVisible(), false);
      const [red] =
        (await phone.evaluate<string>('getComputedStyle(document.body).backgroundColor')).match(/\d+/g) ?? [];
      assert.equal(Number(red) > 127, colorScheme === 'light');
      await phone.context().close();
    });
  }

  test('lists and filters 500 groups', async () => {
    const names = ['index', 'created', 'GET {id}', 'PATCH {id}', 'DELETE {id}'];
    const method = (_: unknown) => {};
    const operations = new Map(names.map((name) => [name, { name, method, settings: {} }]));
    const known = { isDeprecated: false, dataIsOptional: false, results: [UNKNOWN_RESULT] };
    const contracts = new Map(names.map((name) => [name, { name, ...known }]));
    const groups = Array.from({ length: 500 }, (_, i): DocumentedGroup => {
      const name = `${i % 2 === 1 ? 'v2/' : ''}Group${i}`;
      return { name, operations, routes: [], contract: { operations: contracts, defs: {} } };
    });
    await page.route('**/api/openapi.json', (route) =>
      route.fulfill({ json: createDocument(groups, { title: 'many', version: '1' }) }),
    );
    await page.goto('about:blank');
    await page.goto(`${api.url}/api/docs`);
    await page.locator('nav a.group').last().waitFor();
    assert.equal(await page.locator('nav a.group').count(), 500);
    await page.locator('#filter').fill('group499 patch');
    assert.equal(await page.locator('nav a').count(), 2);
    await page.locator('nav a.operation').click();
    await page.locator('details.panel[open] form').waitFor();
    assert.equal(await page.locator('h1').innerText(), 'v2/group499');
    await page.locator('#filter').fill('post');
    assert.equal(await page.locator('nav a.operation').count(), 200);
    await page.unroute('**/api/openapi.json');
  });

  test('sends to the base path of the service', async (t) => {
    const echo = "export default { 'GET {id}'(_, { base, path }) { return { base, id: path.id }; } }";
    for (const base of ['/shop/v1', '/']) {
      const prefix = base === '/' ? '' : base;
      const controllers = createFolder(t, { 'EchoController.mjs': echo });
      const service = await startTest({ controllers, env: { BASE_PATH: base } });
      t.after(() => service.close());
      const other = await openPage(browser);
      await other.goto(`${service.url}${prefix}/docs#/echo/echo_GET_by_id`);
      const found = other.locator('details.panel[open]#echo_GET_by_id');
      assert.equal(await found.locator('code.path').innerText(), `${prefix}/echo/{id}`);
      await found.locator('form input').first().fill('7');
      await send(found, 2);
      assert.deepEqual(JSON.parse(await found.locator('.answer pre').first().innerText()), { base: prefix, id: '7' });
      assert.equal(await other.locator('nav a.operation span').last().innerText(), '/{id}');
      await other.context().close();
    }
  });

  test('works with recursive types, long names, a broken answer and an invalid hash', async (t) => {
    const odd = await startTest({
      controllers: createFolder(t, { 'OddController.ts': ODD }),
      expectedErrors: ['stream-failed'],
    });
    t.after(() => odd.close());
    const phone = await open('#/%', { viewport: { width: 360, height: 740 } }, odd.url);
    const opened = async (id: string) => {
      await phone.goto(`${odd.url}/api/docs#/odd/odd_${id}`);
      const found = phone.locator(`details.panel[open]#odd_${id}`);
      await found.locator('form').waitFor();
      return found;
    };
    const body = (found: Locator) => found.locator('.answer pre').first().innerText();
    const tree = await opened('POST_tree');
    await tree.getByRole('button', { name: 'Fill in an example' }).click();
    await send(tree, 2);
    assert.deepEqual(JSON.parse(await body(tree)).pair, [1, 'pair']);
    // A required field that may be null becomes null when the form leaves it empty.
    await phone.reload();
    await tree.locator('[data-key="name"] input').fill('none');
    await tree.getByRole('button', { name: 'as JSON' }).click();
    assert.deepEqual(JSON.parse(await tree.locator('textarea').inputValue()), {
      name: 'none',
      left: null,
      right: null,
      shape: null,
    });
    assert.match(await tree.locator('[data-key="body"] h3').innerText(), /as fields/i);
    await opened('POST_long');
    assert.ok((await phone.evaluate<number>('document.documentElement.scrollWidth')) <= 360);
    const broken = await opened('GET_broken');
    await broken.getByRole('button', { name: 'Send' }).click();
    await broken.locator('.status b.s2').waitFor();
    await odd.fetch('/odd/broken', { method: 'POST' });
    await broken.getByText(/^Broken off: /).waitFor();
    const torn = await opened('GET_torn');
    await send(torn, 2);
    assert.equal(await body(torn), '{"a":');
    await phone.context().close();
  });

  test('shows bounds in words, and fills in an example that is valid', async (t) => {
    const odd = await startTest({ controllers: createFolder(t, { 'OddController.ts': ODD }) });
    t.after(() => odd.close());
    const own = await open('#/odd/odd_POST_facts', {}, odd.url);
    const found = own.locator('details.panel[open]#odd_POST_facts');
    const facts = async (key: string) =>
      (await found.locator(`.field[data-key="${key}"] .fact`).allInnerTexts()).join(', ');
    await found.locator('form').waitFor();
    assert.deepEqual(
      [
        await facts('some'),
        await facts('few'),
        await facts('whole'),
        await facts('count'),
        await facts('step'),
        await facts('one'),
      ],
      ['at least 1 character', '1 to 3 characters', '', 'at least 0', '', 'at most 1 item'],
    );
    await found.getByRole('button', { name: 'Fill in an example' }).click();
    await send(found, 2);
    assert.deepEqual(JSON.parse(await found.locator('.answer pre').first().innerText()), {
      some: 'some',
      few: 'few',
      whole: 1,
      count: 0,
      step: 1,
      one: ['one'],
      cold: -5,
      part: 0.5,
    });
    await own.context().close();
  });

  test('sends each body in its media type, ANY with a body by POST, no empty entry of a list, and HEAD', async (t) => {
    const odd = await startTest({ controllers: createFolder(t, { 'OddController.ts': ODD }) });
    t.after(() => odd.close());
    const own = await open('', {}, odd.url);
    for (const [id, result] of [
      ['POST_text', { text: 'text' }],
      ['POST_form', { name: 'name', tags: ['tags'] }],
      ['ANY_any', { name: 'name' }],
      ['POST_named', { name: 'name', at: ['at'], none: [] }],
      ['GET_either', { kind: 'a', some: 'some' }],
    ] as const) {
      await own.goto(`${odd.url}/api/docs#/odd/odd_${id}`);
      const found = own.locator(`details.panel[open]#odd_${id}`);
      await found.getByRole('button', { name: 'Fill in an example' }).click();
      await send(found, 2);
      assert.deepEqual(JSON.parse(await found.locator('.answer pre').first().innerText()), result, id);
    }
    // A query cannot have an object. The panel of such an operation is there all the same.
    await own.goto(`${odd.url}/api/docs#/odd/odd_GET_boxed_by_id`);
    await send(own.locator('details.panel[open]#odd_GET_boxed_by_id'), 4);
    await own.goto(`${odd.url}/api/docs#/odd/odd_GET_list`);
    const list = own.locator('details.panel[open]#odd_GET_list');
    await list.getByRole('button', { name: 'Add to tags' }).click();
    await send(list, 2);
    assert.equal(await list.locator('.answer pre').first().innerText(), '{}');
    await own.goto(`${odd.url}/api/docs#/odd/odd_HEAD_head`);
    const head = own.locator('details.panel[open]#odd_HEAD_head');
    await send(head, 2);
    assert.equal(await head.locator('.curl code').innerText(), `curl --head ${odd.url}/api/odd/head`);
    await own.context().close();
  });

  test('shows the errors of the service, and ignores other fields named errors', async (t) => {
    const odd = await startTest({ controllers: createFolder(t, { 'OddController.ts': ODD }) });
    t.after(() => odd.close());
    const own = await open('#/odd/odd_POST_errors', {}, odd.url);
    const found = own.locator('details.panel[open]#odd_POST_errors');
    for (const [which, shown] of [[], [], [], ['3 odd', 'body whole']].entries()) {
      await found.locator('[data-key="which"] input').fill(String(which));
      await send(found, 2);
      assert.deepEqual(await found.locator('.lost p').allInnerTexts(), shown, String(which));
    }
    await own.context().close();
  });

  test('marks operations that need a credential, shows full verbs, and links to the OpenAPI document', async () => {
    await page.goto('about:blank');
    const marked = async (id: string) => {
      await page.goto(`${api.url}/api/docs#/${id}`);
      const line = page.locator(`details.panel#${id.split('/')[1]} > summary`);
      await line.waitFor();
      return line.innerText();
    };
    assert.match(await marked('report/report_count'), /credential/);
    assert.doesNotMatch(await marked('book/book_index'), /credential/);
    assert.match(await marked('book/book_DELETE_by_id'), /^DELETE\s/);
    const href = await page.evaluate<string>('document.getElementById("document").href');
    assert.equal((await page.request.get(href)).status(), 200);
    assert.match((await page.locator('#token').getAttribute('placeholder')) ?? '', /another scheme/);
  });

  test('asks for a credential when the OpenAPI document needs one', async () => {
    await page.route('**/api/openapi.json', (route) =>
      route.fulfill({ status: 401, json: { message: 'A credential is needed' } }),
    );
    await page.goto('about:blank');
    await page.goto(`${api.url}/api/docs`);
    await page.getByText('A credential is needed').waitFor();
    assert.equal(await page.evaluate('document.activeElement.id'), 'token');
    await page.unroute('**/api/openapi.json');
    await page.keyboard.type('Bearer x');
    await page.keyboard.press('Enter');
    await page.locator('nav a.group').first().waitFor();
  });

  test('requests only its own service, and logs no error in the console', () => {
    assert.deepEqual(
      [...asked].filter((origin) => origin !== 'null'),
      ['its own'],
    );
    assert.deepEqual(complaints, []);
  });
});
