// examples/teamtasks as its reader runs it, with a real PostgreSQL: its types, its own tests, `gatefold doctor`, and its
// page in Chromium against the built service with two workers: two people sign up and see each other's changes at once.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { basename, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { build } from 'vite';
import { noPostgres, startPostgres } from '../examples/teamtasks/test/postgres.ts';

const root = resolve(import.meta.dirname, '..');
const require = createRequire(import.meta.url);
const { chromium } = createRequire(join(root, 'package.json'))('playwright-core');
const run = promisify(execFile);
const PATIENCE = 180_000;
const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
const noChromium = CHROMIUM === undefined ? 'no Chromium is installed' : false;
/** Where the pictures of the page go, if somebody wants to look at them. */
const PICTURES = process.env.TEAMTASKS_PICTURES;

describe('examples/teamtasks', { skip: noPostgres }, () => {
  let work;
  let postgres;
  let env;

  before(async () => {
    work = mkdtempSync(join(import.meta.dirname, 'work-'));
    const isOurs = (path) => !['node_modules', 'dist', 'data', '.env'].includes(basename(path));
    cpSync(join(root, 'examples/teamtasks'), work, { recursive: true, filter: isOurs });
    mkdirSync(join(work, 'node_modules'));
    symlinkSync(root, join(work, 'node_modules/gatefold'));
    for (const name of ['postgres', 'tsx'])
      symlinkSync(join(root, 'node_modules', name), join(work, 'node_modules', name));
    postgres = await startPostgres();
    env = {
      ...process.env,
      ...{
        DATABASE_URL: postgres.url,
        BETTER_AUTH_SECRET: 'of the judges, 32 characters long',
        SMTP_URL: 'smtp://127.0.0.1:9',
      },
      ...{ PORT: String(await findFreePort()), HOST: '127.0.0.1', WORKERS: '2', PUBLIC_DIR: join(work, 'web/dist') },
      NODE_TEST_CONTEXT: undefined,
    };
    env.PUBLIC_ORIGIN = `http://127.0.0.1:${env.PORT}`;
  });
  after(async () => {
    await postgres.close();
    rmSync(work, { recursive: true, force: true });
  });
  const node = (...args) => run(process.execPath, args, { cwd: work, env });

  test('its types hold, and the page builds', async () => {
    const tsc = require.resolve('typescript/bin/tsc');
    await node(tsc, '--noEmit').catch(({ stdout }) => assert.fail(stdout));
    await node(tsc, '--noEmit', '-p', 'web').catch(({ stdout }) => assert.fail(stdout));
    await build({ root: join(work, 'web'), logLevel: 'warn' });
  });

  test('its own tests pass', async (t) => {
    const { stdout } = await run(
      process.execPath,
      ['--import', 'tsx', '--test', '--test-reporter=tap', 'test/api.test.ts'],
      {
        ...{ cwd: work, env: { ...env, PUBLIC_ORIGIN: undefined } },
      },
    ).catch(({ stdout }) => assert.fail(stdout));
    t.diagnostic(/^# pass \d+$/m.exec(stdout)?.[0]);
  });

  test('doctor finds nothing', async () => {
    const { stdout } = await node(join(root, 'dist/cli.js'), 'doctor').catch(({ stdout }) => assert.fail(stdout));
    assert.match(stdout, /^Nothing is wrong/m);
  });

  describe('its page', { skip: noChromium }, () => {
    let service;
    let browser;
    let ann;
    let bob;
    const complaints = [];

    before(async () => {
      await node('--import', 'tsx', 'lib/migrate.ts');
      service = spawn(process.execPath, [join(root, 'dist/server.js')], {
        ...{ env, cwd: work, stdio: ['ignore', 'pipe', 'pipe'] },
      });
      createInterface({ input: service.stderr }).on('line', (line) => {
        if (line.startsWith('{') && JSON.parse(line).level === 'error') complaints.push(line);
      });
      for await (const line of createInterface({ input: service.stdout })) if (line.includes('listening')) break;
      browser = await chromium.launch({
        executablePath: CHROMIUM,
        args: ['--no-sandbox', '--disable-gpu'],
        timeout: PATIENCE,
      });
      ann = await signUp('Ann');
      bob = await signUp('Bob');
    });
    after(async () => {
      await browser?.close();
      service?.kill();
      if (service?.exitCode === null) await once(service, 'exit');
    });

    async function signUp(name) {
      const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
      page.setDefaultTimeout(PATIENCE);
      page.on('pageerror', ({ message }) => complaints.push(message));
      await page.goto(env.PUBLIC_ORIGIN);
      await page.getByRole('button', { name: 'I am new here' }).click();
      await page.getByLabel('Name').fill(name);
      await page.getByLabel('E-mail').fill(`${name.toLowerCase()}@example.com`);
      await page.getByLabel('Password').fill('correct horse');
      await page.getByRole('button', { name: 'Sign up' }).click();
      await page.getByText('You are in no team yet').waitFor();
      return page;
    }
    /** Fills the one field of a form, and sends it. */
    async function send(page, form, text) {
      const found = page.getByRole('form', { name: form });
      await found.getByRole('textbox').fill(text);
      await found.getByRole('button').click();
    }

    test('a team, a project and a task are made', async () => {
      await send(ann, 'New team', 'Garden');
      await send(ann, 'New project', 'Spring');
      await send(ann, 'New member', 'bob@example.com');
      await ann.getByText('Bob, member').waitFor();
      await send(ann, 'New task', 'Sow peas');
      await ann.getByRole('button', { name: 'Sow peas' }).waitFor();
      await bob.reload();
      await bob.getByRole('button', { name: 'Sow peas' }).waitFor();
    });

    test('the other browser sees a change at once', async () => {
      await bob.getByLabel('State of Sow peas').selectOption('done');
      await ann.locator('.tasks .done').getByText('Sow peas').waitFor();
      await ann.getByRole('button', { name: 'Sow peas' }).click();
      await bob.getByRole('button', { name: 'Sow peas' }).click();
      await send(bob, 'Comment', 'They are up');
      await ann.getByText('They are up').waitFor();
      await ann
        .getByLabel('File', { exact: true })
        .setInputFiles({ name: 'peas.txt', mimeType: 'text/plain', buffer: Buffer.from('green') });
      await ann.getByRole('button', { name: 'Attach' }).click();
      const link = bob.getByRole('link', { name: 'peas.txt' });
      await link.waitFor();
      const url = new URL(await link.getAttribute('href'), env.PUBLIC_ORIGIN).href;
      assert.equal(await (await bob.request.get(url)).text(), 'green');
      for (const page of [ann, bob]) await page.getByRole('button', { name: 'Close' }).click();
    });

    test('no change is lost while a controller is edited', async () => {
      const path = join(work, 'controllers/TasksController.ts');
      const source = readFileSync(path, 'utf8');
      for (let number = 1; number <= 5; number++) {
        writeFileSync(`${path}~`, `${source}// ${number}\n`);
        renameSync(`${path}~`, path);
        await send(ann, 'New task', `Task ${number}`);
        await bob.getByRole('button', { name: `Task ${number}`, exact: true }).waitFor();
      }
    });

    test('a page that nobody sees has no stream, and loads when it is seen again', async () => {
      const hide = (isHidden) =>
        bob.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
          document.dispatchEvent(new Event('visibilitychange'))`);
      await bob.addInitScript(() => {
        const send = window.fetch;
        window.fetch = (url, init) => {
          if (String(url).endsWith('/live')) window.live = init.signal;
          return send(url, init);
        };
      });
      await bob.reload();
      await bob.getByRole('button', { name: 'Sow peas' }).waitFor();
      await hide(true);
      assert.equal(await bob.evaluate('live.aborted'), true);
      await send(ann, 'New task', 'Water peas');
      await hide(false);
      await bob.getByRole('button', { name: 'Water peas', exact: true }).waitFor();
    });

    test('the page fits a telephone and the dark, and axe finds nothing', async () => {
      const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
      const faults = [];
      for (const [name, width, colorScheme] of [
        ['wide', 1280, 'light'],
        ['telephone', 360, 'light'],
        ['telephone-dark', 360, 'dark'],
        ['wide-dark', 1280, 'dark'],
      ]) {
        await ann.setViewportSize({ width, height: 800 });
        await ann.emulateMedia({ colorScheme });
        for (const view of ['list', 'task']) {
          if (view === 'task') await ann.getByRole('button', { name: 'Sow peas' }).click();
          if (PICTURES)
            await ann.screenshot({ path: join(PICTURES, `${name}-${view}.png`), fullPage: view === 'list' });
          assert.ok(
            await ann.evaluate('document.documentElement.scrollWidth <= innerWidth'),
            `${name} ${view} scrolls`,
          );
          await ann.evaluate(axe);
          const { violations } = await ann.evaluate('axe.run()');
          faults.push(...violations.map(({ id, nodes }) => `${name} ${view} ${id}: ${nodes.map(({ html }) => html)}`));
        }
        await ann.getByRole('button', { name: 'Close' }).click();
      }
      assert.deepEqual(faults, []);
    });

    test('neither the browsers nor the log complained', () => {
      assert.deepEqual(complaints, []);
    });
  });
});

async function findFreePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}
