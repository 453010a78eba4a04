// Functions for controllers refuse wrong arguments at once, before any request.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { ErrorReply, fileReply, type ReplyHeaders } from '../../src/api/controller.ts';
import { createFolder } from '../support/folder.ts';

test('fileReply needs an absolute folder, and finds no file in a missing one', (t) => {
  assert.throws(() => fileReply('data', 'a.txt'), {
    name: 'TypeError',
    message: "fileReply: data must be an absolute path: resolve('data')",
  });
  const folder = createFolder(t, { 'a.txt': 'a' });
  assert.equal(fileReply(folder, 'a.txt').status, 200);
  for (const [root, path] of [
    [join(folder, 'missing'), 'a.txt'],
    [folder, 'b.txt'],
    [folder, '../a.txt'],
  ] as const)
    assert.throws(() => fileReply(root, path), { code: 'FILE_NOT_FOUND' });
});

test('headers of the class Headers are refused, because their fields cannot be listed', (t) => {
  const headers = new Headers({ 'X-Frame-Options': 'DENY' }) as unknown as ReplyHeaders;
  const folder = createFolder(t, { 'a.txt': 'a' });
  assert.throws(
    () => fileReply(folder, 'a.txt', { headers }),
    /^TypeError: fileReply: headers must be a plain object$/,
  );
  assert.throws(() => new ErrorReply(400, 'no', headers), /^TypeError: ErrorReply: headers must be a plain object$/);
});

test('ErrorReply takes the statuses from 400 to 599', () => {
  for (const status of [400, 404, 599]) assert.equal(new ErrorReply(status, 'no').status, status);
  for (const status of [399, 600, 404.5, Number.NaN])
    assert.throws(() => new ErrorReply(status, 'no'), {
      name: 'TypeError',
      message: `ErrorReply: the status is ${status}, it must be a whole number from 400 to 599`,
    });
});
