// The page at /api/docs under a service file, in a browser: the fields for users and keys, and the marks of operations.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { startTest, type TestApi } from '../../src/api/testing.ts';
import { launchChromium, noChromium, openPage } from '../support/chromium.ts';
import { makeProject } from '../support/command-bench.ts';
import { GATEFOLD } from '../support/service.ts';

const SERVICE = `
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

describe('the docs page under a service file', { skip: noChromium }, () => {
  let api: TestApi;
  let browser: Browser;
  let page: Page;
  const complaints: string[] = [];
  const cleanUp: (() => void)[] = [];

  before(async () => {
    const cwd = makeProject(
      { after: (clean) => cleanUp.push(clean) },
      { 'controllers/service.ts': SERVICE, 'controllers/NoteController.ts': NOTE },
    );
    api = await startTest({ controllers: `${cwd}/controllers` });
    browser = await launchChromium();
    page = await openPage(browser, { viewport: { width: 1280, height: 860 } });
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(`${api.url}/api/docs`);
    await page.waitForSelector('h1');
  });
  after(async () => {
    await browser?.close();
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
