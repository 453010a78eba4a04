// A worker whose controllers have taken almost all descriptors: it says so, and can still read its tables. A worker whose
// heap is small: it has fewer connections.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { createFolder } from '../../support/cluster-server.ts';
import { readyz, scrape, startWatched, until } from '../../support/ops-client.ts';
import { total } from '../../support/prometheus-text.ts';

const LEAK = `import { openSync } from 'node:fs';
export default class {
  index() { return {}; }
  hold() { return new Promise(() => {}); }
  leak() { const held = []; for (let fd = 0; fd < 290;) held.push(fd = openSync('/dev/null')); return { held: held.length }; }
}`;

test('a leak of descriptors is in the metrics, refuses connections, and keeps no table from being read', {
  skip: process.platform !== 'linux',
}, async (t) => {
  const dir = createFolder(t, { 'LeakController.mjs': LEAK });
  const node = join(dirname(dir), 'node');
  writeFileSync(node, `#!/bin/sh\nulimit -n 300\nexec '${process.execPath}' "$@"\n`, { mode: 0o755 });
  const { ops, port } = await startWatched(t, {
    dir,
    node,
    env: { WORKERS: '1', NODE_OPTIONS: '--max-old-space-size=99' },
  });
  await (await fetch(`http://127.0.0.1:${port}/api/leak/leak`, { headers: { connection: 'close' } })).json();
  // A connection that waits for its answer cannot be replaced.
  const held = connect(port, '127.0.0.1', () => held.write('GET /api/leak/hold HTTP/1.1\r\nHost: a\r\n\r\n'));
  t.after(() => held.destroy());
  await until(
    () => scrape(ops),
    (seen) => total(seen, 'http_server_active_requests') === 1,
  );
  const closed = await new Promise<string>((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('GET /api/leak HTTP/1.1\r\nHost: a\r\n\r\n'));
    let text = '';
    socket.on('data', (part) => {
      text += part;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(text));
  });
  assert.equal(closed, '');
  const metrics = await until(
    () => scrape(ops),
    (seen) => total(seen, 'gatefold_connections_refused_total') >= 1,
  );
  assert.equal(total(metrics, 'process_max_fds', { worker: '0' }), 300);
  const open = total(metrics, 'process_open_fds', { worker: '0' });
  assert.ok(open === 0 || open > 280, `${open} open descriptors`);
  assert.ok(total(metrics, 'nodejs_heap_size_used_bytes') > 1e6);
  assert.equal(total(metrics, 'nodejs_heap_size_limit_bytes'), 99 * 2 ** 20, 'V8 ends the worker there');
  writeFileSync(join(dirname(dir), 'data/production.json'), '{"production":[{"name":"no row"}]}');
  await until(
    () => readyz(ops),
    ({ body }) => (body.credentials as { quarantined_rows: number }).quarantined_rows === 1,
  );
});

test('a worker with 64 MiB of heap has 341 connections, and ends the oldest for each further one', async (t) => {
  const env = { WORKERS: '1', HEADERS_TIMEOUT: '120s', NODE_OPTIONS: '--max-old-space-size=64' };
  const { ops, port } = await startWatched(t, { env });
  const sockets = Array.from({ length: 345 }, () => connect(port, '127.0.0.1').on('error', () => {}));
  const metrics = await until(
    () => scrape(ops),
    (seen) => total(seen, 'gatefold_connections_refused_total') >= 4,
  ).finally(() => {
    for (const socket of sockets) socket.destroy();
  });
  assert.equal(total(metrics, 'gatefold_connections_refused_total'), 4);
});
