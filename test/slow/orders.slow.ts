// Two services with one DATA_DIR need the same certificate, and order it only once. Both are real processes, and the
// ACME directory is Pebble.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { createServer, get } from 'node:http';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { type ConnectionOptions, connect } from 'node:tls';
import { controller, createFolder, spawnService } from '../support/cluster-server.ts';
import { startPebble, withoutPebble } from '../support/pebble.ts';
import { freePorts } from '../support/ports.ts';

const ROUNDS = 3;

describe('two supervisors on one DATA_DIR', { skip: withoutPebble }, () => {
  test('order each missing certificate only once, and both serve it', async (test) => {
    const pebble = await startPebble();
    test.after(() => pebble.close());
    const dir = createFolder(test, { 'TestController.js': controller(0) });
    const ports = await freePorts(4);
    // The directory checks one port, but either service may have the answer. So this server asks both.
    const tokens = new Set<string>();
    const web = createServer((request, response) => {
      tokens.add(String(request.url));
      let waiting = 2;
      for (const port of ports.slice(2)) {
        get(
          { port, host: '127.0.0.1', path: request.url, headers: { Host: 'api.example.com' }, agent: false },
          (answer) => {
            if (answer.statusCode === 200) return void answer.pipe(response);
            answer.resume();
            if (--waiting === 0) response.writeHead(404).end();
          },
        ).on('error', () => --waiting === 0 && response.writeHead(404).end());
      }
    });
    await new Promise<void>((listening) => web.listen(pebble.httpPort, '127.0.0.1', listening));
    test.after(() => {
      web.closeAllConnections();
      web.close();
    });
    const services = [0, 1].map((i) =>
      spawnService(test, {
        dir,
        env: {
          ACME_DIRECTORY: pebble.directory,
          NODE_EXTRA_CA_CERTS: pebble.caFile,
          DOMAINS: 'api.example.com',
          PORT: String(ports[i]),
          HTTP_PORT: String(ports[2 + i]),
          LOG_LEVEL: 'debug',
        },
      }),
    );
    await Promise.all(
      services.map(({ listening, exited, errors }) =>
        Promise.race([listening, exited.then(() => assert.fail(errors()))]),
      ),
    );
    const file = join(dirname(dir), 'data/tls/certificate.pem');
    const serials = new Set<string>();
    for (let round = 1; ; round++) {
      const { serialNumber } = new X509Certificate(readFileSync(file));
      serials.add(serialNumber);
      for (const port of ports.slice(0, 2)) await serves(port, serialNumber);
      assert.deepEqual([serials.size, tokens.size, orders().length], [round, round, round]);
      if (round === ROUNDS) break;
      rmSync(file);
      for (const service of services) service.process.kill('SIGHUP');
      await Promise.all(services.map(({ logged }) => logged('certificate-loaded', ({ reloads }) => reloads === round)));
    }
    assert.deepEqual(
      services.flatMap(({ lines }) => lines.filter(({ event }) => event === 'certificate-order-failed')),
      [],
    );

    function orders() {
      return services.flatMap(({ lines }) => lines.filter(({ event }) => event === 'certificate-ordered'));
    }
  });
});

/** Resolves when a worker serves the certificate, which happens a moment after the supervisor has loaded it. */
async function serves(port: number, serial: string): Promise<void> {
  const options: ConnectionOptions = {
    port,
    host: '127.0.0.1',
    servername: 'api.example.com',
    rejectUnauthorized: false,
  };
  for (;;) {
    const socket = connect(options);
    await once(socket, 'secureConnect');
    const served = socket.getPeerCertificate().serialNumber;
    socket.destroy();
    if (served === serial) return;
  }
}
