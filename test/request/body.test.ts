// Request data (decisions 4) over a socket: every content type, coding, limit and refusal.
import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { after, before, describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { decodeBody } from '../../src/request/body/decoder.ts';
import { bodyKindOf } from '../../src/request/body/media-type.ts';
import { asRaw, assertEnvelope, type Service, startService } from '../support/service.ts';

let service: Service;
before(async () => {
  const controllers = {
    'EchoController.mjs': `export default class {
      async created(data) {
        if (data !== null && typeof data === 'object' && !Array.isArray(data)) {
          for (const [key, value] of Object.entries(data)) if (value instanceof File) data[key] = { file: value.name, type: value.type, text: await value.text() };
        }
        return { data: data === undefined ? 'undefined' : data, type: typeof data, bare: data !== null && typeof data === 'object' && Object.getPrototypeOf(data) === null };
      }
      index(data) { return this.created(data); }
    }`,
  };
  service = await startService({ controllers, settings: { BODY_LIMIT: '10000' } });
});
after(() => service.close());

const post = (body: NonNullable<RequestInit['body']> | Buffer, headers: Record<string, string> = {}, query = '') =>
  fetch(`${service.url}/api/echo${query}`, { method: 'POST', body: body as NonNullable<RequestInit['body']>, headers });

const utf8 = (text: string) => Buffer.from(text, 'utf8');

describe('the data of an operation', () => {
  const J = { 'content-type': 'application/json' };
  const F = { 'content-type': 'application/x-www-form-urlencoded' };
  const rows: [name: string, body: string | Buffer, headers: Record<string, string>, data: unknown][] = [
    ['a JSON object', '{"a":1}', J, { a: 1 }],
    ['a JSON array', '[1,2]', J, [1, 2]],
    ['a JSON string', '"x"', J, 'x'],
    ['a JSON string with a part of a forbidden key', '"proto"', J, 'proto'],
    ['a JSON null', 'null', J, null],
    ['a JSON false', 'false', J, false],
    ['a JSON number', '0', J, 0],
    ['JSON without a content type', utf8('{"a":1}'), {}, { a: 1 }],
    ['a +json type', '{"a":1}', { 'content-type': 'application/vnd.api+JSON; charset="UTF-8"' }, { a: 1 }],
    ['charset utf8', '{"a":"é"}', { 'content-type': 'application/json;charset=utf8' }, { a: 'é' }],
    ['a byte order mark', '\ufeff{"a":1}', J, { a: 1 }],
    [
      'the keys prototype and constructor side by side',
      '{"prototype":1,"constructor":2}',
      J,
      { prototype: 1, constructor: 2 },
    ],
    ['a form', 'a=1&b=2&a=3', F, { a: ['1', '3'], b: '2' }],
    ['a form with plus and percent', 'a+b=%C3%A9+x&%3D=&c', F, { 'a b': 'é x', '=': '', c: '' }],
    ['a form with bad percent-encoding', 'a=%ZZ&b=%FF', F, { a: '%ZZ', b: '\ufffd' }],
    ['a form that begins with a question mark', '?a=1', F, { '?a': '1' }],
    ['a form key __proto__', '__proto__=1&constructor=2', F, JSON.parse('{"__proto__":"1","constructor":"2"}')],
    ['a replacement character that the client sent', utf8('{"a":"\ufffd"}'), {}, { a: '\ufffd' }],
    ['plain text', 'hello', { 'content-type': 'text/plain; charset=UTF-8' }, 'hello'],
    ['gzip', gzipSync('{"a":1}'), { ...J, 'content-encoding': 'gzip' }, { a: 1 }],
    ['gzip of no byte', gzipSync(''), { ...J, 'content-encoding': 'gzip' }, {}],
    ['deflate', deflateSync('{"a":1}'), { ...J, 'content-encoding': 'deflate' }, { a: 1 }],
    ['deflate without its header', deflateRawSync('{"a":1}'), { ...J, 'content-encoding': 'deflate' }, { a: 1 }],
    ['br', brotliCompressSync('{"a":1}'), { ...J, 'content-encoding': 'BR' }, { a: 1 }],
    ['identity', '{"a":1}', { ...J, 'content-encoding': 'identity' }, { a: 1 }],
  ];
  for (const [name, body, headers, data] of rows) {
    test(name, async () => {
      const answer = await post(body, headers);
      const text = await answer.text();
      assert.equal(answer.status, 200, text);
      assert.deepEqual((JSON.parse(text) as { data: unknown }).data, data);
    });
  }

  test('multipart/form-data with fields and a file', async () => {
    const form = new FormData();
    form.append('a', '1');
    form.append('a', '2');
    form.append('f', new File(['text'], 'n.txt', { type: 'text/plain' }));
    const body = (await (await post(form)).json()) as { data: unknown; bare: boolean };
    assert.deepEqual(body.data, { a: ['1', '2'], f: { file: 'n.txt', type: 'text/plain', text: 'text' } });
    assert.equal(body.bare, true);
  });

  const part = (parameters: string) => `--b\r\nContent-Disposition: form-data${parameters}\r\n\r\n1\r\n--b--\r\n`;
  const file = (name: string) => ({ f: { file: name, type: 'text/plain', text: '1' } });
  // The first three are those of HttpClient in .NET. Node before 24 reads none of these by itself.
  const forms: [name: string, body: string | Buffer, data: unknown][] = [
    ['a name without quotes', part('; name=a'), { a: '1' }],
    ['a file without quotes', part("; name=f; filename=n.txt; filename*=utf-8''n.txt"), file('n.txt')],
    [
      'an encoded name of a file',
      part(`; name=f; filename="=?utf-8?B?bmHDr3ZlLnR4dA==?="; filename*=utf-8''na%C3%AFve%22.txt`),
      file('naïve".txt'),
    ],
    ['an encoded name that is malformed', part(`; name=f; filename="n.txt"; filename*=utf-8''%ff`), file('n.txt')],
    ['an encoded name that is not encoded', part("; name=f; filename*=utf-8''ü.txt"), file('ü.txt')],
    ['no spaces, and other letters', part(';NAME="a";').replace('form-data', 'Form-Data'), { a: '1' }],
    ['the file before the name', part('; filename="n.txt" ; name = "f"'), file('n.txt')],
    ['a quote behind a backslash', part('; name="f"; filename="a\\"b.txt"'), file('a"b.txt')],
    ['a backslash at the end', part('; name="f"; filename="C:\\"'), file('C:\\')],
    ['text around the parts', `a\r\n${part('; name="a"')}b\r\n--b\r\n`, { a: '1' }],
    ['no line break at the end', part('; name="a"').trimEnd(), { a: '1' }],
    [
      'a file that is not UTF-8',
      Buffer.from(part('; name="f"; filename="n.txt"').replace('1', '\xff'), 'latin1'),
      { f: { file: 'n.txt', type: 'text/plain', text: '\ufffd' } },
    ],
  ];
  for (const [name, body, data] of forms) {
    test(`multipart/form-data with ${name}`, async () => {
      const text = await (await post(body, { 'content-type': 'multipart/form-data; boundary=b' })).text();
      assert.deepEqual((JSON.parse(text) as { data: unknown }).data, data, text);
    });
  }

  test('an empty body gives an empty object to POST, and the query to GET and to operations that the URL names', async () => {
    const empty = await post('', { 'content-type': 'application/json' }, '?a=1');
    assert.deepEqual(((await empty.json()) as { data: unknown }).data, {});
    const chunked = (path: string, verb = 'POST') =>
      service.raw(`${verb} /api/echo${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`);
    assert.match(await chunked('?q=1'), /"data":\{\}/);
    assert.match(await chunked('?q=1', 'GET'), /"data":\{"q":"1"\}/);
    // An operation that the URL names gets its arguments from the query, for any verb.
    assert.match(await chunked('/created?q=1'), /"data":\{"q":"1"\}/);
    const named = await fetch(`${service.url}/api/echo/created?a=1&a=2&__proto__=x`, { method: 'POST' });
    assert.deepEqual(((await named.json()) as { data: unknown }).data, JSON.parse('{"a":["1","2"],"__proto__":"x"}'));
    const get = await fetch(`${service.url}/api/echo?x=%41`);
    assert.deepEqual(await get.json(), { data: { x: 'A' }, type: 'object', bare: true });
  });

  test('the body of a GET becomes its data', async () => {
    const answer = await service.raw('GET /api/echo?q=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n\r\n{"a":1}');
    assert.match(answer, /"data":\{"a":1\}/);
  });

  test('a body in many pieces', async () => {
    const text = JSON.stringify({ a: 'é'.repeat(2000) });
    const bytes = utf8(text);
    const pieces = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, i) => bytes.subarray(i * 7, i * 7 + 7));
    const stream = new ReadableStream({
      pull(controller) {
        const piece = pieces.shift();
        if (piece === undefined) controller.close();
        else controller.enqueue(piece);
      },
    });
    const answer = await fetch(`${service.url}/api/echo`, {
      method: 'POST',
      body: stream,
      duplex: 'half',
    } as RequestInit);
    assert.deepEqual(((await answer.json()) as { data: unknown }).data, JSON.parse(text));
  });
});

test('a text body is decoded when it is UTF-8, and refused otherwise', () => {
  // Every kind of invalid UTF-8: cut, overlong, a surrogate, beyond U+10FFFF, bytes that never occur.
  const pieces = [
    '61',
    'c3a9',
    'efbfbd',
    'efbbbf',
    'f09f9880',
    'c3',
    'e282',
    'f09f98',
    'c0af',
    'e08080',
    'eda080',
    'f4908080',
    '80',
    'fe',
    'ff',
  ];
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 8 }), (hex) => {
      const bytes = Buffer.from(hex.join(''), 'hex');
      if (isUtf8(bytes))
        assert.deepEqual(utf8(String(decodeBody('text', bytes))), hex[0] === 'efbbbf' ? bytes.subarray(3) : bytes);
      else assert.throws(() => decodeBody('text', bytes), { code: 'MALFORMED_BODY' });
    }),
    { numRuns: 2000 },
  );
});

describe('a refused body', () => {
  const J = { 'content-type': 'application/json' };
  const rows: [name: string, body: string | Buffer, headers: Record<string, string>, status: number, code: string][] = [
    ['broken JSON', '{"a":', J, 400, 'MALFORMED_JSON'],
    ['JSON of white space only', ' ', J, 400, 'MALFORMED_JSON'],
    ['two JSON values', '{} {}', J, 400, 'MALFORMED_JSON'],
    ['JSON that is not UTF-8', Buffer.from([0x22, 0xff, 0x22]), J, 400, 'MALFORMED_JSON'],
    ['JSON in UTF-16', Buffer.from('{"a":1}', 'utf16le'), J, 400, 'MALFORMED_JSON'],
    ['9,000 open brackets', '['.repeat(9000), J, 400, 'MALFORMED_JSON'],
    ['__proto__', '{"__proto__":{"x":1}}', J, 400, 'FORBIDDEN_KEY'],
    ['__proto__ deep inside', '[{"a":[{"__proto__":1}]}]', J, 400, 'FORBIDDEN_KEY'],
    ['__proto__ in escapes', '{"\\u005f\\u005fproto\\u005F_":1}', J, 400, 'FORBIDDEN_KEY'],
    ['constructor.prototype', '{"constructor":{"prototype":{"x":1}}}', J, 400, 'FORBIDDEN_KEY'],
    ['constructor.prototype in escapes', '{"c\\u006fnstructor":{"pr\\u006ftotype":1}}', J, 400, 'FORBIDDEN_KEY'],
    [
      'a form that is not UTF-8',
      Buffer.from([0x61, 0x3d, 0xe9]),
      { 'content-type': 'application/x-www-form-urlencoded' },
      400,
      'MALFORMED_BODY',
    ],
    ['text that is not UTF-8', Buffer.from([0xe9]), { 'content-type': 'text/plain' }, 400, 'MALFORMED_BODY'],
    ['multipart without a boundary', 'x', { 'content-type': 'multipart/form-data' }, 400, 'MALFORMED_BODY'],
    [
      'multipart without a boundary line',
      'x',
      { 'content-type': 'multipart/form-data; boundary=b' },
      400,
      'MALFORMED_BODY',
    ],
    ...[
      ['a field that is not UTF-8', '; name="a"\r\n\r\n\xe9'],
      ['a name that is not UTF-8', '; name="f"; filename="\xe9"\r\n\r\n1'],
      ['an encoded name alone that is malformed', "; name=f; filename*=utf-8''%\r\n\r\n1"],
      ['no name', '; filename="a"\r\n\r\n1'],
      ['headers without an end', '; name="a"'],
    ].map(([name, text]): (typeof rows)[number] => [
      `multipart with ${name}`,
      Buffer.from(`--b\r\nContent-Disposition: form-data${text}\r\n--b--\r\n`, 'latin1'),
      { 'content-type': 'multipart/form-data; boundary=b' },
      400,
      'MALFORMED_BODY',
    ]),
    [
      'multipart without an end',
      '--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n',
      { 'content-type': 'multipart/form-data; boundary=b' },
      400,
      'MALFORMED_BODY',
    ],
    [
      'multipart as the second of two media types',
      '--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n--b--\r\n',
      { 'content-type': 'multipart/form-data; boundary=a, multipart/form-data; boundary=b' },
      400,
      'MALFORMED_BODY',
    ],
    ['a body that is not gzip', 'x', { ...J, 'content-encoding': 'gzip' }, 400, 'MALFORMED_BODY'],
    [
      'gzip cut short',
      gzipSync('{"a":1}').subarray(0, 15),
      { ...J, 'content-encoding': 'gzip' },
      400,
      'MALFORMED_BODY',
    ],
    [
      'a gzip bomb',
      gzipSync(Buffer.alloc(1_000_000, 0x20)),
      { ...J, 'content-encoding': 'gzip' },
      413,
      'BODY_TOO_LARGE',
    ],
    ['XML', '<a/>', { 'content-type': 'application/xml' }, 415, 'UNSUPPORTED_MEDIA_TYPE'],
    [
      'two media types in one header',
      '{}',
      { 'content-type': 'application/json, text/plain' },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    ['a media type without a slash', '{}', { 'content-type': 'json' }, 415, 'UNSUPPORTED_MEDIA_TYPE'],
    [
      'a media type with many blanks, which Node reads in quadratic time',
      '{}',
      { 'content-type': `application/json;${' '.repeat(32)}a=b` },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    ['an empty media type', '{}', { 'content-type': '' }, 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['charset latin1', '{}', { 'content-type': 'application/json; charset=iso-8859-1' }, 415, 'UNSUPPORTED_CHARSET'],
    ['an unknown content coding', '{}', { ...J, 'content-encoding': 'zstd' }, 415, 'UNSUPPORTED_ENCODING'],
    ['two content codings', gzipSync('{}'), { ...J, 'content-encoding': 'gzip, br' }, 415, 'UNSUPPORTED_ENCODING'],
    ['one byte over BODY_LIMIT', '1'.repeat(10_001), J, 413, 'BODY_TOO_LARGE'],
  ];
  for (const [name, body, headers, status, code] of rows) {
    test(`${name} → ${status} ${code}`, async () => {
      const answer = assertEnvelope(await asRaw(await post(body, headers)), status, code);
      const text = String(body);
      if (text.length > 3) assert.ok(!String(answer.message).includes(text), 'the message quotes the body');
    });
  }

  test('the message has the position of the error', async () => {
    const answer = (await (await post('{"a":1,}', J)).json()) as { message: string };
    assert.match(answer.message, /position 7$/);
    const bytes = (await (await post(Buffer.concat([utf8('"é'), Buffer.from([0xff])]), J)).json()) as {
      message: string;
    };
    assert.match(bytes.message, /byte 3 is not UTF-8/);
  });
});

describe('the number of form fields and parts is limited', () => {
  const F = { 'content-type': 'application/x-www-form-urlencoded' };
  const M = { 'content-type': 'multipart/form-data; boundary="b"' };
  const part = (headers: string) => `--b\r\nContent-Disposition: form-data; name="x"${headers}\r\n\r\n\r\n`;
  const rows: [name: string, body: string, headers: Record<string, string>, accepted: boolean][] = [
    ['10,000 pairs', `${'a&'.repeat(5000)}${'&'.repeat(500)}${'b=&'.repeat(5000)}`, F, true],
    ['10,001 pairs', 'a=&'.repeat(10_001), F, false],
    // Each of these once blocked the event loop for 5 s or more on Node 24 and 26.
    ['1 MiB of names', 'a&'.repeat(524_288), F, false],
    ['1 MiB of percent signs', '%&'.repeat(524_288), F, false],
    ['1 MiB of different names', Array.from({ length: 170_000 }, (_, i) => i.toString(36)).join('&'), F, false],
    ['1 MiB of one name', 'a'.repeat(1_048_576), F, true],
    ['1,000 parts', `${part('').repeat(1000)}--b--\r\n`, M, true],
    ['1,001 parts', `${part('').repeat(1001)}--b--\r\n`, M, false],
    // For each of these, the parts were once counted by another boundary than the parser's.
    ...['x="; boundary=a"; boundary=b', 'boundary="b', 'boundary="\\b"'].map((parameters): (typeof rows)[number] => [
      `1,001 parts by ${parameters}`,
      `${part('').repeat(1001)}--b--\r\n`,
      { 'content-type': `multipart/form-data; ${parameters}` },
      false,
    ]),
    ['a part with 128 KiB of headers', `${part('\r\nX: y'.repeat(21_800))}--b--\r\n`, M, true],
    ['a part with over 128 KiB of headers', `${part('\r\nX: y'.repeat(21_840))}--b--\r\n`, M, false],
    ['a part with 1 MiB of headers', `${part('\r\nX: y'.repeat(170_000))}--b--\r\n`, M, false],
  ];
  let shipped: Service;
  before(async () => {
    shipped = await startService();
  });
  after(() => shipped.close());
  for (const [name, body, headers, accepted] of rows) {
    test(`${name}: ${accepted ? 'accepted' : '413'}`, async () => {
      const answer = await fetch(`${shipped.url}/api/test`, { method: 'POST', body, headers });
      if (accepted) assert.equal(answer.status, 200, await answer.text());
      else assertEnvelope(await asRaw(answer), 413, 'TOO_MANY_FIELDS');
    });
  }

  test('a query of 7,000 pairs is accepted', async () => {
    assert.equal((await fetch(`${service.url}/api/echo?${'a&'.repeat(7000)}`)).status, 200);
  });

  test('a boundary longer than RFC 2046 allows is refused', async () => {
    const form = (boundary: string) =>
      post(`--${boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--${boundary}--\r\n`, {
        'content-type': `multipart/form-data; boundary=${boundary}`,
      });
    assert.deepEqual(((await (await form('b'.repeat(70))).json()) as { data: object }).data, { a: '1' });
    assertEnvelope(await asRaw(await form('b'.repeat(71))), 400, 'MALFORMED_BODY');
  });

  test('different media types of many requests occupy a bounded number of bytes', () => {
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    const flood = (count: number, from = 0) => {
      for (let i = from; i < from + count; i++) bodyKindOf(`application/json; a=${i}${'x'.repeat(80)}`);
    };
    // A first run, so that the memory of compiled code is not counted.
    flood(1000);
    collect();
    const before = process.memoryUsage().heapUsed;
    flood(50_000, 1000);
    collect();
    const grown = process.memoryUsage().heapUsed - before;
    assert.ok(grown < 3_000_000, `${grown} bytes`);
  });
});

test('the server keeps no reference to a request body while its operation waits', async (context) => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  // The function is not async, because the frame of an async function can keep the parameters.
  const source = `export default class {
    hold(body) {
      globalThis.heldBody = new WeakRef(body);
      return new Promise((resolve) => { globalThis.releaseBody = resolve; });
    }
  }`;
  const service = await startService({ controllers: { 'HoldController.mjs': source } });
  context.after(() => service.close());
  const held = globalThis as { heldBody?: WeakRef<object>; releaseBody?: (result: object) => void };
  const answered = fetch(`${service.url}/api/hold/hold`, {
    ...{ method: 'POST', body: '{"a":1}', headers: { 'content-type': 'application/json' } },
  });
  while (held.releaseBody === undefined) await new Promise((turn) => setImmediate(turn));
  for (let i = 0; i < 10 && held.heldBody?.deref() !== undefined; i++) {
    await new Promise((turn) => setImmediate(turn));
    collect();
  }
  assert.equal(held.heldBody?.deref(), undefined);
  held.releaseBody({});
  assert.equal((await answered).status, 200);
});

describe('the position of an error in JSON', () => {
  /** Returns the position in the message. The message has no part of the text. */
  function positionIn(text: string): number {
    try {
      decodeBody('json', utf8(text));
    } catch (error) {
      const said = /^Cannot parse the body as JSON: ([a-z ]+), at position (\d+)$/.exec((error as Error).message);
      assert.equal(
        said?.[1],
        Number(said?.[2]) >= text.length ? 'it ends too early' : 'there is a character that does not belong',
      );
      return Number(said?.[2]);
    }
    return -1;
  }

  test('is found in a text of 4 MB', () => {
    assert.equal(positionIn(`"${'a'.repeat(4_000_000)}`), 4_000_001);
    assert.equal(positionIn(`["${'\\"'.repeat(2_000_000)}",x`), 4_000_004);
  });

  const rows: [text: string, at: number][] = [
    ['', 0],
    ['  ', 2],
    ['x', 0],
    ['{', 1],
    ['{x', 1],
    ['{"a"', 4],
    ['{"a" 1', 5],
    ['{"a":', 5],
    ['{"a":1', 6],
    ['{"a":1,', 7],
    ['{"a":1,}', 7],
    ['{"a":1]', 6],
    ['[1 2]', 3],
    ['[1,]', 3],
    ['[,', 1],
    ['[}', 1],
    ['"abc', 4],
    ['"a\nb"', 2],
    ['"a\\x"', 3],
    ['{"\\u12', 6],
    ['01', 1],
    ['1.', 2],
    ['+1', 0],
    ['nul', 3],
    ['truex', 4],
    ['{} {}', 3],
    ["{'a':1}", 1],
    ['[[[[', 4],
    ['{"a": x}', 6],
    ['{"a":[1,{"b":undefined}]}', 13],
    ['{"a":}', 5],
    ['{"a":,', 5],
    ['[[],]', 4],
    ['["],",]', 6],
    ['["\\\\",]', 6],
    ['["\\"",x]', 6],
    ['[NaN, "at position 1"]', 1],
    ['[{}, "b", ,1]', 10],
    ['<html>', 0],
  ];
  for (const [text, at] of rows) test(`${JSON.stringify(text)} → ${at}`, () => assert.equal(positionIn(text), at));
});
