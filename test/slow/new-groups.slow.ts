// A group that is added while the service runs. After its first answer, it serves on every worker and in every
// generation, even if its file breaks just afterwards.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { ask, json } from '../support/cluster-client.ts';
import { type Service, startService } from '../support/cluster-server.ts';
import { controller, write } from '../support/folder.ts';

describe('a group added to a running service', () => {
  it('is imported by every worker before its first answer', async (test) => {
    const service = await startService(test, { files: { 'SteadyController.js': controller('steady') } });
    const state = stateOf(service, 'new');
    // The first worker imports the file at once. Each other worker first waits, and reads the state only then.
    write(
      service.dir,
      'NewController.js',
      fickle(state, 'if (had > 0) await new Promise((resolve) => setTimeout(resolve, 300));'),
    );
    assert.equal((await ask(service.port, '/api/new')).status, 200);
    writeFileSync(state, 'broken');
    await answersOnly200(service, '/api/new', 40);
  });

  it('answers although another worker cannot import it, and answers on all workers after a repair', async (test) => {
    const service = await startService(test, { files: { 'SteadyController.js': controller('steady') } });
    const state = stateOf(service, 'half');
    write(service.dir, 'HalfController.js', fickle(state, `if (had > 0) throw new Error('no second time');`));
    assert.equal((await ask(service.port, '/api/half')).status, 200);
    await service.logged('group-not-loadable', ({ file }) => file === 'HalfController.js');
    write(service.dir, 'HalfController.js', controller('mended'));
    for (let run = 0; run < 12; ) {
      const answer = await ask(service.port, '/api/half');
      run = answer.status === 200 && json(answer).value === 'mended' ? run + 1 : 0;
    }
  });

  it('keeps serving when its import breaks right after its first answer', async (test) => {
    const service = await startService(test, { files: { 'SteadyController.js': controller('steady') } });
    for (let round = 0; round < 12; round++) {
      const name = `Brief${round}`;
      const state = stateOf(service, name);
      write(service.dir, `${name}Controller.js`, fickle(state));
      // The removal in the round before makes a generation. Until it serves, a new group is 503.
      let { status } = await ask(service.port, `/api/${name}`);
      while (status === 503) ({ status } = await ask(service.port, `/api/${name}`));
      assert.equal(status, 200, name);
      writeFileSync(state, 'broken');
      await answersOnly200(service, `/api/${name}`, 8);
      // The removal of a file starts a new generation.
      rmSync(join(service.dir, `${name}Controller.js`));
    }
    await service.logged('generation-serving', ({ generation }) => Number(generation) > 1);
  });

  it('keeps serving when the folder is removed during the load of a generation', async (test) => {
    const names = ['A', 'B', 'C', 'D', 'E', 'F'];
    const files = Object.fromEntries(names.map((name) => [`${name}Controller.js`, controller(name)]));
    const service = await startService(test, { files });
    const gate = join(dirname(service.dir), 'gate');
    // Each file waits for the gate. So the folder is removed in the middle of the load, whichever file is loaded first.
    const gated = `import { appendFileSync, existsSync } from 'node:fs';
appendFileSync(${JSON.stringify(`${gate}.begun`)}, '.');
while (!existsSync(${JSON.stringify(gate)})) await new Promise((resolve) => setTimeout(resolve, 10));
`;
    writeFileSync(`${gate}.begun`, '');
    for (const name of names) write(service.dir, `${name}Controller.js`, controller(`${name} again`, gated));
    while (readFileSync(`${gate}.begun`, 'utf8') === '') await new Promise((resolve) => setTimeout(resolve, 10));
    renameSync(service.dir, `${service.dir}.away`);
    writeFileSync(gate, '');
    await service.logged('folder-missing');
    for (const name of names) assert.equal((await ask(service.port, `/api/${name}`)).status, 200, name);
    renameSync(`${service.dir}.away`, service.dir);
    await service.logged('generation-serving', ({ generation }) => Number(generation) > 1);
    for (const name of names) assert.equal((await ask(service.port, `/api/${name}`)).status, 200, name);
  });

  it('is a 404 when a folder replaces its file', async (test) => {
    const service = await startService(test, {
      files: { 'SteadyController.js': controller('steady'), 'PlaceController.js': controller('file') },
    });
    rmSync(join(service.dir, 'PlaceController.js'));
    mkdirSync(join(service.dir, 'PlaceController.js'));
    await service.logged('generation-serving', ({ generation, groups }) => Number(generation) > 1 && groups === 1);
    for (let run = 0; run < 12; ) run = (await ask(service.port, '/api/place')).status === 404 ? run + 1 : 0;
  });
});

// Each test waits five seconds for the first retry, so the tests run at the same time.
describe('a group that failed to load is retried without a change of the folder', { concurrency: 4 }, () => {
  const AHEAD = { 'AheadController.js': controller('ahead', 'globalThis.ahead = true;') };

  it('and serves as soon as it loads', async (test) => {
    const service = await startService(test, { files: AHEAD });
    const state = stateOf(service, 'database');
    writeFileSync(state, 'broken');
    write(service.dir, 'EarlyController.js', fickle(state));
    assert.equal((await ask(service.port, '/api/early')).status, 500);
    // This group loads only together with the other one, so a retry must load the whole folder.
    write(service.dir, 'DueController.js', fickle(state, `if (!globalThis.ahead) throw new Error('alone');`));
    assert.equal((await ask(service.port, '/api/due')).status, 500);
    writeFileSync(state, 'good');
    await service.logged('generation-serving', ({ cause }) => cause === 'retry');
    for (const path of ['/api/early', '/api/due', '/api/ahead']) await answersOnly200(service, path, 12);
    const generations = service.lines.filter(({ event }) => event === 'generation-serving');
    assert.equal(generations.length, 2, JSON.stringify(generations));
  });

  it('and starts no generation when it loads only without the other groups', async (test) => {
    const service = await startService(test, { files: AHEAD });
    const state = stateOf(service, 'twin');
    write(service.dir, 'TwinController.js', fickle(state, `if (globalThis.ahead) throw new Error('a second one');`));
    assert.equal((await ask(service.port, '/api/twin')).status, 500);
    // A group without requests is no reason for a new generation, either.
    write(service.dir, 'IdleController.js', controller('idle'));
    // Each worker of a trial imports the group once. The next trial begins after the end of the first.
    const tries = () => readFileSync(`${state}.imports`).length;
    for (const known = tries(); tries() < known + 3; ) await new Promise((resolve) => setTimeout(resolve, 10));
    await answersOnly200(service, '/api/ahead', 12);
    service.process.kill('SIGHUP');
    await service.logged('generation-serving', ({ cause }) => cause === 'signal');
    assert.ok(!service.lines.some(({ event, cause }) => event === 'generation-serving' && cause === 'retry'));
  });

  it('and its retry does not harm a serving group that cannot load', async (test) => {
    const service = await startService(test, { files: AHEAD });
    const [mine, other] = [stateOf(service, 'mine'), stateOf(service, 'other')];
    const leave = `if (readFileSync(${JSON.stringify(other)}, 'utf8') === 'away') process.exit(1);`;
    write(service.dir, 'BreakableController.js', fickle(other, leave));
    assert.equal((await ask(service.port, '/api/breakable')).status, 200);
    writeFileSync(mine, 'broken');
    write(service.dir, 'LateController.js', fickle(mine));
    assert.equal((await ask(service.port, '/api/late')).status, 500);
    const tries = () => readFileSync(`${mine}.imports`).length;
    const known = tries();
    writeFileSync(mine, 'good');
    writeFileSync(other, 'away');
    while (tries() === known) await new Promise((resolve) => setTimeout(resolve, 10));
    writeFileSync(other, 'good');
    const { pid } = json(await ask(service.port, '/api/breakable'));
    process.kill(Number(pid), 'SIGKILL');
    await service.logged('worker-replaced');
    await answersOnly200(service, '/api/breakable', 12);
    assert.ok(!service.lines.some(({ event }) => event === 'generation-rejected'));
    const died = service.lines.filter(({ event }) => event === 'worker-died');
    assert.deepEqual(
      died.map(({ worker }) => worker),
      [pid],
      'the death of a worker of a trial is not logged as worker-died',
    );
    await service.logged('trial-worker-exited', ({ file }) => file === 'BreakableController.js');
  });

  it('and a worker replacement that failed to load is retried, too', async (test) => {
    const service = await startService(test, { files: AHEAD });
    const state = stateOf(service, 'database');
    write(service.dir, 'LeaningController.js', fickle(state));
    assert.equal((await ask(service.port, '/api/leaning')).status, 200);
    const { pid } = json(await ask(service.port, '/api/leaning'));
    writeFileSync(state, 'broken');
    process.kill(Number(pid), 'SIGKILL');
    await service.logged('replacement-rejected');
    writeFileSync(state, 'good');
    await service.logged('worker-replaced');
    await answersOnly200(service, '/api/leaning', 12);
    assert.ok(!service.lines.some(({ event, generation }) => event === 'generation-serving' && generation !== 1));
  });

  it('and a retry that hangs delays neither a replacement nor a change', async (test) => {
    // The import waits for a database that never answers. The supervisor ends such a worker after LOAD_TIMEOUT.
    const GIVEN_UP = 60_000;
    const disturb = async (event: string, disturbance: (service: Service, pid: number) => void) => {
      const files = { 'SteadyController.js': controller('steady') };
      const service = await startService(test, { files, env: { LOAD_TIMEOUT: `${GIVEN_UP}ms` } });
      const state = stateOf(service, 'database');
      const tries = () => readFileSync(`${state}.imports`).length;
      writeFileSync(state, 'broken');
      const hang = `if (readFileSync(${JSON.stringify(state)}, 'utf8') === 'silent') await new Promise((resolve) => setTimeout(resolve, 600_000));`;
      write(service.dir, 'SilentController.js', fickle(state, hang));
      assert.equal((await ask(service.port, '/api/silent')).status, 500);
      const { pid } = json(await ask(service.port, '/api/steady'));
      const known = tries();
      writeFileSync(state, 'silent');
      while (tries() === known) await new Promise((resolve) => setTimeout(resolve, 10));
      writeFileSync(state, 'broken');
      const begun = Date.now();
      disturbance(service, Number(pid));
      const { time } = await service.logged(event, ({ time }) => Date.parse(String(time)) >= begun);
      assert.ok(Date.parse(String(time)) - begun < GIVEN_UP * 0.8, `${event} waited for the end of the retry`);
    };
    await Promise.all([
      disturb('worker-replaced', (_, pid) => process.kill(pid, 'SIGKILL')),
      disturb('generation-serving', ({ dir }) => write(dir, 'SteadyController.js', controller('changed'))),
    ]);
  });
});

/** Creates a file that no module imports, so that writing to it starts no generation. */
function stateOf(service: Service, name: string): string {
  const path = join(dirname(service.dir), `${name}.txt`);
  writeFileSync(path, 'good');
  writeFileSync(`${path}.imports`, '');
  return path;
}

/** The source of a controller that loads only while its state is not `broken`. `had` counts its earlier imports. */
function fickle(state: string, head = ''): string {
  return `import { appendFileSync, readFileSync } from 'node:fs';
const had = readFileSync(${JSON.stringify(`${state}.imports`)}).length;
appendFileSync(${JSON.stringify(`${state}.imports`)}, '.');
${head}
if (readFileSync(${JSON.stringify(state)}, 'utf8') === 'broken') throw new Error('broken');
${controller('good')}`;
}

async function answersOnly200(service: Service, path: string, count: number): Promise<void> {
  // The log shows why a connection ended: for example, a worker died or was drained.
  const told = (error: Error) =>
    assert.fail(`${error.message}\n${service.lines.map((line) => JSON.stringify(line)).join('\n')}`);
  for (const answer of await Promise.all(Array.from({ length: count }, () => ask(service.port, path).catch(told)))) {
    assert.equal(answer.status, 200, answer.body);
  }
}
