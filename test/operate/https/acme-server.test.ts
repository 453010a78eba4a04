// Attacks of an ACME server on its client: foreign addresses, malicious tokens, endless answers. The directory is a
// function. Only the test of a single request uses the network.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { createKeyPair } from '../../../src/operate/https/acme/certificate-writer.ts';
import { type AcmeClient, createAcmeClient } from '../../../src/operate/https/acme/client.ts';
import { AcmeError, type AcmeRequest, type AcmeResponse, createSend } from '../../../src/operate/https/acme/request.ts';
import { makePair } from '../../support/tls.ts';

const AT = 'https://ca.example.com';
const { privateKey } = createKeyPair();

type Answer = Partial<Omit<AcmeResponse, 'text'>> & { readonly body?: unknown };
/** The answers of each path, in order. The last one is repeated. */
type Answers = Readonly<Record<string, readonly Answer[]>>;

const body = (...bodies: unknown[]): Answer[] => bodies.map((body) => ({ body }));
const IDENTIFIER = { identifier: { type: 'dns', value: 'a.example.com' } };
const offering = (challenge: object) =>
  body({ status: 'pending', ...IDENTIFIER, challenges: [challenge] }, { status: 'valid' });

const FINISHED = { status: 'valid', certificate: `${AT}/certificate` };

/** The answers of a directory that issues each requested certificate. */
const GOOD: Answers = {
  '/dir': body({
    newNonce: `${AT}/nonce`,
    newAccount: `${AT}/account`,
    newOrder: `${AT}/new-order`,
    renewalInfo: `${AT}/renewal/`,
  }),
  '/nonce': body({}),
  '/account': body({ status: 'valid' }),
  '/me': body({ status: 'valid' }),
  '/new-order': body({ status: 'pending', authorizations: [`${AT}/authorization`] }),
  '/authorization': offering({ type: 'http-01', url: `${AT}/challenge`, token: 'token' }),
  '/challenge': body({}),
  '/order': body({ status: 'ready', finalize: `${AT}/finalize` }, FINISHED),
  '/finalize': body({}),
  '/certificate': body('the chain'),
};
const LOCATIONS: Readonly<Record<string, string>> = { '/account': '/me', '/new-order': '/order' };

/** Creates a client of a directory with these answers in the place of the good ones, and a list of its requests. */
function createBench(changes: Answers, contact: readonly string[] = []): { client: AcmeClient; asked: AcmeRequest[] } {
  const asked: AcmeRequest[] = [];
  const answers = { ...GOOD, ...changes };
  const client = createAcmeClient({
    directory: `${AT}/dir`,
    contact,
    accountKey: () => privateKey,
    pollInterval: 1,
    async send(request) {
      if (asked.length === 1000) throw new Error('it asks without end');
      asked.push(request);
      const path = request.url.replace(AT, '');
      const [answer, ...rest] = answers[path] ?? [];
      if (rest.length > 0) answers[path] = rest;
      const { status = answer === undefined ? 404 : 200, headers, body } = answer ?? {};
      const location = LOCATIONS[path];
      return {
        status,
        headers: {
          ...(path === '/dir' ? {} : { 'replay-nonce': 'nonce' }),
          ...(location === undefined ? {} : { location: `${AT}${location}` }),
          ...headers,
        },
        text: JSON.stringify(body ?? {}),
      };
    },
  });
  return { client, asked };
}

/** Makes an order. Returns its outcome, the requests, and the presented challenges. */
async function order(changes: Answers, contact?: readonly string[], { client, asked } = createBench(changes, contact)) {
  const shown: string[] = [];
  const present = async ({ token }: { token: string }) => {
    shown.push(token);
    return () => {};
  };
  const outcome = client.order({ domains: ['a.example.com'], challengeType: 'http-01', present, request: Buffer.of() });
  const error = await outcome.then(
    (chain) => chain,
    (thrown: Error) => thrown.message,
  );
  return { asked, shown, error };
}

describe('the ACME client', () => {
  const problem = (type: string, detail: string) => ({ type: `urn:ietf:params:acme:error:${type}`, detail });
  const rows: [what: string, changes: Answers, error: RegExp, shown: number][] = [
    ['presents the token of a challenge', {}, /^"the chain"$/, 1],
    [
      'presents no token if the authorization is valid already',
      { '/authorization': body({ status: 'valid' }) },
      /^"the chain"$/,
      0,
    ],
    [
      'presents no token with a slash',
      { '/authorization': offering({ type: 'http-01', url: `${AT}/c`, token: '../x' }) },
      /offers no http-01 challenge for a\./,
      0,
    ],
    [
      'presents no token with a line break',
      { '/authorization': offering({ type: 'http-01', url: `${AT}/c`, token: 'x\r\nA: b' }) },
      /offers no http-01/,
      0,
    ],
    [
      'presents no token of 257 characters',
      { '/authorization': offering({ type: 'http-01', url: `${AT}/c`, token: 'x'.repeat(257) }) },
      /offers no http-01/,
      0,
    ],
    [
      'presents no empty token',
      { '/authorization': offering({ type: 'http-01', url: `${AT}/c`, token: '' }) },
      /offers no http-01/,
      0,
    ],
    [
      'presents no token of another challenge type',
      { '/authorization': offering({ type: 'dns-01', url: `${AT}/c`, token: 'x' }) },
      /offers no http-01/,
      0,
    ],
    [
      'reports a directory that is down',
      { '/dir': [{ status: 503 }] },
      /^ca\.example\.com answers with status 503$/,
      0,
    ],
    ['reports a status that is no success', { '/new-order': [{ status: 300 }] }, /answers with status 300$/, 0],
    ['refuses a directory that is no JSON object', { '/dir': body('a page') }, /is not a JSON object$/, 0],
    [
      'refuses an account without an address',
      { '/account': [{ body: { status: 'valid' }, headers: { location: undefined } }] },
      /has no Location header$/,
      0,
    ],
    [
      'refuses an address without TLS',
      { '/dir': body({ newNonce: `${AT}/nonce`, newAccount: 'http://ca.example.com/account' }) },
      /has no https address in "newAccount"$/,
      0,
    ],
    [
      'refuses an address that is not a string',
      { '/dir': body({ newNonce: `${AT}/nonce`, newAccount: [`${AT}/account`] }) },
      /no https address in "newAccount"$/,
      0,
    ],
    ['refuses an account that is not valid', { '/account': body({ status: 'revoked' }) }, /the account is revoked/, 0],
    [
      'reports the reason if there is no nonce',
      { '/nonce': [{ status: 503, body: problem('rateLimited', 'slow down') }] },
      /^slow down$/,
      0,
    ],
    [
      'reports the reason of the smallest error in the place of a nonce',
      { '/nonce': [{ status: 400, body: problem('malformed', 'no nonce here') }] },
      /^no nonce here$/,
      0,
    ],
    [
      'refuses a malformed nonce',
      { '/nonce': [{ headers: { 'replay-nonce': 'a b' } }] },
      /^the directory sent no nonce$/,
      0,
    ],
    [
      'reports the reason of an invalid order',
      { '/order': body({ status: 'invalid', error: problem('caa', 'not by us') }) },
      /^not by us$/,
      1,
    ],
    [
      'waits for an order that is in progress',
      {
        '/order': body(
          { status: 'ready', finalize: `${AT}/finalize` },
          { status: 'ready' },
          { status: 'processing' },
          FINISHED,
        ),
      },
      /^"the chain"$/,
      1,
    ],
    [
      'reports an invalid order without a reason',
      { '/order': body({ status: 'invalid' }) },
      /^the order is invalid$/,
      1,
    ],
    [
      'stops its retries when the directory refuses each nonce',
      { '/new-order': [{ status: 400, body: problem('badNonce', 'no') }] },
      /^no$/,
      0,
    ],
  ];
  for (const [what, changes, error, shown] of rows) {
    test(what, async () => {
      const outcome = await order(changes);
      assert.match(outcome.error, error);
      assert.equal(outcome.shown.length, shown);
    });
  }

  test('sends a message 40 times at most while the directory refuses each nonce', async () => {
    const { asked } = await order({ '/new-order': [{ status: 400, body: problem('badNonce', 'no') }] });
    assert.equal(asked.filter(({ url }) => url === `${AT}/new-order`).length, 40);
  });

  test('asks for the chain in PEM form', async () => {
    const { asked } = await order({});
    assert.deepEqual(
      [asked.at(-1)?.url, asked.at(-1)?.accept],
      [`${AT}/certificate`, 'application/pem-certificate-chain'],
    );
  });

  test('reads the addresses of the directory anew for each order', async () => {
    const moved = { newNonce: `${AT}/nonce`, newAccount: `${AT}/moved` };
    const bench = createBench({
      '/dir': [...(GOOD['/dir'] ?? []), ...body(moved)],
      '/moved': body({ status: 'gone' }),
    });
    assert.equal((await order({}, [], bench)).error, '"the chain"');
    assert.equal((await order({}, [], bench)).error, 'the account is gone');
  });

  test('waits for Retry-After, up to ten intervals, before it asks again', async () => {
    const processing = { body: { status: 'processing' }, headers: { 'retry-after': '1' } };
    const { '/order': [ready, valid] = [] } = GOOD;
    const begun = performance.now();
    const { error, asked } = await order({ '/order': [ready, ...Array(5).fill(processing), valid] as Answer[] });
    assert.equal(error, '"the chain"');
    // At most ten intervals of the client, which the test sets to 1 ms. A timer can fire a millisecond early.
    assert.ok(performance.now() - begun > 30);
    assert.equal(asked.filter(({ url }) => url.endsWith('/order')).length, 7);
  });

  test('gives up a pending order after 180 s', async (test) => {
    let time = 0;
    test.mock.method(performance, 'now', () => (time += 10_000));
    const { error } = await order({ '/order': body({ status: 'pending' }) });
    assert.equal(error, 'the directory still reports pending after 180 s');
  });

  test('sends the contact addresses to the account only if they differ', async () => {
    const contact = ['mailto:a@example.com'];
    const told = async (known: unknown) =>
      (await order({ '/account': body({ status: 'valid', contact: known }) }, contact)).asked.filter(({ url }) =>
        url.endsWith('/me'),
      ).length;
    assert.deepEqual([await told(contact), await told(['mailto:b@example.com']), await told(undefined)], [0, 1, 1]);
  });

  test('measures how far the clock of the directory is ahead', async () => {
    const at = new Date(Math.floor(Date.now() / 1000) * 1000 + 3_600_000);
    const bench = createBench({ '/certificate': [{ headers: { date: at.toUTCString() } }] });
    assert.equal(bench.client.clockSkew(), 0);
    await order({}, [], bench);
    assert.ok(Math.abs(bench.client.clockSkew() - 3_600_000) < 60_000);
  });

  describe('asks for renewal information', () => {
    const [start, end] = ['2026-01-02T00:00:00Z', '2026-01-03T00:00:00Z'];
    const windows: [what: string, answer: Answer, outcome: unknown][] = [
      [
        'returns a window',
        { body: { suggestedWindow: { start, end } }, headers: { 'retry-after': '60' } },
        { start: Date.parse(start), end: Date.parse(end), retryAfter: 60_000 },
      ],
      [
        'refuses a window that ends before it begins',
        { body: { suggestedWindow: { start: end, end: start } } },
        /RFC 9773/,
      ],
      ['refuses a window without an end', { body: { suggestedWindow: { start } } }, /RFC 9773/],
      ['refuses an answer without a window', { body: {} }, /RFC 9773/],
      [
        'reports the error of the directory',
        { status: 404, body: problem('malformed', 'no such certificate') },
        /no such certificate/,
      ],
    ];
    for (const [what, answer, outcome] of windows) {
      test(what, async () => {
        const { client, asked } = createBench({ '/renewal/id': [answer] });
        const told = client.renewalInfo('id');
        if (outcome instanceof RegExp) await assert.rejects(told, outcome);
        else assert.deepEqual(await told, outcome);
        assert.deepEqual(
          asked.map(({ method, url }) => [method, url]),
          ['/dir', '/renewal/id'].map((path) => ['GET', `${AT}${path}`]),
        );
      });
    }

    test('returns nothing if the directory has no renewal information', async () => {
      assert.equal(await createBench({ '/dir': body({}) }).client.renewalInfo('id'), undefined);
    });
  });
});

describe('a request to an ACME server', () => {
  const { cert, key } = makePair('localhost');

  async function listen(test: TestContext, answer: Parameters<typeof createServer>[1]): Promise<string> {
    const server = createServer({ cert, key }, answer);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    test.after(() => {
      server.closeAllConnections();
      server.close();
    });
    return `https://localhost:${(server.address() as AddressInfo).port}/`;
  }

  test('fails without TLS, and if the answer is too long', async (test) => {
    const url = await listen(test, (_request, response) => {
      const more = () => response.write('x'.repeat(65_536), (error) => error == null && more());
      more();
    });
    const send = createSend({ userAgent: 'test', ca: cert });
    await assert.rejects(send({ method: 'GET', url: url.replace('https', 'http') }), /the address is not https/);
    await assert.rejects(send({ method: 'GET', url }), /the answer is longer than 524288 bytes/);
  });

  test('fails after its timeout, and follows no redirect', async (test) => {
    const url = await listen(test, (request, response) => {
      if (request.url === '/moved') response.writeHead(302, { Location: '/' }).end();
    });
    const send = createSend({ userAgent: 'test', ca: cert, timeoutMs: 100 });
    await assert.rejects(send({ method: 'GET', url }), (error: AcmeError) => {
      assert.ok(error instanceof AcmeError);
      assert.match(error.message, /^Cannot reach localhost:\d+: no answer within 0\.1 s$/);
      return error.type === undefined;
    });
    const patient = createSend({ userAgent: 'test', ca: cert });
    assert.equal((await patient({ method: 'GET', url: `${url}moved` })).status, 302);
  });

  test('fails if the certificate of the server is self-signed and not trusted', async (test) => {
    const url = await listen(test, (_request, response) => response.end('{}'));
    await assert.rejects(createSend({ userAgent: 'test' })({ method: 'GET', url }), /self-signed certificate/);
  });
});

test('an order is sent again without `replaces` after alreadyReplaced, and not after another refusal', async () => {
  const rows: [type: string, replaced: (string | undefined)[], error: RegExp | undefined][] = [
    ['alreadyReplaced', ['id', undefined], undefined],
    ['rateLimited', ['id'], /too many/],
  ];
  for (const [type, replaced, error] of rows) {
    const problem = { type: `urn:ietf:params:acme:error:${type}`, detail: 'too many' };
    const { client, asked } = createBench({
      '/new-order': [{ status: 409, body: problem }, ...(GOOD['/new-order'] ?? [])],
    });
    const ordered = client.order({
      ...{ domains: ['a.example.com'], challengeType: 'http-01', request: Buffer.of(), replaces: 'id' },
      present: async () => () => {},
    });
    if (error === undefined) await ordered;
    else await assert.rejects(ordered, error);
    const orders = asked.filter(({ url }) => url === `${AT}/new-order`);
    const payloads = orders.map(({ body = '' }) => JSON.parse(atob(JSON.parse(body).payload)));
    assert.deepEqual(
      payloads.map(({ replaces }) => replaces),
      replaced,
    );
  }
});
