// HTTPS in the built service: its workers, their replacement after a change of code, and certificates that change under
// load. Each lost or cut request is counted.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import { ask, json, startLoad } from '../support/cluster-client.ts';
import { controller, createFolder, spawnService, startService, write } from '../support/cluster-server.ts';
import { type Pebble, startPebble, withoutPebble } from '../support/pebble.ts';
import { freePorts } from '../support/ports.ts';
import { makePair, type TestPair } from '../support/tls.ts';

const FILES = { 'TestController.js': controller(0) };

/** Writes the pair in two steps, the certificate first, as certbot and people do. */
function install(folder: string, { cert, key }: TestPair): { TLS_CERT: string; TLS_KEY: string } {
  const [TLS_CERT, TLS_KEY] = [join(folder, 'cert.pem'), join(folder, 'key.pem')] as const;
  for (const [path, text] of [
    [TLS_CERT, cert],
    [TLS_KEY, key],
  ] as const) {
    writeFileSync(`${path}.new`, text, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  }
  return { TLS_CERT, TLS_KEY };
}

function connectTo(port: number, options: ConnectionOptions): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', ALPNProtocols: ['http/1.1'], ...options }, () => resolve(socket));
    socket.once('error', reject);
  });
}

describe('HTTPS by files', () => {
  test('loses no request in rolls and a renewal under load, and keeps its certificate when a new pair does not fit', async (test) => {
    const dir = createFolder(test, FILES);
    const first = makePair('localhost');
    const second = makePair('localhost');
    const env = install(dirname(dir), first);
    const service = await startService(test, { dir, env });
    assert.match(service.process.spawnfile, /node/);
    const seen = new Set<string>();
    const tls = {
      servername: 'localhost',
      ca: [first.cert, second.cert],
      onSecure: (socket: TLSSocket) => seen.add(socket.getPeerX509Certificate()?.fingerprint256 ?? ''),
    };
    const loads = [
      startLoad(test, { port: service.port, connections: 4, mode: 'kept-alive', pause: 2, tls }),
      startLoad(test, { port: service.port, connections: 4, mode: 'one request a connection', pause: 2, tls }),
    ];
    await loads[1]?.until(() => true);
    write(dir, 'TestController.js', controller(1));
    await loads[1]?.until(({ body }) => json({ body } as never).value === 1);
    install(dirname(dir), second);
    await service.logged('certificate-loaded', ({ reloads }) => reloads === 1);
    write(dir, 'TestController.js', controller(2));
    let run = 0;
    await loads[1]?.until(({ body }) => {
      run = json({ body } as never).value === 2 ? run + 1 : 0;
      return run > 50;
    });
    for (const load of loads) {
      const { answers, failures } = await load.stop();
      assert.deepEqual(failures, []);
      assert.ok(answers > 50, `${answers} answers`);
    }
    assert.deepEqual(seen, new Set([first, second].map(({ cert }) => new X509Certificate(cert).fingerprint256)));

    writeFileSync(env.TLS_KEY, makePair('localhost').key);
    const { error } = await service.logged('certificate-reload-failed');
    assert.match(String(error), /the key does not belong to the certificate$/);
    const socket = await connectTo(service.port, { ca: second.cert, servername: 'localhost' });
    assert.equal(socket.authorized, true);
    socket.destroy();
    assert.deepEqual(secretsIn(service.errors() ?? '', [first, second]), []);
  });

  test('resumes a session of one worker in the other workers of this generation and the next', async (test) => {
    const dir = createFolder(test, FILES);
    const pair = makePair('localhost');
    const service = await startService(test, { dir, env: install(dirname(dir), pair) });
    const visit = async (session?: Buffer) => {
      const socket = await connectTo(service.port, {
        ca: pair.cert,
        servername: 'localhost',
        ...(session === undefined ? {} : { session }),
      });
      const resumed = socket.isSessionReused();
      let ticket: Buffer | undefined;
      socket.on('session', (received) => {
        ticket = received;
      });
      const closed = new Promise((resolve) => socket.once('close', resolve));
      let text = '';
      socket.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      socket.write('GET /api/test HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
      await closed;
      return { resumed, ticket, pid: /"pid":(\d+)/.exec(text)?.[1] };
    };
    let { ticket } = await visit();
    let resumed = 0;
    const pids = new Set<string | undefined>();
    for (let count = 0; count < 40; count++) {
      if (count === 20) {
        service.process.kill('SIGHUP');
        await service.logged('generation-serving', ({ generation }) => generation === 2);
      }
      const outcome = await visit(ticket);
      if (outcome.resumed) resumed++;
      pids.add(outcome.pid);
      // A client that uses each ticket only once (RFC 8446, C.4) can still resume, because each visit brings a new
      // ticket.
      ticket = outcome.ticket;
      assert.ok(ticket !== undefined);
    }
    assert.ok(pids.size >= 3, `answered by ${[...pids]}`);
    assert.equal(resumed, 40);
  });

  test('closes HTTP_PORT soon after SIGTERM, while a request is still under way', async (test) => {
    const dir = createFolder(test, FILES);
    const pair = makePair('localhost');
    const [httpPort = 0] = await freePorts(1);
    const env = { ...install(dirname(dir), pair), HTTP_PORT: String(httpPort) };
    const service = await startService(test, { dir, env });
    assert.equal((await fetchPlain(httpPort, '/api/test', 'localhost')).status, 308);
    const socket = await connectTo(service.port, { ca: pair.cert, servername: 'localhost' });
    socket.on('error', () => {});
    await new Promise((resolve) => socket.write('GET /api/test HTTP/1.1\r\n', resolve));
    service.process.kill('SIGTERM');
    await service.logged('stopping');
    const closed = (async () => {
      while (await fetchPlain(httpPort, '/api/test', 'localhost').catch(() => undefined)) await sleep(10);
      return 'closed';
    })();
    assert.equal(await Promise.race([closed, service.exited]), 'closed');
    assert.equal(service.process.exitCode, null);
    socket.destroy();
    assert.equal((await service.exited).code, 0);
  });

  test('refuses to start with a pair that does not fit, and reports the reason', async (test) => {
    const dir = createFolder(test, FILES);
    const env = install(dirname(dir), { ...makePair('localhost'), key: makePair('localhost').key });
    const service = spawnService(test, { dir, env });
    assert.equal((await service.exited).code, 1);
    assert.match(
      service.errors(),
      /^gatefold: Cannot use .*cert\.pem with .*key\.pem: the key does not belong to the certificate$/m,
    );
  });
});

describe('HTTPS by DOMAINS', { skip: withoutPebble }, () => {
  test('obtains a certificate, serves it at once after a restart, adds names under load, and leaks no private key', async (test) => {
    const pebble = await startPebble();
    test.after(() => pebble.close());
    const dir = createFolder(test, FILES);
    const [port = 0, ops = 0] = await freePorts(2);
    const env = acmeSettings(pebble, {
      PORT: String(port),
      HTTP_PORT: String(pebble.httpPort),
      DOMAINS: 'api.example.com',
      OPS_PORT: String(ops),
      LOG_LEVEL: 'debug',
    });
    const service = await startService(test, { dir, env });
    assert.equal(service.port, port);
    assert.ok(service.lines.some(({ event }) => event === 'certificate-awaited'));
    const ca = await pebble.root();
    const answer = await ask(port, '/api/test', 'GET', { servername: 'api.example.com', ca });
    assert.equal(json(answer).value, 0);

    await verifyByOpenssl(port, 'api.example.com', join(dirname(dir), 'root.pem'), ca);
    const redirect = await fetchPlain(pebble.httpPort, '/api/test?a=1', 'API.example.com:80');
    assert.deepEqual([redirect.status, redirect.location], [308, `https://api.example.com:${port}/api/test?a=1`]);
    const metrics = await fetchPlain(ops, '/metrics', 'localhost');
    assert.match(metrics.text, /^gatefold_certificate_expiry_timestamp_seconds \d+$/m);

    const folder = join(dirname(dir), 'data/tls');
    for (const file of readdirSync(folder)) assert.equal(statSync(join(folder, file)).mode & 0o777, 0o600, file);
    const stored = readFileSync(join(folder, 'certificate.pem'), 'utf8');
    const account = readFileSync(join(folder, 'account.key'), 'utf8');
    const keys = [{ key: stored }, { key: account }];
    assert.deepEqual(secretsIn(stored + account, keys).length > 0, true);
    const tree = treeOf(service.process.pid as number);
    assert.ok(tree.length > 2 && tree.includes(Number(json(answer).pid)));
    const refusals = await Promise.all([
      ask(port, '/api/nosuch', 'GET', { servername: 'api.example.com', ca }),
      fetchPlain(pebble.httpPort, '/.well-known/acme-challenge/x', 'api.example.com'),
      fetchPlain(port, '/api/test', 'api.example.com'),
      fetchPlain(ops, '/readyz', 'localhost'),
    ]);
    const said = [service.output(), service.errors(), metrics.text, JSON.stringify(refusals)];
    assert.deepEqual(secretsIn([...said, ...tree.map(shownOf)].join('\n'), keys), []);
    service.process.kill('SIGTERM');
    await service.exited;

    // The directory does not answer, so the service must start with the certificate that it has.
    await pebble.stop();
    const again = await startService(test, { dir, env: { ...env, DOMAINS: 'api.example.com,www.example.com' } });
    assert.equal((await ask(port, '/api/test', 'GET', { servername: 'api.example.com', ca })).status, 200);
    const failed = await again.logged('certificate-order-failed');
    assert.match(String(failed.to_do), /ACME_DIRECTORY/);
    await pebble.restart();
    let renewed = 0;
    const onSecure = (socket: TLSSocket) => {
      renewed = socket.getPeerCertificate().subjectaltname?.includes('www.example.com') ? renewed + 1 : 0;
    };
    const tls = { servername: 'api.example.com', ca: [ca, await pebble.root()], onSecure };
    const load = startLoad(test, { port, connections: 4, mode: 'one request a connection', pause: 2, tls });
    await load.until(() => true);
    again.process.kill('SIGHUP');
    await again.logged('certificate-loaded', ({ reloads }) => reloads === 1);
    // By then every worker has the certificate.
    await load.until(() => renewed > 40);
    assert.equal(
      (await ask(port, '/api/test', 'GET', { servername: 'www.example.com', ca: await pebble.root() })).status,
      200,
    );
    assert.deepEqual((await load.stop()).failures, []);
  });

  test('obtains a certificate by tls-alpn-01 in the supervisor, and a second one in the workers under load', async (test) => {
    const pebble = await startPebble();
    test.after(() => pebble.close());
    const dir = createFolder(test, FILES);
    const env = acmeSettings(pebble, { PORT: String(pebble.tlsPort), HTTP_PORT: 'off', DOMAINS: 'api.example.com' });
    const service = await startService(test, { dir, env });
    const ca = await pebble.root();
    const load = startLoad(test, {
      port: service.port,
      connections: 4,
      mode: 'one request a connection',
      pause: 2,
      tls: { servername: 'api.example.com', ca },
    });
    await load.until(() => true);
    const file = join(dirname(dir), 'data/tls/certificate.pem');
    assert.ok(existsSync(file));
    // The service orders the missing certificate anew. The workers hold the port, so they answer the challenge.
    renameSync(file, `${file}.old`);
    service.process.kill('SIGHUP');
    await service.logged('certificate-loaded', ({ reloads }) => reloads === 1);
    assert.deepEqual((await load.stop()).failures, []);
  });
});

/** Checks that the served chain leads to this root and is for this name. @throws Error with the output of openssl */
async function verifyByOpenssl(port: number, name: string, file: string, root: string): Promise<void> {
  writeFileSync(file, root);
  const from = ['-connect', `127.0.0.1:${port}`, '-servername', name, '-alpn', 'http/1.1'];
  const check = [
    '-CAfile',
    file,
    '-no-CApath',
    '-no-CAstore',
    '-verify_hostname',
    name,
    '-verify_return_error',
    '-x509_strict',
  ];
  const asked = promisify(execFile)('openssl', ['s_client', ...from, ...check, '-purpose', 'sslserver']);
  asked.child.stdin?.end();
  assert.match((await asked).stdout, /Verify return code: 0 \(ok\)/);
}

function acmeSettings(pebble: Pebble, env: Record<string, string>): Record<string, string> {
  return {
    ACME_DIRECTORY: pebble.directory,
    ACME_CONTACT: 'ops@example.com',
    NODE_EXTRA_CA_CERTS: pebble.caFile,
    ...env,
  };
}

/**
 * The forms of a private key that occur in a text: a line of PEM, the complete PEM, or the key's number in a JWK, in
 * hexadecimal or in base64.
 */
function secretsIn(text: string, pairs: readonly { key: string }[]): string[] {
  const forms = pairs.flatMap(({ key }) => {
    const body = /-----BEGIN[A-Z ]* PRIVATE KEY-----\n([^-]+)/.exec(key)?.[1]?.trim().split('\n') ?? [];
    const privateKey = createPrivateKey(key);
    const number = Buffer.from(String(privateKey.export({ format: 'jwk' }).d), 'base64url');
    const whole = privateKey.export({ type: 'pkcs8', format: 'der' });
    const encodings = (['base64url', 'base64', 'hex'] as const).flatMap((as) => [
      number.toString(as),
      whole.toString(as),
    ]);
    return [
      ...body.filter((line) => line.length > 20),
      ...encodings,
      body.join('\\n'),
      number.toString('hex').toUpperCase(),
    ];
  });
  assert.ok(forms.length >= 7 * pairs.length);
  // Base64 at the end of a text may differ in its last character.
  return forms.map((form) => form.slice(0, -2)).filter((form) => text.includes(form));
}

/** Returns the texts of a process that other users of the machine, or a child of a controller, could read. */
function shownOf(pid: unknown): string {
  return ['environ', 'cmdline', 'comm'].map((file) => readFileSync(`/proc/${pid}/${file}`, 'latin1')).join('\n');
}

/** Returns the process and all its descendants. */
function treeOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1')
    .trim()
    .split(' ')
    .filter(Boolean)
    .map(Number);
  return [pid, ...children.flatMap(treeOf)];
}

function fetchPlain(
  port: number,
  path: string,
  host: string,
): Promise<{ status?: number | undefined; location?: string | undefined; text: string }> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path, headers: { Host: host }, agent: false }, async (response) => {
      let text = '';
      for await (const chunk of response.setEncoding('utf8')) text += chunk;
      resolve({ status: response.statusCode, location: response.headers.location, text });
    }).on('error', reject);
  });
}
