// /readyz of the real service where groups do not load.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { spawnService, write } from '../../support/cluster-server.ts';
import { readyz, scrape, startWatched, until } from '../../support/ops-client.ts';
import { total } from '../../support/prometheus-text.ts';

const MISSING = "import 'a-package-that-nobody-has-installed';\nexport default class { index() { return {}; } }\n";
const GOOD = 'export default class { index() { return {}; } }\n';

describe('/readyz', () => {
  it('is 503 where no group loads, and 200 where one of two does', async (test) => {
    const none = await startWatched(test, { files: { 'AController.mjs': MISSING }, env: { WORKERS: '1' } });
    const { status, body } = await readyz(none.ops);
    assert.deepEqual([status, body.status], [503, 'groups-not-loadable']);
    assert.equal((body.not_loadable as unknown[]).length, 1);
    assert.equal(total(await scrape(none.ops), 'gatefold_ready'), 0);
    write(none.dir, 'BController.mjs', GOOD);
    await until(
      () => readyz(none.ops),
      (answer) => answer.status === 200,
    );
  });

  it('with READY=all, is 503 from a start with one group that does not load until it loads, and 200 after a bad new file', async (test) => {
    const files = { 'AController.mjs': MISSING, 'BController.mjs': GOOD };
    const { ops, port, dir } = await startWatched(test, { files, env: { WORKERS: '1', READY: 'all' } });
    assert.deepEqual((await readyz(ops)).body.status, 'groups-not-loadable');
    write(dir, 'AController.mjs', GOOD);
    await until(
      () => readyz(ops),
      ({ status }) => status === 200,
    );
    write(dir, 'CController.mjs', MISSING);
    assert.equal((await fetch(`http://127.0.0.1:${port}/api/c`)).status, 500);
    const { status, body } = await readyz(ops);
    assert.equal(status, 200);
    assert.equal((body.not_loadable as unknown[]).length, 1);
  });

  it('ends a start with 1 and --exit-if-not-ready, with each file that does not load', async (test) => {
    const files = { 'AController.mjs': MISSING, 'BController.mjs': GOOD };
    const flags = ['--exit-if-not-ready'];
    const all = spawnService(test, { files, flags, env: { WORKERS: '1', READY: 'all' } });
    assert.deepEqual(await all.exited, { code: 1, signal: null });
    assert.match(
      all.errors(),
      /^gatefold: --exit-if-not-ready: .*AController\.mjs.*a-package-that-nobody-has-installed/m,
    );
    assert.equal(all.output(), '');
    const some = spawnService(test, { files, flags, env: { WORKERS: '1' } });
    await some.listening;
    assert.ok(!some.lines.some(({ event }) => event === 'operations-port-opened'), 'OPS_PORT is not set');
  });
});
