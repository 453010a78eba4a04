// The timer that many operations share. The clock and the timers are those of the test, so nothing here waits.
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { performance } from 'node:perf_hooks';
import { type TestContext, test } from 'node:test';
import type { Exchange } from '../../src/request/exchange.ts';
import { TimeLimits } from '../../src/request/time-limits.ts';

interface Timer {
  readonly ends: number;
  readonly ring: () => void;
  isReferenced: boolean;
  isOver: boolean;
}

/** Returns limits whose operations have names, and a clock that only `passTo` moves. */
function limitsOf(context: TestContext) {
  let now = 1000;
  const timers: Timer[] = [];
  const expired: string[] = [];
  context.mock.method(performance, 'now', () => now);
  context.mock.method(globalThis, 'setTimeout', (callback: (value: unknown) => void, delay: number, value: unknown) => {
    const bound = AsyncLocalStorage.bind(() => callback(value));
    const timer: Timer = { ends: now + delay, ring: bound, isReferenced: true, isOver: false };
    timers.push(timer);
    const refer = (isReferenced: boolean) => () => Object.assign(timer, { isReferenced });
    return { timer, ref: refer(true), unref: refer(false) };
  });
  context.mock.method(globalThis, 'clearTimeout', (handle: { timer: Timer } | undefined) => {
    if (handle !== undefined) handle.timer.isOver = true;
  });
  const exchanges = new Map<string, Exchange>();
  const limits = new TimeLimits((exchange, limit) => {
    expired.push(`${nameOf(exchange)} after ${limit} at ${now}`);
  });
  const nameOf = (exchange: Exchange) => [...exchanges].find(([, one]) => one === exchange)?.[0];
  return {
    expired,
    start(name: string, limit: number, left?: number): void {
      const exchange = exchanges.get(name) ?? ({} as Exchange);
      exchanges.set(name, exchange);
      limits.start(exchange, limit, left);
    },
    end: (...names: string[]) => {
      for (const name of names) exchanges.get(name)?.timeLimit?.end();
    },
    passTo(time: number): void {
      for (;;) {
        const due = timers.filter(({ isOver, ends }) => !isOver && ends <= time).sort((a, b) => a.ends - b.ends)[0];
        if (due === undefined) break;
        due.isOver = true;
        now = due.ends;
        due.ring();
      }
      now = time;
    },
    running: () => timers.filter(({ isOver }) => !isOver),
    made: () => timers.length,
  };
}

test('each operation ends at its own time, and one timer serves them all', (context) => {
  const limits = limitsOf(context);
  limits.start('a', 100);
  limits.passTo(1010);
  limits.start('b', 100);
  limits.passTo(1050);
  limits.start('c', 100);
  assert.equal(limits.running().length, 1);
  limits.end('b');
  limits.passTo(1099);
  assert.deepEqual(limits.expired, []);
  limits.passTo(1500);
  assert.deepEqual(limits.expired, ['a after 100 at 1100', 'c after 100 at 1150']);
  assert.equal(limits.running().length, 0);
});

test('two limits do not wait for each other', (context) => {
  const limits = limitsOf(context);
  limits.start('long', 1000);
  limits.start('short', 20);
  limits.passTo(3000);
  assert.deepEqual(limits.expired, ['short after 20 at 1020', 'long after 1000 at 2000']);
});

test('what was paused ends before those that began later, also where their timer is set already', (context) => {
  const limits = limitsOf(context);
  limits.start('paused', 100);
  limits.passTo(1040);
  limits.end('paused');
  limits.passTo(1200);
  limits.start('later', 100);
  limits.start('last', 100);
  limits.start('paused', 100, 60);
  limits.passTo(2000);
  assert.deepEqual(limits.expired, ['paused after 100 at 1260', 'later after 100 at 1300', 'last after 100 at 1300']);
});

test('a thousand requests one after the other make one timer, which keeps the process alive only meanwhile', (context) => {
  const limits = limitsOf(context);
  for (let i = 0; i < 1000; i++) {
    limits.start('one', 100);
    assert.deepEqual(
      limits.running().map(({ isReferenced }) => isReferenced),
      [true],
    );
    limits.end('one');
    assert.deepEqual(
      limits.running().map(({ isReferenced }) => isReferenced),
      [false],
    );
  }
  assert.equal(limits.made(), 1);
  limits.start('one', 100);
  limits.start('two', 100);
  limits.end('one');
  assert.deepEqual(
    limits.running().map(({ isReferenced }) => isReferenced),
    [true],
  );
});

test('an operation that throws at its end keeps no other one from its end', (context) => {
  const limits = limitsOf(context);
  const failing = new TimeLimits(() => {
    throw new Error('of an observer');
  });
  failing.start({} as Exchange, 100);
  failing.start({} as Exchange, 100);
  assert.throws(() => limits.passTo(1100), /of an observer/);
  assert.throws(() => limits.passTo(1100), /of an observer/);
  limits.passTo(1100);
  assert.equal(limits.running().length, 0);
});

test('an operation ends in no context of another one', (context) => {
  const storage = new AsyncLocalStorage<string>();
  const contexts: unknown[] = [];
  const limits = limitsOf(context);
  const others = new TimeLimits(() => contexts.push(storage.getStore()));
  storage.run('of the first', () => others.start({} as Exchange, 100));
  others.start({} as Exchange, 100);
  limits.passTo(1100);
  assert.deepEqual(contexts, [undefined, undefined]);
});

test('an operation ends where a test of its author replaces the timers alone', (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const expired: number[] = [];
  const limits = new TimeLimits((_exchange, limit) => expired.push(limit));
  limits.start({} as Exchange, 30_000);
  context.mock.timers.tick(29_999);
  assert.deepEqual(expired, []);
  context.mock.timers.tick(1);
  assert.deepEqual(expired, [30_000]);
});
