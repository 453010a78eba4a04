// docs/BACKUP.md: a dump of the store is restored with the commands of the page, under machines that serve, under one
// that is away, and into an empty database.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { without } from '../support/deploy-proxy.ts';
import { createFolder } from '../support/folder.ts';
import { noPostgres, startStore } from '../support/store-bench.ts';
import { issue, type Machine, run, startMachine, until } from '../support/store-machines.ts';

const PAGE = readFileSync(new URL('../../docs/BACKUP.md', import.meta.url), 'utf8');
const KEY = 'a key of the tests with 32 characters or more';
const env = { STORE_KEY: KEY, WORKERS: '1' };

/** Runs the only block of the page that contains a text, as an operator of this store. */
async function runBlock(shop: string, url: string, text: string): Promise<void> {
  const blocks = Array.from(PAGE.matchAll(/```sh\n([\s\S]*?)```/g), ([, block = '']) => block);
  const found = blocks.filter((block) => block.includes(text));
  assert.equal(found.length, 1, text);
  writeFileSync(join(shop, 'env'), `STORE=${url}\n`);
  const script = (found[0] as string).replaceAll('/srv/shop', shop).replaceAll('/var/backups', shop);
  await promisify(execFile)('sh', ['-ec', script]);
}

function createShop(t: TestContext): string {
  const shop = join(dirname(createFolder(t)), 'shop');
  mkdirSync(shop);
  return shop;
}

const events = ({ lines }: Machine) => lines.map(({ event }) => event);

async function change(machine: Machine, ...words: string[]): Promise<string> {
  const { code, out, err } = await run(machine.env, 'credentials', ...words, '--json');
  assert.equal(code, 0, err);
  return out;
}

describe('the commands of BACKUP.md for a store', {
  skip: noPostgres || without('pg_dump') || without('pg_restore') || without('psql'),
}, () => {
  test('restore a dump under machines that serve: no request is lost, and no revocation', async (t) => {
    const { url } = await startStore(t);
    const [one, two] = await Promise.all([startMachine(t, url, { env }), startMachine(t, url, { env })]);
    const [good, revoked, turned] = [await issue(one.env), await issue(one.env), await issue(one.env)];
    const shop = createShop(t);
    await runBlock(shop, url, 'pg_dump');
    const late = await issue(one.env);
    await change(one, 'revoke', revoked.id);
    const rotated = JSON.parse(await change(one, 'rotate', turned.id)) as { token: string };
    for (const machine of [one, two])
      await until('all changes are live', async () => (await machine.ask(revoked.token)) === 401);
    assert.equal(await two.ask(rotated.token), 200);

    const answers: number[] = [];
    let isDone = false;
    const load = (async () => {
      while (!isDone) answers.push(await one.ask(good.token), await two.ask(good.token), await two.ask(revoked.token));
    })();
    await runBlock(shop, url, 'pg_restore');
    for (const machine of [one, two]) {
      await until('the machine has read the restored store', () => events(machine).includes('store-history-changed'));
      await until('the late key is gone', async () => (await machine.ask(late.token)) === 401);
    }
    isDone = true;
    await load;
    assert.deepEqual(
      answers.filter((status, i) => status !== (i % 3 === 2 ? 401 : 200)),
      [],
    );
    for (const machine of [one, two]) {
      assert.ok(events(machine).includes('store-rows-missing'));
      assert.deepEqual(
        await Promise.all([revoked, turned, rotated].map(({ token }) => machine.ask(token))),
        [401, 401, 200],
      );
    }
    const rows = JSON.parse(await change(one, 'list')) as { id: string; state: string }[];
    assert.equal(rows.find(({ id }) => id === revoked.id)?.state, 'revoked', 'the store has the revocation again');
    const ready = await two.ready();
    assert.deepEqual([ready.http, ready.store.state], [200, 'connected']);
    const fresh = await issue(two.env);
    assert.deepEqual([await one.ask(fresh.token), await two.ask(fresh.token)], [200, 200]);
  });

  test('reach a machine that was away, although the store has as many changes again', async (t) => {
    const { url } = await startStore(t);
    const [one, two] = await Promise.all([startMachine(t, url, { env }), startMachine(t, url, { env })]);
    const shop = createShop(t);
    await runBlock(shop, url, 'pg_dump');
    const lost = await issue(one.env);
    assert.equal(await two.ask(lost.token), 200);
    two.process.kill('SIGTERM');
    await two.exited;
    await runBlock(shop, url, 'pg_restore');
    await until('the first machine has read the restored store', () => events(one).includes('store-history-changed'));
    const fresh = await issue(one.env);
    const again = await startMachine(t, url, { dir: String(two.env.CONTROLLERS_DIR), env });
    await until('the new key is live', async () => (await again.ask(fresh.token)) === 200);
    await until('the lost key is gone', async () => (await again.ask(lost.token)) === 401);
  });

  test('restore a dump into an empty database, session key included', async (t) => {
    const { url } = await startStore(t);
    const one = await startMachine(t, url, { env });
    const [good, revoked] = [await issue(one.env), await issue(one.env)];
    await change(one, 'revoke', revoked.id);
    const keyFile = ({ data }: Machine) => join(data, 'session.key');
    await until('the session key is shared', () => existsSync(keyFile(one)));
    const shop = createShop(t);
    await runBlock(shop, url, 'pg_dump');
    const empty = url.replace(/[^/]+$/, 'restored');
    await promisify(execFile)('psql', [url, '--command=create database restored']);
    await runBlock(shop, empty, 'pg_restore');
    const other = await startMachine(t, empty, { env });
    assert.deepEqual([await other.ask(good.token), await other.ask(revoked.token)], [200, 401]);
    await until('the session key has come', () => existsSync(keyFile(other)));
    assert.equal(readFileSync(keyFile(other), 'utf8'), readFileSync(keyFile(one), 'utf8'));
  });
});
