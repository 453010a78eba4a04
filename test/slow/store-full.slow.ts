// Full disks: the disk of the database, and the disk of a machine. Each is a small file system in memory, which only
// root may mount.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { createRow, revokeRow } from '../../src/callers/credentials/write/changes.ts';
import { updateRows } from '../../src/operate/store/update.ts';
import { startCluster } from '../support/postgres-cluster.ts';
import { noPostgres, openStore } from '../support/store-bench.ts';
import { issue, startMachine, until } from '../support/store-machines.ts';

function mountSmall(folder: string): void {
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m,mode=0777', 'tmpfs', folder], { stdio: 'pipe' });
}

const noMount = (() => {
  const folder = mkdtempSync(join(tmpdir(), 'gatefold-mount-'));
  try {
    mountSmall(folder);
    execFileSync('umount', [folder]);
    return false;
  } catch {
    return 'this user may not mount a file system';
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
})();

/** A folder on a disk of 4 MiB. */
function createSmallDisk(test: TestContext): { folder: string; fill(): void; free(): void } {
  const root = mkdtempSync(join(tmpdir(), 'gatefold-full-'));
  mountSmall(root);
  test.after(() => {
    execFileSync('umount', ['-l', root]);
    rmSync(root, { recursive: true, force: true });
  });
  const folder = join(root, 'folder');
  mkdirSync(folder, { mode: 0o700 });
  const filler = join(root, 'filler');
  return {
    folder,
    fill() {
      for (const size of [65_536, 4096])
        try {
          for (;;) writeFileSync(filler, Buffer.alloc(size), { flag: 'a' });
        } catch (error) {
          assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
        }
    },
    free: () => rmSync(filler),
  };
}

describe('a full disk', { skip: noPostgres || noMount }, () => {
  it('on the database: machines serve, writes are refused, and no confirmed write is lost', async (test) => {
    const disk = createSmallDisk(test);
    const cluster = await startCluster(0);
    test.after(() => cluster.close());
    const [server] = cluster.servers;
    const { uid, gid } = statSync(server?.folder ?? '');
    chownSync(disk.folder, uid, gid);
    await server?.sql(`create tablespace small location '${disk.folder}'`);
    const store = openStore(test, cluster.url());
    await store.init();
    await store.query('alter table gatefold.entry set tablespace small');
    const machine = await startMachine(test, cluster.url());
    const kept = await issue(machine.env);
    assert.equal(await machine.ask(kept.token), 200);
    disk.fill();

    const confirmed: string[] = [];
    let refusal = '';
    while (refusal === '') {
      const { row, token } = createRow({ name: 'n'.repeat(100), groups: '*' }, Date.now());
      const large = { ...row, own: Buffer.alloc(1500, token.token).toString() };
      await updateRows(store, [], (table) => table.append(large), 200).then(
        () => confirmed.push(token.token),
        (error: Error) => {
          refusal = error.message;
        },
      );
    }
    assert.match(refusal, /disk is full/);
    assert.equal((await machine.ready()).store.state, 'connected');
    assert.equal(await machine.ask(kept.token), 200);
    disk.free();
    const { id } = kept;
    await updateRows(store, [id], (table) => revokeRow(table, id, Date.now()));
    await until('the key is revoked', async () => (await machine.ask(kept.token)) === 401);
    for (const token of confirmed) assert.equal(await machine.ask(token), 200);
  });

  it('on a machine: it serves from its last copy, logs the error, and recovers once there is space', async (test) => {
    const disk = createSmallDisk(test);
    const cluster = await startCluster(0);
    test.after(() => cluster.close());
    await openStore(test, cluster.url()).init();
    const machine = await startMachine(test, cluster.url(), { env: { DATA_DIR: disk.folder } });
    const kept = await issue(machine.env);
    assert.equal(await machine.ask(kept.token), 200);
    const path = join(disk.folder, 'production.json');
    disk.fill();
    const { token } = await issue(machine.env);
    const { reason } = await machine.logged('store-away');
    assert.match(String(reason), /ENOSPC|no space/i);
    assert.equal(await machine.ask(kept.token), 200);
    assert.doesNotThrow(() => JSON.parse(readFileSync(path, 'utf8')));
    disk.free();
    await machine.logged('store-back');
    assert.deepEqual([await machine.ask(token), await machine.ask(kept.token)], [200, 200]);
  });
});
