// The lock that is a folder: living holders, dead holders, holders of another machine.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { acquireLock, isDead, processName } from '../../src/base/folder-lock.ts';
import { isAlive } from '../../src/base/system.ts';
import { createFolder } from '../support/credentials-bench.ts';

test('acquireLock waits for a living holder up to a limit, then names the holder', async (t) => {
  const path = join(createFolder(t), 'x.lock');
  const lock = await acquireLock(path);
  assert.equal(await lock.isHeld(), true);
  await assert.rejects(acquireLock(path, { waitMs: 30 }), {
    message: `Cannot lock ${path}: process ${process.pid} has held it for 0.03 s`,
  });
  assert.equal(readdirSync(dirname(path)).length, 1);
  const second = acquireLock(path);
  await lock.release();
  assert.equal(await (await second).isHeld(), true);
  assert.equal(await lock.isHeld(), false);
  await (await second).release();
  assert.deepEqual(readdirSync(dirname(path)), []);
});

/** Leaves a lock like a process that ended while it held the lock. */
function leaveLock(path: string, holder: string): void {
  mkdirSync(path);
  writeFileSync(join(path, holder), '');
}

async function ownName(folder: string): Promise<string[]> {
  const lock = await acquireLock(join(folder, 'own'));
  await lock.release();
  return lock.holder.split('-');
}

test('acquireLock fails at once when its path is a file, and leaves no draft', async (t) => {
  const folder = createFolder(t);
  const path = join(folder, 'lock');
  writeFileSync(path, '');
  await assert.rejects(acquireLock(path), { code: 'ENOTDIR' });
  assert.deepEqual(readdirSync(folder), ['lock']);
});

test('acquireLock breaks the lock of a dead process, and an overdue lock of another machine', async (t) => {
  const folder = createFolder(t);
  const [pid = '', started = '', machine = ''] = await ownName(folder);
  const gone = spawnSync(process.execPath, ['-e', '']).pid;
  const rows: [string, string, boolean][] = [
    ['a dead process', `${gone}-${started}-${machine}-ab`, true],
    ['a process id that was reused', `${pid}-1-${machine}-ab`, true],
    ['a living process', `${pid}-${started}-${machine}-ab`, false],
    ['another machine', `${pid}-${started}-0123456789abcdef-ab`, false],
    ['a name of another format', 'x', false],
  ];
  for (const [name, holder, dead] of rows) {
    const path = join(folder, `${holder}.lock`);
    leaveLock(path, holder);
    assert.equal(isDead(holder, false), dead, name);
    if (dead) await (await acquireLock(path, { waitMs: 100 })).release();
    else await assert.rejects(acquireLock(path, { waitMs: 20 }), /has held it/, name);
  }
  const path = join(folder, 'overdue.lock');
  leaveLock(path, `1-1-0123456789abcdef-ab`);
  await (await acquireLock(path, { unseenHolderMs: 30 })).release();
  assert.equal(existsSync(path), false);
});

test('acquireLock never returns two holders when many callers break one dead lock', async (t) => {
  const path = join(createFolder(t), 'x.lock');
  for (let round = 0; round < 20; round++) {
    leaveLock(path, `${2 ** 22 + 1}-1-${(await ownName(dirname(path)))[2]}-ab`);
    let holders = 0;
    await Promise.all(
      Array.from({ length: 6 }, async () => {
        const lock = await acquireLock(path);
        assert.equal(++holders, 1);
        await new Promise(setImmediate);
        assert.equal(await lock.isHeld(), true);
        holders--;
        await lock.release();
      }),
    );
  }
});

test('acquireLock takes over an empty lock folder that a dead holder left', async (t) => {
  const path = join(createFolder(t), 'x.lock');
  mkdirSync(path);
  await (await acquireLock(path, { waitMs: 100 })).release();
});

test('acquireLock breaks a lock that its own process could not release, and no lock that it still holds', async (t) => {
  const folder = join(createFolder(t), 'data');
  mkdirSync(folder);
  const path = join(folder, 'x.lock');
  const locks = [await acquireLock(path), await acquireLock(`${path}2`)];
  // The disk is away while the locks are released: a path is missing, or something else is in its place.
  renameSync(folder, `${folder}.away`);
  await locks[0]?.release();
  writeFileSync(folder, '');
  await assert.rejects(async () => locks[1]?.release(), { code: 'ENOTDIR' });
  rmSync(folder);
  renameSync(`${folder}.away`, folder);
  await (await acquireLock(`${path}2`, { waitMs: 100 })).release();
  const next = await acquireLock(path, { waitMs: 100 });
  await assert.rejects(acquireLock(path, { waitMs: 30 }), /has held it for 0\.03 s$/);
  await next.release();
  assert.deepEqual(readdirSync(folder), []);
});

// In a container, the first process often waits for no other.
test('a holder that has ended is dead, also when its parent does not wait for it', async (t) => {
  if (process.platform !== 'linux') return t.skip('only Linux has such processes in /proc');
  const parent = spawn('sh', ['-c', 'sleep 1000 & echo $!; exec sleep 1000'], { stdio: ['ignore', 'pipe', 'ignore'] });
  t.after(() => parent.kill('SIGKILL'));
  const [pid] = (await once(parent.stdout, 'data')) as [Buffer];
  const holder = processName(Number(pid));
  assert.equal(isDead(holder, false), false);
  process.kill(Number(pid), 'SIGKILL');
  for (const end = Date.now() + 60_000; !isDead(holder, false) && Date.now() < end; ) await sleep(5);
  assert.equal(isDead(holder, false), true);
});

test('the name of a process has its id, its start and its machine', (t) => {
  if (process.platform !== 'linux') return t.skip('only Linux has /proc');
  // The name of the command is in brackets, and is `node` here.
  const start = readFileSync('/proc/self/stat', 'utf8').split(' ')[21];
  const [pid, named, machine, ...others] = processName().split('-');
  assert.deepEqual([pid, named, others], [String(process.pid), start, []]);
  assert.match(String(machine), /^[0-9a-f]{8}_\w+_pid__\d+_$/);
});

// Where /proc hides the processes of other users, only a signal shows whether a holder runs.
test('a process that this user may not signal is alive, and one that has ended is not', (t) => {
  for (const [code, alive] of [
    ['EPERM', true],
    ['ESRCH', false],
  ] as const) {
    t.mock.method(process, 'kill', () => {
      throw Object.assign(new Error(code), { code });
    });
    assert.equal(isAlive(1), alive, code);
  }
});
