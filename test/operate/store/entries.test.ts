// Reading a table's file as the rows of the store.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { readTableFile } from '../../../src/operate/store/entries.ts';

function makeFolder(test: TestContext, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatefold-entries-'));
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'production.json'), text);
  return folder;
}

const ROW = '{"id":"0123456789ab","revoked_at":"2026-01-01T00:00:00Z","revoked_at":null}';

it('readTableFile refuses a table with a repeated field in a row', (test) => {
  const folder = makeFolder(test, `{"production":[${ROW}]}`);
  assert.throws(() => readTableFile(folder), /production\/0 has the field "revoked_at" twice; remove one of them/);
});

it('readTableFile returns an empty version for a copy of the store with a repeated field in a row', (test) => {
  const folder = makeFolder(test, `{"store":{"version":"a/b/1"},"production":[${ROW}]}`);
  assert.equal(readTableFile(folder)?.copyMark?.version, '');
  const whole = makeFolder(test, '{"store":{"version":"a/b/1"},"production":[]}');
  assert.equal(readTableFile(whole)?.copyMark?.version, 'a/b/1');
});
