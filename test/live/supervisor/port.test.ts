// The port that this process binds and never accepts on.
import assert from 'node:assert/strict';
import { fork, type SendHandle } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { describe, it } from 'node:test';
import { bindSocket } from '../../../src/base/node-internals.ts';
import {
  adoptPort,
  describeListenError,
  hostAndPort,
  openPort,
  StartError,
} from '../../../src/live/supervisor/workers/port.ts';

describe('port', () => {
  it('openPort binds a free port, and reports each failure in one line', async (test) => {
    const port = await openPort(0, '127.0.0.1');
    port.close();
    assert.ok(port.number > 0);
    const rows = [
      [
        '192.0.2.1',
        0,
        /on 192\.0\.2\.1:0: the address is not one of this machine \(EADDRNOTAVAIL\); set HOST to an address of this machine$/,
      ],
      [
        'nowhere.invalid',
        80,
        /Cannot listen on nowhere\.invalid:80: .+\((ENOTFOUND|EAI_AGAIN)\); set HOST to an address of this machine$/,
      ],
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

  it('says that the port is taken since, when a worker cannot listen on it', async () => {
    const port = await openPort(0, '127.0.0.1');
    port.close();
    const at = `Cannot listen on 127.0.0.1:${port.number}`;
    assert.deepEqual(['EADDRINUSE', 'EACCES', 'EOTHER'].map(port.describeError), [
      `${at}: a controller or another process has begun to listen on it (EADDRINUSE)`,
      `${at}: this user may not listen on it (EACCES)`,
      `${at}: the system refuses (EOTHER)`,
    ]);
  });

  const agreeing = [
    ['0.0.0.0', 4, undefined],
    ['::', 6, undefined],
    ['127.0.0.1', 4, '127.0.0.1'],
  ] as const;
  for (const [address, family, host] of agreeing)
    it(`adoptPort takes a socket on ${address} for ${host ?? 'all interfaces'}`, async () => {
      const bound = bindSocket(address, 0, family);
      assert.ok(typeof bound === 'object');
      // The adopted socket closes the descriptor.
      const { fd } = bound.socket as unknown as { fd: number };
      for (const port of [0, Number(bound.port)]) {
        const adopted = await adoptPort(fd, port, host);
        assert.equal(adopted.number, bound.port);
        assert.equal(
          adopted.describeError('EADDRINUSE'),
          `Cannot listen on ${host === undefined ? 'port ' : `${host}:`}${bound.port}: it is in use by another process (EADDRINUSE)`,
        );
        if (port !== 0) adopted.close();
      }
    });

  it('adoptPort refuses what is no socket, and a socket that PORT or HOST does not name', async () => {
    const file = openSync('/dev/null', 'r');
    await assert.rejects(adoptPort(file, 0, undefined), (error: Error) => {
      assert.ok(error instanceof StartError);
      return error.message === `LISTEN_FDS: descriptor ${file} is no TCP socket`;
    });
    closeSync(file);
    for (const [port, host, wanted] of [
      [0, undefined, '[::]:0'],
      [1, '127.0.0.1', '127.0.0.1:1'],
      [0, '127.0.0.2', '127.0.0.2:0'],
    ] as const) {
      const bound = bindSocket('127.0.0.1', 0, 4);
      assert.ok(typeof bound === 'object');
      await assert.rejects(adoptPort((bound.socket as unknown as { fd: number }).fd, port, host), {
        message: `LISTEN_FDS: the socket listens on 127.0.0.1:${bound.port}, and the service is for ${wanted}: make ListenStream= agree with PORT and HOST`,
      });
    }
  });

  it('hostAndPort and describeListenError format addresses as in a URL', () => {
    assert.equal(hostAndPort('::1', 80), '[::1]:80');
    assert.equal(hostAndPort(undefined, 80), 'localhost:80');
    assert.equal(describeListenError(80, undefined, 'EOTHER'), 'Cannot listen on port 80: the system refuses (EOTHER)');
  });
});
