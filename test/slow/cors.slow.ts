// The table of CORS, over two workers of the built service for each service file.
import { test } from 'node:test';
import { startService } from '../support/cluster-server.ts';
import { CORS_SERVICES, CORS_SETTINGS, check } from '../support/cors-table.ts';

for (const [rules, { files, rows }] of Object.entries(CORS_SERVICES))
  test(`workers with ${rules} answer as one process does`, async (test) => {
    const { port } = await startService(test, { files, env: { ...CORS_SETTINGS, WORKERS: '2' } });
    for (const row of rows) await check(port, row);
  });
