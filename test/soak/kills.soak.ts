// Kills workers at random moments under load, with rolls in between. A death may lose only requests that this worker
// was answering or had not yet accepted. No other request is lost. Takes minutes (`npm run soak`).
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { type Failure, startLoad } from '../support/cluster-client.ts';
import { startService } from '../support/cluster-server.ts';
import { controller, write } from '../support/folder.ts';

const DEATHS = Number(process.env.SOAK_DEATHS ?? 5);
const NODES = (process.env.SOAK_NODES ?? process.execPath).split(':');
const CONNECTIONS = 8;

for (const node of NODES) {
  describe(`Node ${execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()}`, () => {
    for (const workers of ['1', '2']) {
      for (const mode of ['kept-alive', 'one request a connection'] as const) {
        it(`${DEATHS} killed workers lose only their running requests: ${workers} worker(s), ${mode}`, async (test) => {
          const files = { 'TestController.js': controller(0) };
          const service = await startService(test, { node, files, env: { LOG_LEVEL: 'info', WORKERS: workers } });
          const load = startLoad(test, { port: service.port, connections: CONNECTIONS, mode, pause: 1 });
          for (let death = 1; death <= DEATHS; death++) {
            const { pid } = JSON.parse((await load.until(() => true)).body) as { pid: number };
            process.kill(pid, 'SIGKILL');
            await service.logged('worker-died', (line) => line.worker === pid);
            await load.until(({ body }) => JSON.parse(body).pid !== pid);
            write(service.dir, 'TestController.js', controller(death));
            await load.until(({ body }) => JSON.parse(body).value === death);
          }
          const { answers, failures } = await load.stop();
          test.diagnostic(
            `${answers} requests, ${failures.length} lost in ${moments(failures)} moments: ${kinds(failures)}`,
          );
          assert.ok(moments(failures) <= DEATHS, 'requests fail only when a worker dies');
          assert.ok(
            failures.length <= DEATHS * CONNECTIONS * 2,
            'a client loses at most its answer and one new connection per death',
          );
        });
      }
    }
  });
}

function moments(failures: readonly Failure[]): number {
  const times = failures.map(({ at }) => at).sort((a, b) => a - b);
  return times.filter((at, i) => i === 0 || at - (times[i - 1] ?? 0) > 50).length;
}

function kinds(failures: readonly Failure[]): string {
  const counts = new Map<string, number>();
  for (const { kind } of failures) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return Array.from(counts, ([kind, count]) => `${count} ${kind}`).join(', ');
}
