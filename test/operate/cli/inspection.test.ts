// The process of an inspection: what it says about a folder that the commands ask about.
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { runCommand } from '../../../src/operate/cli/command.ts';
import { type Inspection, inspectFolder, type Job } from '../../../src/operate/cli/inspection.ts';
import { makeProject, runHere } from '../../support/command-bench.ts';

async function inspect(cwd: string, wanted: Partial<Job> = {}, env = {}): Promise<Inspection> {
  let inspection: Inspection | undefined;
  const run: Parameters<typeof runCommand>[0]['run'] = async ({ settings, io }) => {
    inspection = await inspectFolder(settings, io, wanted);
    return { json: null, text: '' };
  };
  const { err } = await runHere((argv, io) => runCommand({ name: 'x', about: 'X', run }, argv, io), [], { cwd, env });
  assert.equal(err, '');
  return inspection as Inspection;
}

test('an inspection lists groups with their operations, the fallback, the channels and the types', async (t: TestContext) => {
  const cwd = makeProject(t, {
    'controllers/service.ts': `import { channel, defineService, mount } from 'gatefold';
      channel('news');
      export default defineService({ strict: true, fallback: mount(() => new Response()) });`,
    'controllers/AController.ts': `export default class {
      static operations = { cut: { results: 'declared' } } as const;
      index(): { a: 1 } { return { a: 1 }; }
      cut(): { a: 1 } { return { a: 1 }; }
      untyped() {}
    }`,
    'controllers/BController.ts': `export default { 'GET {id}'(): string { return ''; } };`,
  });
  const { groups, service, channels, declarations } = await inspect(cwd, { wantsTypes: true }, { BASE_PATH: '/' });
  assert.deepEqual(
    groups.map(({ group, file, strict, operations }) => [
      ...[group, file, strict],
      operations.map(({ name, sendsAll }) => `${name} ${sendsAll}`).sort(),
    ]),
    [
      ['A', 'AController.ts', 'service', ['cut false', 'index true', 'untyped false']],
      ['B', 'BController.ts', 'routes', ['GET {id} true']],
      ['/*', 'service.ts', 'routes', ['ANY {path*} false']],
    ],
  );
  assert.deepEqual([service?.file, service?.ok, channels], ['service.ts', true, ['news']]);
  assert.match(declarations?.text ?? '', /\('https:\/\/api\.example\.com\/\.'\)/);
});

test('an inspection with a base path and a service file that sends declared fields alone says so', async (t) => {
  const cwd = makeProject(t, {
    'controllers/service.ts': `import { defineService } from 'gatefold';
      export default defineService({ results: 'declared' });`,
    'controllers/AController.ts': 'export default class { index(): { a: 1 } { return { a: 1 }; } }',
  });
  const { groups, declarations } = await inspect(cwd, { wantsTypes: true }, { BASE_PATH: '/v1' });
  assert.deepEqual([groups[0]?.strict, groups[0]?.operations.map(({ sendsAll }) => sendsAll)], [undefined, [false]]);
  assert.match(declarations?.text ?? '', /\('https:\/\/api\.example\.com\/v1'\)/);
});
