// The table of routes, over two workers of the built service.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startService } from '../support/cluster-server.ts';
import { ask, CONTROLLERS, ROUTE_ROWS } from '../support/route-table.ts';

test('workers answer the requests of the table as one process does', async (test) => {
  const { port } = await startService(test, { files: CONTROLLERS, env: { WORKERS: '2' } });
  const rows = ROUTE_ROWS.filter(({ key }) => key === undefined);
  assert.ok(rows.length > 80);
  for (const { verb, path, answer, allow } of rows)
    assert.deepEqual(
      { verb, path, ...(await ask(`http://127.0.0.1:${port}`, { verb, path, answer })) },
      { verb, path, answer, allow },
    );
});
