// Twenty rolls under load, for each way in which a client may use connections, on every Node of SOAK_NODES (paths,
// separated by colons; default: this one). No request may be lost. Takes minutes (`npm run soak`).
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { startLoad } from '../support/cluster-client.ts';
import { startService } from '../support/cluster-server.ts';
import { controller, write } from '../support/folder.ts';

const ROLLS = Number(process.env.SOAK_ROLLS ?? 20);
const NODES = (process.env.SOAK_NODES ?? process.execPath).split(':');

for (const node of NODES) {
  describe(`Node ${execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()}`, () => {
    for (const mode of ['kept-alive', 'one request a connection'] as const) {
      it(`${ROLLS} rolls lose no request: ${mode}`, async (test) => {
        const text = (value: number) => `import { value } from './lib.js';\n${controller(value)}`;
        const files = { 'TestController.js': text(0), 'lib.js': 'export const value = 0;\n' };
        const service = await startService(test, { node, files, env: { LOG_LEVEL: 'warn' } });
        const load = startLoad(test, { port: service.port, connections: 8, mode });
        const times: number[] = [];
        for (let roll = 1; roll <= ROLLS; roll++) {
          // The clients reach all workers before the next roll, as between two deployments.
          const settled = load.answered() + 2000;
          await load.until(() => load.answered() >= settled);
          write(service.dir, 'TestController.js', text(roll));
          const written = performance.now();
          let lastOld = written;
          let run = 0;
          await load.until(({ body }) => {
            if (JSON.parse(body).value === roll) run++;
            else {
              run = 0;
              lastOld = performance.now();
            }
            return run >= 2000;
          });
          times.push(Math.round(lastOld - written));
        }
        const { answers, failures } = await load.stop();
        test.diagnostic(
          `${answers} requests, ${failures.length} lost; last old answer after the write, ms: ${times.sort((a, b) => a - b).join(' ')}`,
        );
        assert.deepEqual(failures, []);
      });
    }
  });
}
