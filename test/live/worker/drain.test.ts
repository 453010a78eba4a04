// A draining worker stops accepting connections, over a real socket.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { drain } from '../../../src/live/worker/drain.ts';

describe('drain', () => {
  async function start(test: TestContext) {
    const server = createServer((_request, response) => response.end('served'));
    test.after(() => server.close());
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    const { port } = server.address() as AddressInfo;
    const ask = () =>
      fetch(`http://127.0.0.1:${port}`, { headers: { connection: 'close' } }).then(
        (answer) => answer.text(),
        (error: Error) => (error.cause as NodeJS.ErrnoException).code,
      );
    const begin = (
      acceptFor: number | null,
      { pendingWork = (): number => 0, giveUpWork = () => {}, timeout = 20_000 } = {},
    ) =>
      new Promise<void>((onDrained) =>
        drain({ server, setDraining() {}, pendingWork, giveUpWork }, { timeout, acceptFor, onDrained }),
      );
    return { ask, begin, server, port };
  }

  it('refuses connections at once when other workers accept', async (test) => {
    const { ask, begin } = await start(test);
    const drained = begin(null);
    assert.equal(await ask(), 'ECONNREFUSED');
    await drained;
  });

  it('serves new connections for acceptFor when no other worker accepts, and then refuses', async (test) => {
    const { ask, begin } = await start(test);
    const drained = begin(100);
    // The client connects after the drain has begun, and the kernel completes the connection at once.
    assert.equal(await ask(), 'served');
    await drained;
    assert.equal(await ask(), 'ECONNREFUSED');
  });

  it('waits for pending work, but not beyond its timeout', async (test) => {
    let looks = 0;
    const pendingWork = (): number => (++looks < 3 ? 1 : 0);
    await (await start(test)).begin(null, { pendingWork });
    assert.equal(looks, 3);
    const steps: string[] = [];
    await (await start(test)).begin(null, {
      pendingWork: () => 1,
      giveUpWork: () => void steps.push('given up'),
      timeout: 60,
    });
    assert.deepEqual(steps, ['given up']);
  });

  it('ends after its timeout despite an open connection', async (test) => {
    const { begin, server, port } = await start(test);
    const socket = connect(port, '127.0.0.1');
    test.after(() => socket.destroy());
    await once(server, 'connection');
    let cuts = 0;
    server.closeAllConnections = () => void cuts++;
    await begin(null, { timeout: 60 });
    assert.ok(cuts > 1, 'the drain cut the connections before its end');
  });
});
