// Code that comes between two generations serves only under the rules that it was accepted with
// (live/supervisor/may-serve.ts). Each test makes the folder differ from what the workers have loaded in a way that no
// file shows by itself.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, ask, json } from '../support/cluster-client.ts';
import { type Service, startService } from '../support/cluster-server.ts';
import { controller, createFolder, write } from '../support/folder.ts';

describe('a replacement', { concurrency: 4 }, () => {
  it('serves no file of a release that was not accepted', async (test) => {
    const root = dirname(createFolder(test));
    const gate = join(root, 'gate');
    // A replacement waits here, in the middle of its load, until the link leads to the second release.
    const gated = `import { existsSync, writeFileSync } from 'node:fs';
if (existsSync('${gate}.armed')) writeFileSync('${gate}.begun', '');
while (existsSync('${gate}.armed')) await new Promise((resolve) => setTimeout(resolve, 5));`;
    for (const release of ['one', 'two']) {
      mkdirSync(join(root, release));
      write(join(root, release), 'SteadyController.js', controller(release));
    }
    // The second release is rejected, because a group that serves does not load.
    write(join(root, 'one'), 'BrokenController.js', controller('one', gated));
    write(join(root, 'two'), 'BrokenController.js', 'export default');
    const dir = join(root, 'current');
    symlinkSync('one', dir);
    const service = await startService(test, { dir });
    const { pid } = json(await ask(service.port, '/api/steady'));
    writeFileSync(`${gate}.armed`, '');
    process.kill(Number(pid), 'SIGKILL');
    while (!existsSync(`${gate}.begun`)) await sleep(2);
    point(dir, 'two');
    rmSync(`${gate}.armed`);
    await service.logged('generation-rejected');
    for (let count = 0; count < 40; count++) {
      const answer = await ask(service.port, '/api/steady').catch(() => undefined);
      if (answer !== undefined) assert.equal(json(answer).value, 'one');
    }
  });

  it('does not serve while a file sets rules that nothing applies', async (test) => {
    const service = await startService(test, { files: { 'SteadyController.js': controller('steady') } });
    const { pid } = json(await ask(service.port, '/api/steady'));
    write(service.dir, 'services.js', `import { defineService } from 'gatefold';\nexport default defineService({});`);
    process.kill(Number(pid), 'SIGKILL');
    // Either the replacement loads first and is rejected, or a generation does, and answers 500. On a slow machine, both
    // come in any order. The worker that is left serves until then.
    const pids = new Set<unknown>();
    for (let status = 200; status !== 500; ) {
      const answer = await ask(service.port, '/api/steady').catch(() => undefined);
      if (answer === undefined) continue;
      ({ status } = answer);
      if (status === 200) pids.add(json(answer).pid);
      else assert.equal(json(answer).error_code, 'SERVICE_NOT_LOADABLE', answer.body);
    }
    pids.delete(pid);
    assert.ok(pids.size <= 1, `the workers ${[...pids].join(' and ')} serve beside ${pid}`);
    assert.ok(!service.lines.some(({ event }) => event === 'worker-replaced'));
  });
});

describe('a new file', { concurrency: 4 }, () => {
  it('waits for a generation when a link outside of the folder leads to other code', async (test) => {
    const { dir, root } = site(test);
    for (const version of ['one', 'two']) {
      mkdirSync(join(root, version));
      writeFileSync(join(root, version, 'rules.js'), `export const rules = '${version}';`);
    }
    symlinkSync('one', join(root, 'lib'));
    write(dir, 'OldController.js', importing('../lib/rules.js'));
    const service = await startService(test, { dir });
    point(join(root, 'lib'), 'two');
    write(dir, 'NewController.js', importing('../lib/rules.js'));
    await answersAfterGeneration(service, '/api/new', 'two');
  });

  it('waits for a generation when package.json leads to other code', async (test) => {
    const { dir, root } = site(test);
    const lead = (file: string) =>
      writeFileSync(join(root, 'package.json'), JSON.stringify({ type: 'module', imports: { '#rules': file } }));
    for (const version of ['one', 'two'])
      writeFileSync(join(root, `${version}.js`), `export const rules = '${version}';`);
    lead('./one.js');
    write(dir, 'OldController.js', importing('#rules'));
    const service = await startService(test, { dir });
    lead('./two.js');
    write(dir, 'NewController.js', importing('#rules'));
    await answersAfterGeneration(service, '/api/new', 'two');
  });

  it('that is a link serves one target on all workers, also when the link changes at its import', async (test) => {
    const { dir, root } = site(test);
    write(dir, 'OldController.js', controller('old'));
    const service = await startService(test, { dir });
    const path = join(dir, 'NewController.js');
    const swap = `import { renameSync } from 'node:fs'; renameSync('${path}.next', '${path}');`;
    writeFileSync(join(root, 'one.js'), controller('one', swap));
    writeFileSync(join(root, 'two.js'), controller('two'));
    symlinkSync('../two.js', `${path}.next`);
    symlinkSync('../one.js', path);
    await answersAfterGeneration(service, '/api/new', 'two');
  });

  it('that is not written whole answers as soon as it is, without a generation', async (test) => {
    const service = await startService(test, { files: { 'OldController.js': controller('old') } });
    const whole = controller('whole');
    write(service.dir, 'NewController.js', whole.slice(0, whole.length / 2));
    const first = ask(service.port, '/api/new');
    await sleep(100);
    write(service.dir, 'NewController.js', whole);
    // On a machine that stalls here, the first request ends before the file is whole.
    const { status } = await first;
    assert.ok(status === 200 || status === 500, `the first request has the status ${status}`);
    assert.equal(json(await ask(service.port, '/api/new')).value, 'whole');
    assert.deepEqual(
      service.lines.filter(({ event }) => event === 'generation-serving').map(({ generation }) => generation),
      [1],
    );
  });
});

function site(test: TestContext): { readonly dir: string; readonly root: string } {
  const dir = createFolder(test);
  return { dir, root: dirname(dir) };
}

/** Swaps a symbolic link as a deployment does: there is no moment without a link. */
function point(link: string, target: string): void {
  symlinkSync(target, `${link}.next`);
  renameSync(`${link}.next`, link);
}

/** The source of a controller whose answer is the value that a file of rules exports. */
function importing(specifier: string): string {
  return controller('unused', `import { rules } from '${specifier}';`).replace(/'unused'|"unused"/, 'rules');
}

/** Asks until a group answers, and requires that a new generation serves it with this value on every worker. */
async function answersAfterGeneration(service: Service, path: string, value: string): Promise<void> {
  let answer: Answer = await ask(service.port, path);
  while (answer.status === 503) answer = await ask(service.port, path);
  assert.equal(answer.status, 200, answer.body);
  assert.equal(json(answer).value, value, service.errors());
  for (let count = 0; count < 20; count++) assert.equal(json(await ask(service.port, path)).value, value);
  await service.logged('generation-serving', ({ generation }) => generation === 2);
}
