// PUBLIC_DIR over a socket: which file a path names, which paths name none, and what an answer has.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, it, type TestContext } from 'node:test';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { parseSettings, SettingsError } from '../../src/base/config.ts';
import { type FileContent, openFile } from '../../src/base/files/open-file.ts';
import { createLog } from '../../src/base/log.ts';
import { createPublicFiles, type PublicFiles } from '../../src/request/files/public-files.ts';
import { LOADER, moduleUrl } from '../support/own-modules.ts';
import { asRaw, assertEnvelope, GATEFOLD, parseRaw, type Service, startService } from '../support/service.ts';

interface Site {
  readonly service: Service;
  /** The folder that holds the public folder, `public`. */
  readonly root: string;
  put(name: string, content?: string | Buffer): string;
  get(path: string, headers?: Readonly<Record<string, string>>, verb?: string): Promise<Response>;
}

interface SiteOptions {
  readonly settings?: Readonly<Record<string, string>>;
  readonly controllers?: Readonly<Record<string, string>>;
  readonly expectedErrors?: readonly string[];
}

async function startSite(test: TestContext, files: readonly string[], options: SiteOptions = {}): Promise<Site> {
  const root = mkdtempSync(join(tmpdir(), 'gatefold-public-'));
  test.after(() => rmSync(root, { recursive: true, force: true }));
  const put: Site['put'] = (name, content = `content of ${name}`) => {
    const path = join(root, 'public', name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    return path;
  };
  for (const name of files) put(name);
  mkdirSync(join(root, 'data'));
  const { controllers = { 'OrderController.mjs': 'export default { GET() { return { order: 1 } } }' } } = options;
  const service = await startService({
    controllers,
    settings: { PUBLIC_DIR: join(root, 'public'), DATA_DIR: join(root, 'data'), ...options.settings },
    expectedErrors: options.expectedErrors ?? [],
  });
  test.after(() => service.close());
  const get: Site['get'] = (path, headers = {}, verb = 'GET') =>
    fetch(service.url + path, { headers, method: verb, redirect: 'manual' });
  return { service, root, put, get };
}

describe('a path outside of BASE_PATH', () => {
  it('names a file, a page without its extension, or the index of a folder; each has one address', async (test) => {
    const { get } = await startSite(test, [
      ...['index.html', 'about.html', 'docs/index.html', 'docs/deep/page.html', 'app.js', 'LICENSE', 'a b.txt'],
      ...['both.html', 'both/index.html', '.well-known/security.txt', 'ä.txt', 'x.y/index.html', 'v1.0.html'],
    ]);
    const rows: [path: string, status: number, result: string][] = [
      ['/', 200, 'index.html'],
      ['/index.html', 200, 'index.html'],
      ['/?a=1', 200, 'index.html'],
      ['/about', 200, 'about.html'],
      ['/about.html', 200, 'about.html'],
      ['/about/', 308, '/about'],
      ['/docs', 308, '/docs/'],
      ['/docs?a=%2F&b', 308, '/docs/?a=%2F&b'],
      ['/docs/', 200, 'docs/index.html'],
      ['/docs/deep/page', 200, 'docs/deep/page.html'],
      ['/docs/deep', 404, ''],
      ['/app.js', 200, 'app.js'],
      ['/app', 404, ''],
      ['/LICENSE', 200, 'LICENSE'],
      ['/a%20b.txt', 200, 'a b.txt'],
      ['/%C3%A4.txt', 200, 'ä.txt'],
      ['/both', 200, 'both.html'],
      ['/both/', 200, 'both/index.html'],
      ['/x.y', 308, '/x.y/'],
      ['/v1.0', 200, 'v1.0.html'],
      ['/.well-known/security.txt', 200, '.well-known/security.txt'],
      ['//about/', 308, '/about'],
      ['/API/order', 404, ''],
      ['/none', 404, ''],
    ];
    for (const [path, status, result] of rows) {
      const answer = await get(path);
      assert.equal(answer.status, status, path);
      if (status === 200) assert.equal(await answer.text(), `content of ${result}`, path);
      else if (status === 308)
        assert.deepEqual(
          [answer.headers.get('location'), answer.headers.get('cache-control')],
          [result, 'no-cache'],
          path,
        );
      else assert.equal(((await answer.json()) as { error_code: string }).error_code, 'FILE_NOT_FOUND', path);
    }
    assert.deepEqual(await (await get('/api/order')).json(), { order: 1 });
  });

  it('never leads out of the folder, to a hidden file, or to anything that is no file', async (test) => {
    const site = await startSite(test, [
      'index.html',
      '.env',
      '.git/config',
      '.vite/manifest.json',
      'a/.hidden',
      'aux.txt',
    ]);
    const { put, root, service } = site;
    writeFileSync(join(root, 'secret.txt'), 'secret');
    mkdirSync(join(root, 'public-too'));
    writeFileSync(join(root, 'public-too/secret.txt'), 'secret');
    const link = (target: string, name: string) => symlinkSync(target, join(root, 'public', name));
    link('../secret.txt', 'out.txt');
    link('..', 'up');
    link('../public-too', 'beside');
    link('.env', 'env.txt');
    link('loop', 'loop');
    link('/etc/hostname', 'host.txt');
    link('index.html', 'good.txt');
    execFileSync('mkfifo', [join(root, 'public', 'pipe')]);
    put('sub/x.txt');
    const paths = [
      ...['/../secret.txt', '/..%2Fsecret.txt', '/%2e%2e/secret.txt', '/%2e%2e%2fsecret.txt', '/sub/../../secret.txt'],
      ...['/..%5Csecret.txt', '/..\\secret.txt', '/%252e%252e/secret.txt', '/....//secret.txt', '/.%2e/secret.txt'],
      ...['/index.html%00.txt', '/index.html/', '/index.html/x', '/sub/./x.txt', '/sub%2Fx.txt', '/C:/x', '/x::$DATA'],
      ...['/.env', '/.git/config', '/.vite/manifest.json', '/a/.hidden', '/%2eenv', '/sub/..', '/.', '/..'],
      ...['/out.txt', '/up/secret.txt', '/beside/secret.txt', '/env.txt', '/loop', '/host.txt', '/pipe', '/aux.txt'],
      ...['/%c0%ae%c0%ae/secret.txt', '/%%32%65%%32%65/secret.txt', '/0x2e0x2e/secret.txt', '/..%25c0%25afsecret.txt'],
      ...['////%2e%2e%2fsecret.txt', '/\\..%2fsecret.txt', '/..;/secret.txt', '/%u002e%u002e/secret.txt'],
      ...['/NUL', '/con.html', `/${'a'.repeat(300)}`, `/${'a/'.repeat(3000)}`, '/etc/passwd', '//etc/passwd'],
    ];
    for (const path of paths) {
      const { status, body } = parseRaw(
        await service.raw(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`, 9),
      );
      assert.ok(status === 404 || status === 400 || (status === 308 && path === '/index.html/'), `${path}: ${status}`);
      assert.doesNotMatch(body, /content of|secret/, path);
    }
    assert.equal(await (await site.get('/good.txt')).text(), 'content of index.html');
    // A file outside of the folder, behind a link, is answered like no file.
    for (const path of ['/out.txt', '/up/secret.txt', '/env.txt'])
      for (const [verb, end] of [
        ['GET', '/'],
        ['POST', ''],
        ['OPTIONS', ''],
      ] as const)
        assert.equal((await site.get(path + end, {}, verb)).status, 404, `${verb} ${path}${end}`);
  });

  it('takes GET and HEAD where there is a file', async (test) => {
    const { get, service } = await startSite(test, ['app.js']);
    const head = await get('/app.js', {}, 'HEAD');
    assert.deepEqual([head.status, head.headers.get('content-length'), await head.text()], [200, '17', '']);
    for (const verb of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      const { status, headers } = await get('/app.js', {}, verb);
      assert.deepEqual([verb, status, headers.get('allow')], [verb, 405, 'GET, HEAD']);
      assert.equal((await get('/none', {}, verb)).status, 404, verb);
    }
    assert.ok(!service.lines.some(({ level }) => level === 'error'));
  });

  it('counts for RATE_LIMIT when it names nothing', async (test) => {
    const { get } = await startSite(test, ['app.js'], { settings: { RATE_LIMIT: '3/h' } });
    for (let count = 0; count < 9; count++) assert.equal((await get('/app.js')).status, 200);
    for (const status of [404, 404, 404, 429]) assert.equal((await get('/none')).status, status);
    assert.equal((await get('/app.js')).status, 200);
  });

  it('gets a page of the folder when it names nothing', async (test) => {
    const { get, put } = await startSite(test, ['index.html', '404.html'], {
      settings: { PUBLIC_FALLBACK: 'index.html' },
    });
    const html = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
    const rows: [path: string, headers: Record<string, string>, status: number, content: string][] = [
      ['/tasks/7', html, 200, 'content of index.html'],
      ['/tasks/', html, 200, 'content of index.html'],
      ['/missing.js', html, 404, 'content of 404.html'],
      ['/tasks/7', { accept: 'application/json' }, 404, 'content of 404.html'],
      ['/tasks/7', { accept: 'a/b, text/html ; level=1;q=0.1' }, 200, 'content of index.html'],
      ['/tasks/7', { accept: 'text/html;level=1; q=0.0, */*' }, 404, 'content of 404.html'],
      ['/tasks/7', { accept: 'text/html-x' }, 404, 'content of 404.html'],
    ];
    for (const [path, headers, status, content] of rows) {
      const answer = await get(path, headers);
      assert.deepEqual([path, answer.status, await answer.text()], [path, status, content]);
      assert.equal(answer.headers.get('content-type'), 'text/html; charset=utf-8');
      assert.equal(answer.headers.get('cache-control'), status === 200 ? 'no-cache' : 'no-store', path);
    }
    put('tasks/7.html');
    assert.equal(await (await get('/tasks/7', html)).text(), 'content of tasks/7.html');
    assert.equal((await get('/api/none', html)).status, 404);
  });
});

describe('a path under an empty BASE_PATH', () => {
  it('names a group first, then a literal route of the root group, a file, and any other route', async (test) => {
    const group = (name: string, routes: string) => ({ [name]: `export default { ${routes} }` });
    const { get, put } = await startSite(test, ['index.html', 'order', 'robots.txt', 'app.js', 'tasks.html'], {
      settings: { BASE_PATH: '/', PUBLIC_FALLBACK: 'index.html' },
      controllers: {
        ...group('OrderController.mjs', `GET() { return { by: 'order' } }`),
        ...group(
          'Controller.mjs',
          `'GET robots.txt'() { return { by: 'robots' } }, 'GET {user}'() { return { by: 'user' } }`,
        ),
      },
    });
    const by = async (path: string, headers = {}) => {
      const text = await (await get(path, headers)).text();
      return text.startsWith('{') ? ((JSON.parse(text) as { by?: string }).by ?? 'error') : text;
    };
    assert.equal(await by('/order'), 'order');
    assert.equal(await by('/robots.txt'), 'robots');
    assert.equal(await by('/app.js'), 'content of app.js');
    assert.equal(await by('/tasks'), 'content of tasks.html');
    assert.equal(await by('/'), 'content of index.html');
    assert.equal(await by('/ann', { accept: 'text/html' }), 'user');
    assert.equal(await by('/order/', { accept: 'text/html' }), 'order');
    put('ann.html');
    assert.equal(await by('/ann'), 'content of ann.html');
    assert.equal(await by('/app.js', { authorization: 'Bearer x' }), 'user', 'a key may have a handler for every path');
  });

  it('is a file before a mount at the root, also the bare path', async (test) => {
    const { get } = await startSite(test, ['index.html', 'app.js'], {
      settings: { BASE_PATH: '/' },
      controllers: {
        'Controller.mjs': `import { mount } from '${GATEFOLD}';\nexport default mount(() => new Response('the mount'));`,
      },
    });
    const texts = ['/', '/app.js', '/other'].map(async (path) => (await get(path)).text());
    assert.deepEqual(await Promise.all(texts), ['content of index.html', 'content of app.js', 'the mount']);
  });

  it('gets the page of the front end where there is no root group', async (test) => {
    const { get, service } = await startSite(test, ['index.html'], {
      settings: { BASE_PATH: '/', PUBLIC_FALLBACK: 'index.html' },
      expectedErrors: ['request-failed', 'group-not-loadable'],
    });
    assert.equal(await (await get('/tasks/7', { accept: 'text/html' })).text(), 'content of index.html');
    assert.equal((await get('/tasks/7')).status, 404);
    assert.deepEqual(await (await get('/order', { accept: 'text/html' })).json(), { order: 1 });
    writeFileSync(join(service.dir, 'BrokenController.mjs'), 'throw new Error()');
    assert.equal((await get('/broken')).status, 500, 'a new group that does not load keeps its path');
    writeFileSync(join(service.dir, 'Controller.mjs'), `export default { 'GET {user}'() { return { by: 'user' } } }`);
    assert.equal(await (await get('/index.html')).text(), 'content of index.html', 'a new root group takes no file');
    assert.deepEqual(await (await get('/ann')).json(), { by: 'user' });
  });

  it('counts in the rate of its address, also when a new group does not load', async (test) => {
    const { get, service } = await startSite(test, ['index.html'], {
      settings: { BASE_PATH: '/', RATE_LIMIT: '1/d' },
      expectedErrors: ['request-failed', 'group-not-loadable'],
    });
    writeFileSync(join(service.dir, 'BrokenController.mjs'), 'throw new Error()');
    assert.deepEqual([(await get('/broken')).status, (await get('/broken')).status], [500, 429]);
  });
});

describe('a path that no file has', () => {
  it("is that of the service file's fallback", async (test) => {
    const { get } = await startSite(test, ['index.html', '404.html', 'app.js'], {
      controllers: {
        'service.mjs': `import { defineService, mount } from '${GATEFOLD}';
export default defineService({ fallback: mount((request) => new Response('old ' + request.method + ' ' + new URL(request.url).pathname)) });`,
      },
    });
    const text = async (path: string, verb = 'GET') => (await get(path, { accept: 'text/html' }, verb)).text();
    assert.equal(await text('/'), 'content of index.html');
    assert.equal(await text('/app.js'), 'content of app.js');
    assert.equal(await text('/legacy/page'), 'old GET /legacy/page');
    assert.equal(await text('/legacy/page', 'POST'), 'old POST /legacy/page');
    assert.equal((await get('/app.js', {}, 'POST')).status, 405);
  });
});

const PAST = 'Sun, 06 Nov 1994 08:49:37 GMT';

describe('the answer with a file', () => {
  it('has a type, validators and no CORS headers; a client that has the file gets 304', async (test) => {
    const { get } = await startSite(test, ['app.js', 'x.wasm', 'x.unknown', 'pic.PNG', 'a.svg']);
    const types: [string, string][] = [
      ['app.js', 'text/javascript; charset=utf-8'],
      ['x.wasm', 'application/wasm'],
      ['x.unknown', 'application/octet-stream'],
      ['pic.PNG', 'image/png'],
      ['a.svg', 'image/svg+xml'],
    ];
    for (const [name, type] of types) assert.equal((await get(`/${name}`)).headers.get('content-type'), type, name);
    const { headers } = await get('/app.js', { origin: 'https://evil.example' });
    const fields = Object.fromEntries(headers);
    const { etag = '', 'last-modified': modified = '' } = fields;
    assert.match(etag, /^"[0-9a-z-]+"$/);
    assert.equal(fields['x-content-type-options'], 'nosniff');
    assert.deepEqual(
      Object.keys(fields).filter((name) => name.startsWith('access-control')),
      [],
    );
    for (const condition of [
      { 'if-none-match': etag },
      { 'if-none-match': `"x", W/${etag}` },
      { 'if-modified-since': modified },
    ]) {
      const answer = await get('/app.js', condition);
      assert.deepEqual([answer.status, await answer.text(), answer.headers.get('etag')], [304, '', etag]);
    }
    assert.equal((await get('/app.js', { 'if-none-match': '"other"', 'if-modified-since': modified })).status, 200);
  });

  /** A file up to 1 MB is in memory from its second answer on. */
  const textOf = (words: number) =>
    Array.from({ length: words }, (_, index) => index.toString(36).padStart(5)).join('');
  for (const [kind, content] of [
    ['small', '0123456789'],
    ['large', textOf(40_000)],
    ['larger', textOf(250_000)],
  ] as const)
    it(`is the part of a ${kind} file that the client asks for`, async (test) => {
      const { get, put } = await startSite(test, []);
      put('file.bin', content);
      const { headers } = await get('/file.bin');
      const [etag, modified] = [headers.get('etag') as string, headers.get('last-modified') as string];
      const { length } = content;
      const part = (start: number, end: number) => [
        206,
        content.slice(start, end),
        `bytes ${start}-${end - 1}/${length}`,
      ];
      const whole = [200, content, null];
      const none = [416, undefined, `bytes */${length}`];
      const changed = [412, undefined, null];
      const rows: [headers: Record<string, string>, expected: unknown[]][] = [
        [{}, whole],
        [{ range: 'bytes=0-3' }, part(0, 4)],
        [{ range: 'Bytes=2-' }, part(2, length)],
        [{ range: 'bytes=-3' }, part(length - 3, length)],
        [{ range: `bytes=-${length + 5}` }, part(0, length)],
        [{ range: `bytes=4-${length + 9}` }, part(4, length)],
        [{ range: 'bytes=0-0' }, part(0, 1)],
        [{ range: `bytes=${length}-` }, none],
        [{ range: 'bytes=-0' }, none],
        [{ range: 'bytes=3-1' }, whole],
        [{ range: 'bytes=-' }, whole],
        [{ range: 'bytes=0-1,4-5' }, whole],
        [{ range: 'lines=0-1' }, whole],
        [{ range: 'bytes=a-b' }, whole],
        [{ range: 'bytes=0-3', 'if-range': etag }, part(0, 4)],
        [{ range: 'bytes=0-3', 'if-range': modified }, part(0, 4)],
        [{ range: 'bytes=0-3', 'if-range': `W/${etag}` }, whole],
        [{ range: 'bytes=0-3', 'if-range': '"other"' }, whole],
        [{ range: 'bytes=0-3', 'if-none-match': etag }, [304, '', null]],
        [{ range: 'bytes=0-3', 'if-match': `"other", ${etag}` }, part(0, 4)],
        [{ range: 'bytes=0-3', 'if-match': '*', 'if-unmodified-since': PAST }, part(0, 4)],
        [{ range: 'bytes=0-3', 'if-unmodified-since': modified }, part(0, 4)],
        [{ range: 'bytes=0-3', 'if-unmodified-since': 'yesterday' }, part(0, 4)],
        [{ range: 'bytes=0-3', 'if-unmodified-since': PAST }, changed],
        [{ range: 'bytes=0-3', 'if-match': '"other"' }, changed],
        [{ 'if-match': `W/${etag}`, 'if-none-match': etag }, changed],
        [{ 'if-match': 'other' }, changed],
      ];
      for (const [sent, [status, text, contentRange]] of rows) {
        const answer = await get('/file.bin', sent);
        const body = await answer.text();
        const name = JSON.stringify(sent);
        assert.deepEqual([answer.status, answer.headers.get('content-range')], [status, contentRange], name);
        if (text !== undefined) assert.ok(body === text, `${name}: ${body.slice(0, 40)}`);
        if (text !== undefined && status !== 304)
          assert.equal(answer.headers.get('content-length'), `${body.length}`, name);
      }
      const head = await get('/file.bin', { range: 'bytes=0-3' }, 'HEAD');
      assert.deepEqual([head.status, head.headers.get('content-length')], [200, `${length}`]);
      assert.equal(head.headers.get('accept-ranges'), 'bytes');
    });

  it('is a compressed neighbour where the client takes it and it is not older than the file', async (test) => {
    const { get, put } = await startSite(test, ['app.js', 'app.js.br', 'app.js.gz', 'pic.png', 'pic.png.gz']);
    const coding = async (acceptEncoding: string | undefined, path = '/app.js') => {
      const { headers } = await get(path, { 'accept-encoding': acceptEncoding ?? 'identity' });
      return headers.get('content-encoding');
    };
    const rows: [acceptEncoding: string | undefined, expected: string | null][] = [
      ['gzip, deflate, br, zstd', 'br'],
      ['gzip', 'gzip'],
      ['br;q=0.1, gzip', 'gzip'],
      ['br;q=0, gzip;q=0', null],
      ['*', 'br'],
      ['*, br;q=0', 'gzip'],
      ['zstd', null],
      [undefined, null],
    ];
    for (const [sent, expected] of rows) {
      // fetch inflates the body, and these bodies are not compressed, so only the head is read.
      assert.equal(await coding(sent), expected, String(sent));
    }
    assert.equal(await coding('gzip', '/pic.png'), null);
    const tags = new Set<string | null>();
    for (const sent of ['br', 'gzip', 'identity']) {
      const { headers } = await get('/app.js', { 'accept-encoding': sent });
      assert.equal(headers.get('vary'), 'Accept-Encoding');
      assert.equal(headers.get('content-type'), 'text/javascript; charset=utf-8');
      tags.add(headers.get('etag'));
    }
    assert.equal(tags.size, 3, 'each coding has an entity tag of its own');
    const old = new Date(Date.now() - 10_000);
    utimesSync(put('app.js.br'), old, old);
    assert.equal(await coding('br, gzip'), 'gzip');
  });

  it('is fresh after each change, also of a kept file', async (test) => {
    const { get, put, root } = await startSite(test, ['app.js']);
    const text = async () => {
      const answer = await get('/app.js');
      return answer.status === 200 ? answer.text() : answer.status;
    };
    assert.equal(await text(), 'content of app.js');
    for (let round = 0; round < 20; round++) {
      const content = `round ${round % 10}`.padEnd(round % 2 === 0 ? 0 : 100_000);
      put('app.js', content);
      for (let request = 0; request < 3; request++) assert.ok((await text()) === content, content.slice(0, 10));
    }
    const path = join(root, 'public/app.js');
    rmSync(path);
    assert.equal(await text(), 404);
    writeFileSync(`${path}.next`, 'moved');
    renameSync(`${path}.next`, path);
    assert.equal(await text(), 'moved');
    rmSync(path);
    symlinkSync('../data/x', path);
    writeFileSync(join(root, 'data/x'), 'outside');
    assert.equal(await text(), 404);
  });

  it('is the new file where one takes its place between the look and the answer', async (test) => {
    // The service file is asked for headers after the look for the file. The file is too large to be kept.
    const { put, get } = await startSite(test, ['a.bin', '404.html'], {
      controllers: {
        'service.mjs': `import { existsSync, renameSync } from 'node:fs';
import { defineService } from '${GATEFOLD}';
export default defineService({ public: { headers: (path) => {
  const next = process.env.PUBLIC_NEXT + path;
  if (existsSync(next)) renameSync(next, process.env.PUBLIC_NEXT.replace('next-', '') + path);
  return {};
} } });`,
      },
    });
    const path = put('a.bin', Buffer.alloc(2_000_000, 'a'));
    process.env.PUBLIC_NEXT = join(dirname(path), 'next-');
    test.after(() => delete process.env.PUBLIC_NEXT);
    await get('/a.bin').then((answer) => answer.arrayBuffer());
    put('next-a.bin', Buffer.alloc(1_500_000, 'b'));
    const answer = await get('/a.bin');
    assert.equal(answer.status, 200);
    const body = Buffer.from(await answer.arrayBuffer());
    assert.deepEqual([body.length, body.indexOf('a')], [1_500_000, -1]);
  });

  it('is whole when another file takes its place while it is sent', async (test) => {
    const { put, service } = await startSite(test, []);
    const path = put('large.bin', Buffer.alloc(30_000_000, 'a'));
    const socket = connect(service.port, '127.0.0.1');
    test.after(() => socket.destroy());
    socket.write('GET /large.bin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    await once(socket, 'readable');
    renameSync(put('next.bin', 'b'), path);
    let bytes = 0;
    for await (const piece of socket) bytes += piece.length;
    assert.ok(bytes > 30_000_000);
  });

  it('is cut when the file changes while it is sent', async (test) => {
    const { put, service } = await startSite(test, [], { expectedErrors: ['stream-failed'] });
    const path = put('large.bin', Buffer.alloc(30_000_000, 'a'));
    const socket = connect(service.port, '127.0.0.1');
    test.after(() => socket.destroy());
    socket.write('GET /large.bin HTTP/1.1\r\nHost: x\r\n\r\n');
    await new Promise((resolve) => socket.once('data', resolve));
    socket.pause();
    appendFileSync(path, 'b');
    let bytes = 0;
    socket.on('data', (piece) => {
      bytes += piece.length;
    });
    socket.on('error', () => {});
    socket.resume();
    await new Promise((resolve) => socket.once('close', resolve));
    assert.ok(bytes < 30_000_000, 'the client notices that the end is missing');
    const line = service.lines.find(({ event }) => event === 'stream-failed');
    assert.match(String(line?.error), /the file changed while it was sent/);
  });

  it('does not send the last piece of a file that has changed, so that the client misses it', async (test) => {
    const { root, put } = await startSite(test, []);
    const path = put('large.bin', Buffer.alloc(300_000, 'a'));
    const stream = openFile(realpathSync(join(root, 'public')), 'large.bin')?.part(0, 300_000);
    assert.ok(stream instanceof Readable);
    let bytes = 0;
    await assert.rejects(async () => {
      for await (const piece of stream) {
        bytes += piece.length;
        if (bytes < 100_000) writeFileSync(path, Buffer.alloc(300_000, 'b'));
      }
    }, /the file changed while it was sent/);
    assert.ok(bytes < 300_000, `${bytes} bytes were sent`);
  });

  it('may be kept for ever if the manifest of the build lists the file', async (test) => {
    const { get, put } = await startSite(test, [
      'index.html',
      'assets/app-1a2b.js',
      'assets/app-1a2b.css',
      'assets/x.js',
    ]);
    const entry = { file: 'assets/app-1a2b.js', css: ['assets/app-1a2b.css'], isEntry: true };
    const cacheControl = async (path: string) => (await get(path)).headers.get('cache-control');
    assert.equal(await cacheControl('/assets/app-1a2b.js'), 'no-cache');
    put('.vite/manifest.json', JSON.stringify({ none: null, 'index.html': entry }));
    const immutable = 'public, max-age=31536000, immutable';
    const rows = [
      ['/assets/app-1a2b.js', immutable],
      ['/assets/app-1a2b.css', immutable],
      ['/assets/x.js', 'no-cache'],
      ['/', 'no-cache'],
    ] as const;
    for (const [path, expected] of rows) assert.equal(await cacheControl(path), expected, path);
    put('.vite/manifest.json', '{"broken"');
    assert.equal(await cacheControl('/assets/app-1a2b.js'), 'no-cache');
  });

  it('comes from the release before, after the folder was swapped, if that build lists the file', async (test) => {
    const { root, service, get } = await startSite(test, []);
    // A new service has no data folder yet.
    rmSync(join(root, 'data'), { recursive: true });
    const release = (name: string, hash: string) => {
      const folder = join(root, name);
      mkdirSync(join(folder, '.vite'), { recursive: true });
      mkdirSync(join(folder, 'assets'));
      writeFileSync(join(folder, 'index.html'), `page ${hash}`);
      writeFileSync(join(folder, `assets/app-${hash}.js`), `script ${hash}`);
      writeFileSync(join(folder, '.vite/manifest.json'), JSON.stringify({ x: { file: `assets/app-${hash}.js` } }));
      symlinkSync(name, join(root, 'next'));
      renameSync(join(root, 'next'), join(root, 'public'));
    };
    const text = async (path: string) => {
      const answer = await get(path);
      return answer.status === 200 ? answer.text() : answer.status;
    };
    release('one', '1');
    assert.deepEqual([await text('/'), await text('/assets/app-1.js')], ['page 1', 'script 1']);
    release('two', '2');
    assert.deepEqual([await text('/'), await text('/assets/app-2.js')], ['page 2', 'script 2']);
    assert.equal(await text('/assets/app-1.js'), 'script 1');
    rmSync(join(root, 'two/index.html'));
    assert.equal(await text('/index.html'), 404, 'a page is never that of an earlier release');
    // Another process knows the release before, too.
    const again = await startService({
      controllers: {},
      settings: { PUBLIC_DIR: join(root, 'public'), DATA_DIR: join(root, 'data') },
    });
    test.after(() => again.close());
    assert.equal((await fetch(`${again.url}/assets/app-1.js`)).status, 200);
    release('three', '3');
    assert.deepEqual([await text('/assets/app-2.js'), await text('/assets/app-1.js')], ['script 2', 404]);
    // Where the data folder cannot be written, the process itself knows the release before.
    rmSync(join(root, 'data'), { recursive: true });
    writeFileSync(join(root, 'data'), '');
    release('four', '4');
    assert.deepEqual([await text('/assets/app-3.js'), await text('/assets/app-2.js')], ['script 3', 404]);
    assert.equal(service.lines.filter(({ level }) => level === 'error').length, 0);
  });

  it('has the headers of the service file', async (test) => {
    const site = await startSite(test, ['index.html', 'app.js', 'map.js', 'lower.html', '404.html'], {
      controllers: {
        'service.mjs': `import { defineService } from '${GATEFOLD}';
export default defineService({
  headers: { 'X-All': 'yes' },
  public: { headers: (path) => {
    if (path === 'map.js') return new Map([['Content-Security-Policy', "default-src 'self'"]]);
    if (path === 'lower.html') return { 'cache-control': 'max-age=60', 'content-type': 'text/x', etag: '"own"', vary: 'X-A' };
    if (path === '404.html') return { 'Content-Security-Policy': "default-src 'self'", 'cache-control': 'public' };
    return path.endsWith('.html') ? { 'Content-Security-Policy': "default-src 'self'", 'Cache-Control': undefined } : { 'Cache-Control': 'max-age=60' };
  } },
});`,
      },
      expectedErrors: ['request-failed'],
    });
    const fieldsOf = async (path: string) => {
      const { headers } = await site.get(path);
      return ['x-all', 'content-security-policy', 'cache-control'].map((name) => headers.get(name));
    };
    assert.deepEqual(await fieldsOf('/'), ['yes', "default-src 'self'", 'no-cache']);
    assert.deepEqual(await fieldsOf('/app.js'), ['yes', null, 'max-age=60']);
    assert.deepEqual(await fieldsOf('/none'), ['yes', "default-src 'self'", 'no-store']);
    const { headers } = await site.get('/lower');
    const fields = ['cache-control', 'content-type', 'etag', 'vary'].map((name) => headers.get(name));
    assert.deepEqual(fields, ['max-age=60', 'text/x', '"own"', 'X-A, Accept-Encoding']);
    assert.equal((await site.get('/lower', { 'if-none-match': '"own"' })).status, 304);
    // A page without its policy would be less safe than no page.
    assert.equal((await site.get('/map.js')).status, 500);
    assert.match(String(site.service.lines.findLast(({ event }) => event === 'request-failed')?.error), /class Map/);
  });
});

describe('PUBLIC_DIR', () => {
  it('is refused where it would serve code, keys or a project', (test) => {
    const root = mkdtempSync(join(tmpdir(), 'gatefold-public-'));
    test.after(() => rmSync(root, { recursive: true, force: true }));
    for (const folder of ['data', 'controllers/web', 'public', 'project'])
      mkdirSync(join(root, folder), { recursive: true });
    writeFileSync(join(root, 'project/package.json'), '{}');
    symlinkSync('data', join(root, 'link'));
    const parse = (dir: string, more: Record<string, string> = {}) =>
      parseSettings(
        {
          CONTROLLERS_DIR: join(root, 'controllers'),
          DATA_DIR: join(root, 'data'),
          PUBLIC_DIR: join(root, dir),
          ...more,
        },
        [],
        { cores: 1 },
      );
    assert.equal(parse('public').publicDir, join(root, 'public'));
    assert.equal(parse('none').publicDir, join(root, 'none'));
    for (const dir of ['data', 'data/x', 'controllers', 'controllers/web', '.', '..', 'link', 'project'])
      assert.throws(() => parse(dir), SettingsError, dir);
    for (const name of ['../x', '.env', '/x', 'a//b', ''])
      if (name !== '') assert.throws(() => parse('public', { PUBLIC_FALLBACK: name }), SettingsError, name);
    assert.throws(
      () => parseSettings({ PUBLIC_FALLBACK: 'index.html' }, [], { cores: 1 }),
      /PUBLIC_FALLBACK: PUBLIC_DIR needs to name its folder/,
    );
  });

  it('serves nothing while it leads to such a folder', async (test) => {
    const { get, root } = await startSite(test, [], { expectedErrors: ['public-dir-refused'] });
    mkdirSync(join(root, 'project'));
    for (const name of ['package.json', 'index.html']) writeFileSync(join(root, 'project', name), '{}');
    symlinkSync('project', join(root, 'public'));
    assert.equal((await get('/')).status, 404);
    mkdirSync(join(root, 'build'));
    writeFileSync(join(root, 'build/index.html'), 'built');
    symlinkSync('build', join(root, 'next'));
    renameSync(join(root, 'next'), join(root, 'public'));
    assert.equal(await (await get('/')).text(), 'built');
    // The folder has a new name, and the link leads to it.
    renameSync(join(root, 'build'), join(root, 'renamed'));
    symlinkSync('renamed', join(root, 'next'));
    renameSync(join(root, 'next'), join(root, 'public'));
    assert.equal(await (await get('/')).text(), 'built');
    // So has the folder above it.
    mkdirSync(join(root, 'release1'));
    renameSync(join(root, 'renamed'), join(root, 'release1/dist'));
    for (const name of ['release1', 'release2']) {
      if (name === 'release2') renameSync(join(root, 'release1'), join(root, name));
      symlinkSync(`${name}/dist`, join(root, 'next'));
      renameSync(join(root, 'next'), join(root, 'public'));
      assert.equal(await (await get('/')).text(), 'built', name);
    }
  });
});

describe('fileReply', () => {
  it('answers with a file below its folder, whole, in part, or not again', async (test) => {
    const root = mkdtempSync(join(tmpdir(), 'gatefold-reply-'));
    test.after(() => rmSync(root, { recursive: true, force: true }));
    const uploads = join(root, 'uploads');
    mkdirSync(join(uploads, 'deep'), { recursive: true });
    writeFileSync(join(root, 'secret.txt'), 'secret');
    writeFileSync(join(uploads, 'a.txt'), '0123456789');
    writeFileSync(join(uploads, '.hidden'), 'secret');
    writeFileSync(join(uploads, "deep/it's (ü).pdf"), Buffer.alloc(200_000, 'x'));
    symlinkSync('../secret.txt', join(uploads, 'out.txt'));
    const service = await startService({
      controllers: {
        'FileController.ts': `import { fileReply } from '${GATEFOLD}';
import type { Reply } from 'gatefold';
export default class {
  static operations = { 'GET {path*}': { results: 'declared' } };
  'GET {path*}'(_: unknown, { path, query }: { path: { path: string }; query: { save?: string } }): Reply<200, Uint8Array> {
    const headers = { etag: 'W/"own"', 'content-disposition': 'inline', 'cache-control': 'private' };
    if (query.save === 'own') return fileReply(${JSON.stringify(uploads)}, path.path, { download: true, headers });
    return fileReply(${JSON.stringify(uploads)}, path.path, query.save === undefined ? {} : { download: query.save || true });
  }
}`,
      },
      settings: { NODE_ENV: 'development' },
    });
    test.after(() => service.close());
    const get = (path: string, headers: Record<string, string> = {}, verb = 'GET') =>
      fetch(`${service.url}/api/file/${path}`, { headers, method: verb });
    const whole = await get('a.txt');
    const etag = whole.headers.get('etag') as string;
    assert.deepEqual([whole.status, await whole.text()], [200, '0123456789']);
    assert.equal(whole.headers.get('content-type'), 'text/plain; charset=utf-8');
    assert.equal(whole.headers.get('accept-ranges'), 'bytes');
    assert.equal(whole.headers.get('access-control-allow-origin'), '*');
    const part = await get('a.txt', { range: 'bytes=2-4', 'if-range': etag });
    assert.deepEqual([part.status, await part.text(), part.headers.get('content-range')], [206, '234', 'bytes 2-4/10']);
    assert.equal((await get('a.txt', { 'if-none-match': etag })).status, 304);
    assert.equal((await get('a.txt', { range: 'bytes=10-' })).status, 416);
    assertEnvelope(await asRaw(await get('a.txt', { 'if-match': '"other"' })), 412, 'PRECONDITION_FAILED');
    const head = await get('a.txt', {}, 'HEAD');
    const fieldsOf = ({ headers }: Response) =>
      [...headers].filter(([name]) => !/^(date|x-request-id|connection)$/.test(name));
    assert.deepEqual([head.status, fieldsOf(head)], [200, fieldsOf(whole)]);
    const own = await get('a.txt?save=own');
    const ownFields = ['etag', 'content-disposition', 'cache-control'].map((name) => own.headers.get(name));
    assert.deepEqual(ownFields, ['W/"own"', 'inline', 'private']);
    assert.equal((await get('a.txt?save=own', { 'if-match': 'W/"own"' })).status, 412, 'a weak tag never matches');
    const large = await get(`${encodeURIComponent("deep/it's (ü).pdf").replaceAll('%2F', '/')}?save=`);
    assert.equal((await large.arrayBuffer()).byteLength, 200_000);
    assert.equal(large.headers.get('content-disposition'), "attachment; filename*=UTF-8''it%27s%20%28%C3%BC%29.pdf");
    for (const path of ['none', 'deep', 'out.txt', '.hidden', '..%2fsecret.txt', '%2e%2e/secret.txt', 'a.txt/x']) {
      const answer = await get(path);
      assert.equal(answer.status, 404, path);
      assert.doesNotMatch(await answer.text(), /"?secret"?$/, path);
    }
    assert.ok(!service.lines.some(({ level }) => level === 'error' || level === 'warn'));
  });

  it('leaves no file open when a guard replaces the reply, or when the operation drops it', {
    skip: process.platform !== 'linux',
  }, async (test) => {
    const root = mkdtempSync(join(tmpdir(), 'gatefold-replaced-'));
    test.after(() => rmSync(root, { recursive: true, force: true }));
    const file = join(root, 'large.bin');
    writeFileSync(file, Buffer.alloc(200_000, 'x'));
    const group = (guard: string) => `import { once } from 'node:events';
import { fileReply, Reply } from '${GATEFOLD}';
export default class {
  GET() { return fileReply(${JSON.stringify(root)}, 'large.bin'); }
  ${guard}
}`;
    const service = await startService({
      controllers: {
        'AfterController.mjs': group('_after() { return { replaced: true }; }'),
        'LateController.mjs': group(`static operations = { GET: { timeout: 20 } };
  async _around(next, data, { signal }) { await once(signal, 'abort'); return fileReply(${JSON.stringify(root)}, 'large.bin'); }`),
        'ThrowController.mjs': group('_after() { throw new Error("no"); }'),
        'AroundController.mjs': group('async _around(next) { await next(); return { replaced: true }; }'),
        'DroppedController.mjs': group(`GET() { fileReply(${JSON.stringify(root)}, 'large.bin'); return {}; }`),
        'TwiceController.mjs': group('async _around(next) { await next(); return next(); }'),
        'HeadersController.mjs': group('_after({ body }) { return new Reply(200, body, { "X-A": "b" }); }'),
      },
      expectedErrors: ['request-failed'],
    });
    test.after(() => service.close());
    const sizes = new Map<string, number>();
    for (const name of ['after', 'late', 'throw', 'around', 'dropped', 'twice', 'headers']) {
      const answer = await fetch(`${service.url}/api/${name}`);
      sizes.set(name, (await answer.arrayBuffer()).byteLength);
    }
    assert.deepEqual([sizes.get('twice'), sizes.get('headers')], [200_000, 200_000]);
    const openCount = () =>
      readdirSync('/proc/self/fd').filter((fd) => {
        try {
          return readlinkSync(`/proc/self/fd/${fd}`) === realpathSync(file);
        } catch {
          return false;
        }
      }).length;
    // The end of a stream closes its file a little later.
    for (let round = 0; openCount() > 0 && round < 200; round++) await setTimeout(10);
    assert.equal(openCount(), 0);
  });
});

it('PUBLIC_DIR holds a bounded part of its files in memory, also for clients that read nothing', async (test) => {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'gatefold-bound-')));
  test.after(() => rmSync(dir, { recursive: true, force: true }));
  const size = 1024 * 1024;
  const open = (files: PublicFiles, name: string): FileContent => {
    const path = { raw: `/${name}`, segments: [name], endsInSlash: false };
    const answer = files.find({ verb: 'GET', path, queryText: '', headers: {} });
    assert.ok(answer?.body.kind === 'file');
    return answer.body.content;
  };
  const log = createLog({ level: 'error', sink: { write() {}, flush() {} } });
  const places = { controllersDir: '/nonexistent/a', dataDir: '/nonexistent/b' };
  const files = createPublicFiles({ dir, fallback: undefined, ...places, log });
  const streams = Array.from({ length: 60 }, (_, i) => {
    const name = `${i}.bin`;
    writeFileSync(join(dir, name), '');
    truncateSync(join(dir, name), size);
    open(files, name);
    const content = open(files, name);
    const part = content.part(0, size);
    assert.ok(part instanceof Readable);
    return { part, held: content.bytes?.length ?? 0 };
  });
  assert.ok(streams.reduce((sum, { held }) => sum + held, 0) <= 33 * size);
  for (const { part } of streams) {
    part.destroy();
    if (!part.closed) await once(part, 'close');
  }
  const kept = open(files, '59.bin');
  assert.equal(kept.bytes?.length, size);
  // The unread last piece of a stream, or a small part, holds no whole file.
  const pieces: Buffer[] = await (kept.part(0, size) as Readable).toArray();
  assert.equal(Buffer.concat(pieces).length, size);
  assert.ok((pieces.at(-1)?.buffer.byteLength ?? size) < size);
  assert.ok((kept.part(0, 1000) as Buffer).buffer.byteLength < size);
  writeFileSync(join(dir, 'small.txt'), 'small');
  assert.equal(open(files, 'small.txt').bytes?.buffer.byteLength, 5);
});

it('openFile refuses with OVERLOADED when the process can open no more files, and finds the file later', {
  skip: process.platform === 'win32',
}, (test) => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'gatefold-open-')));
  test.after(() => rmSync(root, { recursive: true, force: true }));
  writeFileSync(join(root, 'small.txt'), 'small');
  writeFileSync(join(root, 'large.bin'), Buffer.alloc(200_000));
  const script = `import { closeSync, openSync } from 'node:fs';
    import { openFile } from ${JSON.stringify(moduleUrl('src/base/files/open-file'))};
    const root = ${JSON.stringify(root)};
    const codeOf = (act) => { try { return typeof act(); } catch (error) { return [error.code, error.cause.code]; } };
    const large = openFile(root, 'large.bin');
    const taken = [];
    try { for (;;) taken.push(openSync('/dev/null')); } catch {}
    const codes = [codeOf(() => openFile(root, 'small.txt')), codeOf(() => large.part(0, 5)), codeOf(() => openFile(root, 'none'))];
    taken.forEach(closeSync);
    console.log(JSON.stringify([...codes, String(openFile(root, 'small.txt').bytes), large.part(0, 5).length]));`;
  const node = [process.execPath, ...LOADER, '--input-type=module', '-e', script];
  const out = execFileSync('sh', ['-c', 'ulimit -n 200; exec "$@"', 'sh', ...node], { encoding: 'utf8' });
  const full = ['OVERLOADED', 'EMFILE'];
  assert.deepEqual(JSON.parse(out), [full, full, 'undefined', 'small', 5]);
});

it('openFile reads nothing outside of the folder while a folder of the path becomes a link and a folder again', {
  skip: process.platform !== 'linux',
}, async (test) => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'gatefold-swapped-')));
  for (const name of ['root/a', 'outside']) {
    mkdirSync(join(base, name), { recursive: true });
    writeFileSync(join(base, name, 'file.txt'), name);
  }
  symlinkSync('../outside', join(base, 'root/link'));
  const script = `import { renameSync } from 'node:fs';
    for (;;) for (const [from, to] of [['a', 'b'], ['link', 'a'], ['a', 'link'], ['b', 'a']]) renameSync(from, to);`;
  const swaps = spawn(process.execPath, ['--input-type=module', '-e', script], { cwd: join(base, 'root') });
  test.after(async () => {
    swaps.kill();
    await once(swaps, 'close');
    rmSync(base, { recursive: true, force: true });
  });
  const counts = new Map<string, number>();
  const countOf = (text: string) => counts.get(text) ?? 0;
  while (countOf('root/a') < 500 || countOf('none') < 500) {
    assert.equal(swaps.exitCode, null);
    for (let read = 0; read < 50; read++) {
      const text = String(openFile(join(base, 'root'), 'a/file.txt')?.bytes ?? 'none');
      counts.set(text, countOf(text) + 1);
    }
    await setImmediate();
  }
  assert.deepEqual([...counts.keys()].sort(), ['none', 'root/a']);
});

it('openFile opens a file below the root of the disk', (test) => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'gatefold-root-')));
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'file.txt'), 'a');
  assert.equal(String(openFile('/', join(folder, 'file.txt').slice(1))?.bytes), 'a');
});
