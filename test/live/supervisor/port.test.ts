// The port that this process binds and never accepts on.
import assert from 'node:assert/strict';
import { fork, type SendHandle } from 'node:child_process';
import { type AddressInfo, createServer } from 'node:net';
import { describe, it } from 'node:test';
import { describeListenError, hostAndPort, openPort } from '../../../src/live/supervisor/workers/port.ts';

describe('port', () => {
  it('openPort binds a free port, and reports each failure in one line', async (test) => {
    const port = await openPort(0, '127.0.0.1');
    port.close();
    assert.ok(port.number > 0);
    const rows = [
      ['192.0.2.1', 0, /Cannot listen on 192\.0\.2\.1:0: the address is not one of this machine \(EADDRNOTAVAIL\)$/],
      ['nowhere.invalid', 80, /Cannot listen on nowhere\.invalid:80: .+\((ENOTFOUND|EAI_AGAIN)\)$/],
    ] as const;
    for (const [host, number, message] of rows) await assert.rejects(openPort(number, host), message);
    const other = createServer().listen(0, '127.0.0.1');
    test.after(() => other.close());
    await new Promise((resolve) => other.once('listening', resolve));
    const { port: busy } = other.address() as AddressInfo;
    await assert.rejects(
      openPort(busy, '127.0.0.1'),
      /in use by another process \(EADDRINUSE\); choose another one: PORT=3001 or --port 3001$/,
    );
  });

  for (const host of [undefined, '127.0.0.1', 'localhost']) {
    it(`keeps a connection until a process listens again: ${host ?? 'all interfaces'}`, async (test) => {
      const port = await openPort(0, host);
      let isOpen = true;
      test.after(() => isOpen && port.close());
      const ask = async () =>
        (await fetch(`http://${hostAndPort(host, port.number)}`, { headers: { connection: 'close' } })).text();
      const worker = fork(import.meta.filename.replace(/[^/]*$/, '../../fixtures/accept.js'), { execArgv: [] });
      test.after(() => worker.kill());
      const said = () => new Promise((resolve) => worker.once('message', resolve));
      const order = async (what: string) => {
        const done = said();
        worker.send(what, port.socket as unknown as SendHandle);
        await done;
      };
      await said();
      await assert.rejects(ask());
      await order('listen');
      assert.equal(await ask(), 'served');
      await order('close');
      // No process accepts the connection, and none refuses it.
      const waiting = ask();
      await order('listen');
      assert.equal(await waiting, 'served');
      port.close();
      isOpen = false;
      assert.equal(await ask(), 'served');
    });
  }

  it('hostAndPort and describeListenError format addresses as in a URL', () => {
    assert.equal(hostAndPort('::1', 80), '[::1]:80');
    assert.equal(hostAndPort(undefined, 80), 'localhost:80');
    assert.equal(describeListenError(80, undefined, 'EOTHER'), 'Cannot listen on port 80: the system refuses (EOTHER)');
  });
});
