// Runs the first example of docs/CONTROLLERS.md with two workers. Data that one worker has stored, both return.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { test } from 'node:test';
import { startService } from '../support/cluster-server.ts';
import { createFolder } from '../support/folder.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
const skip =
  major > 22 || (major === 22 && minor >= 18) ? false : 'node:sqlite and TypeScript as it is need Node 22.18';

test('the first example of docs/CONTROLLERS.md works with two workers', { skip }, async (t) => {
  const source = /```ts\n(\/\/ controllers\/BookController\.ts\n.*?)```/s.exec(
    readFileSync(join(ROOT, 'docs/CONTROLLERS.md'), 'utf8'),
  )?.[1];
  const dir = createFolder(t, { 'BookController.ts': source ?? '' });
  mkdirSync(join(dirname(dir), 'node_modules'));
  symlinkSync(ROOT, join(dirname(dir), 'node_modules/gatefold'));
  const service = await startService(t, { dir, env: { WORKERS: '2', BOOKS: join(dirname(dir), 'books.sqlite') } });
  const url = `http://127.0.0.1:${service.port}/api/book`;
  const ask = (path: string, init?: RequestInit) =>
    fetch(url + path, { ...init, headers: { connection: 'close', 'content-type': 'application/json' } });

  const made = await ask('', { method: 'POST', body: '{"title":"Emma"}' });
  assert.deepEqual(
    [made.status, made.headers.get('location'), await made.json()],
    [201, '/api/book/1', { id: 1, title: 'Emma' }],
  );
  for (let i = 0; i < 20; i++) assert.deepEqual(await (await ask('/1')).json(), { id: 1, title: 'Emma' });
  assert.deepEqual(await (await ask('')).json(), [{ id: 1, title: 'Emma' }]);
  assert.equal((await ask('/2')).status, 404);
  assert.equal((await ask('', { method: 'POST', body: '{"title":""}' })).status, 422);
  assert.deepEqual(
    service.lines.filter(({ level }) => level === 'error' || level === 'warn'),
    [],
  );
});
