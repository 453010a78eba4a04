// The service under Node's permission model, with the flags of docs/OPERATING.md.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { SERVER, type ServiceOptions, startService } from '../../support/cluster-server.ts';
import { controller, createFolder, write } from '../../support/folder.ts';
import { makeKey, signByHand, startCountingServer } from '../../support/identity-tokens.ts';

const { allowedNodeEnvironmentFlags: flags } = process;
const [major = 0] = process.versions.node.split('.').map(Number);
const ROOT = dirname(dirname(SERVER));
const SERVICE_FILE = `import { defineService } from 'gatefold';
export default defineService({ background: { tick: { every: '1s', run: ({ log }) => log.info('a run') } } });`;

const skip = major < 22 && 'the permission model of Node 20 is an experiment';

/** Starts the service as docs/OPERATING.md says. Node 22 wants a star after each folder. */
async function startRestricted(test: TestContext, isDataWritable = true, other: ServiceOptions = {}) {
  const dir = createFolder(test, { 'TestController.js': controller(1), 'service.js': SERVICE_FILE, ...other.files });
  const data = join(dirname(dir), 'data');
  mkdirSync(data, { recursive: true });
  const key = makeKey('RS256');
  const provider = await startCountingServer(() => ({ keys: [key.jwk] }));
  test.after(() => provider.close());
  const row = {
    name: 'local',
    issuer: provider.url,
    jwks_uri: provider.url,
    client_ids: ['page'],
    registration: 'open',
  };
  writeFileSync(join(data, 'identity-providers.json'), JSON.stringify([row]));
  const options = [
    '--permission',
    '--allow-child-process',
    ...[ROOT, dirname(dir), '/proc'].map((folder) => `--allow-fs-read=${folder}/*`),
    ...(isDataWritable ? [`--allow-fs-write=${data}/*`] : []),
    ...(flags.has('--allow-net') ? ['--allow-net'] : []),
  ];
  const service = await startService(test, {
    ...other,
    dir,
    env: { NODE_OPTIONS: options.join(' '), ...other.env },
  });
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: provider.url, aud: 'page', sub: 'ada', iat: now, exp: now + 600 };
  const credential = signByHand(key, { alg: 'RS256', kid: 'RS256', typ: 'JWT' }, claims);
  const post = (page: string, body: object) =>
    fetch(`http://127.0.0.1:${service.port}/api/${page}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ credential, ...body }),
    });
  return { service, data, post };
}

test('the permission model takes nothing from the service but the sync of files', { skip }, async (t) => {
  const { service, data, post } = await startRestricted(t);
  const register = await post('register', { application: { name: 'Shop' } });
  assert.equal(register.status, 201, await register.text());
  assert.equal((await post('idp-signin', {})).status, 200);
  await service.logged('task-info');
  write(service.dir, 'TestController.js', controller(2));
  await service.logged('generation-serving', ({ generation }) => generation === 2);
  const names = readdirSync(data).filter((name) => !name.startsWith('.') && !name.endsWith('.lock'));
  const files = [
    'generation.json',
    'identity-providers.json',
    'production.json',
    'service-file.accepted',
    'session.key',
  ];
  assert.deepEqual(names.sort(), [...files, 'tasks.json']);
  assert.deepEqual(
    service.lines.filter(({ level }) => level === 'warn' || level === 'error'),
    [],
  );
});

test('without --allow-fs-write, the log names this flag', { skip }, async (t) => {
  const { service, post } = await startRestricted(t, false);
  assert.equal((await post('register', { application: { name: 'Shop' } })).status, 503);
  const flag = /Use --allow-fs-write/;
  assert.match(String((await service.logged('service-mark-not-kept')).reason), flag);
  assert.match(JSON.stringify(await service.logged('request-failed')), flag);
});

test('a worker ends and the service stops in a working folder that may not be read', { skip }, async (t) => {
  const files = { 'ExitController.js': 'export default { GET() { process.exit(3); } };' };
  const { service } = await startRestricted(t, true, { files, cwd: '/' });
  await fetch(`http://127.0.0.1:${service.port}/api/exit`).catch(() => {});
  assert.equal((await service.logged('worker-died')).reason, 'it ended the process with exit code 3');
  service.process.kill('SIGTERM');
  assert.equal((await service.exited).code, 0);
  assert.ok(!service.lines.some(({ event }) => event === 'supervisor-exception'));
});

test('a PUBLIC_DIR that may not be read ends the start with one line that names the flag', { skip }, async (t) => {
  const env = { PUBLIC_DIR: '/usr/share' };
  await assert.rejects(
    startRestricted(t, true, { env }),
    /PUBLIC_DIR: \/usr\/share cannot be served: .*--allow-fs-read/,
  );
});
