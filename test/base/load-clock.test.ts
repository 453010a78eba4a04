// The time of a load: CPU, the clock, and a load that hangs.
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { cpuTimeOf, LoadClock } from '../../src/base/load-clock.ts';

/** Lets a load use so many milliseconds of CPU in each second, and returns the second of its end and the reason. */
function run(context: TestContext, limit: number, cpuIn: (second: number) => number) {
  let now = 0;
  let cpu = 5000;
  context.mock.method(performance, 'now', () => now);
  const clock = new LoadClock(limit, () => cpu);
  for (let second = 1; second <= 200; second++) {
    now += 1000;
    cpu += cpuIn(second);
    const reason = clock.check(': does it wait?');
    if (reason !== undefined) return { second, reason };
  }
  return undefined;
}

for (const [name, limit, cpuIn, second, reason] of [
  [
    'that computes ends after LOAD_TIMEOUT of CPU',
    10_000,
    () => 1000,
    10,
    /^the machine gave it 10\.0 s of CPU in 10\.0 s$/,
  ],
  [
    'with a tenth of a core has six times as much by the clock',
    10_000,
    () => 100,
    60,
    /gave it 6\.0 s of CPU in 60\.0 s$/,
  ],
  ['that waits hangs', 10_000, () => 4, 10, /gave it 0\.0 s of CPU in 10\.0 s: does it wait\?$/],
  ['with so little CPU that it nearly hangs', 10_000, () => 5, 60, /gave it 0\.3 s of CPU in 60\.0 s$/],
  ['that computes first and then waits hangs', 10_000, (at: number) => (at < 5 ? 900 : 0), 20, /does it wait\?$/],
  [
    'without a known CPU has six times as much by the clock',
    5000,
    () => Number.NaN,
    30,
    /gave it an unknown part of CPU/,
  ],
] as const)
  test(`a load ${name}`, (context) => {
    const end = run(context, limit, cpuIn);
    assert.equal(end?.second, second);
    assert.match(end?.reason ?? '', reason);
  });

test('cpuTimeOf reads the CPU time of a process, and NaN of none', { skip: process.platform !== 'linux' }, () => {
  const { user, system } = process.cpuUsage();
  const own = cpuTimeOf(process.pid);
  assert.ok(own <= (user + system) / 1000 + 1000 && own > 0, String(own));
  assert.ok(Number.isNaN(cpuTimeOf(2 ** 30)));
});
