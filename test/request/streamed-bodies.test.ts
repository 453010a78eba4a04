// Tests the body settings of an operation: other media types as a Blob, its own limit, and a stream that is never held
// in memory. It also tests refusals, and bodies that the operation does not read.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { type EventEmitter, once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { asRaw, assertEnvelope, type Service, startService } from '../support/service.ts';

let service: Service;
before(async () => {
  const controllers = {
    'UploadController.mjs': `
      import { createHash } from 'node:crypto';
      const digest = async (stream) => { const hash = createHash('sha256'); let size = 0; for await (const piece of stream) { hash.update(piece); size += piece.length } return { size, sha256: hash.digest('hex') } };
      export default class {
        static operations = {
          created: { accepts: ['image/*', 'text/csv'] },
          red: { bodyLimit: 5000 },
          patch: { body: 'stream', bodyLimit: 50_000_000 },
          deleted: { body: 'stream' },
          'POST pictures': { body: 'stream', accepts: ['image/png'] },
          'POST json': { accepts: ['application/JSON', 'text/csv'] },
          'POST form': { accepts: ['multipart/form-data'] },
          'POST hal': { accepts: ['application/hal+json'] },
          'POST texts': { accepts: ['text/*'] },
          'POST any': { accepts: ['*/*'] },
          'POST hold': { body: 'stream', bodyLimit: 50_000_000 },
          'POST ignore': { body: 'stream', bodyLimit: 50_000_000 },
          'POST flow': { body: 'stream', bodyLimit: 50_000_000 },
          'POST echo': { body: 'stream' },
          'POST after': { body: 'stream', bodyLimit: 50_000_000 },
        };
        async created(data, { bytes }) { return data instanceof Blob ? { type: data.type, text: await data.text(), bytes: bytes.length } : { data } }
        red(data) { return { length: data.length } }
        async patch(data) { return digest(data) }
        async deleted(data) { return digest(data) }
        async 'POST pictures'(data) { return digest(data) }
        'POST json'(data) { return { isBlob: data instanceof Blob } }
        'POST form'(data) { return { isBlob: data instanceof Blob } }
        'POST hal'(data) { return { isBlob: data instanceof Blob } }
        'POST texts'(data) { return { isBlob: data instanceof Blob } }
        'POST any'(data) { return { isBlob: data instanceof Blob } }
        async 'POST hold'(data) { await data.getReader().read(); await new Promise((done) => process.once('test:let-go', done)); return {} }
        'POST ignore'() { return { ignored: true } }
        'POST flow'() { return new Response('early') }
        'POST echo'(data) { return data }
        'POST after'(data) { digest(data).then((read) => process.emit('test:read', read), (error) => process.emit('test:read', error.message)); return {} }
      }`,
  };
  service = await startService({ controllers, settings: { BODY_LIMIT: '2000' }, expectedErrors: ['request-failed'] });
});
after(() => service.close());

const send = (method: string, path: string, body: Buffer | string, headers: Record<string, string> = {}) =>
  fetch(`${service.url}/api/upload${path}`, { method, body: body as NonNullable<RequestInit['body']>, headers });
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

describe('accepts', () => {
  const rows: [type: string, status: number, body: unknown][] = [
    ['image/png', 200, { type: 'image/png', text: 'pixels', bytes: 6 }],
    ['IMAGE/Jpeg; q=1', 200, { type: 'image/jpeg; q=1', text: 'pixels', bytes: 6 }],
    ['text/csv', 200, { type: 'text/csv', text: 'pixels', bytes: 6 }],
    ['text/plain', 200, { data: 'pixels' }],
    ['video/mp4', 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['imagex/png', 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['image', 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['application/json', 400, 'MALFORMED_JSON'],
  ];
  for (const [type, status, body] of rows) {
    test(`${type} is ${status}`, async () => {
      const answer = await asRaw(await send('POST', '', 'pixels', { 'content-type': type }));
      if (typeof body === 'string') assertEnvelope(answer, status, body);
      else assert.deepEqual(JSON.parse(answer.body), body);
    });
  }

  const hal = 'application/hal+json; a=b';
  const form = 'application/x-www-form-urlencoded';
  /** A list that names a type that the gateway decodes is exact. The last two rows have no such type. */
  const exactRows: [path: string, accepted: (string | undefined)[], refused: (string | undefined)[]][] = [
    [
      '/json',
      [undefined, 'application/json', 'application/json; charset=utf-8', 'Application/JSON;charset=UTF-8', 'text/csv'],
      [form, 'multipart/form-data; boundary=b', 'text/plain', hal, 'image/png', 'text/csv2', 'text/x; a=+json', ''],
    ],
    ['/form', ['multipart/form-data; boundary=b'], [undefined, 'application/json', form, 'text/plain', hal]],
    ['/hal', [hal], [undefined, 'application/json', 'application/vnd.api+json', 'text/plain']],
    ['/texts', [undefined, 'application/json', form, 'text/plain', 'text/csv', hal], ['image/png', 'a']],
    ['/any', [undefined, 'application/json', form, 'text/plain', 'image/png', hal], ['a']],
  ];
  for (const [path, accepted, refused] of exactRows) {
    test(`of ${path} is its list`, async () => {
      const statusOf = async (type: string | undefined) => {
        const text = type?.startsWith('multipart')
          ? '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--b--'
          : '{}';
        const answer = await send('POST', path, Buffer.from(text), type === undefined ? {} : { 'content-type': type });
        return [type, answer.status];
      };
      assert.deepEqual(await Promise.all([...accepted, ...refused].map(statusOf)), [
        ...accepted.map((type) => [type, 200]),
        ...refused.map((type) => [type, 415]),
      ]);
    });
  }

  test('is named as it is in a refusal', async () => {
    const messages = ['/json', '/pictures', '/texts'].map(async (path) => {
      const answer = await send('POST', path, Buffer.from('x'), { 'content-type': 'video/mp4' });
      return ((await answer.json()) as { message: string }).message;
    });
    assert.deepEqual(await Promise.all(messages), [
      'Cannot read the body: send one of application/JSON, text/csv',
      'Cannot read the body: send one of image/png',
      'Cannot read the body: send one of JSON, a form (urlencoded or multipart), text/plain, text/*',
    ]);
  });

  test('applies to its own operation only', async () => {
    assertEnvelope(
      await asRaw(await send('PUT', '', 'pixels', { 'content-type': 'image/png' })),
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    );
  });
});

test('bodyLimit applies to its own operation only', async () => {
  const text = { 'content-type': 'text/plain' };
  assert.deepEqual(await (await send('PUT', '', 'x'.repeat(4000), text)).json(), { length: 4000 });
  assertEnvelope(await asRaw(await send('PUT', '', 'x'.repeat(5001), text)), 413, 'BODY_TOO_LARGE');
  assertEnvelope(await asRaw(await send('POST', '', 'x'.repeat(2001), text)), 413, 'BODY_TOO_LARGE');
});

describe('a streamed body of which the operation reads one piece', () => {
  const bytes = randomBytes(8_000_000);
  for (const [name, body, headers] of [
    ['without a coding', bytes, ''],
    ['in gzip', gzipSync(bytes), 'Content-Encoding: gzip\r\n'],
    [
      'in gzip that inflates a thousandfold',
      Buffer.concat(Array(200).fill(gzipSync(Buffer.alloc(40_000_000)))),
      'Content-Encoding: gzip\r\n',
    ],
  ] as const) {
    test(`is not read much further from its client: ${name}`, async (t) => {
      const accepted = once(service.app.server, 'connection');
      const client = connect(service.port, '127.0.0.1');
      t.after(() => void client.destroy());
      client.on('error', () => {});
      const [socket] = (await accepted) as [Socket];
      const before = process.memoryUsage().arrayBuffers;
      client.write(`POST /api/upload/hold HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n${headers}\r\n`);
      client.write(body);
      // Waits until no further byte has arrived for a while.
      for (let quiet = 0, last = -1; quiet < 100 || last < 64 * 1024; quiet++) {
        await new Promise(setImmediate);
        if (socket.bytesRead !== last) quiet = 0;
        last = socket.bytesRead;
      }
      const read = socket.bytesRead;
      const held = process.memoryUsage().arrayBuffers - before;
      client.destroy();
      // The operation may not have received its piece yet.
      while (service.app.inFlight() > 0) {
        (process as EventEmitter).emit('test:let-go');
        await new Promise(setImmediate);
      }
      assert.ok(read < 512 * 1024, `${read} bytes were read`);
      assert.ok(held < 4_000_000, `${held} bytes are held`);
    });
  }
});

describe('a streamed body', () => {
  const bytes = randomBytes(3_000_000);
  for (const [name, body, headers] of [
    ['without a coding', bytes, {}],
    ['in gzip', gzipSync(bytes), { 'content-encoding': 'gzip' }],
    ['in deflate', deflateSync(bytes), { 'content-encoding': 'deflate' }],
    ['in deflate without its header', deflateRawSync(bytes), { 'content-encoding': 'deflate' }],
    ['in br', brotliCompressSync(bytes.subarray(0, 50_000)), { 'content-encoding': 'br' }],
    ['with any media type', bytes, { 'content-type': 'video/mp4' }],
  ] as const) {
    test(`arrives whole: ${name}`, async () => {
      const expected = name === 'in br' ? bytes.subarray(0, 50_000) : bytes;
      assert.deepEqual(await (await send('PATCH', '', body, headers)).json(), {
        size: expected.length,
        sha256: sha256(expected),
      });
    });
  }

  test('is empty for a request without a body', async () => {
    assert.equal(
      ((await (await fetch(`${service.url}/api/upload`, { method: 'PATCH' })).json()) as { size: number }).size,
      0,
    );
  });

  test('in deflate may be empty', async () => {
    const text = await service.raw(
      'PATCH /api/upload HTTP/1.1\r\nHost: a\r\nContent-Encoding: deflate\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    );
    assert.match(text, /"size":0/);
  });

  test('is accepted with the types of accepts, and refused with other types', async () => {
    assert.equal((await send('POST', '/pictures', 'x', { 'content-type': 'image/png' })).status, 200);
    assertEnvelope(
      await asRaw(await send('POST', '/pictures', '{}', { 'content-type': 'application/json' })),
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    );
    assertEnvelope(await asRaw(await send('POST', '/pictures', Buffer.from('{}'))), 415, 'UNSUPPORTED_MEDIA_TYPE');
  });

  test('over its limit is refused with 413, also in gzip or in chunks', async () => {
    assert.equal((await asRaw(await send('DELETE', '', 'x'.repeat(2000)))).status, 200);
    assertEnvelope(await asRaw(await send('DELETE', '', 'x'.repeat(2001))), 413, 'BODY_TOO_LARGE');
    assertEnvelope(
      await asRaw(await send('DELETE', '', gzipSync('x'.repeat(5000)), { 'content-encoding': 'gzip' })),
      413,
      'BODY_TOO_LARGE',
    );
    const chunk = `3e8\r\n${'x'.repeat(1000)}\r\n`;
    const text = await service.raw(
      `DELETE /api/upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunk.repeat(3)}0\r\n\r\n`,
    );
    assert.match(text, /^HTTP\/1\.1 413 /);
  });

  test('is refused with 400 if it cannot be inflated, and with 415 in an unknown coding', async () => {
    const bad: [coding: string, body: string | Buffer][] = [
      ['gzip', 'no gzip'],
      ['deflate', 'no deflate, with or without a header'],
      ['deflate', 'x'],
      ['deflate', deflateSync('cut').subarray(0, -5)],
      ['deflate', deflateRawSync('cut').subarray(0, -2)],
    ];
    for (const [coding, body] of bad)
      assertEnvelope(
        await asRaw(await send('DELETE', '', body, { 'content-encoding': coding })),
        400,
        'MALFORMED_BODY',
      );
    assertEnvelope(
      await asRaw(await send('DELETE', '', 'x', { 'content-encoding': 'zstd' })),
      415,
      'UNSUPPORTED_ENCODING',
    );
  });

  test('whose client disconnects is logged with 400 or 499', async () => {
    const socket = connect(service.port, '127.0.0.1');
    socket.write('PATCH /api/upload HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nX-Request-Id: leaves\r\n\r\nhalf');
    while (service.app.inFlight() === 0) await new Promise(setImmediate);
    socket.destroy();
    while (service.app.inFlight() > 0) await new Promise((done) => setTimeout(done, 5));
    // Like any incomplete body, it is a malformed request.
    const status = service.lines.findLast(
      ({ event, request_id }) => event === 'request' && request_id === 'leaves',
    )?.status;
    assert.ok(status === 400 || status === 499, String(status));
  });

  /** Uploads a chunk to `echo`, breaks off once the answer has `mark`, and checks that the body of the answer is cut. */
  async function assertCut(chunk: string, mark: string, breakOff: (socket: Socket) => void): Promise<void> {
    const socket = connect(service.port, '127.0.0.1').setEncoding('latin1');
    socket.on('error', () => {});
    let text = '';
    socket.on('data', (piece) => {
      text += piece;
    });
    socket.write(`POST /api/upload/echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`);
    while (!text.includes(mark)) await once(socket, 'data');
    breakOff(socket);
    await once(socket, 'close');
    assert.ok(!text.includes('\r\n0\r\n'), 'the body ends as if it were complete');
  }

  const breaks: [name: string, breakOff: (socket: Socket) => void][] = [
    ['the client ends', (socket) => socket.end()],
    ['the client resets', (socket) => socket.resetAndDestroy()],
    ['the client sends a malformed chunk', (socket) => socket.write('no chunk')],
  ];
  for (const [name, breakOff] of breaks) {
    test(`that breaks off during its answer cuts the answer: ${name}`, async () => {
      service.lines.length = 0;
      await assertCut('4\r\nhalf\r\n', 'half', breakOff);
      const line = () => service.lines.find(({ event }) => event === 'request');
      while (line() === undefined) await new Promise((later) => setTimeout(later, 5));
      assert.equal(line()?.status, 499);
    });
  }

  test('that exceeds its limit during its answer cuts the answer, and is logged as stream-ended-early', async () => {
    const chunk = `${(1500).toString(16)}\r\n${'x'.repeat(1500)}\r\n`;
    await assertCut(chunk, 'x', (socket) => socket.write(`${chunk}0\r\n\r\n`));
    const line = service.lines.find(({ event }) => event === 'stream-ended-early');
    assert.equal(line?.operation, 'POST echo');
    assert.match(String(line?.error), /the limit of 2000/);
  });

  test('that the operation does not read is discarded, and the connection serves the next request', async () => {
    const post = `POST /api/upload/ignore HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n${'x'.repeat(2000)}`;
    const text = await service.raw(post + post, 2);
    assert.equal(text.match(/\{"ignored":true\}/g)?.length, 2);
  });

  for (const [operation, headers, body] of [
    ['ignore', '', randomBytes(900_000)],
    ['readOne', '', randomBytes(900_000)],
    ['readOne', 'Content-Encoding: gzip\r\n', gzipSync(randomBytes(900_000))],
    ['cancel', '', randomBytes(900_000)],
  ] as const)
    test(`that is not read completely does not block the next request: ${operation} ${headers}`, async (t) => {
      const controllers = {
        'PartController.mjs': `export default class {
          static operations = { ignore: { body: 'stream' }, readOne: { body: 'stream' }, cancel: { body: 'stream' } };
          ignore() { return { partly: true } }
          async readOne(data) { await data.getReader().read(); return { partly: true } }
          async cancel(data) { const reader = data.getReader(); await reader.read(); await reader.cancel(); return { partly: true } }
          index() { return { next: true } }
        }`,
      };
      const own = await startService({ controllers, settings: { BODY_LIMIT: '1MiB' } });
      t.after(own.close);
      const socket = connect(own.port, '127.0.0.1').setEncoding('latin1');
      t.after(() => void socket.destroy());
      let text = '';
      socket.on('data', (piece) => {
        text += piece;
      });
      const answered = async (what: string) => {
        while (!text.includes(what)) await once(socket, 'data', { signal: AbortSignal.timeout(60_000) });
      };
      socket.write(
        `POST /api/part/${operation} HTTP/1.1\r\nHost: a\r\n${headers}Content-Length: ${body.length}\r\n\r\n`,
      );
      socket.write(body.subarray(0, 100_000));
      await answered('"partly":true');
      socket.write(body.subarray(100_000));
      socket.write('GET /api/part HTTP/1.1\r\nHost: a\r\n\r\n');
      await answered('"next":true');
    });

  test('fails, and never ends, where it is read after the answer', async () => {
    const read = once(process, 'test:read');
    await (await send('POST', '/after', Buffer.alloc(2_000_000))).json();
    assert.deepEqual(await read, ['the request has already been answered']);
  });

  test('that is long and not read ends the connection after the answer', async () => {
    const socket = connect(service.port, '127.0.0.1');
    let text = '';
    socket.setEncoding('latin1').on('data', (piece) => {
      text += piece;
      socket.end();
    });
    socket.on('error', () => {});
    socket.write(
      `POST /api/upload/ignore HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\n${'x'.repeat(100_000)}`,
    );
    await once(socket, 'close');
    assert.match(text, /^HTTP\/1\.1 200 /);
    assert.match(text, /\r\nConnection: close\r\n/);
  });

  test('that is not read has an answer that streams, and its connection ends after the request', async () => {
    const socket = connect(service.port, '127.0.0.1').setEncoding('latin1');
    let text = '';
    const ends: unknown[] = [];
    socket.on('data', (piece) => {
      text += piece;
    });
    for (const name of ['end', 'error']) socket.on(name, (error: unknown) => void ends.push(error ?? name));
    const send = (piece: string) => new Promise((done) => socket.write(piece, done));
    void send('POST /api/upload/flow HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n');
    while (!text.includes('early')) await once(socket, 'data');
    for (let pieces = 0; pieces < 10; pieces++) {
      assert.deepEqual(ends, [], 'a client that sends all before it reads would lose the answer');
      await send('x'.repeat(100_000));
    }
    await once(socket, 'close');
    assert.match(text, /\r\nConnection: close\r\n.*\r\nearly\r\n0\r\n\r\n$/s);
    assert.deepEqual(ends, ['end']);
  });

  test('gets 100 Continue only when the operation reads it', async () => {
    const socket = connect(service.port, '127.0.0.1').setEncoding('latin1');
    const head = (path: string) => `${path} HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n`;
    socket.write(head('PATCH /api/upload'));
    assert.deepEqual(await once(socket, 'data'), ['HTTP/1.1 100 Continue\r\n\r\n']);
    socket.write('ok');
    assert.match(String(await once(socket, 'data')), /"size":2/);
    socket.write(head('POST /api/upload/ignore'));
    assert.match(String(await once(socket, 'data')), /^HTTP\/1\.1 200 /);
    socket.destroy();
  });
});
