// npm replaces the package of a service that runs: its files vanish for seconds, and then they are another version.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createFolder, SERVER, startService, write } from '../../support/cluster-server.ts';
import { freePorts } from '../../support/ports.ts';

/** Whether this Node removes types by itself. */
const STRIPS = Boolean(process.features.typescript);
const MOUNT = `import { mount } from 'gatefold';
export default mount.node((request, response) => response.end('"mounted"'));
`;
const EVENTS = `import { channel } from 'gatefold';
const events = channel('events');
export default class { async 'POST'() { return { id: await events.publish(1) }; } }
`;

/** Starts the service from a copy of the package, as npm installs it. */
async function startInstalled(t: TestContext, files: Readonly<Record<string, string>>) {
  const dir = createFolder(t, files);
  const folder = join(dirname(dir), 'node_modules/gatefold');
  mkdirSync(folder, { recursive: true });
  const root = dirname(dirname(SERVER));
  cpSync(dirname(SERVER), join(folder, 'dist'), { recursive: true, filter: (path) => !path.endsWith('.map') });
  const manifest = readFileSync(join(root, 'package.json'), 'utf8');
  writeFileSync(join(folder, 'package.json'), manifest);
  const [opsPort] = await freePorts(1);
  const env = { WORKERS: '1', OPS_PORT: String(opsPort) };
  const service = await startService(t, { dir, server: join(folder, 'dist/server.js'), env });
  return { service, dir, folder, manifest, opsPort };
}

test('a mount, a channel and the metrics that are used for the first time during npm ci answer', async (t) => {
  const { service, folder, opsPort } = await startInstalled(t, {
    'MountController.mjs': MOUNT,
    'EventController.mjs': EVENTS,
  });
  renameSync(folder, `${folder}-away`);
  const statusOf = async (path: string, method: string, port: number | undefined = service.port) =>
    (await fetch(`http://127.0.0.1:${port}${path}`, { method, signal: AbortSignal.timeout(20_000) })).status;
  const mounted = await statusOf('/api/mount', 'GET');
  const published = await statusOf('/api/event', 'POST');
  const scraped = await statusOf('/metrics', 'GET', opsPort);
  renameSync(`${folder}-away`, folder);
  assert.deepEqual([mounted, published, scraped], [200, 200, 200], service.errors());
});

test('an edit during npm ci says what is missing, and is live when the package is there again', async (t) => {
  const { service, dir, folder } = await startInstalled(t, { 'MountController.mjs': MOUNT });
  renameSync(folder, `${folder}-away`);
  write(dir, 'MountController.mjs', `${MOUNT}// edited\n`);
  const { error } = await service.logged('generation-rejected');
  assert.match(String(error), /^Cannot start a worker: \S+\/gatefold\/dist\/worker\.js is missing: /);
  assert.doesNotMatch(service.errors(), /Cannot find module/, 'no process starts that only prints a stack');
  renameSync(`${folder}-away`, folder);
  const { cause } = await service.logged('generation-serving', ({ generation }) => Number(generation) > 1);
  assert.match(String(cause), /\/gatefold\/dist$/, 'the edit waits for the package, and not for a retry');
});

test('tasks that an edit brings run in a service whose package was replaced', async (t) => {
  const { service, dir, folder } = await startInstalled(t, { 'MountController.mjs': MOUNT });
  // The parts of another version have other names.
  for (const name of readdirSync(join(folder, 'dist')))
    if (/^(?:runner|lease)-/.test(name)) rmSync(join(folder, 'dist', name));
  write(
    dir,
    'service.mjs',
    `import { defineService } from 'gatefold';
    export default defineService({ background: { soon: { every: '1s', run: ({ log }) => log.info('ran') } } });`,
  );
  await service.logged('task-info');
});

test('another version in the place of the one that runs is logged, with its cure', async (t) => {
  const { service, folder, manifest } = await startInstalled(t, { 'MountController.mjs': MOUNT });
  const { version: running } = JSON.parse(manifest);
  renameSync(folder, `${folder}-away`);
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{ "version"');
  writeFileSync(join(folder, 'package.json'), manifest.replace(`"version": "${running}"`, '"version": "99.0.0"'));
  const { to_do: cure, ...facts } = await service.logged('package-version-differs');
  assert.deepEqual([facts.folder, facts.version, facts.running], [folder, '99.0.0', running]);
  assert.match(String(cure), /^restart the service/);
});

test('TypeScript loads as soon as tsx is there', { skip: STRIPS && 'this Node needs no tsx' }, async (t) => {
  const { service, folder } = await startInstalled(t, {
    'TypedController.ts': 'export default class { index() {} }\n',
  });
  await service.logged('group-not-loadable');
  for (const name of ['@esbuild', 'esbuild', 'tsx'])
    symlinkSync(join(dirname(dirname(SERVER)), 'node_modules', name), join(dirname(folder), name));
  const { cause } = await service.logged('generation-serving', ({ generation }) => Number(generation) > 1);
  assert.match(String(cause), /\/node_modules\/tsx$/, 'the group waits for tsx, and not for a retry');
  const { status } = await fetch(`http://127.0.0.1:${service.port}/api/typed`);
  assert.equal(status, 200, service.errors());
});
