// Sends random bytes. The server must answer with a success or the envelope, or close the connection. A 5xx without a
// handler, or a crash, is an error. All runs share one process, so that damage of one run shows in the next.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { parseQuery } from '../../src/request/body/form.ts';
import { parsePath } from '../../src/request/target.ts';
import { parseRaw, type Service, startService } from '../support/service.ts';

let service: Service;
before(async () => {
  service = await startService({
    settings: { HEADERS_TIMEOUT: '200ms', REQUEST_TIMEOUT: '300ms', BODY_LIMIT: '2000' },
  });
});
after(() => service.close());

const SOUND = [200, 400, 404, 405, 408, 413, 415, 417, 431, 501, 505];

/** Sends bytes that end with a valid request, so that the server always answers or closes the connection. */
async function probe(bytes: Buffer): Promise<void> {
  const text = await service.raw(bytes);
  if (text === '') return;
  const answer = parseRaw(text);
  assert.ok(SOUND.includes(answer.status), `${answer.status} for ${JSON.stringify(bytes.toString('latin1'))}`);
  if (answer.status !== 200) {
    const body = JSON.parse(answer.body) as { status: string; error_code: string };
    assert.equal(body.status, 'error');
    assert.equal(answer.headers.get('access-control-allow-origin'), '*');
  }
}

const bytes = (max: number) => fc.uint8Array({ maxLength: max }).map((array) => Buffer.from(array));
const visible = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
  maxLength: 40,
});
const runs = (numRuns: number) => ({ numRuns, endOnFailure: true });

test('the server handles any path', () =>
  fc.assert(
    fc.asyncProperty(visible, (path) =>
      probe(Buffer.from(`GET /api/${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)),
    ),
    runs(300),
  ));

test('the server handles any path of percent-encodings and slashes', () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.constantFrom(
          '%2e',
          '%2f',
          '%00',
          '%5c',
          '%C3',
          '%A9',
          '%',
          '/',
          '..',
          'test',
          'hello',
          '__proto__',
          '%25',
          '*',
          '\\',
        ),
        {
          maxLength: 12,
        },
      ),
      (parts) => probe(Buffer.from(`GET /api/${parts.join('')} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)),
    ),
    runs(300),
  ));

test('the server handles any query', () =>
  fc.assert(
    fc.asyncProperty(visible, (query) =>
      probe(Buffer.from(`POST /api/test?${query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)),
    ),
    runs(200),
  ));

test('the server handles any header value', () =>
  fc.assert(
    fc.asyncProperty(
      fc.constantFrom(
        'Host',
        'Authorization',
        'Content-Type',
        'Content-Length',
        'Transfer-Encoding',
        'Expect',
        'X-Request-Id',
        'Content-Encoding',
        'Connection',
      ),
      bytes(30),
      (name, value) =>
        probe(
          Buffer.concat([
            Buffer.from(`POST /api/test HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${name}: `),
            value,
            Buffer.from('\r\n\r\n'),
          ]),
        ),
    ),
    runs(300),
  ));

test('the server handles any body of any content type', () =>
  fc.assert(
    fc.asyncProperty(
      fc.constantFrom(
        'application/json',
        'application/x-www-form-urlencoded',
        'multipart/form-data; boundary=x',
        'text/plain',
        'a/b+json',
        '',
      ),
      fc.constantFrom('', 'Content-Encoding: gzip\r\n', 'Content-Encoding: br\r\n', 'Content-Encoding: deflate\r\n'),
      bytes(200),
      (type, coding, body) =>
        probe(
          Buffer.concat([
            Buffer.from(
              `POST /api/test HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: ${type}\r\n${coding}Content-Length: ${body.length}\r\n\r\n`,
            ),
            body,
          ]),
        ),
    ),
    runs(300),
  ));

test('the server handles any bytes', () =>
  fc.assert(
    fc.asyncProperty(bytes(60), (noise) => probe(Buffer.concat([noise, Buffer.from('\r\n\r\n')]))),
    runs(100),
  ));

test('any JSON value is returned unchanged, or refused', () =>
  fc.assert(
    fc.asyncProperty(fc.jsonValue({ maxDepth: 4 }), async (value) => {
      const text = JSON.stringify(value);
      const answer = await fetch(`${service.url}/api/test`, {
        method: 'POST',
        body: text,
        headers: { 'content-type': 'application/json' },
      });
      const body = (await answer.json()) as { data: unknown; error_code?: string };
      if (answer.status === 200) assert.deepEqual(body.data, JSON.parse(text));
      else assert.ok(body.error_code === 'FORBIDDEN_KEY' || body.error_code === 'BODY_TOO_LARGE', text);
    }),
    runs(100),
  ));

test('parsePath returns no control character and no empty segment', () =>
  fc.assert(
    fc.property(visible, (path) => {
      try {
        for (const segment of parsePath(`/${path}`).segments) {
          assert.ok(segment !== '');
          assert.doesNotMatch(segment, /[\x00-\x1f\x7f-\x9f]/);
        }
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'MALFORMED_PATH');
      }
    }),
  ));

/** Form texts made of characters that are hard to parse. */
const formText = fc
  .array(
    fc.constantFrom(
      'a',
      '1',
      '&',
      '=',
      '+',
      '%',
      '%41',
      '%2',
      '%zZ',
      '%00',
      '%26',
      '%3D',
      '%E2%82',
      '%AC',
      '%ff',
      '%EF%BB%BF',
      '\ufeff',
      'é',
      '€',
      '😀',
    ),
    {
      maxLength: 12,
    },
  )
  .map((pieces) => pieces.join(''));

test('parseQuery agrees with URLSearchParams, and its result has no prototype', () =>
  fc.assert(
    fc.property(fc.oneof(fc.string(), formText), (text) => {
      const query = parseQuery(text);
      assert.equal(Object.getPrototypeOf(query), null);
      // Node loses the upper byte of a character beside an escape that is not UTF-8. The standard keeps it.
      const pairs = [...new URLSearchParams(`&${text.replace(/[^\0-\x7f]/gu, encodeURIComponent)}`)];
      assert.deepEqual(new Set(Object.keys(query)), new Set(pairs.map(([key]) => key)));
      for (const key of Object.keys(query))
        assert.deepEqual(
          [query[key]].flat(),
          pairs.filter(([other]) => other === key).map(([, value]) => value),
        );
    }),
  ));
