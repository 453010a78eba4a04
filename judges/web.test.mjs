// The front end that `gatefold init --web` makes, built by the real Vite: it compiles, and Chromium loads it, calls the
// API with a cookie, and keeps a tab working over a deployment. Vite's own server passes requests on as one origin.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { build, createServer } from 'vite';

const root = resolve(import.meta.dirname, '..');
const ours = createRequire(join(root, 'package.json'));
const here = createRequire(import.meta.url);
const run = promisify(execFile);
const PATIENCE = 180_000;
const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);

const SESSION = `
import { type ControllerParams, type Operations, Reply } from 'gatefold';
interface User { id: string }
export default class SessionController {
  static operations: Operations<SessionController> = { POST: { access: 'anyone' }, GET: { access: 'user' } };
  POST(): Reply<204> { return new Reply(204, undefined, { 'Set-Cookie': 'session=Ada; HttpOnly; SameSite=Lax; Path=/' }); }
  GET(_: undefined, { user }: ControllerParams<{ user: User }>): User { return user; }
}`;
const SERVICE = `
import { defineService } from 'gatefold';
export default defineService<{ id: string }>({
  strict: true,
  access: 'anyone',
  authenticate: ({ cookies }) => (cookies.session === undefined ? undefined : { id: cookies.session }),
});`;
/** The page of each release gets a button whose script is loaded at the first click. */
const LATER = `
const later = document.createElement('button');
later.id = 'later';
later.onclick = async () => { later.textContent = (await import('./later.ts')).text; };
main.append(later);
`;

let work;
let project;
let service;
let origin;

before(async () => {
  work = mkdtempSync(join(import.meta.dirname, 'web-'));
  project = join(work, 'shop');
  await run(process.execPath, [join(root, 'dist/cli.js'), 'init', 'shop', '--web'], { cwd: work });
  const links = { gatefold: root, '@types/node': join(root, 'node_modules/@types/node') };
  for (const name of ['vite', 'typescript']) links[name] = join(import.meta.dirname, 'node_modules', name);
  for (const [name, target] of Object.entries(links)) {
    mkdirSync(dirname(join(project, 'node_modules', name)), { recursive: true });
    symlinkSync(target, join(project, 'node_modules', name));
  }
});
after(() => {
  service?.kill();
  if (work !== undefined) rmSync(work, { recursive: true, force: true });
});

/** Builds the page as a release, and makes it the current one in one step, as a deployment does. */
async function release(name, text) {
  writeFileSync(join(project, 'web/src/later.ts'), `export const text = '${text}';\n`);
  const outDir = join(work, name);
  await build({ root: join(project, 'web'), logLevel: 'error', build: { outDir, emptyOutDir: true } });
  symlinkSync(outDir, join(work, 'next'));
  renameSync(join(work, 'next'), join(work, 'current'));
}

async function start() {
  const settings = { PORT: '0', HOST: '127.0.0.1', WORKERS: '1', LOG_LEVEL: 'warn', DATA_DIR: join(work, 'data') };
  const files = { PUBLIC_DIR: join(work, 'current'), PUBLIC_FALLBACK: 'index.html' };
  const env = { ...process.env, ...settings, ...files, CONTROLLERS_DIR: join(project, 'controllers') };
  const words = process.features.typescript ? [] : ['--import', ours.resolve('tsx')];
  service = spawn(process.execPath, [...words, join(root, 'dist/server.js')], {
    env,
    cwd: project,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface({ input: service.stdout })) {
    origin = /http:\/\/\S+:\d+/.exec(line)?.[0];
    if (origin !== undefined) return service.stdout.resume();
  }
}

test('the page compiles, with the controllers whose types it has', async () => {
  const tsc = here.resolve('typescript/bin/tsc');
  const compiled = run(process.execPath, [tsc, '--noEmit', '-p', 'web'], { cwd: project });
  await compiled.catch(({ stdout }) => assert.fail(stdout));
});

describe('the page', () => {
  before(async () => {
    writeFileSync(join(project, 'controllers/SessionController.ts'), SESSION);
    writeFileSync(join(project, 'controllers/service.ts'), SERVICE);
    writeFileSync(join(project, 'web/src/main.ts'), LATER, { flag: 'a' });
    await release('one', 'first');
    await start();
  });

  test('calls the API with its cookie, and an open tab finds its scripts after a deployment', {
    skip: CHROMIUM === undefined && 'no Chromium is installed',
  }, async () => {
    const browser = await ours('playwright-core').chromium.launch({
      executablePath: CHROMIUM,
      args: ['--no-sandbox', '--disable-gpu'],
      timeout: PATIENCE,
    });
    try {
      const page = await browser.newPage({ viewport: { width: 360, height: 640 } });
      page.setDefaultTimeout(PATIENCE);
      const complaints = [];
      page.on('pageerror', (error) => complaints.push(error.message));
      page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
      await page.goto(origin);
      const status = page.getByRole('status');
      await page.getByLabel('Your name').fill('Ada');
      await page.getByRole('button', { name: 'Greet' }).click();
      await status.filter({ hasText: 'Hello, Ada!' }).waitFor();
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
      if (process.env.SCREENSHOT !== undefined) await page.screenshot({ path: process.env.SCREENSHOT });
      const user = await page.evaluate(async () => {
        await fetch('/api/session', { method: 'POST' });
        return (await fetch('/api/session')).json();
      });
      assert.deepEqual(user, { id: 'Ada' });
      assert.deepEqual(complaints, []);

      await page.goto(`${origin}/a/route/of/the/page`);
      const answer = await fetch(origin, { headers: { 'Accept-Encoding': 'br' } });
      assert.equal(answer.headers.get('content-encoding'), 'br', 'the build has compressed the page');
      assert.equal(answer.headers.get('cache-control'), 'no-cache');
      const scripts = await page.evaluate(() =>
        performance
          .getEntriesByType('resource')
          .map(({ name, transferSize }) => [name.split('.').at(-1), transferSize]),
      );
      assert.deepEqual(Object.fromEntries(scripts), { js: 0, css: 0 }, 'both are in the cache of the browser');

      await release('two', 'second');
      await page.locator('#later').click();
      await page.getByText('first').waitFor();
      await page.reload();
      await page.locator('#later').click();
      await page.getByText('second').waitFor();
      await page.getByLabel('Your name').fill('');
      await page.getByRole('button', { name: 'Greet' }).click();
      await status.filter({ hasText: 'The name must not be empty' }).waitFor();
      assert.deepEqual(
        complaints.filter((line) => !line.includes('422')),
        [],
      );
    } finally {
      await browser.close();
    }
  });

  test("Vite's server for development passes a request with a cookie on as one origin", async (t) => {
    process.env.PORT = new URL(origin).port;
    const vite = await createServer({
      root: join(project, 'web'),
      logLevel: 'error',
      server: { host: '127.0.0.1', port: 0 },
    });
    t.after(() => vite.close());
    await vite.listen();
    const url = `http://127.0.0.1:${vite.httpServer.address().port}`;
    const headers = { Cookie: 'session=Ada', Origin: url, 'Content-Type': 'application/json' };
    const post = (more) =>
      fetch(`${url}/api/hello`, { method: 'POST', headers: { ...headers, ...more }, body: '{"name":"Ada"}' });
    assert.deepEqual(await (await post({})).json(), { hello: 'Ada' });
    assert.equal((await post({ Origin: 'http://evil.example' })).status, 403);
    assert.match(await (await fetch(url)).text(), /@vite\/client/);
    // A group without sockets answers a handshake as usual. Where Vite does not pass it on, nobody answers.
    const handshake = { Connection: 'Upgrade', Upgrade: 'websocket', Origin: url, 'Sec-WebSocket-Version': '13' };
    const { statusCode } = await new Promise((resolve, reject) => {
      const key = { 'Sec-WebSocket-Key': 'c2l4dGVlbiBieXRlcyEhIQ==' };
      const asked = request(`${url}/api/hello`, { headers: { ...handshake, ...key }, timeout: 60_000 });
      asked.on('timeout', () => asked.destroy(new Error('no answer to the handshake')));
      asked.on('response', resolve).on('error', reject).end();
    });
    assert.equal(statusCode, 200);
  });
});
