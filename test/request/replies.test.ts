// Tests results other than plain JSON over a socket: replies, bytes, streams, conditional requests, and results that
// are refused.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { moduleUrl } from '../support/own-modules.ts';
import {
  asRaw,
  assertEnvelope,
  CORS,
  parseRaw,
  type RawAnswer,
  type Service,
  startService,
} from '../support/service.ts';

const GATEFOLD = moduleUrl('src/api/controller');
const BRAND = `Symbol.for('gatefold.Reply')`;

let service: Service;
before(async () => {
  const controllers = {
    'ReplyController.mjs': `
      import { EventEmitter } from 'node:events';
      import { Readable } from 'node:stream';
      import { runInNewContext } from 'node:vm';
      import { ErrorReply, eventStream, HttpError, ifMatch, Reply } from ${JSON.stringify(GATEFOLD)};
      const pieces = async function* (...all) { for (const piece of all) { await null; yield piece } };
      const web = (start) => new ReadableStream({ start });
      const forged = (fields) => Object.assign(Object.create({ [${BRAND}]: true }), fields);
      export const seen = globalThis.seen = new EventEmitter();
      async function* untilTurned(piece) {
        let hasTurned = false;
        setImmediate(() => { hasTurned = true });
        let pieces = 0;
        for (; pieces < 5000 && !hasTurned; pieces++) yield piece;
        seen.emit('given', pieces);
      }
      class Book { constructor() { this.title = 'Emma' } }
      // As a class of the package readable-stream.
      class ForeignStream {
        #stream;
        constructor(stream) { this.#stream = stream }
        on(...args) { this.#stream.on(...args); return this }
        pipe(...args) { return this.#stream.pipe(...args) }
        destroy(...args) { this.#stream.destroy(...args); return this }
        pause() { this.#stream.pause() }
        resume() { this.#stream.resume() }
      }
      class Secretive { #title = 'Emma'; get title() { return this.#title } }
      export default class {
        static operations = { created: { status: 201 }, slow: { timeout: 40 }, stuck: { timeout: 40 } };
        created() { return { id: 7 } }
        reply() { return new Reply(201, { id: 7 }, { Location: '/api/book/7', ETag: '"1"', 'Set-Cookie': ['a=1', 'b=2'] }) }
        none() { return new Reply(204) }
        noneWithBody() { return new Reply(204, { a: 1 }) }
        reset() { return new Reply(205) }
        accepted() { return new Reply(202) }
        text() { return new Reply(200, 'x') }
        nil() { return new Reply(200, null) }
        html() { return new Reply(200, '<h1>é</h1>', { 'Content-Type': 'text/html; charset=utf-8', ETag: '"1"' }) }
        emptyCsv() { return new Reply(200, '', { 'content-type': 'TEXT/CSV' }) }
        lines() { return new Reply(200, '{}\\n{}\\n', { 'Content-Type': 'application/x-ndjson' }) }
        jsonText() { return new Reply(200, '<h1>', { 'Content-Type': 'Application/JSON' }) }
        problemText() { return new Reply(200, '<h1>', { 'Content-Type': 'application/problem+json; charset=utf-8' }) }
        htmlNumber() { return new Reply(200, 5, { 'Content-Type': 'text/html' }) }
        htmlBySetHeader(data, params) { params.setHeader('Content-Type', 'text/html'); return new Reply(200, '<h1>') }
        typed() { return new Reply(200, { a: 1 }, { 'content-type': 'application/hal+json' }) }
        typedByList() { return new Reply(200, { a: 1 }, { 'content-type': ['application/hal+json'], etag: ['"1"'] }) }
        twoTypes() { return new Reply(200, { a: 1 }, { 'Content-Type': ['text/plain', 'text/csv'] }) }
        headersObject() { return new Reply(201, {}, new Headers({ Location: '/api/book/7' })) }
        headersMap() { return new Reply(201, {}, new Map([['Location', '/api/book/7']])) }
        headersList() { return new Reply(201, {}, [['Location', '/api/book/7']]) }
        headersText() { return new Reply(200, {}, 'Location: /api/book/7') }
        detached() { const bytes = new Uint8Array(8); structuredClone(bytes, { transfer: [bytes.buffer] }); return bytes }
        unwritable() { return new (class extends Uint8Array { get byteLength() { throw new Error('no length') } })(8) }
        notAwaited() { return new Reply(201, Promise.reject(new Error('the table is locked'))) }
        redirect() { return Reply.redirect('/api/book') }
        redirectToText() { return Reply.redirect('/tag/grün €?a=%20#b\\r\\n') }
        moved() { return Reply.redirect(new URL('http://a.example/b'), 308) }
        own() { return new Reply(200, {}, { 'Content-Length': '1', 'Transfer-Encoding': 'chunked', Connection: 'close', 'X-Request-Id': 'a', 'Access-Control-Allow-Origin': 'x', 'X-Mine': 'yes' }) }
        crlf() { return new Reply(200, {}, { 'X-Bad': 'a\\r\\nSet-Cookie: b' }) }
        crlfStream() { const stream = new Readable({ read() { this.push('a') }, destroy(error, done) { seen.emit('crlf-destroyed', error); done(error) } }); return new Reply(200, stream, { 'X-Bad': 'a\\nb' }) }
        badName() { return new Reply(200, {}, { 'x y': '1' }) }
        badValue() { return new Reply(200, {}, { 'X-Bad': {} }) }
        status199() { return new Reply(199) }
        status399() { return new Reply(399) }
        status400() { return new Reply(400, {}) }
        forgedStatus() { return forged({ status: 99 }) }
        forgedReply() { return forged({ status: 202, body: { forged: true } }) }

        bytes() { return new Uint8Array([0, 255, 10]) }
        buffer() { return Buffer.from('é') }
        empty() { return new Uint8Array(0) }
        image() { return new Reply(200, Buffer.from('png'), { 'Content-Type': 'image/png', 'Content-Disposition': 'attachment' }) }
        blob() { return new Blob(['hello'], { type: 'text/csv' }) }
        file() { return new File(['hello'], 'a.txt') }
        readable() { return Readable.from(pieces(Buffer.from('ab'), 'cé', new Uint8Array(0), Buffer.from('d'))) }
        webStream() { return web((c) => { c.enqueue(Buffer.from('ab')); c.enqueue(Buffer.from('cd')); c.close() }) }
        emptyStream() { return Readable.from([]) }
        foreignStream() { return new ForeignStream(Readable.from(['a', 'b'])) }
        realm() { return runInNewContext('({ a: 1 })') }
        counted() { return new Reply(200, {}, { 'X-Count': 5 }) }
        responseZero() { return Response.error() }
        webFailsAtStart() { return web((c) => c.error()) }
        async read() { const stream = Readable.from(['a']); await stream.toArray(); return stream }
        stray() {
          const source = new Readable({ read() {}, destroy(error, done) { seen.emit('strayed'); done(error) } });
          setTimeout(() => { seen.emit('stray', new Error('thrown in a callback')); source.push('late') });
          return source;
        }
        sendsHead(data, { request }) { request.socket._httpMessage.writeHead(200); return {} }
        async sendsHeadLater(data, { request }) { request.socket._httpMessage.writeHead(200); return {} }
        response() { return Response.json({ a: 1 }, { status: 203, headers: { 'X-Mine': 'yes', 'Content-Length': '99' } }) }
        responseError() { return new Response('gone', { status: 410 }) }
        responseEmpty() { return new Response(null, { status: 204 }) }
        async proxied({ target }) { return fetch(target) }
        async fetched(data, { request }) { return fetch('http://127.0.0.1:' + request.socket.localPort + '/api/reply/bytes') }

        failsAtStart() { return Readable.from((async function* () { throw new Error('no such file') })()) }
        failsAtStartOnPurpose() { return Readable.from((async function* () { throw new HttpError(404, 'NO_FILE', 'There is no such file') })()) }
        failsLaterAs({ status }) { return Readable.from((async function* () { yield 'half'; await new Promise(setImmediate); throw new HttpError(Number(status), 'X', 'disk') })()) }
        failsLater() { return Readable.from((async function* () { yield 'half'; await new Promise(setImmediate); throw new Error('disk') })()) }
        webFailsLater() { let n = 0; return new ReadableStream({ pull(c) { if (n++) setImmediate(() => c.error(new Error('disk'))); else c.enqueue(Buffer.from('half')) } }) }
        failsWithNothing() { return new Readable({ read() { setImmediate(() => this.emit('error')) } }) }
        eventsFailWithNothing() { return eventStream((async function* () { throw undefined })()) }
        objects() { return Readable.from([{ a: 1 }]) }
        destroyed() { const stream = Readable.from(['a']); stream.destroy(); return stream }
        closesEarly() { let n = 0; return new Readable({ highWaterMark: 1, read() { if (n++) setImmediate(() => this.destroy()); else this.push('half') } }) }
        closesWhenTold() { const stream = new Readable({ read() {} }); stream.push('half'); seen.once('close', () => stream.destroy()); return stream }
        used() { const response = new Response('a'); void response.text(); return response }
        locked() { const stream = web(() => {}); stream.getReader(); return stream }
        slow() { return Readable.from((async function* () { yield 'a'; await new Promise((done) => setTimeout(done, 120)); yield 'b' })()) }
        stuck(data, { signal }) { signal.addEventListener('abort', () => seen.emit('aborted')); return new Readable({ read() {}, destroy(error, done) { seen.emit('destroyed', error); done(error) } }) }
        endless(data, { signal }) {
          signal.addEventListener('abort', () => seen.emit('endless-aborted'));
          return new Readable({ read() { this.push(Buffer.alloc(65536)) }, destroy(error, done) { seen.emit('endless-destroyed', error); done(error) } });
        }
        // Each of these streams always has a next piece, until the event loop has turned.
        busyReadable() { return Readable.from(untilTurned(Buffer.from('x')), { objectMode: false }) }
        busyLarge() { return Readable.from(untilTurned(Buffer.alloc(65536)), { objectMode: false }) }
        busyWeb() { const pieces = untilTurned(Buffer.from('x')); return new ReadableStream({ async pull(c) { const { done, value } = await pieces.next(); if (done) c.close(); else c.enqueue(value) } }) }
        busyEvents() { return eventStream(untilTurned('x')) }
        head() { return new Readable({ read() { seen.emit('read'); this.push(null) }, destroy(error, done) { seen.emit('head-destroyed'); done(error) } }) }

        error() { return new Error('forgotten throw') }
        httpError() { return new HttpError(404, 'X', 'x') }
        errorReply() { return new ErrorReply(404, { code: 'NONE' }) }
        replyInReply() { return new Reply(200, new Reply(201, {})) }
        responseInReply() { return new Reply(200, new Response('a')) }
        throwsReply() { throw Reply.redirect('/a') }
        throwsResponse() { throw new Response('no', { status: 401 }) }
        async throwsErrorReply() { throw new ErrorReply(404, {}) }
        map() { return new Map([['a', 1]]) }
        set() { return new Set([1]) }
        generator() { return (function* () { yield 1 })() }
        asyncGenerator() { return pieces(1) }
        secretive() { return new Secretive() }
        regex() { return /a/ }
        floats() { return new Float64Array(2) }
        arrayBuffer() { return new ArrayBuffer(2) }
        classItself() { return Book }
        replyWithMap() { return new Reply(200, new Map()) }
        replyWithBigint() { return new Reply(200, { a: 1n }) }
        instance() { return new Book() }
        date() { return new Date(0) }

        tagged() { return new Reply(200, { a: 1 }, { ETag: '"v1"', 'Last-Modified': 'Wed, 21 Oct 2015 07:28:00 GMT', 'Cache-Control': 'no-cache', 'Content-Language': 'en' }) }
        taggedStream() { const stream = new Readable({ read() { this.push(null) }, destroy(error, done) { seen.emit('tagged-destroyed'); done(error) } }); return new Reply(200, stream, { ETag: 'W/"v1"' }) }
        dated() { return new Reply(200, { a: 1 }, { 'Last-Modified': 'Wed, 21 Oct 2015 07:28:00 GMT' }) }
        patch(data, params) { ifMatch(params, params.query.gone ? undefined : params.query.weak ? 'W/"v1"' : '"v1"', { required: 'required' in params.query }); return { changed: true } }
        badTag(data, params) { ifMatch(params, 'v1') }

        details() { throw new HttpError(422, 'INVALID_BOOK', 'The book is not valid', { details: [{ pointer: '/title', message: 'is missing', limit: 3 }] }) }
        cyclicDetails() { const details = []; details.push(details); throw new HttpError(422, 'INVALID_BOOK', 'x', { details }) }
        badDetails() { throw new HttpError(422, 'INVALID_BOOK', 'x', { details: 'none' }) }
        changedDetails() { throw Object.assign(new HttpError(422, 'INVALID_BOOK', 'x'), { details: () => 'none' }) }
      }`,
  };
  service = await startService({ controllers, expectedErrors: ['request-failed', 'stream-failed'] });
});
after(() => service.close());

const seen = () => (globalThis as unknown as { seen: import('node:events').EventEmitter }).seen;
const call = (operation: string, init?: RequestInit) =>
  fetch(`${service.url}/api/reply/${operation}`, { redirect: 'manual', ...init });
const lineOf = (operation: string, event = 'request') =>
  service.lines.findLast((line) => line.event === event && line.operation === operation);
/** Resolves with the log line of a request, which is written when the last byte is sent. */
async function logged(operation: string, event = 'request') {
  while (lineOf(operation, event) === undefined) await new Promise((done) => setTimeout(done, 5));
  return lineOf(operation, event);
}

interface Expected {
  readonly status: number;
  readonly body: string;
  /** Expected header fields; `undefined` means that the field must be absent. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
}

const JSON_TYPE = 'application/json; charset=UTF-8';

describe('a result that is sent', () => {
  const rows: Record<string, Expected> = {
    reply: {
      status: 201,
      body: '{"id":7}',
      headers: { location: '/api/book/7', etag: '"1"', 'content-type': JSON_TYPE, 'content-length': '8' },
    },
    html: {
      status: 200,
      body: '<h1>é</h1>',
      headers: { 'content-type': 'text/html; charset=utf-8', 'content-length': '11', etag: '"1"' },
    },
    emptyCsv: { status: 200, body: '', headers: { 'content-type': 'TEXT/CSV', 'content-length': '0' } },
    lines: { status: 200, body: '{}\n{}\n', headers: { 'content-type': 'application/x-ndjson' } },
    jsonText: { status: 200, body: '{"data":"<h1>"}', headers: { 'content-type': 'Application/JSON' } },
    problemText: { status: 200, body: '{"data":"<h1>"}' },
    htmlNumber: { status: 200, body: '{"data":5}', headers: { 'content-type': 'text/html' } },
    htmlBySetHeader: { status: 200, body: '<h1>', headers: { 'content-type': 'text/html' } },
    none: { status: 204, body: '', headers: { 'content-length': undefined, 'content-type': undefined } },
    noneWithBody: { status: 204, body: '', headers: { 'content-length': undefined } },
    reset: { status: 205, body: '', headers: { 'content-length': '0' } },
    accepted: { status: 202, body: '', headers: { 'content-length': '0', 'content-type': undefined } },
    text: { status: 200, body: '{"data":"x"}' },
    typed: { status: 200, body: '{"a":1}', headers: { 'content-type': 'application/hal+json' } },
    typedByList: { status: 200, body: '{"a":1}', headers: { 'content-type': 'application/hal+json', etag: '"1"' } },
    redirectToText: { status: 302, body: '', headers: { location: '/tag/gr%C3%BCn%20%E2%82%AC?a=%20#b%0D%0A' } },
    redirect: { status: 302, body: '', headers: { location: '/api/book', 'content-length': '0' } },
    moved: { status: 308, body: '', headers: { location: 'http://a.example/b' } },
    own: {
      status: 200,
      body: '{}',
      headers: { 'content-length': '2', 'transfer-encoding': undefined, 'x-mine': 'yes' },
    },
    status399: { status: 399, body: '' },
    forgedReply: { status: 202, body: '{"forged":true}' },
    buffer: { status: 200, body: 'é', headers: { 'content-type': 'application/octet-stream', 'content-length': '2' } },
    empty: { status: 200, body: '', headers: { 'content-length': '0' } },
    image: { status: 200, body: 'png', headers: { 'content-type': 'image/png', 'content-disposition': 'attachment' } },
    blob: { status: 200, body: 'hello', headers: { 'content-type': 'text/csv', 'content-length': '5' } },
    file: {
      status: 200,
      body: 'hello',
      headers: { 'content-type': 'application/octet-stream', 'content-length': '5' },
    },
    readable: {
      status: 200,
      body: 'abcéd',
      headers: { 'content-type': 'application/octet-stream', 'transfer-encoding': 'chunked' },
    },
    webStream: { status: 200, body: 'abcd', headers: { 'transfer-encoding': 'chunked' } },
    emptyStream: { status: 200, body: '' },
    foreignStream: { status: 200, body: 'ab', headers: { 'content-type': 'application/octet-stream' } },
    realm: { status: 200, body: '{"a":1}' },
    counted: { status: 200, body: '{}', headers: { 'x-count': '5' } },
    response: { status: 203, body: '{"a":1}', headers: { 'content-type': 'application/json', 'x-mine': 'yes' } },
    responseError: { status: 410, body: 'gone', headers: { 'content-type': 'text/plain;charset=UTF-8' } },
    responseEmpty: { status: 204, body: '' },
    fetched: { status: 200, body: '\0\ufffd\n' },
    slow: { status: 200, body: 'ab' },
    instance: { status: 200, body: '{"title":"Emma"}' },
    date: { status: 200, body: '"1970-01-01T00:00:00.000Z"' },
  };
  for (const [operation, { status, body, headers = {} }] of Object.entries(rows)) {
    test(operation, async () => {
      const answer = await asRaw(await call(operation, { headers: { 'x-request-id': `id-${operation}` } }));
      assert.deepEqual([answer.status, answer.body], [status, body]);
      for (const [name, value] of Object.entries(headers)) assert.equal(answer.headers.get(name), value, name);
      for (const [name, value] of Object.entries(CORS)) assert.equal(answer.headers.get(name), value);
      assert.equal(answer.headers.get('access-control-expose-headers'), '*');
      assert.equal(answer.headers.get('x-request-id'), `id-${operation}`);
      const line = await logged(operation);
      assert.deepEqual([line?.status, line?.bytes], [status, operation === 'fetched' ? 3 : Buffer.byteLength(body)]);
    });
  }

  test('bytes arrive unchanged', async () => {
    assert.deepEqual(new Uint8Array(await (await call('bytes')).arrayBuffer()), new Uint8Array([0, 255, 10]));
  });

  test('each cookie is sent in a separate header line', async () => {
    assert.deepEqual((await call('reply')).headers.getSetCookie(), ['a=1', 'b=2']);
  });

  test('a Reply with the body null is sent as a plain success', async () => {
    assert.equal(((await (await call('nil')).json()) as { status: string }).status, 'success');
  });

  test('static operations sets the status of a result that is not a Reply', async () => {
    const answer = await fetch(`${service.url}/api/reply`, { method: 'POST', body: '{}' });
    assert.deepEqual([answer.status, await answer.json()], [201, { id: 7 }]);
  });

  test('headers that belong to the server are dropped from a Reply, and each is logged', async () => {
    service.lines.length = 0;
    await call('own');
    const dropped = service.lines.filter(({ event }) => event === 'header-dropped').map(({ header }) => header);
    assert.deepEqual(dropped, [
      'Content-Length',
      'Transfer-Encoding',
      'Connection',
      'X-Request-Id',
      'Access-Control-Allow-Origin',
    ]);
  });

  test('log lines of a key with a handler name the group that answered', async (t) => {
    const row = { application: { id: 'a', name: 'a' }, handler: 'Desk', methods: undefined };
    const desk = await startService({
      controllers: {
        'DeskController.mjs': 'export default { index: () => new Response(null, { headers: { Upgrade: "x" } }) };',
      },
      parts: { credentials: { identify: () => ({ kind: 'row', row }) } },
    });
    t.after(desk.close);
    await (await fetch(`${desk.url}/api/any`, { headers: { authorization: 'any' } })).text();
    const pages = desk.lines.map(({ event, page }) => [event, page]).filter(([, page]) => page !== undefined);
    assert.deepEqual(pages, [
      ['header-dropped', 'desk'],
      ['request', 'desk'],
    ]);
  });

  test('the Content-Length of a web Response is dropped', async () => {
    assert.equal((await call('response')).headers.get('content-length'), null);
  });

  test('Content-Encoding and Content-Length of a Response from fetch are dropped without a log line', async (t) => {
    const text = 'a'.repeat(1000);
    const body = gzipSync(text);
    const head = {
      'Content-Type': 'text/plain',
      'Content-Encoding': 'gzip',
      'Content-Length': body.length,
      'X-Mine': 'yes',
    };
    const upstream = createServer((_, response) => response.writeHead(200, head).end(body));
    t.after(() => upstream.close());
    await new Promise<void>((listening) => upstream.listen(0, '127.0.0.1', listening));
    service.lines.length = 0;
    const target = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
    const answer = parseRaw(
      await service.raw(`GET /api/reply/proxied?${new URLSearchParams({ target })} HTTP/1.0\r\nHost: a\r\n\r\n`),
    );
    assert.deepEqual([answer.status, answer.body], [200, text]);
    assert.deepEqual(
      ['content-encoding', 'content-length', 'content-type', 'x-mine'].map((name) => answer.headers.get(name)),
      [undefined, undefined, 'text/plain', 'yes'],
    );
    assert.deepEqual(
      service.lines.filter(({ event }) => event === 'header-dropped').map(({ header }) => header),
      [],
    );
  });
});

describe('a result that is refused', () => {
  const rows: Record<string, readonly [code: string, cause: RegExp]> = {
    crlf: ['UNENCODABLE_RESULT', /X-Bad/],
    crlfStream: ['UNENCODABLE_RESULT', /X-Bad/],
    badName: ['UNENCODABLE_RESULT', /x y/],
    badValue: ['UNENCODABLE_RESULT', /header X-Bad as an object of class Object: return a string/],
    twoTypes: ['UNENCODABLE_RESULT', /Content-Type as a list of 2: return one string/],
    headersObject: ['UNENCODABLE_RESULT', /headers are an object of class Headers: return .*Object\.fromEntries/],
    headersMap: ['UNENCODABLE_RESULT', /headers are an object of class Map/],
    headersList: ['UNENCODABLE_RESULT', /headers are an object of class Array/],
    detached: ['UNENCODABLE_RESULT', /bytes that have been transferred: return a copy/],
    headersText: ['UNENCODABLE_RESULT', /headers are a string/],
    notAwaited: ['UNENCODABLE_RESULT', /class Promise: await it/],
    status199: ['INTERNAL_ERROR', /the status is 199, but it must be a whole number from 200 to 399/],
    status400: ['INTERNAL_ERROR', /throw an HttpError to refuse/],
    forgedStatus: ['UNENCODABLE_RESULT', /a Reply whose status is 99/],
    error: ['UNENCODABLE_RESULT', /class Error: throw it instead/],
    httpError: ['UNENCODABLE_RESULT', /class HttpError: throw it instead/],
    errorReply: ['UNENCODABLE_RESULT', /class ErrorReply: throw an HttpError, because/],
    replyInReply: ['UNENCODABLE_RESULT', /class \w*Reply: return it alone/],
    responseInReply: ['UNENCODABLE_RESULT', /class Response: return it alone/],
    throwsReply: ['INTERNAL_ERROR', /class \w*Reply was thrown: return a Reply/],
    throwsResponse: ['INTERNAL_ERROR', /class Response was thrown: return a Reply/],
    throwsErrorReply: ['INTERNAL_ERROR', /class ErrorReply was thrown: .* throw an HttpError/],
    map: ['UNENCODABLE_RESULT', /class Map: return Object\.fromEntries/],
    set: ['UNENCODABLE_RESULT', /class Set: return \[\.\.\.set\]/],
    generator: ['UNENCODABLE_RESULT', /return an array/],
    asyncGenerator: ['UNENCODABLE_RESULT', /return eventStream/],
    secretive: ['UNENCODABLE_RESULT', /class Secretive: return a plain object/],
    regex: ['UNENCODABLE_RESULT', /class RegExp: return a plain object/],
    floats: ['UNENCODABLE_RESULT', /class Float64Array: return Array\.from/],
    arrayBuffer: ['UNENCODABLE_RESULT', /class ArrayBuffer: return new Uint8Array/],
    classItself: ['UNENCODABLE_RESULT', /a class/],
    replyWithMap: ['UNENCODABLE_RESULT', /class Map/],
    replyWithBigint: ['UNENCODABLE_RESULT', /BigInt/],
    failsAtStart: ['INTERNAL_ERROR', /no such file/],
    failsWithNothing: ['INTERNAL_ERROR', /the stream failed/],
    eventsFailWithNothing: ['INTERNAL_ERROR', /the stream failed/],
    objects: ['INTERNAL_ERROR', /a piece that is object/],
    destroyed: ['INTERNAL_ERROR', /was over before it was read/],
    read: ['INTERNAL_ERROR', /was over before it was read/],
    webFailsAtStart: ['INTERNAL_ERROR', /the stream failed/],
    responseZero: ['UNENCODABLE_RESULT', /a web Response of status 0/],
    used: ['UNENCODABLE_RESULT', /whose body has been read/],
    locked: ['INTERNAL_ERROR', /locked/],
    badTag: ['INTERNAL_ERROR', /"v1" is not an entity tag/],
    badDetails: ['INTERNAL_ERROR', /details must be a list/],
  };
  for (const [operation, [code, cause]] of Object.entries(rows)) {
    test(`${operation} is 500 ${code}`, async () => {
      const answer = await call(operation);
      assert.equal(answer.statusText, 'Internal Server Error');
      assertEnvelope(await asRaw(answer), 500, code);
      assert.match(String(lineOf(operation, 'request-failed')?.error), cause);
    });
  }

  test('a stream that throws an HttpError before its first byte is answered with that error', async () => {
    assertEnvelope(await asRaw(await call('failsAtStartOnPurpose')), 404, 'NO_FILE');
  });

  test('a stream without a first byte within the time limit gets 503 and is destroyed', async () => {
    const destroyed = once(seen(), 'destroyed');
    const aborted = once(seen(), 'aborted');
    assertEnvelope(await asRaw(await call('stuck')), 503, 'OPERATION_TIMEOUT');
    await Promise.all([destroyed, aborted]);
  });

  test('a stream whose head cannot be sent is destroyed with the reason', async () => {
    const destroyed = once(seen(), 'crlf-destroyed');
    await call('crlfStream');
    assert.match(String(await destroyed), /its answer was broken off/);
  });

  test('the stream of a request that has already failed is destroyed and not sent', async () => {
    seen().once('stray', service.app.failCurrentRequest);
    const strayed = once(seen(), 'strayed');
    assertEnvelope(await asRaw(await call('stray')), 500, 'INTERNAL_ERROR');
    await strayed;
  });

  test('the details of an HttpError are the errors of the envelope', async () => {
    const body = assertEnvelope(await asRaw(await call('details')), 422, 'INVALID_BOOK');
    assert.deepEqual(body.errors, [{ pointer: '/title', message: 'is missing', limit: 3 }]);
    for (const operation of ['cyclicDetails', 'changedDetails'])
      assert.deepEqual(assertEnvelope(await asRaw(await call(operation)), 422, 'INVALID_BOOK').errors, []);
  });
});

describe('an answer that fails within its body cuts the connection', () => {
  for (const operation of ['failsLater', 'webFailsLater', 'closesEarly']) {
    test(operation, async () => {
      service.lines.length = 0;
      const text = await service.raw(`GET /api/reply/${operation} HTTP/1.1\r\nHost: a\r\n\r\n`, 99);
      assert.match(text, /^HTTP\/1\.1 200 /);
      assert.match(text, /half/);
      assert.ok(!text.includes('\r\n0\r\n'), 'the body ends as if it were complete');
      assert.match(String((await logged(operation, 'stream-failed'))?.error), /disk|closed before/);
      assert.equal((await logged(operation))?.status, 200);
    });
  }

  for (const [status, event] of [
    [499, 'stream-ended-early'],
    [500, 'stream-failed'],
  ] as const)
    test(`an HttpError ${status} within a stream is logged as ${event}`, async () => {
      service.lines.length = 0;
      await service.raw(`GET /api/reply/failsLaterAs?status=${status} HTTP/1.1\r\nHost: a\r\n\r\n`, 99);
      assert.match(String((await logged('failsLaterAs', event))?.error), /disk/);
    });

  test('bytes that cannot be written after the head are logged, and the request ends', async () => {
    const text = await service.raw('GET /api/reply/unwritable HTTP/1.1\r\nHost: a\r\n\r\n', 99);
    assert.ok(!text.includes('\r\n\r\n') || text.endsWith('\r\n\r\n') || text.endsWith('\0'), text);
    assert.match(String((await logged('unwritable', 'request-failed'))?.error), /no length/);
    assert.ok(await logged('unwritable'));
    assert.equal(service.app.inFlight(), 0);
  });

  for (const operation of ['sendsHead', 'sendsHeadLater'])
    test(`an operation that writes the head itself is logged as failed, and the request ends: ${operation}`, async () => {
      await service.raw(`GET /api/reply/${operation} HTTP/1.1\r\nHost: a\r\n\r\n`, 99);
      assert.match(String((await logged(operation, 'request-failed'))?.error), /headers/i);
      assert.equal(service.app.inFlight(), 0);
    });

  test('an HTTP/1.0 connection is reset, because its body has no chunks', async () => {
    const socket = connect(service.port, '127.0.0.1');
    socket.write('GET /api/reply/closesWhenTold HTTP/1.0\r\n\r\n');
    // The bytes are read first. A client would report bytes that arrive together with a reset as a plain end.
    await once(socket, 'data');
    seen().emit('close');
    await assert.rejects(once(socket, 'end'), { code: 'ECONNRESET' });
  });
});

describe('a stream that always has a next piece', () => {
  const most = { busyReadable: 32, busyLarge: 8, busyWeb: 32, busyEvents: 32 };
  for (const [operation, limit] of Object.entries(most))
    test(`${operation} lets the event loop turn after a few pieces`, async () => {
      await fetch(`${service.url}/api/reply/text`);
      const given = once(seen(), 'given');
      const reading = fetch(`${service.url}/api/reply/${operation}`).then((answer) => answer.arrayBuffer());
      const [pieces] = (await given) as [number];
      assert.ok(pieces < limit, `${pieces} pieces in one turn of the event loop`);
      await reading;
    });
});

describe('the client of a stream', () => {
  test('cancels the stream when it disconnects, and is logged as 499', async () => {
    service.lines.length = 0;
    const destroyed = once(seen(), 'endless-destroyed');
    const aborted = once(seen(), 'endless-aborted');
    const socket = connect(service.port, '127.0.0.1');
    socket.write('GET /api/reply/endless HTTP/1.1\r\nHost: a\r\n\r\n');
    await once(socket, 'data');
    socket.destroy();
    await Promise.all([destroyed, aborted]);
    assert.equal((await logged('endless'))?.status, 499);
    assert.equal(service.app.inFlight(), 0);
  });

  test('gets no more than the buffers hold while it does not read', async () => {
    const destroyed = once(seen(), 'endless-destroyed');
    const socket = connect({ port: service.port, host: '127.0.0.1' });
    socket.write('GET /api/reply/endless HTTP/1.1\r\nHost: a\r\n\r\n');
    await once(socket, 'readable');
    const before = process.memoryUsage().arrayBuffers;
    for (let i = 0; i < 20; i++) await new Promise((done) => setTimeout(done, 5));
    assert.ok(process.memoryUsage().arrayBuffers - before < 8 * 2 ** 20);
    socket.destroy();
    await destroyed;
  });
});

describe('HEAD', () => {
  const head = async (operation: string): Promise<RawAnswer> =>
    parseRaw(await service.raw(`HEAD /api/reply/${operation} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`));

  for (const operation of ['reply', 'image', 'blob', 'text', 'readable', 'none']) {
    test(`${operation} has the headers of GET and no body`, async () => {
      const get = await asRaw(await call(operation));
      const answer = await head(operation);
      assert.deepEqual([answer.status, answer.body], [get.status, '']);
      for (const name of ['content-type', 'content-length', 'location', 'etag'])
        assert.equal(answer.headers.get(name), get.headers.get(name), name);
    });
  }

  test('destroys a stream without reading it', async () => {
    const destroyed = once(seen(), 'head-destroyed');
    let reads = 0;
    seen().on('read', () => reads++);
    assert.equal((await head('head')).status, 200);
    await destroyed;
    assert.equal(reads, 0);
  });
});

describe('conditional requests', () => {
  const rows: [operation: string, headers: Record<string, string>, status: number][] = [
    ['tagged', {}, 200],
    ['tagged', { 'If-None-Match': '"v1"' }, 304],
    ['tagged', { 'If-None-Match': 'W/"v1"' }, 304],
    ['typedByList', { 'If-None-Match': '"1"' }, 304],
    ['tagged', { 'If-None-Match': '"v0", ,\t"v1"' }, 304],
    ['tagged', { 'If-None-Match': '*' }, 304],
    ['tagged', { 'If-None-Match': '"v2"' }, 200],
    ['tagged', { 'If-None-Match': 'v1' }, 200],
    ['tagged', { 'If-None-Match': '"v1" "v2"' }, 200],
    ['tagged', { 'If-None-Match': '"v2"', 'If-Modified-Since': 'Wed, 21 Oct 2015 07:28:00 GMT' }, 200],
    ['tagged', { 'If-Modified-Since': 'Wed, 21 Oct 2015 07:28:00 GMT' }, 304],
    ['dated', { 'If-Modified-Since': 'Thu, 22 Oct 2015 07:28:00 GMT' }, 304],
    ['dated', { 'If-Modified-Since': 'Tue, 20 Oct 2015 07:28:00 GMT' }, 200],
    ['dated', { 'If-Modified-Since': 'Wednesday, 21-Oct-15 07:28:00 GMT' }, 304],
    ['dated', { 'If-Modified-Since': 'Tuesday, 20-Oct-15 07:28:00 GMT' }, 200],
    ['dated', { 'If-Modified-Since': 'Wed Oct 21 07:28:00 2015' }, 304],
    ['dated', { 'If-Modified-Since': 'Wed Oct 21 07:27:59 2015' }, 200],
    ['dated', { 'If-Modified-Since': 'Sun Nov  1 07:28:00 2015' }, 304],
    ['dated', { 'If-Modified-Since': 'yesterday' }, 200],
    ['dated', { 'If-Modified-Since': '2099' }, 200],
    ['dated', { 'If-Modified-Since': '2015-10-22T00:00:00Z' }, 200],
    ['dated', { 'If-Modified-Since': 'Thu, 22 Oct 2015' }, 200],
    ['dated', { 'If-Modified-Since': 'Thu, 22 Oct 2015 07:28:00 +0200' }, 200],
    ['dated', { 'If-None-Match': '"v1"' }, 200],
    ['reply', { 'If-None-Match': '"1"' }, 201],
  ];
  // The oldest format of a date names no zone, and means UTC.
  const zone = process.env.TZ;
  before(() => {
    process.env.TZ = 'America/New_York';
  });
  after(() => {
    if (zone === undefined) delete process.env.TZ;
    else process.env.TZ = zone;
  });
  for (const [operation, headers, status] of rows) {
    test(`${operation} ${JSON.stringify(headers)} → ${status}`, async () =>
      assert.equal((await call(operation, { headers })).status, status));
  }

  test('a 304 has ETag and Cache-Control, and no header about a body', async () => {
    const answer = parseRaw(
      await service.raw(
        'GET /api/reply/tagged HTTP/1.1\r\nHost: a\r\nConnection: close\r\nIf-None-Match: "v1"\r\n\r\n',
      ),
    );
    assert.deepEqual(
      [answer.status, answer.body, answer.headers.get('etag'), answer.headers.get('cache-control')],
      [304, '', '"v1"', 'no-cache'],
    );
    for (const name of ['content-type', 'content-length', 'content-language', 'transfer-encoding'])
      assert.equal(answer.headers.get(name), undefined);
    assert.equal(answer.headers.get('access-control-allow-origin'), '*');
  });

  test('a 304 destroys the stream of its answer', async () => {
    const destroyed = once(seen(), 'tagged-destroyed');
    assert.equal((await call('taggedStream', { headers: { 'If-None-Match': '"v1"' } })).status, 304);
    await destroyed;
  });

  test('POST is never answered by 304', async () => {
    assert.equal((await call('tagged', { method: 'POST', headers: { 'If-None-Match': '"v1"' } })).status, 200);
  });

  const matches: [query: string, ifMatch: string | undefined, status: number, code?: string][] = [
    ['', undefined, 200],
    ['?required', undefined, 428, 'PRECONDITION_REQUIRED'],
    ['', '"v1"', 200],
    ['', '"v0", "v1"', 200],
    ['', '*', 200],
    ['?gone=1', '*', 412, 'PRECONDITION_FAILED'],
    ['?gone=1', '"v1"', 412, 'PRECONDITION_FAILED'],
    ['', '"v2"', 412, 'PRECONDITION_FAILED'],
    ['', 'W/"v1"', 412, 'PRECONDITION_FAILED'],
    ['?weak=1', 'W/"v1"', 412, 'PRECONDITION_FAILED'],
    ['', 'v1', 400, 'MALFORMED_REQUEST'],
    ['', '"v1', 400, 'MALFORMED_REQUEST'],
    ['', ',', 400, 'MALFORMED_REQUEST'],
    ['', `${'"a",'.repeat(1500)}"v1"`, 200],
  ];
  for (const [query, ifMatch, status, code] of matches) {
    test(`ifMatch ${query} ${ifMatch?.slice(0, 20)} → ${status}`, async () => {
      const headers = ifMatch === undefined ? {} : { 'If-Match': ifMatch };
      const answer = await asRaw(
        await fetch(`${service.url}/api/reply${query}`, { method: 'PATCH', headers, body: '{}' }),
      );
      if (code === undefined) assert.deepEqual([answer.status, answer.body], [200, '{"changed":true}']);
      else assertEnvelope(answer, status, code);
    });
  }
});

describe('on one connection', () => {
  test('requests behind a stream are answered in order', async () => {
    const get = (operation: string, more = '') => `GET /api/reply/${operation} HTTP/1.1\r\nHost: a\r\n${more}\r\n`;
    const text = await service.raw(get('slow') + get('reply') + get('readable', 'Connection: close\r\n'), 99);
    const statuses = [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
    assert.deepEqual(statuses, ['200', '201', '200']);
    assert.ok(text.indexOf('\r\nb\r\n') < text.indexOf('HTTP/1.1 201'));
  });

  test('HTTP/1.0 gets a body without chunks that ends with the connection', async () => {
    const answer = parseRaw(await service.raw('GET /api/reply/readable HTTP/1.0\r\n\r\n', 99));
    assert.equal(answer.headers.get('transfer-encoding'), undefined);
    assert.equal(Buffer.from(answer.body, 'latin1').toString(), 'abcéd');
  });

  test('an answer of a draining service ends its connection', async () => {
    const other = await startService({
      controllers: {
        'AController.mjs': `import { Reply } from ${JSON.stringify(GATEFOLD)}; export default { index: () => new Reply(201) }`,
      },
    });
    await fetch(`${other.url}/api/a`);
    other.app.setDraining();
    assert.equal((await fetch(`${other.url}/api/a`)).headers.get('connection'), 'close');
    await other.close();
  });
});
