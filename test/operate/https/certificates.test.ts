// The supervisor's half of HTTPS as time passes: session tickets over two changes of their keys, on the servers of two
// workers, and the warnings before a certificate expires. The clock and the intervals are simulated.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'node:tls';
import { createLog } from '../../../src/base/log.ts';
import { createTlsFolder } from '../../../src/operate/https/acme/tls-folder.ts';
import { type Certificates, createCertificates } from '../../../src/operate/https/certificates.ts';
import { createTlsServer } from '../../../src/operate/https/serve/tls-server.ts';
import { freePorts } from '../../support/ports.ts';
import { makePair } from '../../support/tls.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** A certificate has whole seconds. */
const START = Math.floor(Date.now() / 1000) * 1000;

const root = mkdtempSync(join(tmpdir(), 'gatefold-certificates-'));
// An order that fails may still write to its folder.
after(() => rmSync(root, { recursive: true, force: true, maxRetries: 5 }));
let folders = 0;

interface Bench {
  readonly certificates: Certificates;
  readonly events: Record<string, unknown>[];
  /** Moves the clock and the intervals. */
  advance(ms: number): void;
  /** Sets the clock back. */
  setBack(ms: number): void;
  /** Writes a certificate that is valid for that many days from now, and waits until it is live. */
  replace(days: number, name?: string): Promise<void>;
}

/** Creates certificates whose first one is valid for that many days from the start. */
async function createBench(test: TestContext, days: number, httpPort?: number): Promise<Bench> {
  test.mock.timers.enable({ apis: ['setInterval'] });
  const folder = mkdtempSync(join(root, String(++folders)));
  const [tlsCert, tlsKey] = ['cert.pem', 'key.pem'].map((name) => join(folder, name)) as [string, string];
  let passed = 0;
  const put = (days: number, name = 'localhost') => {
    const { cert, key } = makePair(name, { days, now: START + passed });
    writeFileSync(tlsCert, cert);
    writeFileSync(tlsKey, key);
  };
  put(days);
  const events: Record<string, unknown>[] = [];
  const certificates = createCertificates({
    settings: {
      ...{ tlsCert, tlsKey, domains: [], publicOrigin: [], acmeDirectory: '', acmeContact: [] },
      ...{ httpPort, port: 443, host: undefined, dataDir: folder },
    },
    version: '0',
    log: createLog({ level: 'debug', sink: { write: (line) => void events.push(JSON.parse(line)), flush: () => {} } }),
    now: () => START + passed,
  });
  await certificates.start();
  test.after(() => certificates.close());
  return {
    certificates,
    events,
    advance(ms) {
      passed += ms;
      test.mock.timers.tick(ms);
    },
    setBack(ms) {
      passed -= ms;
    },
    async replace(days, name) {
      put(days, name);
      const before = certificates.status()?.reloads;
      while (certificates.status()?.reloads === before) await sleep(20);
    },
  };
}

test('session ticket keys change every twelve hours in all workers, and a ticket of a day ago is refused', async (test) => {
  const { certificates, advance } = await createBench(test, 90);
  const transports = [1, 2].map(() =>
    createTlsServer({ handshakeTimeout: 60_000, maxConnections: 100, plainRefusal: () => '' }),
  );
  const tellAll = () => {
    for (const transport of transports) transport.use(certificates.state());
  };
  tellAll();
  const ports = await Promise.all(
    transports.map(async (transport) => {
      const server = transport.createServer({}, (_request, response) => response.end('{}'));
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      test.after(() => {
        server.closeAllConnections();
        server.close();
      });
      return (server.address() as AddressInfo).port;
    }),
  );
  certificates.handOverPort(0, tellAll);

  async function visit(worker: 0 | 1, session?: Buffer): Promise<{ resumed: boolean; ticket: Buffer }> {
    const socket = connect({ port: ports[worker] as number, host: '127.0.0.1', rejectUnauthorized: false, session });
    const [[ticket]] = await Promise.all([once(socket, 'session'), once(socket, 'secureConnect')]);
    const resumed = socket.isSessionReused();
    socket.destroy();
    return { resumed, ticket };
  }

  const first = await visit(0);
  assert.equal(first.resumed, false);
  assert.equal((await visit(1, first.ticket)).resumed, true);
  advance(12 * HOUR - 1);
  assert.equal((await visit(0, first.ticket)).resumed, true);
  const { state } = certificates;
  const [before] = state().ticketKeys;
  advance(1);
  assert.deepEqual([state().ticketKeys.length, state().ticketKeys[1]], [2, before]);
  for (const worker of [0, 1] as const) assert.equal((await visit(worker, first.ticket)).resumed, true);
  const second = await visit(0, first.ticket);
  advance(12 * HOUR);
  assert.equal(state().ticketKeys.includes(before as string), false);
  for (const worker of [0, 1] as const) {
    assert.equal((await visit(worker, first.ticket)).resumed, false, 'the key of a day ago still opens a ticket');
    assert.equal((await visit(worker, second.ticket)).resumed, true);
  }
});

test('plain HTTP redirects to the names of the current certificate only, also after its replacement', async (test) => {
  const [port = 0] = await freePorts(1);
  const { replace } = await createBench(test, 90, port);
  const ask = async (host: string) => {
    const request = get({ port, host: '127.0.0.1', path: '/a', headers: { Host: host }, agent: false });
    const [{ statusCode, headers }] = await once(request, 'response');
    request.destroy();
    return headers.location ?? statusCode;
  };
  const hosts = ['localhost', 'LOCALHOST:80', 'a.example.com', '127.0.0.1'];
  assert.deepEqual(await Promise.all(hosts.map(ask)), ['https://localhost/a', 'https://localhost/a', 404, 404]);
  await replace(90, '*.example.com');
  assert.deepEqual(await Promise.all(hosts.map(ask)), [404, 404, 'https://a.example.com/a', 404]);
});

describe('a certificate that is not renewed', () => {
  const told = (events: readonly Record<string, unknown>[]) =>
    events
      .filter(({ event }) => String(event).startsWith('certificate-exp'))
      .map(({ event, days_left }) => [event, days_left]);

  test('is logged once a day from 14 days before its end, and then as expired', async (test) => {
    const { certificates, events, advance } = await createBench(test, 90);
    advance(76 * DAY - HOUR);
    assert.deepEqual(told(events), []);
    for (let hour = 0; hour < 14 * 24 + 30; hour++) advance(HOUR);
    const lines = told(events);
    assert.deepEqual(
      lines.map(([event]) => event),
      [...Array(14).fill('certificate-expires-soon'), ...Array(2).fill('certificate-expired')],
    );
    const [soon] = events.filter(({ event }) => event === 'certificate-expires-soon');
    assert.deepEqual([soon?.level, soon?.names, soon?.days_left], ['warn', ['localhost'], 14]);
    assert.match(String(soon?.to_do), /TLS_CERT and TLS_KEY/);
    assert.equal(lines[14]?.[1], 0);
    assert.equal(events.at(-1)?.level, 'error');
    assert.equal(certificates.status()?.names[0], 'localhost');
  });

  test('is logged at once if it has expired when it is loaded', async (test) => {
    const { events, advance, replace } = await createBench(test, 90);
    advance(80 * DAY);
    assert.deepEqual(told(events), [['certificate-expires-soon', 10]]);
    await replace(-0.5);
    assert.deepEqual(told(events).at(-1), ['certificate-expired', -1]);
    await replace(90);
    advance(HOUR);
    assert.equal(told(events).length, 2);
  });

  test('is logged only in its last two days if it is valid for six', async (test) => {
    const { events, advance } = await createBench(test, 6);
    for (let hour = 0; hour < 3 * 24; hour++) advance(HOUR);
    assert.deepEqual(told(events), []);
    for (let hour = 0; hour < 2 * 24; hour++) advance(HOUR);
    assert.deepEqual(told(events)[0], ['certificate-expires-soon', 2]);
  });

  test('is logged also after a clock that was ahead, and had it logged, was set back', async (test) => {
    const { events, advance, setBack } = await createBench(test, 90);
    advance(1000 * DAY);
    setBack(920 * DAY);
    advance(HOUR);
    assert.deepEqual(told(events), [
      ['certificate-expired', -910],
      ['certificate-expires-soon', 9],
    ]);
  });

  test('is logged as a wrong clock if it is not valid yet', async (test) => {
    const { events, advance, setBack } = await createBench(test, 6);
    // The certificate is valid from a day before its start.
    setBack(DAY + HOUR);
    advance(HOUR);
    assert.deepEqual(events.filter(({ event }) => event === 'clock-wrong').length, 0);
    setBack(2 * DAY);
    advance(HOUR);
    assert.deepEqual(
      events.filter(({ event }) => event === 'clock-wrong').map(({ level }) => level),
      ['error'],
    );
  });

  test('is logged as a wrong clock also on the first day of 1970', async (test) => {
    const { events, advance, setBack } = await createBench(test, 6);
    setBack(START);
    advance(HOUR);
    assert.equal(events.at(-1)?.event, 'clock-wrong');
  });
});

test('a service whose HTTP_PORT is taken does not start, and the error names the port', async (test) => {
  const server = createServer().listen(0);
  await once(server, 'listening');
  test.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  await assert.rejects(createBench(test, 90, port), new RegExp(`^Error: HTTP_PORT: Cannot listen on port ${port}: `));
});

describe('a service with DOMAINS', () => {
  const domains = ['a.example.com', 'mapped.example.com', 'other.example.com'];
  /** The ports by which clients reach the service from outside. */
  const publicOrigin = [
    'http://mapped.example.com:8080',
    'https://mapped.example.com',
    'https://other.example.com:444',
  ];
  const create = (test: TestContext, httpPort?: number) => {
    const dataDir = mkdtempSync(join(root, String(++folders)));
    const events: Record<string, unknown>[] = [];
    let look = () => {};
    const write = (line: string) => {
      events.push(JSON.parse(line));
      look();
    };
    const certificates = createCertificates({
      settings: {
        ...{ tlsCert: undefined, tlsKey: undefined, domains, publicOrigin, acmeContact: [], httpPort, port: 8443 },
        ...{ host: '127.0.0.1', dataDir, acmeDirectory: 'http://127.0.0.1:1/dir' },
      },
      version: '0',
      log: createLog({ level: 'info', sink: { write, flush: () => {} } }),
    });
    test.after(() => certificates.close());
    const logged = (name: string) =>
      new Promise<Record<string, unknown>>((resolve) => {
        look = () => {
          const line = events.find(({ event }) => event === name);
          if (line !== undefined) resolve(line);
        };
        look();
      });
    return { certificates, dataDir, logged };
  };

  test('says that it waits for its first certificate, by which challenge, and redirects to its names', async (test) => {
    const [httpPort = 0] = await freePorts(1);
    for (const [given, challenge] of [
      [undefined, 'tls-alpn-01 on port 8443'],
      [httpPort, `http-01 on port ${httpPort}`],
    ] as const) {
      const { certificates, logged } = create(test, given);
      void certificates.start();
      const { level, event, time, ...facts } = await logged('certificate-awaited');
      const effect = 'no request is served until there is a certificate';
      const directory = 'http://127.0.0.1:1/dir';
      const { domains: named, ...others } = facts;
      assert.deepEqual(named, domains);
      assert.deepEqual(
        [level, others.directory, others.challenge, others.effect],
        ['warn', directory, challenge, effect],
      );
      assert.throws(() => certificates.state(), { message: 'there is no certificate yet' });
      assert.equal(certificates.status(), undefined);
      const failed = await logged('certificate-order-failed');
      assert.match(String(failed.error), /the address is not https/);
      for (const [name, status, location] of given === undefined
        ? []
        : ([
            ['a.example.com', 308, 'https://a.example.com:8443/b?c'],
            ['MAPPED.example.com:8080', 308, 'https://mapped.example.com/b?c'],
            ['other.example.com', 308, 'https://other.example.com:444/b?c'],
            ['b.example.com', 404, undefined],
          ] as const)) {
        const request = get({ port: httpPort, host: '127.0.0.1', path: '/b?c', headers: { Host: name }, agent: false });
        const [{ statusCode, headers }] = await once(request, 'response');
        request.destroy();
        assert.deepEqual([statusCode, headers.location], [status, location]);
      }
    }
  });

  test('warns of the end of its certificate with the line of the order that failed', async (test) => {
    const { certificates, dataDir, logged } = create(test);
    const { cert, key } = makePair('a.example.com', { days: 90, now: START - 85 * DAY });
    createTlsFolder(dataDir).writeCertificate('http://127.0.0.1:1/dir', cert, key);
    await certificates.start();
    const { to_do } = await logged('certificate-expires-soon');
    assert.equal(to_do, 'see certificate-order-failed, and docs/OPERATING.md');
    assert.deepEqual(certificates.status()?.names, ['a.example.com']);
    await logged('certificate-order-failed');
  });
});
