// COMPRESSION=on over a socket: which answers are compressed, and by what.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { after, before, describe, it } from 'node:test';
import * as zlib from 'node:zlib';
import { createCompression } from '../../src/request/answer/compression.ts';
import type { Exchange } from '../../src/request/exchange.ts';
import { GATEFOLD, type Service, startService } from '../support/service.ts';

const LONG = 'compressible '.repeat(200);
const CONTROLLER = `
import { HttpError, Reply } from '${GATEFOLD}';
const text = '${LONG}';
const csv = (headers) => new Reply(200, text, { 'Content-Type': 'text/csv', ...headers });
export default class BookController {
  GET() { return { text }; }
  POST() { return { text }; }
  'GET short'() { return { text: text.slice(0, 1000) }; }
  'GET csv'() { return csv(); }
  'GET under'() { return new Reply(200, text.slice(0, 1023), { 'Content-Type': 'text/csv' }); }
  'GET least'() { return new Reply(200, text.slice(0, 1024), { 'Content-Type': 'text/csv' }); }
  'GET utf8'() { return { text: 'ä'.repeat(600) }; }
  'GET svg'() { return new Reply(200, Buffer.from(text), { 'Content-Type': 'image/svg+xml' }); }
  'GET docx'() { return new Reply(200, Buffer.from(text), { 'Content-Type': 'application/vnd.openxmlformats-officedocument.x' }); }
  'GET bytes'() { return Buffer.from(text); }
  'GET secret'() { return csv({ 'Cache-Control': 'private, no-store' }); }
  'GET kept'() { return csv({ 'cache-control': 'no-transform' }); }
  'GET cookie'() { return csv({ 'Set-Cookie': 'a=1' }); }
  'GET own-cookie'(_, params) { params.setCookie('a', '1'); return { text }; }
  'GET tagged'() { return csv({ ETag: '"1"' }); }
  'GET dated'() { return csv({ 'Last-Modified': 'Wed, 25 Nov 2026 02:00:00 GMT' }); }
  'GET packed'() { return csv({ 'Content-Encoding': 'x' }); }
  'GET named'() { return csv({ 'X-Names': 'Content-Length' }); }
  'GET refused'() { throw new HttpError(409, 'TAKEN', text); }
}`;
const INFLATE: Readonly<Record<string, (body: Buffer) => Buffer>> = {
  gzip: zlib.gunzipSync,
  br: zlib.brotliDecompressSync,
  zstd: (body) => zlib.zstdDecompressSync(body),
};
const ZSTD = 'zstdCompress' in zlib ? 'zstd' : undefined;

describe('COMPRESSION=on', () => {
  let service: Service;
  before(async () => {
    const controllers = { 'BookController.mjs': CONTROLLER };
    service = await startService({ controllers, settings: { COMPRESSION: 'on' } });
  });
  after(() => service.close());

  async function ask(path: string, headers: Readonly<Record<string, string>>, method = 'GET') {
    const sent = request(`${service.url}/api/book${path}`, { method, headers: { Connection: 'close', ...headers } });
    sent.end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    const chunks: Buffer[] = await answer.toArray();
    return { ...answer, headers: answer.headers, status: answer.statusCode, body: Buffer.concat(chunks) };
  }

  const GZIP = { 'Accept-Encoding': 'gzip' };
  const COOKIE = { ...GZIP, Cookie: 'session=1' };
  const rows: [
    name: string,
    path: string,
    headers: Record<string, string>,
    coding: string | undefined,
    verb?: string,
  ][] = [
    ['JSON', '', GZIP, 'gzip'],
    ['1024 bytes', '/least', GZIP, 'gzip'],
    ['nothing of 1023 bytes', '/under', GZIP, undefined],
    ['JSON, by what a browser sends', '', { 'Accept-Encoding': 'gzip, deflate, br, zstd' }, 'br'],
    ['JSON, by the preferred coding', '', { 'Accept-Encoding': 'br;q=0.5, gzip;q=0.9' }, 'gzip'],
    ['JSON in zstd, where Node has it', '', { 'Accept-Encoding': 'zstd' }, ZSTD],
    ['text', '/csv', GZIP, 'gzip'],
    ['bytes of a text type', '/svg', GZIP, 'gzip'],
    ['1 KB in bytes, not in characters', '/utf8', GZIP, 'gzip'],
    ['JSON with a cookie, for a page of this origin', '', { ...COOKIE, 'Sec-Fetch-Site': 'same-origin' }, 'gzip'],
    ['JSON with a cookie, for a page of this site', '', { ...COOKIE, 'Sec-Fetch-Site': 'same-site' }, 'gzip'],
    ['JSON without a cookie, for any page', '', { ...GZIP, 'Sec-Fetch-Site': 'cross-site' }, 'gzip'],
    ['nothing for a page of another site with a cookie', '', { ...COOKIE, 'Sec-Fetch-Site': 'cross-site' }, undefined],
    ['nothing with a cookie that an unknown page may have sent', '', COOKIE, undefined],
    ['nothing with a password of the browser', '', { ...GZIP, Authorization: 'Basic YTpi' }, undefined],
    ['nothing without Accept-Encoding', '', {}, undefined],
    ['nothing that the client refuses', '', { 'Accept-Encoding': 'gzip;q=0, identity' }, undefined],
    ['nothing below 1 KB', '/short', GZIP, undefined],
    ['no archive', '/docx', GZIP, undefined],
    ['no bytes', '/bytes', GZIP, undefined],
    ['no answer to POST', '', GZIP, undefined, 'POST'],
    ['no answer with no-store', '/secret', GZIP, undefined],
    ['no answer with no-transform', '/kept', GZIP, undefined],
    ['no answer with Set-Cookie', '/cookie', GZIP, undefined],
    ['no answer with a cookie by setCookie', '/own-cookie', GZIP, undefined],
    ['no answer with an ETag', '/tagged', GZIP, undefined],
    ['no answer with Last-Modified', '/dated', GZIP, undefined],
    ['no answer with a coding of its own', '/packed', GZIP, 'x'],
    ['an answer with a field whose value is the name of another', '/named', GZIP, 'gzip'],
    ['no error', '/refused', GZIP, undefined],
  ];
  for (const [name, path, headers, coding, verb] of rows)
    it(`compresses ${name}`, async () => {
      const { headers: got, body } = await ask(path, headers, verb);
      assert.equal(got['content-encoding'], coding);
      assert.equal(Number(got['content-length']), body.length);
      const text = String(INFLATE[coding ?? '']?.(body) ?? body);
      assert.ok(text.includes(path === '/utf8' ? 'ä'.repeat(600) : LONG.slice(0, 1000)));
    });

  it('sends Vary where another client would get the answer in another coding, and HEAD as GET', async () => {
    for (const headers of [GZIP, {}, COOKIE]) {
      const [get, head] = [await ask('', headers), await ask('', headers, 'HEAD')];
      assert.equal(get.headers.vary, 'Accept-Encoding');
      assert.equal(head.body.length, 0);
      for (const name of ['vary', 'content-encoding', 'content-length'])
        assert.equal(head.headers[name], get.headers[name]);
    }
    assert.equal((await ask('/short', GZIP)).headers.vary, undefined);
  });
});

it('an answer has one line of Vary, because nginx before 1.23 obeys only the last', async () => {
  const service = await startService({
    controllers: {
      'XController.mjs': `export default class {
        GET(_, { appendHeader }) { appendHeader('vary', 'Accept'); appendHeader('Vary', 'Cookie'); return { text: '${LONG}' }; }
        'GET plain'() { return { text: '${LONG}' }; }
      }`,
      'service.mjs': `import { defineService } from '${GATEFOLD}';
        export default defineService({ keyHeader: 'X-Key', cors: { origins: ['https://a.test'] } });`,
    },
    settings: { COMPRESSION: 'on' },
  });
  try {
    for (const [path, own] of [
      ['', 'Accept, Cookie, '],
      ['/plain', ''],
    ]) {
      const sent = request(`${service.url}/api/x${path}`, {
        headers: { Connection: 'close', 'Accept-Encoding': 'br' },
      });
      sent.end();
      const [{ rawHeaders }] = (await once(sent, 'response')) as [IncomingMessage];
      const found = rawHeaders.filter((_, i) => rawHeaders[i - 1]?.toLowerCase() === 'vary');
      assert.deepEqual(found, [`${own}Origin, x-key, Accept-Encoding`]);
    }
  } finally {
    await service.close();
  }
});

it('createCompression has two jobs at most, sends the next body as it is, and drops what has been answered', async () => {
  const fails: unknown[] = [];
  const compress = createCompression((_exchange, error) => fails.push(error));
  const exchangeOf = () =>
    ({
      verb: 'GET',
      caller: {},
      head: {},
      request: { headers: { 'accept-encoding': 'gzip' } },
      answer: { isComplete: false },
    }) as unknown as Exchange;
  const sent: [name: string, isCompressed: boolean][] = [];
  const lines = ['Content-Type', 'application/json'];
  const [first, second, third] = [exchangeOf(), exchangeOf(), exchangeOf()];
  const failure = new Error('the head cannot be sent');
  const done = new Promise<void>((resolve) => {
    compress(first, lines, LONG, () => sent.push(['first', true]));
    compress(second, lines, LONG, (body) => {
      sent.push(['second', body !== LONG]);
      setImmediate(resolve);
      throw failure;
    });
    compress(third, lines, LONG, (body) => sent.push(['third', body !== LONG]));
  });
  // Meanwhile, the time of the first exchange is over, and it was answered.
  first.answer.isComplete = true;
  await done;
  assert.deepEqual(sent, [
    ['third', false],
    ['second', true],
  ]);
  assert.deepEqual(fails, [failure]);
});
