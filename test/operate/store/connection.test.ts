// A connection to PostgreSQL that fails before there is a database.
import assert from 'node:assert/strict';
import dns from 'node:dns';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { TLSSocket } from 'node:tls';
import { loadPostgres, openConnection } from '../../../src/operate/store/connection.ts';
import { openSocket } from '../../../src/operate/store/socket.ts';
import { StoreAway } from '../../../src/operate/store/store.ts';
import { addressOf, load, noPostgres, openStore, startStore } from '../../support/store-bench.ts';
import { until } from '../../support/store-machines.ts';
import { makePair } from '../../support/tls.ts';

const OPTIONS = { name: 'test', onNotify() {}, signal: new AbortController().signal };

it('loadPostgres reports why the package postgres cannot be loaded', async (test) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatefold-package-'));
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'node_modules/postgres'), { recursive: true });
  writeFileSync(join(folder, 'node_modules/postgres/index.js'), 'throw new Error("it is damaged\\nand more");');
  await assert.rejects(loadPostgres([folder]), (error: Error) => {
    assert.ok(error instanceof StoreAway && error.needsOperator);
    assert.equal(error.message, 'Cannot load the package postgres: it is damaged');
    return true;
  });
});

it('openConnection fails after its timeout when the server accepts the connection but never answers', async (test) => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = addressOf(`postgres://user@127.0.0.1:${(server.address() as AddressInfo).port}/database`);
  const [target] = address.hosts;
  const options = { load, address, server: target ?? assert.fail(), ...OPTIONS, timeout: 200 };
  await assert.rejects(openConnection(options), /^Error: 127\.0\.0\.1:\d+ has not answered in time$/);
});

it('openConnection connects once when the server closes the connection, and never when it is aborted before', async (test) => {
  let count = 0;
  const server = createServer((socket) => {
    count++;
    socket.once('data', () => socket.end());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.after(() => server.close());
  const address = addressOf(`postgres://user@127.0.0.1:${(server.address() as AddressInfo).port}/database`);
  const [target = assert.fail()] = address.hosts;
  const loaded = await load();
  const open = (signal: AbortSignal) =>
    openConnection({ ...OPTIONS, load: async () => loaded, address, server: target, signal, timeout: 20_000 });
  await assert.rejects(open(OPTIONS.signal), /: the connection was closed$/);
  assert.equal(count, 1);
  const attempt = new AbortController();
  const opening = open(attempt.signal);
  // The package connects in a timer, which comes after all of these turns.
  for (let turn = 0; turn < 10; turn++) await undefined;
  attempt.abort();
  await assert.rejects(opening, /: the connection was closed$/);
});

it('an attempt with a host that never answers ends when another host is connected', {
  skip: noPostgres,
}, async (test) => {
  const { url } = await startStore(test);
  const server = createServer((socket) => socket.resume()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.after(() => server.close());
  const attempt = once(server, 'connection');
  // The time limit of the attempt never comes. The package `postgres` connects in a timer of 0 ms.
  const { setTimeout } = globalThis;
  test.mock.method(globalThis, 'setTimeout', (done: () => void, ms = 0, ...given: []) =>
    ms < 100 ? setTimeout(done, ms, ...given) : setTimeout(() => {}, 0),
  );
  const { port } = server.address() as AddressInfo;
  const store = openStore(test, url.replace('@', `@127.0.0.1:${port},`));
  const reading = store.read('keys');
  const [[socket]] = await Promise.all([attempt as Promise<[Socket]>, reading]);
  if (!socket.destroyed) await once(socket, 'close');
  assert.equal((await store.read('keys')).entries.size, 0);
});

it('openConnection blames the name server, and not the database, when the name is not resolved in time', async (test) => {
  test.mock.method(dns, 'lookup', () => {});
  const address = addressOf('postgres://user@db.test:5432/database');
  const [target] = address.hosts;
  const options = { load, address, server: target ?? assert.fail(), ...OPTIONS, timeout: 200 };
  await assert.rejects(openConnection(options), /^Error: db\.test:5432: no name server has answered in time$/);
});

it('openConnection and its queries say what is wrong with the server, and whether an operator must act', async () => {
  const address = addressOf('postgres://user@127.0.0.1:5432/database');
  const [server = assert.fail()] = address.hosts;
  const open = (answer: () => unknown) => {
    const load = async () => () => ({ unsafe: async () => answer() as never, end: async () => {} });
    return openConnection({ load, address, server, ...OPTIONS, timeout: 20_000 });
  };
  const fails = async (work: Promise<unknown>, reason: string, needsOperator: boolean) => {
    const error = await work.then(
      () => assert.fail(reason),
      (error: unknown) => error,
    );
    assert.ok(error instanceof StoreAway);
    assert.deepEqual([error.message, error.needsOperator], [`127.0.0.1:5432${reason}`, needsOperator]);
  };
  await fails(
    open(() => [{ standby: true }]),
    ' is a standby',
    false,
  );
  const errors: readonly (readonly [code: string, reason: string, needsOperator: boolean, staysOpen: boolean])[] = [
    ['28P01', 'it refuses the user or the password', true, false],
    ['28000', 'it refuses the user: no', true, false],
    ['3D000', 'it has no such database', true, false],
    ['3F000', 'it is not prepared. Run: gatefold store init', true, true],
    ['42P01', 'it is not prepared. Run: gatefold store init', true, true],
    ['42703', 'it was prepared by another version. Run: gatefold store init', true, true],
    ['42501', 'its user lacks a right. Run gatefold store init as the owner of the database', true, true],
    ['25006', 'it is read-only', false, true],
    ['53100', 'its disk is full', false, true],
    ['53300', 'it has no free connection', false, false],
    ['57P01', 'it shuts down', false, false],
    ['57P03', 'it starts or shuts down', false, false],
    ['XX000', 'no (XX000)', false, false],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'no (SELF_SIGNED_CERT_IN_CHAIN). Name its root: sslrootcert=FILE', false, false],
  ];
  for (const [code, reason, needsOperator, staysOpen] of errors) {
    let queries = 0;
    const connection = await open(() => {
      if (queries++ === 0) return [{ standby: false }];
      throw Object.assign(new Error('no\nand more'), { code });
    });
    await fails(connection.query('select 1'), `: ${reason}`, needsOperator);
    assert.equal(connection.isOpen(), staysOpen, code);
    if (!staysOpen) await fails(connection.query('select 1'), ': the connection was closed', false);
  }
});

it('openSocket refuses a server that offers no TLS, or adds bytes to its answer', async (test) => {
  for (const answer of ['N', 'SS']) {
    const server = createServer((socket) => socket.once('data', () => socket.end(answer))).listen(0, '127.0.0.1');
    await once(server, 'listening');
    test.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    const address = { tls: 'on' as never, rootCertificate: undefined };
    await assert.rejects(openSocket({ address, host: '127.0.0.1', port, onSocket() {} }), {
      message: 'the server offers no TLS',
    });
  }
});

/** A server that accepts TLS as PostgreSQL does. It also keeps the name that each client asks for. */
async function startTlsServer(test: TestContext, domain: string) {
  const pair = makePair(domain);
  const folder = mkdtempSync(join(tmpdir(), 'gatefold-root-'));
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  const rootCertificate = join(folder, 'root.pem');
  writeFileSync(rootCertificate, pair.cert);
  const names: string[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => {});
    test.after(() => socket.destroy());
    socket.once('data', (request) => {
      assert.equal(request.toString('hex'), '0000000804d2162f');
      socket.write('S');
      const SNICallback = (name: string, done: (error: Error | null) => void) => {
        names.push(name);
        done(null);
      };
      new TLSSocket(socket, { isServer: true, ...pair, SNICallback }).on('error', () => {});
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.after(() => server.close());
  return { port: (server.address() as AddressInfo).port, rootCertificate, names };
}

it('openSocket connects by TLS to a server whose certificate is of the host and of the root', async (test) => {
  const { port, rootCertificate, names } = await startTlsServer(test, 'localhost');
  const sockets: Socket[] = [];
  const onSocket = (socket: Socket) => sockets.push(socket);
  const open = (host: string, root: string | undefined = rootCertificate) =>
    openSocket({ address: { tls: 'verify', rootCertificate: root }, host, port, onSocket });
  const socket = await open('localhost');
  test.after(() => socket.destroy());
  assert.ok(socket instanceof TLSSocket && socket.authorized);
  assert.deepEqual([sockets.length, sockets[1] === socket, names], [2, true, ['localhost']]);
  // The certificate does not name the address. A client sends no address as the name that it asks for.
  await assert.rejects(open('127.0.0.1'), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  assert.deepEqual(names, ['localhost']);
  const address = { tls: 'verify', rootCertificate: undefined } as const;
  await assert.rejects(openSocket({ address, host: 'localhost', port, onSocket }), {
    code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
  });
  const other = await startTlsServer(test, 'other.test');
  await assert.rejects(
    openSocket({
      address: { ...address, rootCertificate: other.rootCertificate },
      host: 'localhost',
      port: other.port,
      onSocket,
    }),
    { code: 'ERR_TLS_CERT_ALTNAME_INVALID' },
  );
  for (const each of sockets) each.destroy();
});

it('openSocket names a root certificate that it cannot read, and an operator must act', async () => {
  const address = { tls: 'verify', rootCertificate: '/no/such/root.pem' } as const;
  await assert.rejects(openSocket({ address, host: '127.0.0.1', port: 1, onSocket: () => assert.fail() }), (error) => {
    assert.ok(error instanceof StoreAway && error.needsOperator);
    assert.equal(error.message, 'Cannot read /no/such/root.pem: it does not exist');
    return true;
  });
});

it("openConnection adds the server's own message to the refusal of a user", { skip: noPostgres }, async (test) => {
  const { store, url } = await startStore(test);
  const path = String((await store.query("select current_setting('hba_file') as path"))[0]?.path);
  const isAccepted = () =>
    openStore(test, url)
      .read('keys')
      .then(
        () => true,
        () => false,
      );
  // The server reads the file a moment after the answer. The open connection stays.
  const useRules = async (rules: string, isMeant: () => Promise<boolean>) => {
    writeFileSync(path, rules);
    await store.query('select pg_reload_conf()');
    await until('the server has read its rules', isMeant);
  };
  const rules = readFileSync(path, 'utf8');
  try {
    await useRules('host all other 127.0.0.1/32 trust\n', async () => !(await isAccepted()));
    await assert.rejects(
      openStore(test, url).read('keys'),
      /: it refuses the user: no pg_hba\.conf entry for host .*no encryption/,
    );
  } finally {
    // Other tests of this process use the same server.
    await useRules(rules, isAccepted);
  }
});
