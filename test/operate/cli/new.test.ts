// `gatefold new` writes one new file, which works without a change.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { startTest } from '../../../src/api/testing.ts';
import { runGatefold } from '../../../src/operate/cli/commands.ts';
import { makeProject, runHere } from '../../support/command-bench.ts';
import { answerInspections, inspectHere, inspection } from '../../support/inspection-here.ts';
import { GATEFOLD } from '../../support/service.ts';

const run: Parameters<typeof runHere>[0] = (argv, io) => runGatefold(['new', ...argv], io);
const runRoutes: Parameters<typeof runHere>[0] = (argv, io) => runGatefold(['routes', ...argv], io);

test('new makes a controller that serves', async (t) => {
  inspectHere(t);
  const cwd = makeProject(t);
  const { code, out, err } = await runHere(run, ['order-item'], { cwd });
  assert.deepEqual([code, err], [0, '']);
  assert.deepEqual(out.trimEnd().split('\n'), [
    'Made controllers/Order-itemController.ts',
    '  GET,HEAD /api/order-item  GET',
    '  POST /api/order-item  POST',
    '  GET,HEAD /api/order-item/{id}  GET {id}',
  ]);
  assert.match(readFileSync(join(cwd, 'controllers/Order-itemController.ts'), 'utf8'), /class Order_itemController /);
  const routes = await runHere(runRoutes, [], { cwd });
  assert.deepEqual([routes.code, routes.err], [0, '']);
  assert.match(routes.out, /^POST +\/api\/order-item +POST +controllers\/Order-itemController\.ts/m);
  const api = await startTest({ controllers: join(cwd, 'controllers') });
  t.after(() => api.close());
  const post = (name: string) => api.fetch('/order-item', { method: 'POST', json: { name } });
  assert.deepEqual([(await post('Ada')).status, (await post('')).status], [201, 422]);
  assert.deepEqual(await (await api.fetch('/order-item/7')).json(), { id: 7, name: 'Ada' });
  assert.equal((await api.fetch('/order-item/8')).status, 404);
  assert.deepEqual(await (await api.fetch('/order-item')).json(), []);
});

test('new makes a controller that compiles, even when its group has the name of an imported type', async (t) => {
  const cwd = makeProject(t, { 'node_modules/.keep': '' });
  for (const group of ['reply', 'int', 'date', 'a_b-c']) assert.equal((await runHere(run, [group], { cwd })).code, 0);
  const root = resolve(import.meta.dirname, '../../..');
  symlinkSync(root, join(cwd, 'node_modules/gatefold'));
  cpSync(join(root, 'examples/smallest/tsconfig.json'), join(cwd, 'tsconfig.json'));
  const tsc = [
    join(root, 'node_modules/typescript/bin/tsc'),
    '-p',
    cwd,
    '--typeRoots',
    join(root, 'node_modules/@types'),
  ];
  assert.equal(spawnSync(process.execPath, tsc, { encoding: 'utf8' }).stdout, '');
});

test('new --json makes a missing controllers folder and prints the routes as JSON', async (t) => {
  const cwd = makeProject(t);
  rmSync(join(cwd, 'controllers'), { recursive: true });
  const { code, out } = await runHere(run, ['user', '--json', '--controllers-dir', 'api/groups'], { cwd });
  assert.equal(code, 0);
  assert.deepEqual(JSON.parse(out), {
    group: 'User',
    file: join(cwd, 'api/groups/UserController.ts'),
    routes: [
      { methods: ['GET', 'HEAD'], path: '/api/user', operation: 'GET' },
      { methods: ['POST'], path: '/api/user', operation: 'POST' },
      { methods: ['GET', 'HEAD'], path: '/api/user/{id}', operation: 'GET {id}' },
    ],
  });
  assert.ok(existsSync(join(cwd, 'api/groups/UserController.ts')));
});

test('new makes a controller in a subfolder and prints the service option that it needs', async (t) => {
  const cwd = makeProject(t);
  const { code, out, err } = await runHere(run, ['v2/order-item'], { cwd });
  assert.deepEqual([code, err], [0, '']);
  assert.deepEqual(out.trimEnd().split('\n'), [
    'Made controllers/v2/Order-itemController.ts',
    '  GET,HEAD /api/v2/order-item  GET',
    '  POST /api/v2/order-item  POST',
    '  GET,HEAD /api/v2/order-item/{id}  GET {id}',
    'It serves once the service file says so: export default defineService({ folders: true })',
  ]);
  writeFileSync(
    join(cwd, 'controllers/service.ts'),
    `import { defineService } from '${GATEFOLD}';\nexport default defineService({ folders: true });\n`,
  );
  const second = await runHere(run, ['v2/order'], { cwd });
  assert.doesNotMatch(second.out, /once the service file/);
  const api = await startTest({ controllers: join(cwd, 'controllers') });
  t.after(() => api.close());
  const answer = await api.fetch('/v2/order', { method: 'POST', json: { name: 'Ada' } });
  assert.deepEqual([answer.status, answer.headers.get('location')], [201, '/api/v2/order/7']);
  assert.deepEqual(await (await api.fetch('/v2/order-item/7')).json(), { id: 7, name: 'Ada' });
});

test('new prints no route that an explicit route takes', async (t) => {
  const { code, out } = await runHere(run, ['register'], { cwd: makeProject(t) });
  assert.equal(code, 0);
  assert.match(out, /^ {2}GET,HEAD \/api\/register /m);
  assert.doesNotMatch(out, /POST/);
});

describe('new refuses', () => {
  const taken: Record<string, [files: Record<string, string>, message: RegExp, group?: string]> = {
    'a group whose file exists': [
      { 'controllers/UserController.ts': 'mine' },
      /UserController\.ts already serves that group/,
    ],
    'a group that another file serves': [
      { 'controllers/UserController.js': 'mine' },
      /UserController\.js already serves that group/,
    ],
    'a group whose file name is a folder': [{ 'controllers/UserController.ts/x': 'mine' }, /the file already exists/],
    'a subfolder whose URLs a controller serves': [
      { 'controllers/V2Controller.ts': 'mine' },
      /V2Controller\.ts serves the URLs of that folder/,
      'v2/user',
    ],
    'a group whose operation ids would equal the ids of another group': [
      { 'controllers/V2_userController.ts': 'mine' },
      /the operations of V2_userController\.ts have the same ids in the document/,
      'v2/user',
    ],
    'a group whose operation ids a group in a folder has': [
      { 'controllers/v2/UserController.ts': 'mine' },
      /the operations of v2\/UserController\.ts have the same ids in the document/,
      'v2_user',
    ],
    'a group in a subfolder that another file serves': [
      { 'controllers/v2/UserController.mjs': 'mine' },
      /v2\/UserController\.mjs already serves that group/,
      'v2/user',
    ],
    'a controllers folder that is a file': [{ groups: 'mine' }, /: a part of the path is not a folder$/m],
  };
  for (const [name, [files, message, group = 'user']] of Object.entries(taken)) {
    test(name, async (t) => {
      const cwd = makeProject(t, files);
      const env = 'groups' in files ? { CONTROLLERS_DIR: 'groups' } : {};
      const { code, out, err } = await runHere(run, [group], { cwd, env });
      assert.deepEqual([code, out], [1, '']);
      assert.match(err, /^gatefold new: Cannot make .*[uU]serController\.ts: /);
      assert.match(err, message);
      for (const [file, text] of Object.entries(files)) assert.equal(readFileSync(join(cwd, file), 'utf8'), text);
    });
  }

  test('a folder that is a link, because its controllers would not serve', async (t) => {
    const cwd = makeProject(t, { 'elsewhere/.keep': '' });
    symlinkSync('../elsewhere', join(cwd, 'controllers/lnk'));
    symlinkSync('../nowhere', join(cwd, 'controllers/dangling'));
    for (const folder of ['lnk', 'dangling']) {
      const { code, out, err } = await runHere(run, [`${folder}/order`], { cwd });
      assert.deepEqual([code, out], [1, '']);
      assert.match(
        err,
        new RegExp(`OrderController\\.ts: ${folder} is a link, and the controllers in a linked folder`),
      );
    }
    assert.deepEqual(readdirSync(join(cwd, 'elsewhere')), ['.keep']);
    assert.equal(existsSync(join(cwd, 'nowhere')), false);
  });

  const names: [name: string, message: RegExp][] = [
    ['', /"" cannot name a group: a letter, then letters, digits, _ and -/],
    ['../user', /cannot name a group/],
    ['1st', /cannot name a group/],
    ['a.b', /cannot name a group/],
    ['V2/user', /a folder before it, as in v2\/order, is in lower case/],
    ['a/b/c', /cannot name a group/],
    ['v2/', /cannot name a group/],
    ['../v2/user', /cannot name a group/],
    ['v2/UserController', /v2\/UserController is the name of a class: the group is v2\/user/],
    ['UserController', /UserController is the name of a class: the group is user/],
  ];
  for (const [name, message] of names) {
    test(`the name ${JSON.stringify(name)}`, async (t) => {
      const cwd = makeProject(t);
      const { code, err } = await runHere(run, [name], { cwd });
      assert.equal(code, 2);
      assert.match(err, message);
      assert.deepEqual(readdirSync(join(cwd, 'controllers')), []);
    });
  }
});

test('one of two concurrent new commands for the same group fails', async (t) => {
  const cwd = makeProject(t);
  const [first, second] = await Promise.all([runHere(run, ['user'], { cwd }), runHere(run, ['user'], { cwd })]);
  assert.deepEqual([first.code, second.code].sort(), [0, 1]);
});

test('types writes a file once, and --check refuses an old one', async (t) => {
  inspectHere(t);
  const cwd = makeProject(t, {
    'controllers/AController.ts': 'export default class { index(): { a: 1 } { return { a: 1 }; } }\n',
  });
  const types = async (...words: string[]) => {
    const { code, out, err } = await runHere((argv, io) => runGatefold(['types', ...argv], io), words, { cwd });
    return [code, out + err];
  };
  assert.deepEqual(await types('--check'), [
    2,
    'gatefold types: --check needs --out FILE; see gatefold types --help\n',
  ]);
  assert.deepEqual(await types('--out', 'web/api.ts'), [0, 'Wrote web/api.ts\n']);
  const path = join(cwd, 'web/api.ts');
  const text = readFileSync(path, 'utf8');
  // git on Windows may change the line ends.
  writeFileSync(path, text.replaceAll('\n', '\r\n'));
  assert.deepEqual(await types('--out', 'web/api.ts', '--check'), [0, 'web/api.ts is current\n']);
  writeFileSync(path, 'old');
  const refusal = 'gatefold types: web/api.ts is out of date. Run: gatefold types --out web/api.ts\n';
  assert.deepEqual(await types('--out', 'web/api.ts', '--check'), [1, refusal]);
  assert.equal(readFileSync(path, 'utf8'), 'old');
});

test('types fails where it can read or write no file, and names a controller that does not load', async (t) => {
  const cwd = makeProject(t, { file: '' });
  symlinkSync('nowhere/api.ts', join(cwd, 'link.ts'));
  const declarations = { text: 'export type Api = 1;\n', untypedOperations: ['a.index: it has no type'] };
  const types = (...words: string[]) => runHere((argv, io) => runGatefold(['types', ...argv], io), words, { cwd });
  answerInspections(t, () => inspection({ declarations }));
  assert.deepEqual(await types(), {
    code: 0,
    out: 'export type Api = 1;\n',
    err: 'gatefold types: a.index: it has no type\n',
  });
  for (const [out, reason] of [
    ['controllers', /^gatefold types: Cannot read \S+\/controllers: .+\n$/],
    ['link.ts', /^gatefold types: Cannot write \S+\/link\.ts: .+\n$/],
  ] as const) {
    const { code, err } = await types('--out', out);
    assert.equal(code, 1);
    assert.match(err, reason);
  }
  const path = join(cwd, 'controllers/AController.ts');
  const broken = { group: 'A', file: 'AController.ts', path, at: `${path}:3`, ok: false, error: 'no', operations: [] };
  answerInspections(t, () => inspection({ declarations, groups: [broken] }));
  const failure = 'gatefold types: controllers/AController.ts:3 does not load: no\n';
  assert.deepEqual(await types('--out', 'api.ts'), { code: 1, out: '', err: failure });
  assert.equal(existsSync(join(cwd, 'api.ts')), false);
});
