// Other people's clients of the Model Context Protocol call the built service: the SDK of each revision, and the
// inspector's command line. The clients check each message, and each result by the schema of its tool.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { Client as NewClient, StreamableHTTPClientTransport as NewTransport } from '@modelcontextprotocol/client';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const root = resolve(import.meta.dirname, '..');
const run = promisify(execFile);
const CONTROLLER = `
import { type ControllerParams, HttpError, type Int, type Operations, Reply } from 'gatefold';
interface NewBook {
  /** The title as printed. @minLength 1 */
  title: string;
  /** @minimum 0 */
  price: number;
  published?: Date;
  sequel?: NewBook;
}
interface Book extends NewBook { id: Int }
const books: Book[] = [{ id: 1, title: 'Tea', price: 7, published: new Date(0), sequel: { title: 'More tea', price: 8 } }];
type One = ControllerParams<{ path: { id: Int } }>;
export default class BookController {
  static operations: Operations<BookController> = {
    '*': { tool: true },
    'GET {id}': { tool: 'find_book' },
    'DELETE {id}': { access: 'application' },
  };
  /** Lists the books. */
  index({ size = 10 }: { /** @maximum 100 */ size?: Int }): Book[] { return books.slice(0, size); }
  /** Adds a book. */
  created(book: NewBook): Reply<201, Book> {
    const made = { id: books.length + 1, ...book };
    books.push(made);
    return new Reply(201, made);
  }
  /** Finds one book. */
  'GET {id}'(_: unknown, { path: { id } }: One): Book {
    const book = books.find((one) => one.id === id);
    if (book === undefined) throw new HttpError(404, 'BOOK_NOT_FOUND', 'There is no such book');
    return book;
  }
  'DELETE {id}'(_: unknown, { path: { id } }: One): Reply<204> { return new Reply(204); }
  'GET count'(): number { return books.length; }
  'GET newest'(): Book | undefined { return undefined; }
  'GET either'(): Book | { none: true } { return { none: true }; }
  'GET text'(): Reply { return new Reply(200, new Blob(['plain'], { type: 'text/plain' })); }
}
`;

let service;
let url;
let work;

before(async () => {
  work = mkdtempSync(join(import.meta.dirname, 'work-'));
  for (const name of ['controllers', 'data', 'node_modules']) mkdirSync(join(work, name));
  writeFileSync(join(work, 'package.json'), '{ "name": "bookshop", "version": "1.2.3", "type": "module" }');
  writeFileSync(join(work, 'controllers/BookController.ts'), CONTROLLER);
  symlinkSync(root, join(work, 'node_modules/gatefold'));
  symlinkSync(join(root, 'node_modules/tsx'), join(work, 'node_modules/tsx'));
  const env = {
    ...process.env,
    ...{ PORT: '0', HOST: '127.0.0.1', WORKERS: '2', LOG_LEVEL: 'warn', MCP: 'on' },
    ...{ CONTROLLERS_DIR: join(work, 'controllers'), DATA_DIR: join(work, 'data') },
    NODE_TEST_CONTEXT: undefined,
  };
  service = spawn(process.execPath, [join(root, 'dist/server.js')], {
    ...{ env, cwd: work, stdio: ['ignore', 'pipe', 'inherit'] },
  });
  for await (const line of createInterface({ input: service.stdout })) {
    url = /http:\/\/\S+/.exec(line)?.[0];
    if (url !== undefined) break;
  }
  url = new URL('/api/mcp', url);
});
after(() => {
  service?.kill();
  if (work !== undefined) rmSync(work, { recursive: true, force: true });
});

const NAMES = ['book_index', 'book_created', 'find_book', 'book_GET_count'];
const clients = {
  '@modelcontextprotocol/sdk, 2025-11-25': async () => {
    const client = new OldClient({ name: 'judge', version: '1.0.0' });
    const faults = [];
    client.onerror = (error) => faults.push(error);
    const transport = new OldTransport(url);
    await client.connect(transport);
    return { client, faults, revision: () => transport.protocolVersion };
  },
  '@modelcontextprotocol/client, 2026-07-28': async () => {
    const client = new NewClient(
      { name: 'judge', version: '1.0.0' },
      { versionNegotiation: { mode: { pin: '2026-07-28' } } },
    );
    const faults = [];
    client.onerror = (error) => faults.push(error);
    await client.connect(new NewTransport(url));
    return { client, faults, revision: () => client.getNegotiatedProtocolVersion() };
  },
  '@modelcontextprotocol/client with the negotiated revision': async () => {
    const client = new NewClient({ name: 'judge', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } });
    const faults = [];
    client.onerror = (error) => faults.push(error);
    await client.connect(new NewTransport(url));
    return { client, faults, revision: () => client.getNegotiatedProtocolVersion() };
  },
};

for (const [name, connect] of Object.entries(clients)) {
  describe(name, () => {
    test('lists the tools, calls them, and accepts each result by the schema of its tool', async (t) => {
      const { client, faults, revision } = await connect();
      t.after(() => client.close());
      assert.equal(revision(), name.includes('2025') ? '2025-11-25' : '2026-07-28');
      assert.equal(client.getServerVersion()?.name, 'bookshop');
      const { tools } = await client.listTools();
      assert.deepEqual(
        tools.map((tool) => tool.name).filter((tool) => NAMES.includes(tool)),
        NAMES,
      );
      assert.equal(
        tools.some((tool) => tool.name === 'book_DELETE_by_id'),
        false,
      );
      assert.deepEqual(
        tools.filter(({ outputSchema }) => outputSchema === undefined).map((tool) => tool.name),
        ['book_GET_newest', 'book_GET_text'],
      );
      const call = (tool, args = {}) => client.callTool({ name: tool, arguments: args });
      const { structuredContent: made } = await call('book_created', { body: { title: 'Rice', price: 3 } });
      assert.equal(made.title, 'Rice');
      const { structuredContent: list } = await call('book_index', { query: { size: 1 } });
      assert.deepEqual(
        list.items.map(({ title }) => title),
        ['Tea'],
      );
      assert.equal((await call('find_book', { path: { id: 1 } })).structuredContent.sequel.title, 'More tea');
      assert.equal(typeof (await call('book_GET_count')).structuredContent.data, 'number');
      for (const tool of ['book_GET_newest', 'book_GET_either', 'book_GET_text'])
        assert.equal((await call(tool)).isError ?? false, false, tool);
      const wrong = await call('book_created', { body: { title: '', price: -1 } });
      assert.equal(wrong.isError, true);
      assert.match(wrong.content[0].text, /\/body\/title .*\n- \/body\/price must be at least 0/);
      assert.match((await call('find_book', { path: { id: 99 } })).content[0].text, /^BOOK_NOT_FOUND \(404\)/);
      await assert.rejects(call('absent'), /There is no tool of this name/);
      assert.deepEqual(faults, []);
    });
  });
}

const [major, minor] = process.versions.node.split('.').map(Number);
const skip = major > 22 || (major === 22 && minor >= 19) ? false : 'the inspector needs Node 22.19';

test('the command line of the inspector lists the tools and calls a tool', { skip }, async () => {
  const here = createRequire(import.meta.url);
  const inspector = join(
    dirname(here.resolve('@modelcontextprotocol/inspector/package.json')),
    'clients/cli/build/index.js',
  );
  const ask = async (...args) => {
    const { stdout } = await run(process.execPath, [inspector, url.href, '--transport', 'http', ...args]);
    return JSON.parse(stdout.slice(stdout.indexOf('{')));
  };
  const { tools } = await ask('--method', 'tools/list', '--strict');
  assert.ok(NAMES.every((name) => tools.some((tool) => tool.name === name)));
  const { structuredContent } = await ask(
    '--method',
    'tools/call',
    '--tool-name',
    'find_book',
    '--tool-arg',
    'path={"id":1}',
  );
  assert.equal(structuredContent.title, 'Tea');
});
