// Writes under the lock: killed writers, dead holders, stolen locks, full disks. The processes and the kills are real.
import assert from 'node:assert/strict';
import { type ChildProcess, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { refusal } from '../../../src/base/errors.ts';
import { acquireLock } from '../../../src/base/folder-lock.ts';
import { type CredentialTable, parseTable } from '../../../src/callers/credentials/table/table.ts';
import { createRow } from '../../../src/callers/credentials/write/changes.ts';
import {
  readRevokedHere,
  revokedHerePath,
  writeRevokedHere,
} from '../../../src/callers/credentials/write/local-revocations.ts';
import { ChangeRefused, updateTable } from '../../../src/callers/credentials/write/table-file.ts';
import { createFolder, makeRow, spawnFixture, tableText, writeTable } from '../../support/credentials-bench.ts';
import { LOADER, modulePath } from '../../support/own-modules.ts';

function readTable(folder: string) {
  return parseTable(readFileSync(join(folder, 'production.json'), 'utf8'));
}

function idsOf(table: CredentialTable): string[] {
  return Array.from(table.rows.values(), ({ id }) => id);
}

async function issue(folder: string, name = 'n', options?: Parameters<typeof updateTable>[2]): Promise<string> {
  const { token, row } = createRow({ name }, Date.now());
  await updateTable(folder, (table) => table.append(row), options);
  return token.id;
}

test('a damaged list of `revoke --here` is an error, because an empty list would undo the revocations', (t) => {
  const folder = createFolder(t);
  assert.equal(readRevokedHere(folder).size, 0);
  const revoked = new Map([['0123456789ab', '2026-01-01T00:00:00Z']]);
  writeRevokedHere(folder, revoked);
  assert.deepEqual(readRevokedHere(folder), revoked);
  for (const text of ['', '{', 'null', '[]', '7', '"x"', '{"0123456789ab":null}', '{"0123456789ab":""}']) {
    writeFileSync(revokedHerePath(folder), text);
    assert.throws(() => readRevokedHere(folder), /is not a JSON object of ids and times/, text);
  }
  rmSync(revokedHerePath(folder));
  mkdirSync(revokedHerePath(folder));
  assert.throws(() => readRevokedHere(folder), { code: 'EISDIR' });
});

test('updateTable creates a missing table with mode 0600, and leaves no other file', async (t) => {
  const folder = createFolder(t);
  const id = await issue(folder);
  assert.ok(readTable(folder).rows.get(id));
  assert.equal(statSync(join(folder, 'production.json')).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(folder), ['production.json']);
});

test('updateTable sets mode 0600 on a table with another mode', async (t) => {
  const folder = createFolder(t);
  writeTable(folder);
  chmodSync(join(folder, 'production.json'), 0o666);
  await issue(folder);
  assert.equal(statSync(join(folder, 'production.json')).mode & 0o777, 0o600);
});

test('updateTable writes nothing when the change throws or changes nothing', async (t) => {
  const folder = createFolder(t);
  writeTable(folder, makeRow().row);
  const { ino } = statSync(join(folder, 'production.json'));
  const refuse = (error: Error) => () => {
    throw error;
  };
  await assert.rejects(updateTable(folder, refuse(new ChangeRefused('no'))), new ChangeRefused('no'));
  await assert.rejects(updateTable(folder, refuse(refusal('ALREADY_REGISTERED'))), { code: 'ALREADY_REGISTERED' });
  assert.equal(await updateTable(folder, () => 'result'), 'result');
  assert.equal(statSync(join(folder, 'production.json')).ino, ino);
  assert.deepEqual(readdirSync(folder), ['production.json']);
});

test('updateTable refuses to overwrite a table that it cannot parse or read', async (t) => {
  const rows: [string, string | Buffer, RegExp][] = [
    ['torn', '{"production":[{"id":', /^Cannot write .*production\.json: it is not JSON \(21 bytes\)$/],
    ['empty', '', /: it is not JSON \(it is empty\)$/],
    ['another document', '[]', /: it has no list "production"$/],
    ['not UTF-8', Buffer.from('{"production":[{"name":"\xff"}]}', 'latin1'), /: it is not UTF-8$/],
  ];
  for (const [name, content, message] of rows) {
    const folder = createFolder(t);
    const path = join(folder, 'production.json');
    writeFileSync(path, content);
    await assert.rejects(issue(folder), (error) => error instanceof Error && message.test(error.message), name);
    assert.deepEqual(readFileSync(path), Buffer.from(content), name);
    assert.deepEqual(readdirSync(folder), ['production.json'], name);
  }
  const folder = createFolder(t);
  mkdirSync(join(folder, 'production.json'));
  await assert.rejects(issue(folder), {
    message: `Cannot write ${realpathSync(folder)}/production.json: it is not a regular file`,
  });
  await assert.rejects(issue(join(folder, 'none')), {
    message: `Cannot write ${folder}/none/production.json: the folder does not exist`,
  });
  const loop = createFolder(t);
  symlinkSync('production.json', join(loop, 'production.json'));
  await assert.rejects(issue(loop), /go round in a circle$/);
  const file = join(folder, 'file');
  writeFileSync(file, '');
  await assert.rejects(issue(file), /a part of the path is not a folder$/);
});

test('updateTable writes through a symbolic link to its target', async (t) => {
  const [folder, target] = [createFolder(t), createFolder(t)];
  writeFileSync(join(target, 'table.json'), tableText());
  symlinkSync(join(target, 'table.json'), join(folder, 'production.json'));
  const id = await issue(folder);
  assert.ok(parseTable(readFileSync(join(target, 'table.json'), 'utf8')).rows.get(id));
  assert.ok(readTable(folder).rows.get(id));
  assert.deepEqual([readdirSync(folder), readdirSync(target)], [['production.json'], ['table.json']]);
});

test('updateTable follows a link to a missing table, and refuses a link into a missing folder', async (t) => {
  const [folder, target] = [createFolder(t), createFolder(t)];
  symlinkSync(join(target, 'table.json'), join(folder, 'middle'));
  symlinkSync('middle', join(folder, 'production.json'));
  const id = await issue(folder);
  assert.ok(parseTable(readFileSync(join(target, 'table.json'), 'utf8')).rows.get(id));
  assert.ok(readTable(folder).rows.get(id));
  assert.deepEqual([readdirSync(folder).sort(), readdirSync(target)], [['middle', 'production.json'], ['table.json']]);
  const other = createFolder(t);
  symlinkSync(join(other, 'none/table.json'), join(other, 'production.json'));
  await assert.rejects(issue(other), /the folder does not exist$/);
});

test('updateTable keeps the owner of the table or its folder when root writes', {
  skip: process.getuid?.() !== 0 && 'only root can',
}, async (t) => {
  const folder = createFolder(t);
  const owner = (path: string) => [statSync(path).uid, statSync(path).gid];
  spawnSync('chown', ['4321:4322', folder]);
  await issue(folder);
  assert.deepEqual(owner(join(folder, 'production.json')), [4321, 4322]);
  spawnSync('chown', ['5321:5322', join(folder, 'production.json')]);
  await issue(folder);
  assert.deepEqual(owner(join(folder, 'production.json')), [5321, 5322]);
});

test('updateTable keeps the rows of 20 concurrent changes in one process', async (t) => {
  const folder = createFolder(t);
  const ids = await Promise.all(Array.from({ length: 20 }, () => issue(folder)));
  assert.deepEqual(new Set(idsOf(readTable(folder))), new Set(ids));
  assert.deepEqual(readdirSync(folder), ['production.json']);
});

test('four concurrent writers that are killed at random lose no announced row and tear no table', async (t) => {
  const folder = createFolder(t);
  writeTable(folder);
  const announced: string[] = [];
  const children = new Set<ChildProcess>();
  let kills = 0;
  let next = 0;
  t.after(() => {
    for (const child of children) child.kill('SIGKILL');
  });
  const enough = 4;
  const start = () => {
    const child = spawnFixture('credentials-writer', [folder, `writer ${next++}`]);
    children.add(child);
    let rest = '';
    // The writer is killed after this many rows, at any point of its work.
    let left = 1 + Math.floor(Math.random() * 30);
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      announced.push(...lines);
      left -= lines.length;
      if (left <= 0) setTimeout(() => child.kill('SIGKILL'), Math.random() * 10);
    });
    return once(child, 'close').then(() => {
      children.delete(child);
      kills++;
    });
  };
  const lane = async () => {
    do await start();
    while (kills < enough);
  };
  await Promise.all(Array.from({ length: 4 }, lane));
  const table = readTable(folder);
  assert.deepEqual(table.quarantined, []);
  assert.ok(announced.length >= 4);
  assert.deepEqual(
    announced.filter((id) => !table.rows.get(id)),
    [],
  );
  // The next writer may find the lock of a dead writer, and removes all files that dead writers left.
  await issue(folder);
  assert.deepEqual(readdirSync(folder), ['production.json']);
});

test('a writer on a full disk fails, keeps the table whole, and leaves no other file', async (t) => {
  // The test mounts a small file system. It is skipped on a system that does not allow this.
  const folder = createFolder(t);
  const script = `mount -t tmpfs -o size=64k,mode=700 none "$1" && printf '{"production":[]}' > "$1/production.json" && shift && exec "$@"`;
  const words = [...LOADER, modulePath('test/fixtures/credentials-writer'), folder, 'x'.repeat(180), '1000'];
  const list = `process.on('exit', () => { const fs = require('node:fs'); fs.writeSync(2, '\\n' + JSON.stringify([fs.readdirSync(process.argv[2]), fs.readFileSync(process.argv[2] + '/production.json', 'utf8')]) + '\\n'); });`;
  const hook = join(createFolder(t), 'list.cjs');
  writeFileSync(hook, list);
  const unshare = [
    '--user',
    '--map-root-user',
    '--mount',
    'sh',
    '-c',
    script,
    'sh',
    folder,
    process.execPath,
    '--require',
    hook,
    ...words,
  ];
  if (
    spawnSync('unshare', ['--user', '--map-root-user', '--mount', 'sh', '-c', 'mount -t tmpfs none "$1"', 'sh', folder])
      .status !== 0
  ) {
    t.skip('no file system can be mounted here');
    return;
  }
  const { stdout, stderr, status } = spawnSync('unshare', unshare, { encoding: 'utf8' });
  assert.equal(status, 1);
  assert.match(stderr, /Cannot write .*production\.json: no space is left on the disk/);
  const [names, text] = JSON.parse(stderr.split('\n').findLast((line) => line.startsWith('[[')) ?? '') as [
    string[],
    string,
  ];
  assert.deepEqual(names, ['production.json']);
  const announced = stdout.trim().split('\n');
  assert.ok(announced.length > 10);
  assert.deepEqual(idsOf(parseTable(text)), announced);
});

test('updateTable writes nothing when its lock was lost during the change', async (t) => {
  const folder = createFolder(t);
  writeTable(folder);
  const stolen = await createRow({ name: 'stolen' }, Date.now());
  const late = updateTable(folder, (table) => {
    // Another process considers this one dead. It breaks the lock and takes it during the change.
    const path = join(folder, 'production.json.lock');
    spawnSync('sh', ['-c', 'rm "$1"/* && touch "$1/thief"', 'sh', path]);
    table.append(stolen.row);
  });
  await assert.rejects(late, /^Error: Cannot write .*: the lock was lost$/);
  assert.equal(readTable(folder).rows.size, 0);
  assert.deepEqual(readdirSync(folder), ['production.json', 'production.json.lock']);
});

test('updateTable removes the drafts of dead writers, and keeps all other files', async (t) => {
  const folder = createFolder(t);
  const lock = await acquireLock(join(folder, 'own'));
  await lock.release();
  const [pid, started, machine] = lock.holder.split('-');
  const kept = [
    '.production.json.swp',
    `.production.json.lock.${pid}-${started}-${machine}-ab.tmp`,
    // The draft of a writer on another machine, or in another container, that waits for the lock.
    '.production.json.lock.1-1-0123456789abcdef-new.tmp',
    '.session.key.1.tmp',
    'production.json.tmp',
  ];
  const abandoned = '.production.json.lock.1-1-0123456789abcdef-old.tmp';
  const cleared = [
    abandoned,
    '.production.json.1-1-x-ab.tmp',
    `.production.json.lock.${2 ** 22 + 1}-1-${machine}-ab.tmp`,
  ];
  for (const name of [...kept, ...cleared]) writeFileSync(join(folder, name), '');
  for (const name of [kept[0] as string, abandoned]) utimesSync(join(folder, name), 0, 0);
  await issue(folder);
  assert.deepEqual(readdirSync(folder).sort(), [...kept, 'production.json'].sort());
});
