// examples/teamtasks on a machine, with a real PostgreSQL: `gatefold deploy` brings it there by a local sshd, and then a
// changed controller, a migration and a changed page. Meanwhile two people work in Chromium, and nothing is lost.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createRequire } from 'node:module';
import { basename, join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { noPostgres, startPostgres } from '../examples/teamtasks/test/postgres.ts';
import { startDeployed } from '../test/support/deployed.ts';
import { NO_SSH } from '../test/support/ssh-machine.ts';

const root = resolve(import.meta.dirname, '..');
const ours = createRequire(join(root, 'package.json'));
const PATIENCE = 180_000;
const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
const noChromium = CHROMIUM === undefined && 'no Chromium is installed';
/** An answer of the API has at most this many tasks. The page shows all. */
const ROWS = 50;
/** The insert of each release. The answer of the API has what it inserts. */
const INSERT = '.insert(tasks).values(task)';
const DATED = ".insert(tasks).values({ ...task, due: '2027-03-01' })";
const RANKED = DATED.replace(' })', ', priority: 2 })');

describe('examples/teamtasks, deployed', { skip: noPostgres || NO_SSH || noChromium }, () => {
  let work;
  let postgres;
  let sql;
  let machine;
  let origin;
  let browser;
  let ann;
  let bob;
  const ends = [];
  const complaints = [];
  const counts = { requests: 0, connections: 0 };
  /** The titles of the tasks and the names of the files, in the order of their creation. */
  const created = { tasks: [], files: [] };
  /** How many parts the uploads have that last over a deployment. */
  const parts = new Map();

  before(async () => {
    work = mkdtempSync(join(import.meta.dirname, 'work-'));
    makeProject(work);
    postgres = await startPostgres();
    sql = ours('postgres')(postgres.url, { max: 1 });
    const settings = {
      DATABASE_URL: postgres.url,
      BETTER_AUTH_SECRET: 'of-the-judges-32-characters-long',
      PAYMENT_SECRET: 'of-the-judges',
      SMTP_URL: 'smtp://127.0.0.1:9',
      PUBLIC_DIR: 'current/web/dist',
      DRAIN_TIMEOUT: '300s',
      // npm asks the registry only for what it has not got.
      npm_config_prefer_offline: 'true',
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
    const env = (port) => `${lines.join('')}PUBLIC_ORIGIN=http://127.0.0.1:${port}\n`;
    machine = await startDeployed({ after: (end) => ends.push(end) }, { project: work, env });
    origin = `http://127.0.0.1:${machine.port}`;
    browser = await ours('playwright-core').chromium.launch({
      executablePath: CHROMIUM,
      args: ['--no-sandbox', '--disable-gpu'],
      timeout: PATIENCE,
    });
    ann = await signUp('Ann');
    bob = await signUp('Bob');
    await send(ann, 'New team', 'Garden');
    await send(ann, 'New project', 'Spring');
    await send(ann, 'New member', 'bob@example.com');
    await addTask('Files');
    for (let number = 1; number <= ROWS; number++) created.tasks.push(`Old ${number}`);
    await ann.evaluate(async (titles) => {
      const headers = { 'Content-Type': 'application/json' };
      for (const title of titles)
        await fetch('/api/tasks', { method: 'POST', headers, body: JSON.stringify({ projectId: 1, title }) });
    }, created.tasks.slice(1));
    await bob.reload();
    await bob.getByRole('button', { name: 'Files', exact: true }).click();
    for (const page of [ann, bob]) {
      await page.getByRole('button', { name: created.tasks.at(-1), exact: true }).waitFor();
      await page.evaluate(watch);
      listen(page);
    }
  });
  after(async () => {
    await browser?.close();
    for (const end of ends) await end();
    await sql?.end();
    await postgres?.close();
    rmSync(work, { recursive: true, force: true });
  });

  async function signUp(name) {
    const page = await (await browser.newContext()).newPage();
    page.setDefaultTimeout(PATIENCE);
    page.on('pageerror', ({ message }) => complaints.push(message));
    await page.goto(origin);
    await page.getByRole('button', { name: 'I am new here' }).click();
    await page.getByLabel('Name').fill(name);
    await page.getByLabel('E-mail').fill(`${name.toLowerCase()}@example.com`);
    await page.getByLabel('Password').fill('correct horse');
    await page.getByRole('button', { name: 'Sign up' }).click();
    await page.getByText('You are in no team yet').waitFor();
    return page;
  }
  /** Fills the one field of a form, sends it, and waits until the form is empty again. */
  async function send(page, form, content) {
    const found = page.getByRole('form', { name: form });
    const field = found.locator('input');
    await (typeof content === 'string' ? field.fill(content) : field.setInputFiles(content));
    await found.locator('button').click();
    await found.locator('button:enabled').waitFor();
    for (const problem of await found.getByRole('alert').allTextContents()) complaints.push(problem);
  }
  /** Adds a task in the page of Ann. Returns the answer. */
  async function addTask(title) {
    const isPost = (answer) => answer.url() === `${origin}/api/tasks` && answer.request().method() === 'POST';
    const [answer] = await Promise.all([ann.waitForResponse(isPost), send(ann, 'New task', title)]);
    assert.equal(answer.status(), 201);
    created.tasks.push(title);
    return answer.json();
  }
  async function upload(name) {
    await ann.getByRole('button', { name: 'Files', exact: true }).click();
    await send(ann, 'Attach a file', { name, mimeType: 'text/plain', buffer: Buffer.from(contentOf(name)) });
    created.files.push(name);
    await ann.getByRole('button', { name: 'Close' }).click();
  }
  /** Begins an upload in the name of Ann, which sends a part of 100 KB at each call. */
  async function beginUpload(name) {
    const cookies = await ann.context().cookies();
    const headers = { Cookie: cookies.map(({ name, value }) => `${name}=${value}`).join('; '), Origin: origin };
    const sent = request(`${origin}/api/tasks/1/attachments/${encodeURIComponent(name)}`, { method: 'PUT', headers });
    const answered = once(sent, 'response');
    const sendPart = () => {
      sent.write(contentOf(name));
      parts.set(name, (parts.get(name) ?? 0) + 1);
    };
    sendPart();
    const end = async () => {
      sent.end();
      const [answer] = await answered;
      assert.equal(answer.statusCode, 201, await text(answer));
      created.files.push(name);
    };
    return { sendPart, end };
  }
  function listen(page) {
    page.on('request', (sent) => {
      counts.requests++;
      if (sent.url().endsWith('/live')) counts.connections++;
    });
    page.on('requestfailed', (sent) => {
      const { errorText } = sent.failure();
      // Chromium says so of a stream of events that the page still reads, and that ends later. The lists show a loss.
      if (sent.url().endsWith('/live') && errorText === 'net::ERR_ABORTED') return;
      complaints.push(`${sent.method()} ${sent.url()}: ${errorText}`);
    });
    page.on('response', (answer) => {
      if (answer.status() >= 400) complaints.push(`${answer.url()}: ${answer.status()}`);
    });
  }
  function edit(name, from, to) {
    const path = join(work, name);
    const source = readFileSync(path, 'utf8');
    assert.ok(source.includes(from), `${name} has ${from}`);
    writeFileSync(path, source.replace(from, to));
  }

  /** Deploys the project. Ann works until the new release answers, and Bob sees it at once. Another upload begins before, and ends after. */
  async function deploy(isNew) {
    const long = await beginUpload(`long ${created.files.length}.txt`);
    let isDeployed = false;
    const deployment = machine.deploy().finally(() => {
      isDeployed = true;
    });
    for (let number = created.tasks.length, isOver = false; !isOver; number++) {
      const wasDeployed = isDeployed;
      const answer = await addTask(`Task ${number}`);
      await upload(`file ${number}.txt`);
      await bob.waitForFunction((name) => seen.files.includes(name), `file ${number}.txt`);
      long.sendPart();
      isOver = wasDeployed && isNew(answer);
    }
    const { code, out, err } = await deployment;
    assert.equal(code, 0, out + err);
    await long.end();
  }

  test('a changed controller', async () => {
    edit('controllers/TasksController.ts', INSERT, DATED);
    await deploy(({ due }) => due === '2027-03-01');
  });

  test('a migration, with a controller that needs it', async () => {
    edit('lib/schema.ts', 'due: date(),', 'due: date(),\n    priority: integer().notNull().default(1),');
    edit('controllers/TasksController.ts', DATED, RANKED);
    const journal = JSON.parse(readFileSync(join(work, 'migrations/meta/_journal.json'), 'utf8'));
    const [first] = journal.entries;
    journal.entries.push({ ...first, idx: 1, when: first.when + 1, tag: '0001_priority' });
    writeFileSync(join(work, 'migrations/meta/_journal.json'), JSON.stringify(journal));
    const column = 'ALTER TABLE "tasks" ADD COLUMN "priority" integer DEFAULT 1 NOT NULL;';
    writeFileSync(join(work, 'migrations/0001_priority.sql'), column);
    await deploy(({ priority }) => priority === 2);
  });

  test('a changed page, beside the scripts of the open one', async () => {
    const resources = await bob.evaluate(() => performance.getEntriesByType('resource').map(({ name }) => name));
    const scripts = resources.filter((name) => name.includes('/assets/'));
    edit('web/src/main.tsx', '<h1>Teamtasks</h1>', '<h1>Teamtasks, new</h1>');
    await deploy(() => true);
    assert.ok(scripts.length > 0);
    for (const url of scripts) assert.equal((await bob.request.get(url)).status(), 200, url);
  });

  test('both browsers have seen each change once, in order, and nothing is lost', async (t) => {
    const numbers = [created.tasks.length, created.files.length];
    for (const page of [ann, bob]) await page.waitForFunction((count) => seen.tasks.length >= count, numbers[0]);
    await bob.waitForFunction((count) => seen.files.length >= count, numbers[1]);
    const [byAnn, byBob] = await Promise.all([ann, bob].map((page) => page.evaluate(() => globalThis.seen)));
    assert.deepEqual([byAnn.tasks, byBob.tasks, byBob.files], [created.tasks, created.tasks, created.files]);
    assert.deepEqual([byAnn.faults, byBob.faults], [[], []]);
    const titles = await sql`SELECT title FROM tasks ORDER BY id`;
    assert.deepEqual(
      titles.map(({ title }) => title),
      created.tasks,
    );
    const files = await sql`SELECT id, name FROM attachments ORDER BY "createdAt"`;
    assert.deepEqual(
      files.map(({ name }) => name),
      created.files,
    );
    for (const { id, name } of files) {
      const content = await (await bob.request.get(`${origin}/api/attachments/${id}`)).text();
      assert.ok(content === contentOf(name).repeat(parts.get(name) ?? 1), `${name} has another content`);
    }
    assert.deepEqual(complaints, []);
    t.diagnostic(
      `${created.tasks.length} tasks and ${created.files.length} files over 3 deployments, none lost: ` +
        `${counts.requests} requests of the browsers, ${counts.connections} of them for live changes`,
    );
  });

  test('a reload has the new page', async () => {
    await bob.reload();
    await bob.getByRole('heading', { name: 'Teamtasks, new' }).waitFor();
    await bob.getByRole('button', { name: created.tasks.at(-1), exact: true }).waitFor();
  });
});

/** The content of a file is about 100 KB, and has the name of the file. */
function contentOf(name) {
  return `${name}\n`.repeat(1e5 / name.length);
}

/** Notes in a page when a task or a file is seen first, and when one is gone or there twice. */
function watch() {
  const lists = { tasks: '.tasks > li > button', files: 'dialog a' };
  const seen = { tasks: [], files: [], faults: [] };
  globalThis.seen = seen;
  const look = () => {
    for (const [list, selector] of Object.entries(lists)) {
      const names = [...document.querySelectorAll(selector)].map(({ textContent }) => textContent);
      if (new Set(names).size !== names.length) seen.faults.push(`twice: ${names}`);
      // A dialog that is closed has no list.
      if (names.length > 0) for (const name of seen[list]) if (!names.includes(name)) seen.faults.push(`gone: ${name}`);
      for (const name of names) if (!seen[list].includes(name)) seen[list].push(name);
    }
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true, characterData: true });
  look();
}

/** Copies the example, and makes the lock file of its `npm install` out of those of this checkout. */
function makeProject(work) {
  const isOurs = (path) => !['node_modules', 'dist', 'data', '.env'].includes(basename(path));
  cpSync(join(root, 'examples/teamtasks'), work, { recursive: true, filter: isOurs });
  mkdirSync(join(work, 'node_modules'));
  symlinkSync(root, join(work, 'node_modules/gatefold'));
  symlinkSync(join(root, 'node_modules/postgres'), join(work, 'node_modules/postgres'));
  const manifest = JSON.parse(readFileSync(join(work, 'package.json'), 'utf8'));
  manifest.devDependencies = {};
  if (!process.features.typescript) {
    symlinkSync(join(root, 'node_modules/tsx'), join(work, 'node_modules/tsx'));
    manifest.devDependencies.tsx = '*';
    manifest.scripts.migrate = 'node --import tsx lib/migrate.ts';
  }
  writeFileSync(join(work, 'package.json'), JSON.stringify(manifest));
  const { name, version, dependencies, devDependencies } = manifest;
  const lock = {
    '': { name, version, dependencies, devDependencies },
    '../..': { name: 'gatefold', version: '0.1.0' },
    'node_modules/gatefold': { resolved: '../..', link: true },
  };
  const sources = ['judges/package-lock.json', 'package-lock.json'].map(
    (path) => JSON.parse(readFileSync(join(root, path), 'utf8')).packages,
  );
  for (const name of Object.keys({ ...dependencies, ...devDependencies }))
    if (name !== 'gatefold')
      assert.ok(
        sources.some((source) => addToLock(lock, source, name)),
        `no lock file has ${name}`,
      );
  const text = JSON.stringify({ name, version, lockfileVersion: 3, requires: true, packages: lock });
  writeFileSync(join(work, 'package-lock.json'), text);
}

/** Adds a package and what it needs. It finds a package in its own node_modules, and then in those above. */
function addToLock(lock, source, name, from = '') {
  const parts = from.split(/(?=\/node_modules\/)/);
  const folders = parts.map((_, depth) => `${parts.slice(0, parts.length - depth).join('')}/`);
  const path = [...folders, ''].map((folder) => `${folder}node_modules/${name}`).find((path) => path in source);
  if (path === undefined || path in lock) return path !== undefined;
  const { dev, peer, ...entry } = source[path];
  lock[path] = entry;
  const needed = { ...entry.dependencies, ...entry.optionalDependencies, ...entry.peerDependencies };
  for (const name of Object.keys(needed))
    if (!entry.peerDependenciesMeta?.[name]?.optional) addToLock(lock, source, name, path);
  return true;
}
