// Session tickets of a worker's server: which keys decrypt them, which key encrypts the next, and how long tickets are
// valid.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { type ConnectionOptions, connect, createServer } from 'node:tls';
import { createTlsServer } from '../../../src/operate/https/serve/tls-server.ts';
import { makePair } from '../../support/tls.ts';

/** The field of a session in which OpenSSL stores that it may be resumed for 3600 s: `[9]`, an INTEGER. */
const FOR_AN_HOUR = Buffer.from('a90402020e10', 'hex');

describe('session tickets', () => {
  const pair = makePair('localhost');
  const [first, second, third] = [1, 2, 3].map(() => randomBytes(48).toString('base64')) as [string, string, string];
  const transport = createTlsServer({ handshakeTimeout: 60_000, maxConnections: 100, plainRefusal: () => '' });
  const use = (...ticketKeys: string[]) => transport.use({ ...pair, ticketKeys, challenge: undefined });
  use(first);
  const server = transport.createServer({}, (_request, response) => response.end('{}'));

  before(() => listen(server));
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  /** Whether the session was resumed, and the newest ticket of the visit. */
  async function visit(options: ConnectionOptions, to: Server = server) {
    const { port } = to.address() as AddressInfo;
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options });
    let ticket: Buffer | undefined;
    socket.on('session', (received) => {
      ticket = received;
    });
    await once(socket, 'secureConnect');
    const resumed = socket.isSessionReused();
    if (socket.getProtocol() === 'TLSv1.2') ticket ??= socket.getSession();
    // With TLS 1.3, the tickets arrive before the first answer.
    socket.resume().write('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    await once(socket, 'close');
    return { resumed, ticket };
  }

  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const only = { minVersion: version, maxVersion: version };

    test(`resume with the previous key, are renewed, and are refused with an older key (${version})`, async () => {
      const { ticket: oldest } = await visit(only);
      // The ticket is valid for an hour, although keys are kept longer.
      assert.ok(oldest?.includes(FOR_AN_HOUR));
      use(second, first);
      const after = await visit({ ...only, session: oldest });
      assert.equal(after.resumed, true);
      use(third, second);
      const afterBoth = await visit({ ...only, session: after.ticket });
      assert.equal(afterBoth.resumed, true, 'the ticket from after the first change is not of the new key');
      assert.equal((await visit({ ...only, session: oldest })).resumed, false);
      assert.equal((await visit({ ...only, session: afterBoth.ticket })).resumed, true);
      // This client uses each ticket once.
      for (let count = 0, session = afterBoth.ticket; count < 5; count++) {
        const next = await visit({ ...only, session });
        assert.equal(next.resumed, true);
        if (version === 'TLSv1.3') assert.notDeepEqual(next.ticket, session);
        session = next.ticket;
      }
      use(first);
    });
  }

  test('are accepted by a Node server whose option ticketKeys has the same key', async (test) => {
    const { ticket: session } = await visit({});
    const other = createServer(
      { ...pair, ticketKeys: Buffer.from(first, 'base64'), sessionIdContext: 'gatefold' },
      (socket) => socket.end(),
    );
    await listen(other);
    test.after(() => other.close());
    assert.equal((await visit({ session }, other)).resumed, true);
  });
});

async function listen(server: Server): Promise<void> {
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
}
