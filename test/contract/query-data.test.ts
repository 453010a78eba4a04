// Operations whose `data` is the query: requests that send a body all the same, over a real socket. The operation only
// runs with data that its declared check has accepted.
import assert from 'node:assert/strict';
import { type OutgoingHttpHeaders, request } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { type Service, startService } from '../support/service.ts';

const SCHEMAS = `
  export interface P { page: number }
  const schema = <T>(check: (value: never) => T | undefined, field: string) => ({
    '~standard': {
      version: 1 as const,
      vendor: 'test',
      validate: (value: unknown) => {
        const made = check(value as never);
        return made === undefined ? { issues: [{ message: 'does not fit', path: [field] }] } : { value: made };
      },
      types: undefined as unknown as { input: T; output: T },
    },
  });
  export const Page = schema<P>((v: { page?: unknown } | null) => (/^\\d+$/.test(String(v?.page)) ? { page: Number(v?.page) } : undefined), 'page');
  export const Body = schema<P>((v: { page?: unknown } | null) => (typeof v?.page === 'number' ? { page: -v.page } : undefined), 'page');
  export const seen = async (data: unknown) => ({ data: data instanceof ReadableStream ? await new Response(data).text() : data });`;

const CONTROLLERS = {
  'schemas.ts': SCHEMAS,
  'NamedController.ts': `
    import type { Operations } from 'gatefold';
    import { Body, Page, seen, type P } from './schemas.ts';
    export default class NamedController {
      static operations: Operations<NamedController> = {
        index: { query: Page }, deleted: { query: Page }, created: { query: Page }, find: { query: Page }, free: { query: Page },
        both: { query: Page, body: Body }, stream: { query: Page, body: 'stream' }, image: { query: Page, accepts: ['image/*'] },
      };
      index(data: P) { return seen(data); }
      deleted(data: P) { return seen(data); }
      created(data: P) { return seen(data); }
      find(data: P) { return seen(data); }
      free(data: unknown) { return seen(data); }
      both(data: P) { return seen(data); }
      stream(data: ReadableStream) { return seen(data); }
      image(data: P) { return seen(data); }
    }`,
  'RouteController.ts': `
    import type { Operations } from 'gatefold';
    import { Body, Page, seen, type P } from './schemas.ts';
    export default class RouteController {
      static operations: Operations<RouteController> = {
        'GET list': { query: Page }, 'DELETE {id}': { query: Page }, 'HEAD head': { query: Page }, 'GET both': { query: Page, body: Body },
        'GET stream': { query: Page as never, body: 'stream' }, 'GET image': { query: Page, accepts: ['image/*'] }, 'PUT {id}': { query: Page }, 'PATCH {id}': { query: Page },
      };
      'GET list'(data: P) { return seen(data); }
      'HEAD head'(data: P) { return seen(data.page.toFixed()); }
      'GET both'(data: P) { return seen(data); }
      'GET stream'(data: ReadableStream) { return seen(data); }
      'GET image'(data: P) { return seen(data); }
      'DELETE {id}'(data: P) { return seen(data); }
      'PUT {id}'(data: P) { return seen(data); }
      'PATCH {id}'(data: P) { return seen(data); }
    }`,
  'TypedController.ts': `
    import { seen, type P } from './schemas.ts';
    export default class TypedController {
      static operations = { image: { accepts: ['image/*'] }, stream: { body: 'stream' } };
      index(data: P) { return seen(data); }
      deleted(data: P) { return seen(data); }
      find(data: P) { return seen(data); }
      image(data: P) { return seen(data); }
      stream(data: ReadableStream) { return seen(data); }
    }`,
};

let service: Service;
before(async () => {
  service = await startService({ controllers: CONTROLLERS });
});
after(() => service.close());

interface Sent {
  readonly body: string;
  readonly headers: OutgoingHttpHeaders;
}

const sent = (body: string, type?: string): Sent => ({
  body,
  headers: { 'Content-Length': Buffer.byteLength(body), ...(type !== undefined && { 'Content-Type': type }) },
});
const EVIL = '{"page":{"$gt":""},"role":"admin"}';
const JSON_BODY = sent(EVIL, 'application/json');
const FITTING = sent('{"page":5,"role":"admin"}', 'application/json');
/** All kinds of bodies. */
const BODIES: readonly [name: string, body: Sent][] = [
  ['JSON', JSON_BODY],
  ['JSON without a type', sent(EVIL)],
  ['JSON in chunks', { body: EVIL, headers: { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' } }],
  ['a form', sent('page=x&role=admin', 'application/x-www-form-urlencoded')],
  [
    'a form in parts',
    sent('--b\r\nContent-Disposition: form-data; name="page"\r\n\r\nx\r\n--b--\r\n', 'multipart/form-data; boundary=b'),
  ],
  ['text', sent('evil', 'text/plain')],
];
const IMAGE = sent('evil', 'image/png');

/** The data that the operation received, or the mistakes of the request. */
async function ask(verb: string, path: string, { body, headers }: Partial<Sent> = {}): Promise<unknown> {
  const { status, text } = await new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
    const asking = request(
      `${service.url}/api/${path}`,
      { method: verb, agent: false, ...(headers && { headers }) },
      (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (piece: string) => {
          text += piece;
        });
        answer.on('end', () => resolve({ status: answer.statusCode, text }));
      },
    );
    asking.on('error', reject);
    asking.end(body);
  });
  if (verb === 'HEAD') return status;
  const { data, error_code, errors } = JSON.parse(text) as {
    data: unknown;
    error_code?: string;
    errors?: { in: string; pointer: string }[];
  };
  if (status === 200) return data;
  return errors === undefined ? error_code : errors.map((one) => `${one.in} ${one.pointer}`);
}

describe('an operation with a schema for the query and none for the body', () => {
  const operations: readonly [verb: string, path: string][] = [
    ['GET', 'named'],
    ['DELETE', 'named'],
    ['POST', 'named/index'],
    ['PUT', 'named/deleted'],
    ['GET', 'named/find'],
    ['DELETE', 'named/find'],
    ['GET', 'named/free'],
    ['GET', 'named/image'],
    ['GET', 'route/list'],
    ['DELETE', 'route/7'],
    ['GET', 'route/image'],
  ];
  for (const [verb, path] of operations) {
    for (const [name, body] of BODIES) {
      test(`${verb} ${path}: ${name} never reaches data`, async () => {
        assert.deepEqual(await ask(verb, `${path}?page=3`, body), { page: 3 });
      });
    }
    test(`${verb} ${path}: a valid body does not replace an invalid query`, async () => {
      assert.deepEqual(await ask(verb, `${path}?page=x`, FITTING), ['query /page']);
    });
  }

  for (const path of ['named/image', 'route/image']) {
    test(`GET ${path}: bytes of an accepted type never reach data`, async () => {
      assert.deepEqual(await ask('GET', `${path}?page=3`, IMAGE), { page: 3 });
    });
  }

  for (const path of ['named', 'route/head', 'named/find', 'route/list']) {
    test(`HEAD ${path}: the query is checked as for GET`, async () => {
      assert.deepEqual(
        [await ask('HEAD', `${path}?page=3`, JSON_BODY), await ask('HEAD', `${path}?page=x`, FITTING)],
        [200, 422],
      );
    });
  }

  test('a malformed or unsupported body is refused although the query is the data', async () => {
    assert.equal(await ask('GET', 'named?page=3', sent('{', 'application/json')), 'MALFORMED_JSON');
    assert.equal(await ask('GET', 'named?page=3', IMAGE), 'UNSUPPORTED_MEDIA_TYPE');
  });
});

describe('the declared check applies to data from the query and from the body', () => {
  const rows: readonly [verb: string, path: string, body: Sent | undefined, expected: unknown][] = [
    ['POST', 'named/find', undefined, { page: 3 }],
    ['POST', 'named/find', FITTING, { page: 5 }],
    ['POST', 'named/find', JSON_BODY, ['body /page']],
    ['POST', 'named/image', IMAGE, ['body ']],
    ['POST', 'named/free', FITTING, { page: 5, role: 'admin' }],
    ['POST', 'named', FITTING, { page: 5 }],
    ['POST', 'named', JSON_BODY, ['body /page']],
    ['GET', 'named/created', JSON_BODY, ['body /page']],
    ['PUT', 'route/7', JSON_BODY, ['body /page']],
    ['PUT', 'route/7', FITTING, { page: 5 }],
    ['PUT', 'route/7', undefined, ['body /page']],
    ['PATCH', 'route/7', FITTING, { page: 5 }],
    ['PATCH', 'route/7', undefined, ['body /page']],
    ['POST', 'named', undefined, ['body /page']],
    // The query of `both` has its own schema.
    ['GET', 'named/both', undefined, ['query /page']],
    ['GET', 'named/both', FITTING, { page: -5 }],
    ['GET', 'named/both', JSON_BODY, ['body /page']],
    ['GET', 'route/both', undefined, { page: 3 }],
    ['GET', 'route/both', FITTING, { page: -5 }],
    ['GET', 'route/both', JSON_BODY, ['body /page']],
    // The body of `stream` is a stream of bytes.
    ['GET', 'named/stream', undefined, ''],
    ['GET', 'named/stream', JSON_BODY, EVIL],
    ['GET', 'route/stream', undefined, ''],
    ['GET', 'route/stream', JSON_BODY, EVIL],
    ['GET', 'typed/stream', JSON_BODY, EVIL],
    // Types check `data`, which may come from the query or the body.
    ...['typed', 'typed/find'].flatMap((path): [string, string, Sent | undefined, unknown][] => [
      ['GET', path, undefined, { page: 3 }],
      ['GET', path, FITTING, { page: 5 }],
      ['GET', path, JSON_BODY, ['body /page']],
      ['GET', path, sent('page=5&role=admin', 'application/x-www-form-urlencoded'), { page: 5 }],
      ['DELETE', path, JSON_BODY, ['body /page']],
    ]),
    ['GET', 'typed/image', IMAGE, ['body ']],
  ];
  for (const [verb, path, body, expected] of rows) {
    test(`${verb} ${path} ${body?.body ?? 'without a body'}`, async () => {
      assert.deepEqual(await ask(verb, `${path}?page=3`, body), expected);
    });
  }
});
