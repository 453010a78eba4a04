// Runs the page of docs/CHANNELS.md in Chromium: it loads, shows what comes, and has no stream while nobody sees it.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { startTest } from '../../src/api/testing.ts';
import { launchChromium, noChromium, openPage } from '../support/chromium.ts';
import { makeProject } from '../support/command-bench.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const TEXT = readFileSync(join(ROOT, 'docs/CHANNELS.md'), 'utf8');
const example = (start: string) =>
  new RegExp(`\`\`\`[tj]s\\n// ${start}[^\\n]*\\n([\\s\\S]*?)\`\`\``).exec(TEXT)?.[1] ?? '';
const HTML = `<!doctype html><title>tasks</title><script>
const seen = [];
const load = () => seen.push('load');
const show = ({ title }) => seen.push(title);
${example('In the page')}
</script>`;

test('the page of CHANNELS.md loads again when it is seen again', { skip: noChromium }, async (t) => {
  const root = makeProject(t, {
    'lib/tasks.ts': example('lib/tasks'),
    'controllers/TaskController.ts': example('controllers/TaskController'),
    'public/index.html': HTML,
  });
  mkdirSync(join(root, 'node_modules'));
  symlinkSync(ROOT, join(root, 'node_modules/gatefold'));
  const api = await startTest({ controllers: join(root, 'controllers'), env: { PUBLIC_DIR: join(root, 'public') } });
  t.after(() => api.close());
  const browser = await launchChromium();
  t.after(() => browser.close());
  const page = await openPage(browser);
  await page.goto(`http://127.0.0.1:${api.port}/`);
  const add = (title: string) => api.fetch('/task', { method: 'POST', json: { title } });
  const hide = (isHidden: boolean) =>
    page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
      document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))`);

  await page.waitForFunction("seen.join() === 'load'");
  await add('one');
  await page.waitForFunction("seen.join() === 'load,one'");
  await hide(true);
  assert.equal(await page.evaluate('events.readyState'), 2);
  await add('two');
  await hide(false);
  await page.waitForFunction("seen.join() === 'load,one,load'");
  await add('three');
  await page.waitForFunction("seen.join() === 'load,one,load,three'");

  // As after a 502 of a proxy, after which an EventSource does not connect again by itself.
  await page.evaluate("events.close(); events.dispatchEvent(new Event('error'))");
  await page.waitForFunction("seen.join() === 'load,one,load,three,load'");
});
