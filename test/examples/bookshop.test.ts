// Runs examples/bookshop as its reader does: a project with Gatefold installed, whose tests run on this Node. Also
// checks on two workers that an event stream and the database survive an edit, as the documentation says.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { startService } from '../support/cluster-server.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
const skip =
  major > 22 || (major === 22 && minor >= 18) ? false : 'node:sqlite and TypeScript as it is need Node 22.18';

function install(after: (clean: () => void) => void): string {
  const project = mkdtempSync(join(tmpdir(), 'gatefold-bookshop-'));
  after(() => rmSync(project, { recursive: true, force: true }));
  cpSync(join(ROOT, 'examples/bookshop'), project, {
    recursive: true,
    filter: (path) => !path.includes('node_modules'),
  });
  mkdirSync(join(project, 'node_modules'));
  symlinkSync(ROOT, join(project, 'node_modules/gatefold'));
  return project;
}

describe('examples/bookshop', { skip }, () => {
  test('passes its own tests', async (t) => {
    const project = install((clean) => t.after(clean));
    const env = { ...process.env, NODE_TEST_CONTEXT: undefined, NODE_V8_COVERAGE: undefined };
    const run = promisify(execFile)(process.execPath, ['--test', '--test-reporter=tap', 'test/bookshop.test.ts'], {
      cwd: project,
      env,
    });
    const { stdout } = await run.catch((error: { stdout: string }) => assert.fail(error.stdout));
    assert.match(stdout, /^# fail 0$/m);
    assert.match(stdout, /^# skipped 0$/m);
  });

  test('sends every event through an edit of a controller, and stops without an error', async (t) => {
    const project = install((clean) => t.after(clean));
    const file = join(project, 'controllers/OrderController.ts');
    const database = join(project, 'shop/bookshop.sqlite');
    const service = await startService(t, {
      dir: join(project, 'controllers'),
      env: { BOOKSHOP_DB: database, DATA_DIR: join(project, 'data') },
    });
    const url = `http://127.0.0.1:${service.port}/api`;
    const seen: number[] = [];
    const stop = new AbortController();
    const following = follow(`${url}/order/events`, seen, stop.signal);
    await until(() => following.connections > 0);
    const order = async (): Promise<readonly [status: number, location: string | null]> => {
      const answer = await fetch(`${url}/order`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"book":1,"copies":1}',
      });
      return [answer.status, answer.headers.get('location')];
    };
    // No credential of this test may write books, so the order names a missing book.
    assert.deepEqual(await order(), [404, null]);
    const { DatabaseSync } = await import('node:sqlite');
    const shop = new DatabaseSync(database);
    t.after(() => shop.close());
    shop.exec(`INSERT INTO book (title, author, isbn, price, currency, pages, publishedOn, inPrint, language, tags)
      VALUES ('Emma', 'Austen', '9780141439587', 8.5, 'EUR', 474, '1815-12-23', 1, 'en', '[]')`);
    assert.deepEqual(await order(), [201, '/api/order/1']);
    await until(() => seen.length === 1);

    const source = readFileSync(file, 'utf8');
    writeFileSync(file, source.replace('Location: `/api/order/', 'Location: `/api/order/new/'));
    while ((await order())[1]?.startsWith('/api/order/new/') !== true)
      await new Promise((later) => setTimeout(later, 10));
    await until(() => following.connections > 1);
    await order();
    const { newest } = shop.prepare('SELECT max(id) AS newest FROM purchase').get() as { newest: number };
    await until(() => seen.at(-1) === newest);
    assert.deepEqual(
      seen,
      Array.from({ length: newest }, (_, i) => i + 1),
    );
    stop.abort();
    service.process.kill('SIGTERM');
    assert.deepEqual(await service.exited, { code: 0, signal: null });
    assert.deepEqual(
      service.lines.filter(({ level, event }) => level === 'error' || event === 'controller-not-disposed'),
      [],
    );
  });
});

interface Following {
  connections: number;
}

/** Follows the events as a browser's EventSource does. */
function follow(url: string, seen: number[], signal: AbortSignal): Following {
  const following: Following = { connections: 0 };
  void (async () => {
    while (!signal.aborted) {
      try {
        const answer = await fetch(url, {
          signal,
          headers: seen.length === 0 ? {} : { 'Last-Event-ID': String(seen.at(-1)) },
        });
        following.connections++;
        let text = '';
        for await (const piece of answer.body as unknown as AsyncIterable<Uint8Array>) {
          text += Buffer.from(piece).toString('latin1');
          const events = text.split('\n\n');
          text = events.pop() ?? '';
          for (const event of events) {
            const id = /^id: (\d+)$/m.exec(event)?.[1];
            if (id !== undefined) seen.push(Number(id));
          }
        }
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    }
  })();
  return following;
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((later) => setTimeout(later, 5));
}
