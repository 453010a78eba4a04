// Rolls to new code under load lose no request. Uses real processes and sockets. `npm run soak` does more rolls.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type Load, startLoad } from '../support/cluster-client.ts';
import { startService } from '../support/cluster-server.ts';
import { controller, createFolder, write } from '../support/folder.ts';

const ROLLS = 3;

describe('rolls under load', () => {
  for (const mode of ['kept-alive', 'one request a connection'] as const) {
    it(`a new generation loses no request: ${mode}`, async (test) => {
      const service = await startService(test, {
        files: { 'TestController.js': controller(0) },
        env: { LOG_LEVEL: 'warn' },
      });
      const load = startLoad(test, { port: service.port, connections: 8, mode, pause: 1 });
      for (let roll = 1; roll <= ROLLS; roll++) {
        write(service.dir, 'TestController.js', controller(roll));
        await everyWorkerAnswers(load, roll);
      }
      const { answers, failures } = await load.stop();
      assert.deepEqual(failures, []);
      assert.ok(answers > ROLLS * 10, `${answers} answers`);
    });
  }

  it('a response that takes longer than the roll arrives complete', async (test) => {
    // The operation answers when the reload is over. The last pause lets the `drain` message arrive before the answer.
    const gate = join(createFolder(test), 'over');
    const slow = `
      import { existsSync } from 'node:fs';
      import { setTimeout as sleep } from 'node:timers/promises';
      export default class { index() { return { value: 'old' }; } async slow() {
        while (!existsSync(${JSON.stringify(gate)})) await sleep(10);
        await sleep(10);
        return { value: 'old', whole: 'x'.repeat(200_000) };
      } }`;
    const service = await startService(test, { files: { 'TestController.js': slow } });
    const pending = startLoad(test, { port: service.port, connections: 1, mode: 'kept-alive', path: '/api/test/slow' });
    const load = startLoad(test, { port: service.port, connections: 2, mode: 'kept-alive', pause: 2 });
    const answer = pending.until(() => true);
    await load.until(() => true);
    write(service.dir, 'TestController.js', controller('new'));
    await load.until(({ body }) => body.includes('"new"'));
    await service.logged('generation-serving', ({ generation }) => Number(generation) > 1);
    writeFileSync(gate, '');
    assert.equal(JSON.parse((await answer).body).whole.length, 200_000);
    assert.match((await answer).headers, /^connection: close\r?$/im);
    assert.deepEqual((await load.stop()).failures, []);
    assert.deepEqual((await pending.stop()).failures, []);
  });
});

/** Resolves after 50 new answers in a row. The old generation no longer accepts connections then. */
async function everyWorkerAnswers(load: Load, value: number): Promise<void> {
  let run = 0;
  await load.until(({ body }) => {
    run = JSON.parse(body).value === value ? run + 1 : 0;
    return run >= 50;
  });
}
