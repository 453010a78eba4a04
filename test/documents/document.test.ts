// The OpenAPI document of each folder of the table, over a socket and from `gatefold openapi`. judges/ runs other tools on
// the document.
import assert from 'node:assert/strict';
import { dirname } from 'node:path';
import { describe, test } from 'node:test';
import { startTest } from '../../src/api/testing.ts';
import { createLog } from '../../src/base/log.ts';
import { createGroups } from '../../src/live/load/registry.ts';
import { runCommand } from '../../src/operate/cli/command.ts';
import { command } from '../../src/operate/cli/openapi.ts';
import { runHere } from '../support/command-bench.ts';
import { DOCUMENTS, documentPath, expectedLines, linesOf } from '../support/document-table.ts';
import { createFolder } from '../support/folder.ts';
import { inspectHere } from '../support/inspection-here.ts';

describe('the document of a folder with', () => {
  for (const [name, folder] of Object.entries(DOCUMENTS))
    test(name, async (t) => {
      inspectHere(t);
      const { files, env = {} } = folder;
      const controllers = createFolder(t, files);
      const api = await startTest({ controllers, env });
      t.after(() => api.close());
      const text = await (await fetch(api.url + documentPath(folder))).text();
      assert.deepEqual(linesOf(text), expectedLines(folder));
      if (!name.startsWith('users')) return;
      const run = (argv: readonly string[], io: Parameters<typeof runCommand>[2]) => runCommand(command, argv, io);
      const { out } = await runHere(run, ['--json'], { cwd: dirname(controllers), env });
      assert.deepEqual(JSON.parse(out), JSON.parse(text));
    });
});

test('the load names what is not documented', async (t) => {
  const dir = createFolder(t, DOCUMENTS['results and schemas of a library']?.files);
  const log = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
  const [load] = await createGroups({ dir, log, reportsOperations: true }).loadAll({
    ...{ skip: new Map(), onLoading: () => {} },
  });
  assert.deepEqual(
    load?.notes?.flatMap(({ event, reason }) => (event === 'operation-undocumented' ? [reason] : [])),
    [
      'GET some: its schema has no JSON Schema in one place (query: transform)',
      'library: its schema has no JSON Schema in one place (result: transform; body: transform)',
      'broken: its schema has no JSON Schema in one place (body: no)',
      'plain: its schema has no JSON Schema in one place (body: its library gives none)',
      'untyped: its result has no type in the source, so it is unknown: annotate it, or write a schema as result',
    ],
  );
});
