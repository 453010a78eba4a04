// DATA_DIR/generation.json, as a real service writes it.
import assert from 'node:assert/strict';
import fs, {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { processName } from '../../../src/base/folder-lock.ts';
import { GenerationFile, type GenerationRecord } from '../../../src/live/supervisor/generation-file.ts';
import { readRecord } from '../../../src/operate/cli/deploy/serving.ts';
import { controller, createFolder, type Service, startService, write } from '../../support/cluster-server.ts';
import { createMemoryLog } from '../../support/memory-log.ts';

const fileOf = (dir: string) => join(dirname(dir), 'data/generation.json');
const read = (dir: string): GenerationRecord => JSON.parse(readFileSync(fileOf(dir), 'utf8'));

async function until(service: Service, isTrue: (record: GenerationRecord) => boolean): Promise<GenerationRecord> {
  for (const end = performance.now() + service.patience(); performance.now() < end; await sleep(25)) {
    const record = existsSync(fileOf(service.dir)) ? read(service.dir) : undefined;
    if (record !== undefined && isTrue(record)) return record;
  }
  throw new Error(`the expected record was not written: ${readFileSync(fileOf(service.dir), 'utf8')}`);
}

describe('the generation file', () => {
  it('contains the serving, the rejected and the draining releases, and the errors', async (test) => {
    const marks = createFolder(test);
    const [begun, gate] = [join(marks, 'begun'), join(marks, 'gate')];
    // The first release drains until its request has its answer.
    const held = `import { existsSync, writeFileSync } from 'node:fs';
      export default class { async index() {
        writeFileSync(${JSON.stringify(begun)}, '');
        while (!existsSync(${JSON.stringify(gate)})) await new Promise((resolve) => setTimeout(resolve, 20));
        return {};
      } }`;
    const real = createFolder(test, { 'TestController.js': held });
    const releases = dirname(real);
    const dir = join(releases, 'link');
    for (const name of ['second', 'third']) mkdirSync(join(releases, name));
    write(join(releases, 'second'), 'TestController.js', 'export default class {\n  index( {}\n}\n');
    write(join(releases, 'third'), 'TestController.js', controller(3));
    const swap = (name: string) => {
      symlinkSync(join(releases, name), `${dir}.new`);
      renameSync(`${dir}.new`, dir);
    };
    swap('controllers');
    const service = await startService(test, { dir, env: { WORKERS: '1' } });
    const first = await until(service, ({ state }) => state === 'serving');
    assert.deepEqual(first, {
      pid: service.process.pid,
      process: processName(service.process.pid),
      runtime: join(import.meta.dirname, '../../..'),
      folder: dir,
      release: real,
      state: 'serving',
      generation: 1,
      errors: [],
      serving: real,
      draining: [],
    });
    swap('second');
    const refused = await until(service, ({ state }) => state === 'rejected');
    assert.deepEqual([refused.release, refused.serving], [join(releases, 'second'), real]);
    const [{ file, at, error } = { file: '', at: '', error: '' }] = refused.errors;
    assert.deepEqual([file, at], ['TestController.js', `${join(releases, 'second/TestController.js')}:3`]);
    assert.match(error ?? '', /^SyntaxError/);
    const answer = fetch(`http://127.0.0.1:${service.port}/api/test`);
    while (!existsSync(begun)) await sleep(20);
    swap('third');
    const third = await until(service, ({ serving }) => serving === join(releases, 'third'));
    assert.deepEqual([third.state, third.errors, third.draining], ['serving', [], [real]]);
    writeFileSync(gate, '');
    assert.equal((await answer).status, 200);
    await until(service, ({ draining }) => draining.length === 0);
    write(join(releases, 'third'), 'NewController.js', 'export default class { index( }');
    service.process.kill('SIGHUP');
    const partly = await until(service, ({ errors }) => errors.length > 0);
    assert.deepEqual([partly.state, partly.errors[0]?.file], ['serving', 'NewController.js']);
    // As where the clock was set forward: the file looks older than the start of the machine.
    utimesSync(fileOf(dir), 0, 0);
    assert.deepEqual(readRecord(dirname(fileOf(dir))), partly);
    service.process.kill('SIGTERM');
    await service.exited;
    assert.equal(read(dir).state, 'stopped');
    utimesSync(fileOf(dir), 0, 0);
    assert.equal(readRecord(dirname(fileOf(dir))), undefined);
  });

  it('contains the error when no worker of a new release can start', (test) => {
    const folder = createFolder(test, {});
    const dataDir = dirname(folder);
    const { log } = createMemoryLog();
    const file = new GenerationFile({ dataDir, folder, packageFolder: '/gatefold', log });
    const [release, error] = ['/releases/2', 'Cannot start a worker: EAGAIN'];
    const rejected = { generation: 2, at: new Date(), failures: [], error };
    const status = {
      generation: 1,
      servingSince: undefined,
      workers: [],
      notLoadable: [],
      groups: { loaded: 1, lost: [], wasComplete: true },
      rejected,
    };
    const tally = { generationsServed: 1, generationsRejected: 1, workersDied: 0, workersReplaced: 0 };
    file.addResult({ kind: 'failed', error, release }, { ...status, ...tally });
    const record: GenerationRecord = JSON.parse(readFileSync(join(dataDir, 'generation.json'), 'utf8'));
    assert.deepEqual([record.release, record.state, record.errors], [release, 'rejected', [{ error }]]);
  });

  it('is not written without a data folder', async (test) => {
    const dir = createFolder(test, { 'TestController.js': controller(1) });
    const data = join(dirname(dir), 'nowhere');
    const service = await startService(test, { dir, env: { DATA_DIR: data, WORKERS: '1' } });
    await service.logged('generation-serving');
    assert.equal(existsSync(data), false);
  });

  it('is retried until it can be written, while the service serves', async (test) => {
    const dir = createFolder(test, { 'TestController.js': controller(1) });
    // A folder cannot be replaced by a file, also not by root.
    mkdirSync(join(fileOf(dir), 'in-the-way'), { recursive: true });
    const service = await startService(test, { dir, env: { WORKERS: '1' } });
    const { file } = await service.logged('generation-file-not-written');
    assert.equal(file, fileOf(dir));
    rmSync(fileOf(dir), { recursive: true });
    await until(service, ({ state }) => state === 'serving');
  });

  // After a start of the machine, another process can have the id. Without /proc, nothing shows which of them it is.
  it('is that of no running service where it is older than the start of a machine without /proc', (test) => {
    const { readFileSync } = fs;
    test.mock.method(fs, 'readFileSync', (path: string, ...rest: []) => {
      if (String(path).startsWith('/proc/')) throw Object.assign(new Error('ENOENT'), { code: 'ENOENT' });
      return readFileSync(path, ...rest);
    });
    syncBuiltinESMExports();
    test.after(() => {
      test.mock.restoreAll();
      syncBuiltinESMExports();
    });
    const dataDir = createFolder(test);
    const path = join(dataDir, 'generation.json');
    const record = { pid: process.pid, process: processName(), state: 'serving' };
    assert.match(record.process, /^\d+-alive-/);
    writeFileSync(path, JSON.stringify(record));
    assert.deepEqual(readRecord(dataDir), record);
    utimesSync(path, 0, 0);
    assert.equal(readRecord(dataDir), undefined);
  });
});
