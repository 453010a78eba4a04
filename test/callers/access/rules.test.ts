// Code that comes between two generations serves only together with the rules that came with it: the service file, the
// base classes, the release.
import assert from 'node:assert/strict';
import { existsSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { createFolder, type Service, spawnService, startService, write } from '../../support/cluster-server.ts';

const GATEFOLD = pathToFileURL(resolve(import.meta.dirname, '../../../dist/controller.js')).href;
const rules = (options: string) =>
  `import { defineService } from '${GATEFOLD}';\nexport default defineService({ ${options} });\n`;
const USERS = "access: 'user', authenticate: () => undefined";
const open = (value: string) => `export default class { created() { return { ran: '${value}' }; } }\n`;
const BROKEN = 'export default class {';
const GUARD = `_before() { throw Object.assign(new Error(), { guarded: true }); }`;
const base = (body = '') => `export class Base { ${body} }\n`;
const GUARDED =
  "import { Base } from '../lib/base.mjs';\nexport default class extends Base { created() { return { ran: 'guarded' }; } }\n";

async function post({ port }: Pick<Service, 'port'>, group: string) {
  const init = { method: 'POST', headers: { connection: 'close' } };
  const response = await fetch(`http://127.0.0.1:${port}/api/${group}`, init);
  const body = (await response.json()) as { error_code?: string; ran?: string };
  return { code: body.error_code ?? body.ran, retryAfter: response.headers.get('retry-after') };
}

/** Asks until the answer is `last`. @returns the other codes, each once */
async function codesUntil(service: Service, group: string, last: string): Promise<(string | undefined)[]> {
  const codes = new Set<string | undefined>();
  const deadline = Date.now() + service.patience();
  for (;;) {
    const { code, retryAfter } = await post(service, group);
    if (code === last) return [...codes];
    assert.equal(retryAfter, code === 'GROUP_LOADING' ? '1' : null);
    codes.add(code);
    await sleep(25);
    assert.ok(Date.now() < deadline, `no ${last}: ${[...codes]}`);
  }
}

/** The codes with which a new group is refused until its generation serves. */
function assertRefused(codes: readonly (string | undefined)[], ...others: string[]): void {
  const allowed = ['GROUP_LOADING', ...others];
  assert.deepEqual(
    codes.filter((code) => !allowed.includes(String(code))),
    [],
  );
}

describe('a new controller', () => {
  it('has the guard that its base class got before it, and the rules that were written before it', async (t) => {
    const files = { '../lib/base.mjs': base(), 'AController.mjs': GUARDED };
    const service = await startService(t, { files, env: { WORKERS: '1' } });
    write(service.dir, '../lib/base.mjs', base(GUARD));
    write(service.dir, 'NewController.mjs', GUARDED);
    assertRefused(await codesUntil(service, 'new', 'INTERNAL_ERROR'));
    write(service.dir, 'service.mjs', rules(USERS));
    write(service.dir, 'NewerController.mjs', open('newer'));
    assertRefused(await codesUntil(service, 'newer', 'USER_REQUIRED'));
  });

  it('does not serve while its release is rejected, and is gone with it', async (t) => {
    const dir = createFolder(t, { '1/AController.mjs': open('a'), '1/lib/base.mjs': base() });
    for (const [name, text] of [
      ['service.mjs', rules(USERS)],
      ['NewController.mjs', open('new')],
      ['AController.mjs', BROKEN],
    ] as const)
      write(dir, `2/${name}`, text);
    const link = join(dir, 'current');
    const swapTo = (release: string) => {
      symlinkSync(release, `${link}.next`);
      renameSync(`${link}.next`, link);
    };
    swapTo('1');
    const service = await startService(t, { dir: link, env: { WORKERS: '1' } });
    swapTo('2');
    assertRefused(await codesUntil(service, 'new', 'GROUP_NOT_LOADABLE'));
    await service.logged('generation-rejected');
    for (let count = 0; count < 5; count++) assert.equal((await post(service, 'new')).code, 'GROUP_NOT_LOADABLE');
    assert.equal((await post(service, 'a')).code, 'a', 'what was accepted serves on');
    swapTo('1');
    assertRefused(await codesUntil(service, 'new', 'GROUP_NOT_FOUND'), 'GROUP_NOT_LOADABLE');
  });

  it('answers its first request beside a group that does not load', async (t) => {
    const files = { 'AController.mjs': open('a'), 'BadController.mjs': BROKEN };
    const service = await startService(t, { files, env: { WORKERS: '1' } });
    write(service.dir, 'NewController.mjs', open('new'));
    assert.equal((await post(service, 'new')).code, 'new');
  });
});

it('a generation whose files changed during its load does not serve', async (t) => {
  const files = { 'service.mjs': rules(''), 'AController.mjs': open('a1'), 'BController.mjs': open('b1') };
  const service = await startService(t, { files, env: { WORKERS: '1' } });
  const [begun, gate] = ['begun', 'gate'].map((name) => join(dirname(service.dir), name)) as [string, string];
  const waits = `import { existsSync, writeFileSync } from 'node:fs';
writeFileSync(${JSON.stringify(begun)}, '');
while (!existsSync(${JSON.stringify(gate)})) await new Promise((resolve) => setTimeout(resolve, 5));
`;
  write(service.dir, 'AController.mjs', waits + open('a2'));
  while (!existsSync(begun)) await sleep(5);
  // The worker has loaded the old rules, and has not read the other controller.
  write(service.dir, 'service.mjs', rules(USERS));
  write(service.dir, 'BController.mjs', open('b2'));
  writeFileSync(gate, '');
  assertRefused(await codesUntil(service, 'b', 'USER_REQUIRED'), 'b1');
});

describe('a service that has had a service file', () => {
  it('serves nothing without the file, after a restart too, until the operator says so', async (t) => {
    const env = { WORKERS: '1' };
    const dir = createFolder(t, { 'AController.mjs': open('a'), 'service.mjs': rules(USERS) });
    const first = await startService(t, { dir, env });
    assert.equal((await post(first, 'a')).code, 'USER_REQUIRED');
    first.process.kill('SIGTERM');
    await first.exited;

    rmSync(join(dir, 'service.mjs'));
    const second = await startService(t, { dir, env });
    assert.equal((await post(second, 'a')).code, 'SERVICE_NOT_LOADABLE');
    const { error } = await second.logged('service-not-loadable');
    assert.match(String(error), /put it back; .* defineService\(\{\}\) .* --without-service-file$/);
    second.process.kill('SIGTERM');
    await second.exited;

    const third = await startService(t, { dir, flags: ['--without-service-file'], env });
    assert.equal((await post(third, 'a')).code, 'a');
    write(dir, 'service.mjs', rules(USERS));
    await codesUntil(third, 'a', 'USER_REQUIRED');
    third.process.kill('SIGTERM');
    await third.exited;

    const fourth = spawnService(t, { dir, flags: ['--without-service-file'], env });
    assert.equal((await fourth.exited).code, 1);
    assert.match(fourth.errors(), /--without-service-file: .*service\.mjs exists: remove the file or the flag\n$/);
  });

  it('logs a file that sets rules under another name as soon as it is there', async (t) => {
    const service = await startService(t, { files: { 'AController.mjs': open('a') }, env: { WORKERS: '1' } });
    write(service.dir, 'services.mjs', rules(USERS).replace(GATEFOLD, 'gatefold'));
    assert.equal((await service.logged('service-not-loadable')).file, 'services.mjs');
    await codesUntil(service, 'a', 'SERVICE_NOT_LOADABLE');
    rmSync(join(service.dir, 'services.mjs'));
    await codesUntil(service, 'a', 'a');
  });

  it('serves nothing without the file when all workers have died, also where DATA_DIR cannot keep the mark', async (t) => {
    const files = { 'AController.mjs': open('a'), 'service.mjs': rules(USERS) };
    const isLinux = process.platform === 'linux';
    const service = await startService(t, {
      files,
      env: { WORKERS: '1', ...(isLinux && { DATA_DIR: '/proc/gatefold' }) },
    });
    if (isLinux) assert.equal((await service.logged('service-mark-not-kept')).level, 'warn');
    const { pid } = await service.logged('credentials-loaded');
    rmSync(join(service.dir, 'service.mjs'));
    await service.logged('generation-rejected');
    process.kill(Number(pid), 'SIGKILL');
    await service.logged('service-not-loadable');
    await codesUntil(service, 'a', 'SERVICE_NOT_LOADABLE');
  });
});
