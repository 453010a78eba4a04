// A draining worker stops accepting connections, over a real socket.
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { createServer, type Server } from 'node:http';
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
    // On Node 26, a connection without a request is idle for Node's own function.
    server.closeIdleConnections = () => {};
    await begin(null, { timeout: 60 });
    assert.ok(cuts > 1, 'the drain cut the connections before its end');
  });
});

describe('the steps of a drain, by a clock of the test', () => {
  function begin(test: TestContext, timeout: number, acceptFor: number | null, connections = 1, work = 0) {
    let now = 0;
    test.mock.timers.enable({ apis: ['setTimeout'] });
    // With Node 20, node:test keeps an interval that is cleared in its own callback.
    let sweep: (() => void) | undefined;
    test.mock.method(globalThis, 'setInterval', (look: () => void, milliseconds: number) => {
      assert.equal(milliseconds, 50);
      sweep = look;
    });
    test.mock.method(globalThis, 'clearInterval', () => {
      sweep = undefined;
    });
    test.mock.method(performance, 'now', () => now);
    const turns: (() => void)[] = [];
    test.mock.method(globalThis, 'setImmediate', (turn: () => void) => void turns.push(turn));
    const steps: string[] = [];
    const note = (step: string) => () => void steps.push(`${step} ${now}`);
    const server = Object.assign(new EventEmitter(), {
      listening: false,
      closeAllConnections: note('cut'),
      closeIdleConnections: note('close idle'),
      getConnections: (callback: (error: null, count: number) => void) => callback(null, connections),
    });
    const app = { setDraining: note('stop'), pendingWork: () => work, giveUpWork: note('give up') };
    drain({ ...app, server: server as unknown as Server }, { timeout, acceptFor, onDrained: note('drained') });
    return {
      /** The first step of each kind. */
      firsts: () =>
        steps.filter(
          (step, i) => steps.findIndex((each) => each.split(/ (?=\d)/)[0] === step.split(/ (?=\d)/)[0]) === i,
        ),
      steps,
      wait(milliseconds: number) {
        for (const end = now + milliseconds; now < end; ) {
          now += 50;
          test.mock.timers.tick(50);
          sweep?.();
        }
      },
      /** Runs a turn of the event loop. @param ms how long it takes */
      turn(arrivals: number, ms = 0) {
        for (let i = 0; i < arrivals; i++) server.emit('connection');
        now += ms;
        turns.shift()?.();
      },
      server,
    };
  }

  it('looks for idle connections, cuts all at the timeout, and waits 200 ms for those that stay', (test) => {
    const { firsts, steps, wait } = begin(test, 3000, null);
    wait(5000);
    assert.deepEqual(firsts(), ['stop 0', 'close idle 50', 'cut 3000', 'give up 3200', 'drained 3200']);
    assert.equal(steps.at(-1), 'drained 3200');
  });

  it('ends at once without connections and work, and at the timeout with work', (test) => {
    const { firsts, wait } = begin(test, 3000, null, 0);
    wait(5000);
    assert.deepEqual(firsts(), ['stop 0', 'close idle 50', 'give up 50', 'drained 50']);
    test.mock.reset();
    test.mock.timers.reset();
    const busy = begin(test, 1000, null, 0, 1);
    busy.wait(5000);
    assert.deepEqual(busy.firsts(), ['stop 0', 'close idle 50', 'cut 1000', 'give up 1050', 'drained 1050']);
  });

  it('accepts for half of a short timeout, and until three turns bring no connection', (test) => {
    const { steps, wait, turn, server } = begin(test, 3000, 10_000);
    wait(1450);
    assert.equal(server.listenerCount('connection'), 0);
    wait(50);
    assert.equal(server.listenerCount('connection'), 1);
    for (const arrivals of [2, 0, 0, 1, 0, 0]) turn(arrivals);
    assert.deepEqual(steps, []);
    turn(0);
    assert.deepEqual([steps, server.listenerCount('connection')], [['stop 1500'], 0]);
  });

  it('stops to accept after three quiet turns', (test) => {
    const { steps, wait, turn } = begin(test, 3000, 100);
    wait(100);
    for (let turns = 0; turns < 2; turns++) turn(0);
    assert.deepEqual(steps, []);
    turn(0);
    assert.deepEqual(steps, ['stop 100']);
  });

  it('stops to accept after 400 ms of connections', (test) => {
    const { steps, wait, turn } = begin(test, 3000, 100);
    wait(100);
    turn(1, 399);
    assert.deepEqual(steps, []);
    turn(1, 1);
    assert.deepEqual(steps, ['stop 500']);
  });
});
