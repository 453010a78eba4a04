// A connection to PostgreSQL that fails before there is a database.
import assert from 'node:assert/strict';
import dns from 'node:dns';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { loadPostgres, openConnection } from '../../../src/operate/store/connection.ts';
import { openSocket } from '../../../src/operate/store/socket.ts';
import { StoreAway } from '../../../src/operate/store/store.ts';
import { addressOf, load, noPostgres, openStore, startOwnStore } from '../../support/store-bench.ts';
import { until } from '../../support/store-machines.ts';

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
  const options = { load, address, server: target ?? assert.fail(), name: 'test', onNotify() {}, timeout: 200 };
  await assert.rejects(openConnection(options), /^Error: 127\.0\.0\.1:\d+ has not answered in time$/);
});

it('openConnection blames the name server, and not the database, when the name is not resolved in time', async (test) => {
  test.mock.method(dns, 'lookup', () => {});
  const address = addressOf('postgres://user@db.test:5432/database');
  const [target] = address.hosts;
  const options = { load, address, server: target ?? assert.fail(), name: 'test', onNotify() {}, timeout: 200 };
  await assert.rejects(openConnection(options), /^Error: db\.test:5432: no name server has answered in time$/);
});

it('openConnection and its queries say what is wrong with the server, and whether an operator must act', async () => {
  const address = addressOf('postgres://user@127.0.0.1:5432/database');
  const [server = assert.fail()] = address.hosts;
  const open = (answer: () => unknown) => {
    const load = async () => () => ({ unsafe: async () => answer() as never, end: async () => {} });
    return openConnection({ load, address, server, name: 'test', onNotify() {}, timeout: 20_000 });
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

it("openConnection adds the server's own message to the refusal of a user", { skip: noPostgres }, async (test) => {
  const { store, url } = await startOwnStore(test);
  const [file] = await store.query("select current_setting('hba_file') as path");
  writeFileSync(String(file?.path), 'host all other 127.0.0.1/32 trust\n');
  await store.query('select pg_reload_conf()');
  // The server reads the file a moment after the answer.
  const isRefused = () =>
    openStore(test, url)
      .read('keys')
      .then(
        () => false,
        () => true,
      );
  await until('the user is refused', isRefused);
  await assert.rejects(
    openStore(test, url).read('keys'),
    /: it refuses the user: no pg_hba\.conf entry for host .*no encryption/,
  );
});
