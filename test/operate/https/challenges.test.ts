// The answers to challenges, as a directory asks for them on a real socket, and two whole orders of a certificate: the
// first before PORT is handed over to workers, the second after.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { syncBuiltinESMExports } from 'node:module';
import { type AddressInfo, connect as connectPlain } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { TimerOptions } from 'node:timers';
import timers from 'node:timers/promises';
import tls from 'node:tls';
import { maxSupervisorConnections } from '../../../src/base/descriptors.ts';
import { createChallenges } from '../../../src/operate/https/acme/challenges.ts';
import type { Challenge } from '../../../src/operate/https/acme/client.ts';
import { createCertificates } from '../../../src/operate/https/certificates.ts';
import type { HttpPort } from '../../../src/operate/https/http-port.ts';
import type { SecureChallenge } from '../../../src/operate/https/serve/secure-state.ts';
import { createMemoryLog } from '../../support/memory-log.ts';
import { freePorts } from '../../support/ports.ts';
import { issue } from '../../support/renewals-bench.ts';
import { makePair } from '../../support/tls.ts';

const HOST = '127.0.0.1';
const DOMAIN = 'a.example.com';
const CHALLENGE = { domain: DOMAIN, token: 'token', keyAuthorization: 'token.thumbprint' };
const DAY = 86_400_000;
/** A directory that gets no answer waits without end. */
const LIMIT = { timeout: 60_000 };

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Milliseconds that src waits after it has published an answer. */
const PUBLISH_MS = 500;

/** Stops the pauses after an answer until `go` is called. The looks at a new certificate pause, too. */
function holdPauses(test: TestContext): { held(): number; go(): void } {
  const waiting: (() => void)[] = [];
  const sleep = timers.setTimeout;
  test.mock.method(timers, 'setTimeout', (delay: number, ...rest: [unknown?, TimerOptions?]) =>
    delay === PUBLISH_MS ? new Promise<void>((resolve) => waiting.push(resolve)) : sleep(delay, ...rest),
  );
  syncBuiltinESMExports();
  test.after(() => {
    test.mock.restoreAll();
    syncBuiltinESMExports();
  });
  return {
    held: () => waiting.length,
    go: () => {
      for (const resolve of waiting.splice(0)) resolve();
    },
  };
}

/** Asks for the answer to a tls-alpn-01 challenge, and waits until the server ends the connection. */
async function askByTls(port: number): Promise<{ protocol: unknown; names: string; answer: Buffer }> {
  const socket = tls.connect({
    ...{ port, host: HOST, servername: DOMAIN, rejectUnauthorized: false, ALPNProtocols: ['acme-tls/1'] },
  });
  const ended = once(socket.resume(), 'end');
  await once(socket, 'secureConnect');
  const certificate = socket.getPeerX509Certificate() ?? assert.fail();
  await ended;
  return { protocol: socket.alpnProtocol, names: String(certificate.subjectAltName), answer: certificate.raw };
}

const digestOf = (keyAuthorization: string) => createHash('sha256').update(keyAuthorization).digest();

test('HTTP_PORT answers http-01, and is the first kind of challenge where there is HTTP_PORT', async () => {
  const presented: Challenge[] = [];
  const withdraw = () => {};
  const httpPort = { present: (challenge: Challenge) => presented.push(challenge) && withdraw } as unknown as HttpPort;
  const others = { port: 1, host: HOST, isHandedOver: () => true, publish: () => assert.fail() };
  const { types, present } = createChallenges({ httpPort, ...others });
  const challenge: Challenge = { type: 'http-01', ...CHALLENGE };
  assert.equal(await present(challenge), withdraw);
  assert.deepEqual([presented, types], [[challenge], ['http-01', 'tls-alpn-01']]);
  assert.deepEqual(createChallenges({ httpPort: undefined, ...others }).types, ['tls-alpn-01']);
});

test('the workers get the answer to tls-alpn-01 a moment before the directory asks, and then its end', async (test) => {
  const { held, go } = holdPauses(test);
  const published: (SecureChallenge | undefined)[] = [];
  const { present } = createChallenges({
    // A directory can ask for tls-alpn-01 although there is HTTP_PORT.
    httpPort: { present: () => assert.fail() } as unknown as HttpPort,
    ...{ port: 1, host: HOST, isHandedOver: () => true, publish: (answer) => published.push(answer) },
  });
  const presenting = present({ type: 'tls-alpn-01', ...CHALLENGE });
  await turn();
  assert.deepEqual([published.map((answer) => answer?.domain), held()], [[DOMAIN], 1]);
  go();
  (await presenting)();
  assert.deepEqual(
    published.map((answer) => answer?.domain),
    [DOMAIN, undefined],
  );
});

test('before there are workers, PORT answers tls-alpn-01, and nothing else disturbs it', LIMIT, async (test) => {
  const [port = 0] = await freePorts(1);
  let server: tls.Server | undefined;
  const { createServer } = tls;
  test.mock.method(tls, 'createServer', (...given: Parameters<typeof createServer>) => {
    server = createServer(...given);
    return server;
  });
  const publish = () => assert.fail();
  const { present } = createChallenges({ httpPort: undefined, port, host: HOST, isHandedOver: () => false, publish });
  const challenge: Challenge = { type: 'tls-alpn-01', ...CHALLENGE };
  const withdraw = await present(challenge);
  // The system can refuse a connection at any time, such as with EMFILE.
  server?.emit('error', new Error('too many open files'));
  const message = `PORT: Cannot listen on port ${port}: it is in use by another process`;
  await assert.rejects(present(challenge), { message, type: 'noPort' });
  // A client can break its connection off.
  server?.once('secureConnection', (socket) => socket.emit('error', new Error('read ECONNRESET')));
  const { protocol, names, answer } = await askByTls(port);
  assert.deepEqual([protocol, names], ['acme-tls/1', `DNS:${DOMAIN}`]);
  assert.ok(answer.includes(digestOf(CHALLENGE.keyAuthorization)));

  // A client that speaks no TLS is cut.
  const plain = connectPlain(port, HOST).on('error', () => {});
  plain.resume().write('GET / HTTP/1.1\r\n\r\n');
  await once(plain, 'close');

  // Clients that send nothing lock the directory out: the oldest one makes room.
  const silent = Array.from({ length: maxSupervisorConnections(100) }, () =>
    connectPlain(port, HOST)
      .on('error', () => {})
      .resume(),
  );
  test.after(() => {
    for (const socket of silent) socket.destroy();
  });
  await Promise.all(silent.map((socket) => once(socket, 'connect')));
  const isEnded = silent.map((socket) => once(socket, 'close').then(() => true));
  await askByTls(port);
  await isEnded[0];
  assert.equal(await Promise.race([isEnded.at(-1), turn().then(() => false)]), false);

  for (const socket of silent) socket.destroy();
  withdraw();
  assert.ok(server !== undefined && !server.listening);
});

/** A directory on loopback. It checks the challenge as soon as the client says that the answer is there. */
async function startDirectory(test: TestContext, now: () => number, check: (digest: Buffer) => Promise<void>) {
  const pair = makePair('localhost');
  let nonces = 0;
  let thumbprint = '';
  let request = Buffer.of();
  let isChecked = false;
  const seen = { agents: new Set<unknown>(), contacts: [] as unknown[] };
  let at = '';
  // The order can still ask for its next date when the test has ended.
  const server = createServer(
    pair,
    (incoming, response) => void answer(incoming, response).catch(() => response.destroy()),
  );
  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of incoming.setEncoding('utf8')) text += chunk;
    const decode = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString() || 'null');
    const { payload = '', protected: head = '' } = text === '' ? {} : JSON.parse(text);
    seen.agents.add(incoming.headers['user-agent']);
    const send = (body: unknown, headers: Record<string, string> = {}) => {
      response.writeHead(200, { 'replay-nonce': `nonce${++nonces}`, ...headers });
      response.end(typeof body === 'string' ? body : JSON.stringify(body));
    };
    const path = incoming.url ?? '';
    if (path === '/dir')
      return send({ newNonce: `${at}/nonce`, newAccount: `${at}/account`, newOrder: `${at}/new-order` });
    if (path === '/account') {
      const { jwk } = decode(head);
      const { crv, kty, x, y } = jwk;
      thumbprint = createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url');
      seen.contacts.push(decode(payload).contact);
      return send({ status: 'valid', contact: decode(payload).contact }, { location: `${at}/me` });
    }
    if (path === '/new-order') {
      isChecked = false;
      request = Buffer.of();
      return send({ status: 'pending', authorizations: [`${at}/authorization`] }, { location: `${at}/order` });
    }
    if (path === '/challenge') {
      await check(digestOf(`the-token.${thumbprint}`));
      isChecked = true;
      return send({});
    }
    if (path === '/authorization') {
      const challenges = [{ type: 'tls-alpn-01', url: `${at}/challenge`, token: 'the-token' }];
      return send({ status: isChecked ? 'valid' : 'pending', identifier: { value: DOMAIN }, challenges });
    }
    if (path === '/finalize') request = Buffer.from(decode(payload).csr, 'base64url');
    if (path === '/certificate') return send(issue({ domains: [DOMAIN], request } as never, now()));
    const isIssued = request.length > 0;
    send({ status: isIssued ? 'valid' : 'ready', finalize: `${at}/finalize`, certificate: `${at}/certificate` });
  }
  server.listen(0, HOST);
  await once(server, 'listening');
  at = `https://localhost:${(server.address() as AddressInfo).port}`;
  test.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { seen, ca: pair.cert, url: `${at}/dir` };
}

test(
  'an order of a service answers on PORT before the first certificate, and by its workers after it',
  LIMIT,
  async (test) => {
    // The order does not wait for the next look at what is due.
    test.mock.timers.enable({ apis: ['setInterval'] });
    const dataDir = mkdtempSync(join(tmpdir(), 'gatefold-order-'));
    test.after(() => rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 }));
    const [port = 0] = await freePorts(1);
    let passed = 0;
    const now = () => Date.now() + passed;
    const answers: [where: string, isRight: boolean][] = [];
    const directory = await startDirectory(test, now, async (digest) => {
      const { challenge } = isServing ? certificates.state() : {};
      const where = challenge === undefined ? 'PORT' : `workers, for ${challenge.domain}`;
      const answer = challenge === undefined ? (await askByTls(port)).answer : challengeBytes(challenge);
      answers.push([where, answer.includes(digest)]);
    });
    let isServing = false;
    let check = () => {};
    const { log, lines } = createMemoryLog(() => check());
    const obtained = (count: number) =>
      new Promise<void>((resolve, reject) => {
        check = () => {
          const failure = lines.find(({ event }) => event === 'certificate-order-failed');
          if (failure !== undefined) reject(new Error(String(failure.error)));
          if (lines.filter(({ event }) => event === 'certificate-obtained').length >= count) resolve();
        };
        check();
      });
    const certificates = createCertificates({
      settings: {
        ...{ tlsCert: undefined, tlsKey: undefined, domains: [DOMAIN], httpPort: undefined, port, host: HOST, dataDir },
        ...{ acmeDirectory: directory.url, publicOrigin: [], acmeContact: ['ops@example.com'] },
      },
      ...{ version: '1.2', log, ca: directory.ca, now },
    });
    test.after(() => certificates.close());
    await Promise.race([certificates.start(), obtained(2)]);
    isServing = true;
    const first = certificates.state();
    assert.deepEqual([certificates.status()?.names, first.challenge], [[DOMAIN], undefined]);

    const { go } = holdPauses(test);
    const told: (string | undefined)[] = [];
    const replaced = new Promise<void>((resolve) =>
      certificates.handOverPort(port, () => {
        const { challenge, cert } = certificates.state();
        told.push(challenge?.domain);
        // The workers have the answer when the pause ends.
        setImmediate(go);
        if (cert !== first.cert) resolve();
      }),
    );
    passed = 70 * DAY;
    // The first order may still hold its lock.
    for (; lines.filter(({ event }) => event === 'certificate-ordered').length < 2; await turn())
      certificates.retryNow();
    await obtained(2);
    await replaced;
    assert.deepEqual(answers, [
      ['PORT', true],
      [`workers, for ${DOMAIN}`, true],
    ]);
    assert.deepEqual(told, [DOMAIN, undefined, undefined]);
    assert.deepEqual(
      [[...directory.seen.agents], directory.seen.contacts],
      [['gatefold/1.2'], Array(2).fill(['mailto:ops@example.com'])],
    );
  },
);

function challengeBytes({ cert }: SecureChallenge): Buffer {
  return Buffer.from(cert.replaceAll(/-----.*-----/g, ''), 'base64');
}
