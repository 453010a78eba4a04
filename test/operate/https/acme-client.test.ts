// The ACME client with Pebble, which refuses nonces at random, checks every rule of RFC 8555, and validates challenges.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { createServer } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { adviceFor } from '../../../src/operate/https/acme/advice.ts';
import {
  createCertificateRequest,
  createChallengeCertificate,
  createKeyPair,
} from '../../../src/operate/https/acme/certificate-writer.ts';
import {
  type AcmeClient,
  type ChallengeType,
  createAcmeClient,
  type PresentChallenge,
} from '../../../src/operate/https/acme/client.ts';
import { signMessage } from '../../../src/operate/https/acme/jws.ts';
import { AcmeError, type AcmeResponse, createSend } from '../../../src/operate/https/acme/request.ts';
import { readPair } from '../../../src/operate/https/pair.ts';
import { type Pebble, startPebble, withoutPebble } from '../../support/pebble.ts';

describe('createAcmeClient', { skip: withoutPebble }, () => {
  let pebble: Pebble;
  const answers = new Map<string, string>();
  const web = createServer((request, response) => response.end(answers.get(request.url ?? '')));
  let account = createKeyPair().privateKey;
  let accounts = 0;

  before(async () => {
    pebble = await startPebble({ PEBBLE_WFE_NONCEREJECT: '60' });
    await new Promise<void>((listening) => web.listen(pebble.httpPort, '127.0.0.1', listening));
  });
  after(async () => {
    web.closeAllConnections();
    web.close();
    await pebble?.close();
  });

  function client(contact = ['mailto:ops@example.com']): AcmeClient {
    return createAcmeClient({
      directory: pebble.directory,
      contact,
      accountKey(renew) {
        if (renew) account = createKeyPair().privateKey;
        if (renew) accounts++;
        return account;
      },
      send: createSend({ userAgent: 'gatefold-test', ca: pebble.ca }),
      pollInterval: 50,
    });
  }

  const presentHttp: PresentChallenge = async ({ token, keyAuthorization }) => {
    answers.set(`/.well-known/acme-challenge/${token}`, keyAuthorization);
    return () => void answers.clear();
  };

  const presentTls: PresentChallenge = async ({ domain, keyAuthorization }) => {
    const server = createTlsServer({
      ...createChallengeCertificate(domain, keyAuthorization),
      ALPNProtocols: ['acme-tls/1'],
    });
    await new Promise<void>((listening) => server.listen(pebble.tlsPort, '127.0.0.1', listening));
    return () => void server.close();
  };

  /** Sends a request of the account. The server refuses six of ten. */
  async function post(resource: 'newAccount' | { url: string }, payload: object | ''): Promise<AcmeResponse> {
    const send = createSend({ userAgent: 'gatefold-test', ca: pebble.ca });
    const addresses = JSON.parse((await send({ method: 'GET', url: pebble.directory })).text);
    const url = resource === 'newAccount' ? addresses.newAccount : resource.url;
    const kid = resource === 'newAccount' ? undefined : url;
    for (;;) {
      const nonce = String((await send({ method: 'HEAD', url: addresses.newNonce })).headers['replay-nonce']);
      const response = await send({ method: 'POST', url, body: signMessage(payload, { url, nonce, kid }, account) });
      if (response.status < 300) return response;
      assert.match(response.text, /badNonce/);
    }
  }

  const addressOfAccount = async () => ({
    url: String((await post('newAccount', { onlyReturnExisting: true })).headers.location),
  });

  async function contactsOfAccount(): Promise<string[]> {
    return JSON.parse((await post(await addressOfAccount(), '')).text).contact ?? [];
  }

  async function obtain(
    domains: string[],
    challengeType: ChallengeType,
    present: PresentChallenge,
    contact?: string[],
  ): Promise<string> {
    const keys = createKeyPair();
    const chain = await client(contact).order({
      domains,
      challengeType,
      present,
      request: createCertificateRequest(domains, keys),
    });
    const { facts } = readPair(chain, keys.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string);
    assert.deepEqual([...facts.names].sort(), [...domains].sort());
    return chain;
  }

  test('obtains a certificate for two domains by http-01, although six of ten nonces are refused', async () => {
    const chain = await obtain(['api.example.com', 'www.example.com'], 'http-01', presentHttp);
    const [leaf, intermediate] =
      chain.match(/-----BEGIN[\s\S]+?-----END CERTIFICATE-----/g)?.map((pem) => new X509Certificate(pem)) ?? [];
    assert.ok(leaf !== undefined && intermediate !== undefined);
    assert.ok(
      leaf.verify(intermediate.publicKey) && intermediate.verify(new X509Certificate(await pebble.root()).publicKey),
    );
  });

  test('obtains a certificate by tls-alpn-01', async () => {
    await obtain(['alpn.example.com'], 'tls-alpn-01', presentTls);
  });

  test('reports a wrong answer to a challenge as an AcmeError that names the domain and the type', async () => {
    const present: PresentChallenge = (challenge) =>
      presentHttp({ ...challenge, keyAuthorization: 'of somebody else' });
    await assert.rejects(obtain(['wrong.example.com'], 'http-01', present), (error: unknown) => {
      assert.ok(error instanceof AcmeError);
      assert.equal(error.type, 'unauthorized');
      assert.match(error.message, /^wrong\.example\.com: /);
      return true;
    });
  });

  test('reports a domain that cannot be resolved', async () => {
    await pebble.setServfail('nowhere.example.com', true);
    await assert.rejects(obtain(['nowhere.example.com'], 'http-01', presentHttp), /nowhere\.example\.com: .*/);
  });

  test('replaces an account that the directory has closed', async () => {
    await post(await addressOfAccount(), { status: 'deactivated' });
    accounts = 0;
    await obtain(['closed.example.com'], 'http-01', presentHttp);
    assert.equal(accounts, 1);
    assert.deepEqual(await contactsOfAccount(), ['mailto:ops@example.com']);
  });

  test('sets the addresses of the account to the current ACME_CONTACT', async () => {
    for (const contact of [['mailto:new@example.com', 'mailto:other@example.com'], []]) {
      await obtain(['contact.example.com'], 'http-01', presentHttp, contact);
      assert.deepEqual(await contactsOfAccount(), contact);
    }
  });

  test('reports an address that the directory refuses with advice about ACME_CONTACT', async () => {
    await assert.rejects(
      obtain(['contact.example.com'], 'http-01', presentHttp, ['mailto:nobody']),
      (error: unknown) => {
        assert.match(adviceFor(error), /ACME_CONTACT/);
        return true;
      },
    );
  });

  test('obtains a certificate after the directory has lost its accounts and moved its addresses', async () => {
    await pebble.stop();
    await assert.rejects(obtain(['lost.example.com'], 'http-01', presentHttp), /^Error: Cannot reach localhost:\d+: /);
    await pebble.restart();
    await obtain(['lost.example.com'], 'http-01', presentHttp);
  });
});
