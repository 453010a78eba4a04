// The reference, sentence by sentence, over a socket: routing table, gateway steps, verb table, demonstration group.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { asRaw, assertEnvelope, parseRaw, type Service, startService } from '../support/service.ts';

let service: Service;
before(async () => {
  service = await startService({ expectedErrors: ['request-failed'] });
});
after(() => service.close());

const json = async (path: string, init?: RequestInit) => {
  const response = await fetch(service.url + path, init);
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  };
};

describe('demonstration group (reference 4.4)', () => {
  const rows: [verb: string, path: string, operation: string][] = [
    ['GET', '/api/test', 'index'],
    ['GET', '/api/test/', 'index'],
    ['GET', '/api//test', 'index'],
    ['GET', '/api/Test', 'index'],
    ['GET', '/api/test/hello', 'hello'],
    ['GET', '/api/test%2Fhello', 'hello'],
    ['GET', '/api/test%2fhello', 'hello'],
    ['DELETE', '/api/test/hello', 'hello'],
    ['GET', '/api/test/error', 'error'],
    ['POST', '/api/test', 'created'],
    ['GET', '/api/test/created', 'created'],
    ['PUT', '/api/test', 'red'],
    ['GET', '/api/test/updated', 'updated'],
    ['PATCH', '/api/test/updated', 'updated'],
    ['PROPFIND', '/api/test/updated', 'updated'],
    ['DELETE', '/api/test', 'deleted'],
    ['POST', '/api/test/no-such-operation', 'created'],
    ['DELETE', '/api/test/42', 'deleted'],
    ['GET', '/api/test%252Fhello', 'absent'],
    ['GET', '/api/TEST', 'absent'],
    ['GET', '/api/test/constructor', 'index'],
    ['GET', '/api/test/toString', 'index'],
    ['GET', '/api/test/__proto__', 'index'],
    ['GET', '/api/test/hasOwnProperty', 'index'],
  ];
  const message: Record<string, string> = {
    index: 'The test group answers',
    hello: 'Hello from the test group',
    error: 'This is what an error looks like',
    created: 'Resource created',
    red: 'Resource replaced',
    updated: 'Data updated',
    deleted: 'Resource deleted',
    absent: 'There is no such handler group',
  };
  for (const [verb, path, operation] of rows) {
    test(`${verb} ${path} → ${operation}`, async () => {
      const { status, body } = await json(path, { method: verb });
      assert.equal(body.message, message[operation]);
      assert.equal(status, operation === 'absent' ? 404 : 200);
    });
  }

  test('index and hello have status, message, timestamp in whole seconds, greeting', async () => {
    for (const path of ['/api/test', '/api/test/hello']) {
      const { body } = await json(path);
      assert.deepEqual(Object.keys(body).sort(), ['greeting', 'message', 'status', 'timestamp']);
      assert.equal(body.status, 'success');
      assert.equal(typeof body.greeting, 'string');
      assert.ok(Math.abs((body.timestamp as number) - Date.now() / 1000) < 60);
    }
  });

  test('error is a normal result with status error and an error_code', async () => {
    const { status, headers, body } = await json('/api/test/error');
    assert.equal(status, 200);
    assert.equal(body.status, 'error');
    assert.equal(typeof body.error_code, 'string');
    assert.equal(headers.get('cache-control'), null);
  });

  test('created echoes the body and the params', async () => {
    const { body } = await json('/api/test/made/up?x=1&x=2&y=3', {
      method: 'POST',
      body: '{"a":[1,{"b":null}]}',
      headers: { 'content-type': 'application/json', 'x-request-id': 'Id.1_-' },
    });
    assert.deepEqual(body.data, { a: [1, { b: null }] });
    assert.deepEqual(body.params, {
      page: 'test',
      method: 'created',
      verb: 'POST',
      slugs: ['made', 'up'],
      query: { x: ['1', '2'], y: '3' },
      requestId: 'Id.1_-',
    });
  });

  test('PATCH without an operation is refused with 500', async () => {
    assertEnvelope(
      await asRaw(await fetch(`${service.url}/api/test`, { method: 'PATCH' })),
      500,
      'OPERATION_NOT_FOUND',
    );
  });
});

describe('routing table (reference 1)', () => {
  const rows: [verb: string, path: string, status: number, code: string][] = [
    ['GET', '/api', 404, 'GROUP_NOT_FOUND'],
    ['POST', '/api/', 404, 'GROUP_NOT_FOUND'],
    ['GET', '/api/absent', 404, 'GROUP_NOT_FOUND'],
    ['GET', '/api/idp-signin', 404, 'GROUP_NOT_FOUND'],
    ['GET', '/api/register', 404, 'GROUP_NOT_FOUND'],
    ['GET', '/', 404, 'NOT_FOUND'],
    ['GET', '/apix/test', 404, 'NOT_FOUND'],
    ['GET', '/API/test', 404, 'NOT_FOUND'],
    ['GET', '/test', 404, 'NOT_FOUND'],
    ['GET', '/api%2Ftest', 404, 'NOT_FOUND'],
    ['OPTIONS', '/elsewhere', 404, 'NOT_FOUND'],
    ['PROPFIND', '/api/test', 405, 'METHOD_NOT_ALLOWED'],
    ['TRACE', '/api/test', 405, 'METHOD_NOT_ALLOWED'],
    ['GET', '/api/%ZZ', 400, 'MALFORMED_PATH'],
    ['GET', '/api/test/%00', 400, 'MALFORMED_PATH'],
    ['GET', '/api/test/%1F', 400, 'MALFORMED_PATH'],
    ['GET', '/api/test/%7F', 400, 'MALFORMED_PATH'],
    ['GET', '/api/test/%C2%9F', 400, 'MALFORMED_PATH'],
    ['GET', '/api/test/%0d%0a', 400, 'MALFORMED_PATH'],
    ['GET', '/api/test/%C2%85', 400, 'MALFORMED_PATH'],
    ['GET', '/api/%C0%AF', 400, 'MALFORMED_PATH'],
    ['GET', '/api/%E4%BD', 400, 'MALFORMED_PATH'],
    ['GET', '/api/test#x', 400, 'MALFORMED_PATH'],
    ['GET', '/api/test?a=b#x', 400, 'MALFORMED_PATH'],
    ['GET', '/api/absent?!~', 404, 'GROUP_NOT_FOUND'],
    ['GET', '/api/../etc', 404, 'GROUP_NOT_FOUND'],
    ['GET', '/api/..%2f..%2fetc%2fpasswd', 404, 'GROUP_NOT_FOUND'],
    ['GET', '/api/__proto__', 404, 'GROUP_NOT_FOUND'],
    ['GET', '/api/test.test', 404, 'GROUP_NOT_FOUND'],
    ['GET', '/api/1test', 404, 'GROUP_NOT_FOUND'],
    ['GET', '*', 400, 'MALFORMED_PATH'],
    ['GET', 'http://example.test/api/absent', 404, 'GROUP_NOT_FOUND'],
    ['GET', 'http://user@example.test/api/test', 400, 'MALFORMED_PATH'],
    ['GET', 'ftp://example.test/api/test', 400, 'MALFORMED_PATH'],
    ['GET', 'api/test', 400, 'MALFORMED_PATH'],
  ];
  for (const [verb, target, status, code] of rows) {
    test(`${verb} ${target} → ${status} ${code}`, async () => {
      const answer = parseRaw(await service.raw(`${verb} ${target} HTTP/1.1\r\nHost: x\r\n\r\n`));
      assertEnvelope(answer, status, code);
    });
  }

  test('the answer 405 lists the verbs of the group in Allow', async () => {
    const response = await fetch(`${service.url}/api/test`, { method: 'PROPFIND' });
    assert.equal(response.headers.get('allow'), 'GET, HEAD, POST, PUT, DELETE, OPTIONS');
  });

  test('explicit routes never reach the gateway, even with a revoked credential', async () => {
    for (const path of ['/api/idp-signin', '/api/idp%2Dsignin', '/api/register/']) {
      const response = await fetch(service.url + path, { method: 'POST', headers: { authorization: 'gfk_revoked' } });
      assert.ok(response.ok, path);
      assert.equal(response.headers.get('cache-control'), 'no-store');
    }
  });

  test('an absolute-form target is served by its path', async () => {
    const answer = parseRaw(await service.raw('GET HTTP://example.test:80/api/test?x HTTP/1.1\r\nHost: x\r\n\r\n'));
    assert.equal(answer.status, 200);
    const root = parseRaw(await service.raw('GET http://example.test HTTP/1.1\r\nHost: x\r\n\r\n'));
    assertEnvelope(root, 404, 'NOT_FOUND');
  });

  test('CONNECT is refused in the same envelope', async () => {
    const answer = parseRaw(await service.raw('CONNECT example.test:443 HTTP/1.1\r\nHost: example.test:443\r\n\r\n'));
    assertEnvelope(answer, 405, 'METHOD_NOT_ALLOWED');
    assert.ok(answer.headers.get('allow'));
  });
});

describe('OPTIONS and headers (reference, gateway steps 1 and 2)', () => {
  test('OPTIONS with Authorization is dispatched', async () => {
    const answer = await asRaw(
      await fetch(`${service.url}/api/test`, { method: 'OPTIONS', headers: { authorization: 'Basic eDp5' } }),
    );
    assertEnvelope(answer, 500, 'OPERATION_NOT_FOUND');
  });

  test('a success has the content type of JSON and its length', async () => {
    const { headers, body } = await json('/api/test');
    assert.equal(headers.get('content-type'), 'application/json; charset=UTF-8');
    assert.equal(headers.get('content-length'), String(Buffer.byteLength(JSON.stringify(body))));
  });

  test('HEAD returns the headers of GET without a body', async () => {
    const [head, get] = [
      await fetch(`${service.url}/api/test`, { method: 'HEAD' }),
      await fetch(`${service.url}/api/test`),
    ];
    assert.equal(await head.text(), '');
    // Hop by hop: fetch asks for the end of the connection after a HEAD.
    const names = (response: Response) =>
      [...response.headers.keys()].filter((name) => name !== 'keep-alive' && name !== 'connection').sort();
    assert.deepEqual(names(head), names(get));
    assert.equal(head.headers.get('content-length'), get.headers.get('content-length'));
  });
});

describe('a foreign Authorization (reference 5)', () => {
  test('delegates to the group in the URL', async () => {
    assert.equal((await json('/api/test', { headers: { authorization: 'Bearer foreign' } })).status, 200);
  });

  test('delegates even when the group does not exist: 500, not 404', async () => {
    for (const path of ['/api/absent', '/api']) {
      assertEnvelope(
        await asRaw(await fetch(service.url + path, { headers: { authorization: 'Bearer foreign' } })),
        500,
        'DELEGATED_GROUP_NOT_FOUND',
      );
    }
  });

  test('a second Authorization header is refused', async () => {
    const answer = parseRaw(
      await service.raw('GET /api/test HTTP/1.1\r\nHost: x\r\nAuthorization: a\r\nauthorization: b\r\n\r\n'),
    );
    assertEnvelope(answer, 400, 'DUPLICATE_AUTHORIZATION');
  });
});
