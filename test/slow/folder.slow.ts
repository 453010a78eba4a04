// Sections 8.1 to 8.4 of the decisions, row by row, with the service as a process. Many rows share one service, and
// each has its own group. As in production, one broken group must not harm the others.
import assert from 'node:assert/strict';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { type Answer, ask, json, startLoad } from '../support/cluster-client.ts';
import { type Service, startService } from '../support/cluster-server.ts';
import { controller, createFolder, write } from '../support/folder.ts';

/** A test context for everything that the whole file shares. */
const cleanups: (() => unknown)[] = [];
const shared = { after: (cleanup: () => unknown) => cleanups.push(cleanup) } as unknown as TestContext;
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

describe('the folder of a running service', () => {
  let service: Service;
  before(async () => {
    service = await startService(shared, {
      files: { 'SteadyController.js': controller('steady'), 'lib/shared.js': 'export const shared = 1;\n' },
    });
  });

  const edits: readonly (readonly [name: string, group: string, edit: (dir: string, file: string) => void])[] = [
    ['written in place', 'InPlace', (dir, file) => writeFileSync(join(dir, file), controller('after'))],
    ['replaced by an atomic rename', 'Renamed', (dir, file) => write(dir, file, controller('after'))],
    [
      'replaced by a file of the same size and times, like rsync -t',
      'SameTimes',
      (dir, file) => {
        const { size, atime, mtime } = statSync(join(dir, file));
        const text = controller('after').padEnd(size, '\n');
        writeFileSync(join(dir, `${file}~`), text);
        utimesSync(join(dir, `${file}~`), atime, mtime);
        renameSync(join(dir, `${file}~`), join(dir, file));
      },
    ],
  ];
  for (const [name, group, edit] of edits) {
    it(`an edit is live on every worker: ${name}`, async () => {
      const path = `/api/${group}`;
      write(service.dir, `${group}Controller.js`, controller('before'));
      assert.equal(json(await ask(service.port, path)).value, 'before');
      edit(service.dir, `${group}Controller.js`);
      await live(service, path, 'after');
    });
  }

  it('an edit of a module that an operation imports during its call is live', async () => {
    write(service.dir, 'lib/lazy.js', 'export const value = 1;\n');
    write(
      service.dir,
      'LazyController.js',
      `export default { index: async () => (await import('./lib/lazy.js')).value };\n`,
    );
    assert.deepEqual(json(await ask(service.port, '/api/lazy')), { data: 1 });
    write(service.dir, 'lib/lazy.js', 'export const value = 2;\n');
    await service.logged('generation-serving', ({ cause }) => String(cause).includes('lazy.js'));
    assert.deepEqual(json(await ask(service.port, '/api/lazy')), { data: 2 });
  });

  it('an edit of a shared module is live in both controllers', async () => {
    const file = (name: string) =>
      `import { shared } from './lib/${name}.js';\nexport default class { index() { return { value: shared }; } }\n`;
    write(service.dir, 'lib/two.js', 'export const shared = 1;\n');
    write(service.dir, 'ShareAController.js', file('two'));
    write(service.dir, 'ShareBController.js', file('two'));
    await live(service, '/api/shareA', 1);
    await live(service, '/api/shareB', 1);
    write(service.dir, 'lib/two.js', 'export const shared = 2;\n');
    await live(service, '/api/shareA', 2);
    await live(service, '/api/shareB', 2);
  });

  it('an edit of a module outside the folder is live', async () => {
    const outside = join(dirname(service.dir), 'outside.js');
    writeFileSync(outside, 'export const value = 1;\n');
    write(
      service.dir,
      'OutsideController.js',
      `import { value } from '../outside.js';\nexport default class { index() { return { value }; } }\n`,
    );
    await live(service, '/api/outside', 1);
    writeFileSync(outside, 'export const value = 2;\n');
    await live(service, '/api/outside', 2);
  });

  it('a deleted group is a 404', async () => {
    write(service.dir, 'GoingController.js', controller('there'));
    await live(service, '/api/going', 'there');
    rmSync(join(service.dir, 'GoingController.js'));
    await until(service, '/api/going', ({ status }) => status === 404);
  });

  it('X.ts serves instead of X.js, and X.js serves again after the removal of X.ts', async () => {
    write(service.dir, 'BothController.js', controller('js'));
    await live(service, '/api/both', 'js');
    write(service.dir, 'BothController.ts', controller('ts').replace('index()', 'index(): object'));
    await live(service, '/api/both', 'ts');
    rmSync(join(service.dir, 'BothController.ts'));
    await live(service, '/api/both', 'js');
  });

  const broken: readonly (readonly [name: string, group: string, text: string, reason: RegExp])[] = [
    ['it does not parse', 'Unparsed', 'export default class { index( }\n', /Unparsed/],
    ['it throws while loading', 'Throwing', `throw new Error('no database');\n`, /no database/],
    ['it exports no group', 'Empty', '', /exports no group/],
    ['it imports a missing file', 'Lacking', `import './lib/lacking.js';\n`, /lacking/],
    ['it ends the process', 'Exiting', 'process.exit(7);\n', /exit code 7/],
  ];
  for (const [name, group, text, reason] of broken) {
    it(`a serving group keeps serving when ${name}, and the repaired file is live`, async (test) => {
      const file = `${group}Controller.js`;
      const path = `/api/${group}`;
      write(service.dir, file, controller('good'));
      await live(service, path, 'good');
      const load = startLoad(test, {
        port: service.port,
        connections: 2,
        mode: 'one request a connection',
        path,
        pause: 5,
      });
      write(service.dir, file, text + '// broken\n'.repeat(3));
      const line = await service.logged('generation-rejected', (candidate) => candidate.file === file);
      assert.match(`${line.error} ${line.at}`, reason);
      assert.equal(line.level, 'error');
      write(service.dir, file, controller('mended'));
      await load.until(({ body }) => body.includes('mended'));
      assert.deepEqual((await load.stop()).failures, []);
      const lines = service.lines.filter(
        (candidate) => candidate.event === 'generation-rejected' && candidate.file === file,
      );
      assert.equal(lines.length, 1, 'the rejection is logged once per change');
    });

    it(`a new group is a 500 when ${name}, and the repaired file is live`, async () => {
      const file = `Never${group}Controller.js`;
      const path = `/api/Never${group}`;
      write(service.dir, file, text);
      await until(service, path, ({ status, body }) => status === 500 && body.includes('GROUP_NOT_LOADABLE'));
      assert.equal(json(await ask(service.port, '/api/steady')).value, 'steady');
      write(service.dir, file, controller('mended'));
      await live(service, path, 'mended');
    });
  }

  it('a group loads as soon as its missing module appears', async () => {
    write(
      service.dir,
      'WaitingController.js',
      `import { value } from './lib/late.js';\nexport default class { index() { return { value }; } }\n`,
    );
    await until(service, '/api/waiting', ({ status }) => status === 500);
    write(service.dir, 'lib/late.js', 'export const value = 1;\n');
    await live(service, '/api/waiting', 1);
  });

  it('a controller loads after the repair of a module that ended the process', async () => {
    write(service.dir, 'lib/poison.js', 'process.exit(3);\n');
    write(service.dir, 'PoisonedController.js', `import './lib/poison.js';\n${controller('healed')}`);
    await until(service, '/api/poisoned', ({ status }) => status === 500);
    write(service.dir, 'lib/poison.js', 'export {};\n');
    await live(service, '/api/poisoned', 'healed');
  });

  const hangs = [
    ['awaits for ever', 'Awaiting', 'await new Promise(() => {});\n'],
    ['loops for ever', 'Looping', 'for (;;);\n'],
  ] as const;
  for (const [name, group, text] of hangs) {
    it(`a serving group keeps serving when its new code ${name}, and the repaired file is live`, async (test) => {
      const file = `${group}Controller.js`;
      write(service.dir, file, controller('good'));
      await live(service, `/api/${group}`, 'good');
      const load = startLoad(test, {
        port: service.port,
        connections: 2,
        mode: 'kept-alive',
        path: `/api/${group}`,
        pause: 5,
      });
      const begun = join(dirname(service.dir), `${group}.begun`);
      write(
        service.dir,
        file,
        `import { writeFileSync } from 'node:fs';\nwriteFileSync(${JSON.stringify(begun)}, '');\n${text}`,
      );
      // The file is mended in the middle of its load.
      while (!existsSync(begun)) await new Promise((resolve) => setTimeout(resolve, 10));
      write(service.dir, file, controller('mended'));
      await load.until(({ body }) => body.includes('mended'));
      assert.deepEqual((await load.stop()).failures, []);
    });
  }

  it('a file that never finishes loading delays the edits of another file at most once', async () => {
    const path = '/api/steady';
    const texts = ['before', 'between', 'after'];
    write(service.dir, 'SettlingController.js', 'await new Promise(() => {});\n');
    for (const text of texts) {
      write(service.dir, 'SteadyController.js', controller(text));
      await live(service, path, text);
    }
    const slow = service.lines.filter(
      ({ event, took_ms }) => event === 'generation-serving' && Number(took_ms) >= 10_000,
    );
    assert.ok(slow.length <= 1, JSON.stringify(slow));
    rmSync(join(service.dir, 'SettlingController.js'));
    write(service.dir, 'SteadyController.js', controller('steady'));
    await live(service, path, 'steady');
  });

  it('a controller that listens on the port of the service blocks no edit', async () => {
    const text = `import { createServer } from 'node:http';\ncreateServer().listen(${service.port}, '127.0.0.1');\n${controller('greedy')}`;
    write(service.dir, 'GreedyController.js', text);
    await ask(service.port, '/api/greedy').catch(() => undefined);
    await service.logged('uncaught-exception', ({ error }) => String(error).includes('EADDRINUSE'));
    write(service.dir, 'SteadyController.js', controller('steady beside it'));
    await live(service, '/api/steady', 'steady beside it');
    rmSync(join(service.dir, 'GreedyController.js'));
    write(service.dir, 'SteadyController.js', controller('steady'));
    await live(service, '/api/steady', 'steady');
  });

  it('a file copied in pieces is live with its complete text', async () => {
    write(service.dir, 'CopiedController.js', controller('before'));
    await live(service, '/api/copied', 'before');
    const text = controller('after', `// ${'x'.repeat(2000)}`);
    writeFileSync(join(service.dir, 'CopiedController.js'), '');
    for (let from = 0; from < text.length; from += 400) {
      appendFileSync(join(service.dir, 'CopiedController.js'), text.slice(from, from + 400));
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
    await live(service, '/api/copied', 'after');
  });

  it('a burst of changes ends with the newest state live', async () => {
    write(service.dir, 'BurstController.js', controller(0));
    await live(service, '/api/burst', 0);
    for (let value = 1; value <= 60; value++) {
      write(service.dir, 'BurstController.js', controller(value));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await live(service, '/api/burst', 60);
  });

  it('a file that is not a controller starts no generation', async () => {
    const strangers = [
      'NoteController.test.js',
      'NoteController.d.ts',
      '.HiddenController.js',
      'NoteController.js~',
      'notes.txt',
      'lib/unused.js',
    ];
    for (const name of strangers) write(service.dir, name, 'throw new Error();\n');
    // If one of the other files had started a generation, the log would have it before the generation of this edit.
    write(service.dir, 'SteadyController.js', controller('steady again'));
    await live(service, '/api/steady', 'steady again');
    await service.logged('generation-serving', ({ cause }) => String(cause).endsWith('/SteadyController.js'));
    for (const name of strangers) assert.ok(!service.lines.some(({ cause }) => String(cause).endsWith(name)), name);
    assert.equal((await ask(service.port, '/api/note')).status, 404);
  });

  it('the last generation serves while the folder is missing, and edits are live when it returns', async () => {
    renameSync(service.dir, `${service.dir}.away`);
    await service.logged('folder-missing');
    assert.equal(json(await ask(service.port, '/api/steady')).value, 'steady again');
    renameSync(`${service.dir}.away`, service.dir);
    write(service.dir, 'SteadyController.js', controller('back'));
    await live(service, '/api/steady', 'back');
    assert.equal(service.lines.filter(({ event }) => event === 'folder-missing').length, 1);
  });
});

describe('folders that are links', () => {
  it('a swapped link to the folder loads the new folder and its imports', async (test) => {
    const root = dirname(createFolder(test));
    for (const release of ['r1', 'r2']) {
      mkdirSync(join(root, release));
      write(join(root, release), 'lib.js', `export const value = '${release}';\n`);
      write(
        join(root, release),
        'TestController.js',
        `import { value } from './lib.js';\nexport default class { index() { return { value }; } }\n`,
      );
    }
    symlinkSync('r1', join(root, 'current'));
    const service = await startService(test, { dir: join(root, 'current') });
    await live(service, '/api/test', 'r1');
    symlinkSync('r2', join(root, 'next'));
    renameSync(join(root, 'next'), join(root, 'current'));
    await live(service, '/api/test', 'r2');
  });

  it('a mounted volume loads its new files when its ..data link is swapped', async (test) => {
    const dir = createFolder(test);
    for (const version of ['..v1', '..v2']) {
      mkdirSync(join(dir, version));
      writeFileSync(join(dir, version, 'TestController.js'), controller(version));
    }
    symlinkSync('..v1', join(dir, '..data'));
    symlinkSync('..data/TestController.js', join(dir, 'TestController.js'));
    const service = await startService(test, { dir });
    await live(service, '/api/test', '..v1');
    symlinkSync('..v2', join(dir, '..data_tmp'));
    renameSync(join(dir, '..data_tmp'), join(dir, '..data'));
    await live(service, '/api/test', '..v2');
  });
});

/**
 * Sends requests until `isMeant` accepts twelve answers in a row. Each request has a new connection, so more than one
 * worker answers.
 */
async function until(service: Service, path: string, isMeant: (answer: Answer) => boolean): Promise<void> {
  const begun = performance.now();
  for (let run = 0; run < 12; ) {
    // A group whose code ends the process also ends the connection.
    const answer = await ask(service.port, path).catch(() => undefined);
    run = answer !== undefined && isMeant(answer) ? run + 1 : 0;
    if (performance.now() - begun > service.patience())
      assert.fail(`${path} is still ${answer?.status} ${answer?.body}`);
    if (run === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function live(service: Service, path: string, value: unknown): Promise<void> {
  await until(service, path, (answer) => answer.status === 200 && json(answer).value === value);
}
