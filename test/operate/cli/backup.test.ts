// docs/BACKUP.md: its commands back up a service while it serves, and restore it. The test runs the blocks of the page.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { runGatefold } from '../../../src/operate/cli/commands.ts';
import { serviceScript } from '../../../src/operate/cli/deploy/setup.ts';
import { createFolder, type Service, startService } from '../../support/cluster-server.ts';
import { runHere } from '../../support/command-bench.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const PAGE = readFileSync(join(ROOT, 'docs/BACKUP.md'), 'utf8');
const CONTROLLER =
  "export default class { static operations = { index: { access: 'application' } }; index() { return {}; } }";

/** Returns the block of shell commands that contains a text. */
function block(text: string): string {
  const found = Array.from(PAGE.matchAll(/```sh\n([\s\S]*?)```/g), ([, script = '']) => script).filter((script) =>
    script.includes(text),
  );
  assert.equal(found.length, 1, text);
  return found[0] as string;
}

/** A folder as `gatefold deploy` makes it, as far as the page names it. */
async function startShop(t: TestContext) {
  const dir = createFolder(t, { 'OrderController.mjs': CONTROLLER, 'service.mjs': SERVICE });
  const shop = dirname(dir);
  const data = join(shop, 'data');
  const backups = join(shop, 'backups');
  for (const folder of ['current', 'runtime/current', 'backups', 'data'])
    mkdirSync(join(shop, folder), { recursive: true });
  symlinkSync(dir, join(shop, 'current/controllers'));
  symlinkSync(join(ROOT, 'dist'), join(shop, 'runtime/current/dist'));
  writeFileSync(join(shop, 'env'), 'PORT=3000\n');
  writeFileSync(join(shop, 'gatefold'), serviceScript('cli', shop, 'controllers', process.execPath), { mode: 0o755 });
  writeFileSync(join(data, 'session.key'), 'k'.repeat(64), { mode: 0o600 });
  const cli = async (...words: string[]) => {
    const env = { DATA_DIR: data, CONTROLLERS_DIR: dir };
    const { code, out, err } = await runHere(runGatefold, words, { cwd: shop, env });
    assert.equal(code, 0, err);
    return out;
  };
  let service: Service | undefined;
  const start = async () => {
    service = await startService(t, { dir, env: { WORKERS: '1', LOG_LEVEL: 'warn' } });
  };
  const stop = async () => {
    service?.process.kill('SIGTERM');
    await service?.exited;
  };
  await start();
  return {
    shop,
    data,
    start,
    stop,
    issue: async (name: string) =>
      JSON.parse(await cli('credentials', 'issue', '--name', name, '--groups', '*', '--json')) as Issued,
    cli,
    /** Runs commands of the page in the folders of this test. */
    async run(script: string): Promise<string> {
      const archive = readdirSync(backups).find((name) => name.endsWith('.tar.gz')) ?? '';
      const commands = script
        .replaceAll('/tmp/', `${backups}/`)
        .replaceAll('/srv/shop', shop)
        .replaceAll(/\/var\/backups\/shop-2026\w+\.tar\.gz/g, join(backups, archive))
        .replaceAll('/var/backups', backups);
      return (await promisify(execFile)('sh', ['-ec', commands], { encoding: 'utf8' })).stdout;
    },
    async ask(token: string): Promise<number> {
      const headers = { authorization: `Bearer ${token}`, connection: 'close' };
      return (await fetch(`http://127.0.0.1:${service?.port}/api/order`, { headers })).status;
    },
  };
}

const SERVICE = `import { defineService } from ${JSON.stringify(join(ROOT, 'dist/controller.js'))};
export default defineService({ access: 'application' });`;

interface Issued {
  readonly id: string;
  readonly token: string;
}

test('the commands of BACKUP.md restore keys, session key and the mark of the service file, or the table alone', async (t) => {
  const shop = await startShop(t);
  const kept = await shop.issue('kept');
  const revoked = await shop.issue('revoked');
  await shop.cli('credentials', 'revoke', revoked.id);
  assert.deepEqual([await shop.ask(kept.token), await shop.ask(revoked.token)], [200, 401]);
  await shop.run(block('tar -czf'));
  const late = await shop.issue('late');
  await shop.cli('credentials', 'revoke', kept.id);
  for (const token of [late.token, kept.token])
    for (; (await shop.ask(token)) !== (token === late.token ? 200 : 401); );
  const names = readdirSync(shop.data).filter((name) => !/\.lock$|^\..*\.tmp$/.test(name));
  assert.ok(names.includes('service-file.accepted'));

  const [before = '', after = ''] = block('mv data data.before')
    .split(/systemctl (?:stop shop\.socket|start) shop\.service\n/)
    .slice(1);
  assert.equal(after, '');
  await shop.stop();
  await shop.run(before);
  const restored = readdirSync(shop.data);
  assert.deepEqual(
    names.filter((name) => !restored.includes(name)),
    [],
  );
  assert.equal(readFileSync(join(shop.data, 'session.key'), 'utf8'), 'k'.repeat(64));
  assert.equal(statSync(join(shop.data, 'session.key')).mode & 0o777, 0o600);
  await shop.start();
  // The page says so: what came after the backup is undone, and must be done again.
  assert.deepEqual(
    [await shop.ask(kept.token), await shop.ask(revoked.token), await shop.ask(late.token)],
    [200, 401, 401],
  );
  const difference = await shop.run(`${block('| diff - ').trim()} || true`);
  assert.match(difference, new RegExp(kept.id));
  assert.match(difference, new RegExp(late.id));
  assert.doesNotMatch(difference, new RegExp(revoked.id));
  // The table alone, while the service runs.
  writeFileSync(join(shop.data, 'production.json'), '{"production":[]}');
  for (; (await shop.ask(kept.token)) !== 401; );
  await shop.run(block('mv restored/data/production.json'));
  for (; (await shop.ask(kept.token)) !== 200; );
  assert.equal(existsSync(join(shop.shop, 'restored')), false);
});
