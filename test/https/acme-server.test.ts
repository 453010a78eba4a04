// What an ACME server could do to its client, by a directory that is a function: addresses and tokens of its choosing, answers
// without end, contacts it knows already. No network, but for the one test of the request itself.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { createAcmeClient } from '../../src/https/acme-client.ts';
import { type AcmeRequest, createSend } from '../../src/https/acme-request.ts';
import { createKeyPair } from '../../src/https/certificate-writer.ts';
import { makePair } from '../support/tls.ts';

const AT = 'https://ca.example.com';
const { privateKey } = createKeyPair();

/** An order at a directory that answers as these say, over what a good one does. What was asked, and what was shown. */
async function order(changes: Readonly<Record<string, unknown>>, contact: readonly string[] = []) {
  const asked: AcmeRequest[] = [];
  const shown: string[] = [];
  const answers: Record<string, unknown> = {
    '/dir': { newNonce: `${AT}/nonce`, newAccount: `${AT}/account`, newOrder: `${AT}/order` },
    '/nonce': {},
    '/account': { status: 'valid' },
    '/me': { status: 'valid' },
    '/order': { status: 'pending', authorizations: [`${AT}/authorization`] },
    '/authorization': {
      status: 'pending',
      identifier: { type: 'dns', value: 'a.example.com' },
      challenges: [{ type: 'http-01', url: `${AT}/challenge`, token: 'token' }],
    },
    '/challenge': {},
    ...changes,
  };
  const client = createAcmeClient({
    directory: `${AT}/dir`,
    contact,
    accountKey: () => privateKey,
    async send(request) {
      asked.push(request);
      const path = request.url.replace(AT, '');
      const headers = { 'replay-nonce': 'nonce', location: `${AT}${path === '/account' ? '/me' : path}` };
      return { status: 200, headers, text: JSON.stringify(answers[path] ?? {}) };
    },
  });
  const present = async ({ token }: { token: string }) => {
    shown.push(token);
    throw new Error('it is shown');
  };
  const outcome = client.order({ domains: ['a.example.com'], challengeType: 'http-01', present, request: Buffer.of() });
  const error = await outcome.then(
    () => 'none',
    (thrown: Error) => thrown.message,
  );
  return { asked, shown, error };
}

describe('the ACME client', () => {
  const authorization = (challenge: object) => ({
    '/authorization': { status: 'pending', identifier: { type: 'dns', value: 'a.example.com' }, challenges: [challenge] },
  });
  const rows: [what: string, changes: Readonly<Record<string, unknown>>, error: RegExp][] = [
    ['shows a token', {}, /^it is shown$/],
    ['shows none with a slash', authorization({ type: 'http-01', url: `${AT}/c`, token: '../x' }), /offers no http-01 challenge for a\./],
    ['shows none with a line break', authorization({ type: 'http-01', url: `${AT}/c`, token: 'x\r\nA: b' }), /offers no http-01/],
    ['shows none without end', authorization({ type: 'http-01', url: `${AT}/c`, token: 'x'.repeat(257) }), /offers no http-01/],
    ['shows none that is empty', authorization({ type: 'http-01', url: `${AT}/c`, token: '' }), /offers no http-01/],
    [
      'goes to no address without TLS',
      { '/dir': { newNonce: `${AT}/nonce`, newAccount: 'http://ca.example.com/account' } },
      /has no address of newAccount$/,
    ],
    ['goes to none that is no text', { '/dir': { newNonce: `${AT}/nonce`, newAccount: [`${AT}/account`] } }, /no address of newAccount$/],
    ['believes no account that is not valid', { '/account': { status: 'revoked' } }, /the account is revoked/],
  ];
  for (const [what, changes, error] of rows) {
    test(what, async () => {
      const outcome = await order(changes);
      assert.match(outcome.error, error);
      assert.equal(outcome.shown.length, error.source.includes('it is shown') ? 1 : 0);
    });
  }

  test('tells an account its addresses only where they differ', async () => {
    const contact = ['mailto:a@example.com'];
    const told = async (known: unknown) =>
      (await order({ '/account': { status: 'valid', contact: known } }, contact)).asked.filter(({ url }) => url.endsWith('/me')).length;
    assert.deepEqual([await told(contact), await told(['mailto:b@example.com']), await told(undefined)], [0, 1, 1]);
  });

  test('asks nobody without TLS, and reads no answer without end', async (test) => {
    const { cert, key } = makePair('localhost');
    const server = createServer({ cert, key }, (_request, response) => {
      const more = () => response.write('x'.repeat(65_536), (error) => error == null && more());
      more();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    test.after(() => {
      server.closeAllConnections();
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    const send = createSend({ userAgent: 'test', ca: cert });
    await assert.rejects(send({ method: 'GET', url: `http://localhost:${port}/` }), /its address is not https/);
    await assert.rejects(send({ method: 'GET', url: `https://localhost:${port}/` }), /the answer is longer than 524288 bytes/);
  });
});
