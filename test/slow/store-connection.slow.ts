// The connection to PostgreSQL: TLS with real certificates, and attempts that hang.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type Cluster, startCluster } from '../support/postgres-cluster.ts';
import { noPostgres, openStore, startStore } from '../support/store-bench.ts';
import { makePair } from '../support/tls.ts';

const noOpenssl = (() => {
  try {
    execFileSync('openssl', ['version'], { stdio: 'pipe' });
    return false;
  } catch {
    return 'openssl is not installed';
  }
})();

/** Makes an authority, or a certificate signed by an authority. @param names the subject alternative names */
function makeCertificate(folder: string, name: string, { by, names }: { by?: string; names?: string } = {}): void {
  const [key, certificate] = [`${name}.key`, `${name}.crt`];
  const words = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', certificate, '-days', '2'];
  const signer = by === undefined ? [] : ['-CA', `${by}.crt`, '-CAkey', `${by}.key`];
  const extensions = names === undefined ? [] : ['-addext', `subjectAltName=${names}`];
  const use = by === undefined ? [] : ['-addext', 'basicConstraints=critical,CA:FALSE'];
  execFileSync('openssl', [...words, '-subj', `/CN=${name}`, ...signer, ...extensions, ...use], {
    cwd: folder,
    stdio: 'pipe',
  });
}

async function useCertificate(cluster: Cluster, certificate: string, key: string): Promise<void> {
  const [server] = cluster.servers;
  const { uid, gid } = statSync(server?.folder ?? '');
  for (const [name, text] of [
    ['server.crt', certificate],
    ['server.key', key],
  ] as const) {
    const path = join(server?.folder ?? '', name);
    writeFileSync(path, text, { mode: 0o600 });
    chownSync(path, uid, gid);
  }
  await server?.sql('alter system set ssl = on');
  await server?.sql('select pg_reload_conf()');
}

describe('the connection to PostgreSQL', { skip: noPostgres }, () => {
  it('by TLS is accepted only for the right host name and certificate authority', { skip: noOpenssl }, async (test) => {
    const folder = mkdtempSync(join(tmpdir(), 'gatefold-tls-'));
    test.after(() => rmSync(folder, { recursive: true, force: true }));
    const cluster = await startCluster(0);
    test.after(() => cluster.close());
    await openStore(test, cluster.url()).init();
    const text = (name: string) => readFileSync(join(folder, name), 'utf8');
    for (const name of ['authority', 'other']) makeCertificate(folder, name);
    const expired = makePair('localhost', { days: 1, now: Date.now() - 30 * 86_400_000 });
    writeFileSync(join(folder, 'expired.crt'), expired.cert);

    const byName = { by: 'authority', names: 'DNS:localhost' };
    const byAddress = { by: 'authority', names: 'IP:127.0.0.1' };
    type Case = [title: string, certificate: typeof byName | 'expired', host: string, root: string, refusal?: RegExp];
    const cases: Case[] = [
      ['the right name', byName, 'localhost', 'authority'],
      ['the right address', byAddress, '127.0.0.1', 'authority'],
      ['another name', { by: 'authority', names: 'DNS:db.example' }, 'localhost', 'authority', /altnames.*db\.example/],
      ['an address, and a certificate for localhost', byName, '127.0.0.1', 'authority', /127\.0\.0\.1/],
      ['another authority', byName, 'localhost', 'other', /certificate|issuer/],
      ['an authority unknown to Node', byName, 'localhost', '', /certificate|issuer/],
      ['an expired certificate', 'expired', 'localhost', 'expired', /expired/],
      ['a missing certificate file', byName, 'localhost', 'none', /Cannot read .*none\.crt/],
    ];
    for (const [index, [title, certificate, host, root, refusal]] of cases.entries()) {
      if (certificate === 'expired') await useCertificate(cluster, expired.cert, expired.key);
      else {
        makeCertificate(folder, `server${index}`, certificate);
        await useCertificate(cluster, text(`server${index}.crt`), text(`server${index}.key`));
      }
      const parameters = `?sslmode=verify-full${root === '' ? '' : `&sslrootcert=${join(folder, `${root}.crt`)}`}`;
      const store = openStore(test, `${cluster.url().replace('127.0.0.1', host)}${parameters}`);
      // The server uses the new certificate a moment after its reload.
      const answer = async () =>
        store.query('select ssl, version from pg_stat_ssl where pid = pg_backend_pid()').then(
          ([row]) => `${row?.ssl} ${row?.version}`,
          (error: Error) => error.message,
        );
      const expected = refusal ?? /^true TLSv1\.[23]$/;
      let got = await answer();
      for (let attempt = 0; attempt < 50 && !expected.test(got); attempt++) got = await answer();
      assert.match(got, expected, title);
      await store.close();
    }
  });

  it('is opened by a second attempt while the first attempt hangs', async (test) => {
    const { url } = await startStore(test);
    const { port } = new URL(url);
    const sockets: Socket[] = [];
    const forward = (client: Socket) => {
      const target = connect(Number(port), '127.0.0.1');
      sockets.push(target);
      for (const socket of [client, target]) socket.on('error', () => {});
      client.pipe(target).pipe(client);
    };
    const server = createServer((client) => {
      sockets.push(client);
      // The first connection gets no answer, as when the network loses its packets.
      if (sockets.length > 1) forward(client);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    test.after(() => {
      server.close();
      for (const socket of sockets) socket.destroy();
    });
    const store = openStore(test, url.replace(`:${port}`, `:${(server.address() as AddressInfo).port}`));
    assert.equal((await store.read('keys')).entries.size, 0);
    // The first connection opens at last, and is closed all the same.
    const [first] = sockets as [Socket];
    forward(first);
    await once(first, 'close');
    assert.equal((await store.read('keys')).entries.size, 0);
  });
});
