// A signal during the start of the service, and parts of the service that fail while it stops. The store is a script of
// the test, and there are no workers.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { dirname } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { controller, createFolder } from '../../support/folder.ts';
import { LOADER, moduleUrl } from '../../support/own-modules.ts';

/**
 * @param store the code of a store, in which `signal()` stops the service
 * @param output the code of the output of the workers
 */
function serve(test: TestContext, store: string, output = 'undefined') {
  const dir = createFolder(test, { 'TestController.js': controller(1) });
  const script = `
    import cluster from 'node:cluster';
    import { createLog } from ${JSON.stringify(moduleUrl('src/base/log'))};
    import { serve } from ${JSON.stringify(moduleUrl('src/live/supervisor/serve'))};

    const signal = () => process.emit('SIGTERM', 'SIGTERM');
    cluster.setupPrimary({ exec: 'no-worker.js', silent: true });
    cluster.on('fork', () => console.log('forked'));
    await serve({
      settings: {
        ...{ host: '127.0.0.1', port: 0, workers: 1, domains: [], drainTimeout: 100, docs: 'off', mcp: 'off' },
        ...{ controllersDir: ${JSON.stringify(dir)}, dataDir: ${JSON.stringify(dirname(dir))}, basePath: '/api' },
      },
      log: createLog({ level: 'info', sink: { write: (text) => process.stdout.write(text), flush() {} } }),
      flush: () => console.log('flushed'),
      output: ${output},
      store: ${store},
    });
    setInterval(() => {}, 1000);
  `;
  const args = [...LOADER, '--input-type=module', '--eval', script];
  return spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 60_000 });
}

describe('a signal during the start', () => {
  it('prevents the fork of workers, and exits with 0', (test) => {
    const store = '{ async start() {}, close() {}, machines: () => 1, get spend() { signal(); return () => {}; } }';
    const { status, stdout, stderr } = serve(test, store);
    assert.deepEqual([status, stderr], [0, ''], stdout);
    assert.match(stdout, /"stopped"/);
    assert.doesNotMatch(stdout, /forked/);
  });

  it('exits with 0 even if the start fails after the signal', (test) => {
    const { status, stdout, stderr } = serve(
      test,
      `{ async start() { signal(); throw new Error('the store is closed'); }, close() {} }`,
    );
    assert.deepEqual([status, stderr], [0, ''], stdout);
    assert.match(stdout, /supervisor-exception.*the store is closed/);
    assert.match(stdout, /"stopped"/);
  });

  it('exits with 1 when the store fails to close', (test) => {
    const { status, stdout } = serve(
      test,
      `{ start() { signal(); return new Promise(() => {}); }, close() { throw new Error('it does not close'); } }`,
    );
    assert.equal(status, 1, stdout);
    assert.match(stdout, /supervisor-exception.*it does not close/);
    assert.doesNotMatch(stdout, /"stopped"/);
  });
});

it('a second signal ends the service at once with 1, but not a second delivery of the first signal', (test) => {
  const store = `{ start() {
    let now = 1000;
    performance.now = () => now;
    signal();
    now += 24;
    signal();
    console.log('it stops in peace');
    now += 1;
    setTimeout(signal, 0);
    return new Promise(() => {});
  }, close() {} }`;
  const { status, stdout, stderr } = serve(test, store, '{ drained: () => new Promise(() => {}) }');
  assert.deepEqual([status, stderr], [1, ''], stdout);
  assert.match(stdout, /it stops in peace\n.*"stop-forced".*flushed\n$/s);
  assert.equal(stdout.split('"stopping"').length, 2);
});
