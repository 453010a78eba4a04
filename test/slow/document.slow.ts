// The table of documents, over two workers of the built service for each folder.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startService } from '../support/cluster-server.ts';
import { DOCUMENTS, documentPath, expectedLines, linesOf } from '../support/document-table.ts';

for (const [name, folder] of Object.entries(DOCUMENTS))
  test(`workers send the same document of a folder with ${name}`, async (test) => {
    const { files, env = {} } = folder;
    const { port } = await startService(test, { files, env: { ...env, WORKERS: '2' } });
    const url = `http://127.0.0.1:${port}${documentPath(folder)}`;
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => fetch(url, { headers: { connection: 'close' } })),
    );
    for (const answer of answers) assert.deepEqual(linesOf(await answer.text()), expectedLines(folder));
  });
