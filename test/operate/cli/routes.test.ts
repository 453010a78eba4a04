// `gatefold routes`: every URL that answers, the place of its operation, and the files that do not load.
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { FALLBACK } from '../../../src/base/group-name.ts';
import { runCommand } from '../../../src/operate/cli/command.ts';
import { runGatefold } from '../../../src/operate/cli/commands.ts';
import type { Inspection, LoadedGroup } from '../../../src/operate/cli/inspection.ts';
import { command as newCommand } from '../../../src/operate/cli/new.ts';
import { command as openapi } from '../../../src/operate/cli/openapi.ts';
import { command, listRoutes, verbsOf } from '../../../src/operate/cli/routes.ts';
import { type Route, routeTable } from '../../../src/request/routes.ts';
import { makeProject, runHere } from '../../support/command-bench.ts';
import { answerInspections, inspectHere, inspection } from '../../support/inspection-here.ts';

const run: Parameters<typeof runHere>[0] = (argv, io) => runCommand(command, argv, io);
const group = (name: string, operations: string[]): LoadedGroup => ({
  group: name,
  file: `${name}Controller.ts`,
  path: `/srv/${name}Controller.ts`,
  ok: true,
  operations: operations.map((operation) => ({ name: operation })),
});
const list = (groups: LoadedGroup[], routes?: readonly Route[]) =>
  listRoutes(groups, routes).map(({ methods, except, path, operation }) =>
    [String(methods), ...(except === undefined ? [] : [`not ${except}`]), path, operation].join(' '),
  );
const EXPLICIT = [
  'POST /api/idp-signin identity.signin',
  'POST /api/register identity.register',
  'GET,HEAD /api/openapi.json docs.openapi',
  'GET,HEAD /api/docs docs.page',
];

describe('listRoutes', () => {
  test('lists explicit rows first, then the groups by name, verb operations before slugs', () => {
    assert.deepEqual(list([group('B', ['hello']), group('A', ['created', 'index', 'options'])]), [
      ...EXPLICIT,
      'POST /api/a created',
      'GET,HEAD /api/a index',
      'OPTIONS /api/a options',
      'any /api/a/created created',
      'any /api/a/index index',
      'any /api/a/options options',
      'any /api/b/hello hello',
    ]);
    const [options] = listRoutes([group('A', ['options'])]).filter(({ path }) => path === '/api/a');
    assert.equal(options?.needsAuthorization, true);
  });

  test('leaves out each route that an explicit row takes', () => {
    const routes: Route[] = [
      { methods: ['POST'], path: '/api/a/hello', target: 'identity.signin' },
      { methods: 'any', path: '/api/a/gone', target: 'identity.signin' },
      ...routeTable('on'),
    ];
    assert.deepEqual(list([group('Register', ['index', 'created'])]).slice(4), [
      'GET,HEAD /api/register index',
      'any /api/register/index index',
      'any /api/register/created created',
    ]);
    assert.deepEqual(list([group('A', ['hello', 'gone', 'index'])], routes).slice(6), [
      'GET,HEAD /api/a index',
      'any not POST /api/a/hello hello',
      'any /api/a/index index',
    ]);
  });
});

test('listRoutes lists a group with routes: named operations by POST, verb operations by the bare group', () => {
  const names = ['created', 'pay', 'GET {id}', 'HEAD {other}', 'GET {id}/items/{item}', 'POST {id}/pay'];
  assert.deepEqual(list([group('A', names)]).slice(4), [
    'POST /api/a created',
    'POST /api/a/pay pay',
    'GET /api/a/{id} GET {id}',
    'HEAD /api/a/{other} HEAD {other}',
    'GET,HEAD /api/a/{id}/items/{item} GET {id}/items/{item}',
    'POST /api/a/{id}/pay POST {id}/pay',
  ]);
});

test('listRoutes lists a route whose literal is not ASCII, and leaves it out where an explicit row takes it', () => {
  const row: Route = { methods: 'any', path: '/api/b/größe', target: 'identity.signin' };
  const groups = [group('A', ['GET größe/{id}']), group('B', ['GET größe'])];
  assert.deepEqual(list(groups).slice(4), [
    'GET,HEAD /api/a/größe/{id} GET größe/{id}',
    'GET,HEAD /api/b/größe GET größe',
  ]);
  assert.deepEqual(list(groups, [row, ...routeTable('on')]).slice(5), ['GET,HEAD /api/a/größe/{id} GET größe/{id}']);
});

test('listRoutes lists the routes of the bare group, and leaves out a POST that an explicit row takes', () => {
  assert.deepEqual(list([group('A', ['find', 'GET', 'PUT', 'OPTIONS', 'GET {a}', 'GET {b*}', 'HEAD b'])]).slice(4), [
    'GET,HEAD /api/a GET',
    'PUT /api/a PUT',
    'OPTIONS /api/a OPTIONS',
    'POST /api/a/find find',
    'GET,HEAD /api/a/{a} GET {a}',
    'GET,HEAD /api/a/{b*} GET {b*}',
    'HEAD /api/a/b HEAD b',
  ]);
  const [options] = listRoutes([group('A', ['OPTIONS'])]).filter(({ operation }) => operation === 'OPTIONS');
  assert.equal(options?.needsAuthorization, true);
  assert.deepEqual(list([group('Register', ['POST', 'GET'])]).slice(4), ['GET,HEAD /api/register GET']);
});

test('routes lists every operation of .ts, .mjs and .js files with its file, also inherited operations', async (t) => {
  inspectHere(t);
  const cwd = makeProject(t, {
    'lib/base.ts':
      'interface Row {\n  id: string;\n}\nexport class Base {\n  created(row: Row): Row {\n    return row;\n  }\n}\n',
    'controllers/TypedController.ts':
      "import { Base } from '../lib/base.ts';\ntype Id = string;\n\nexport default class TypedController extends Base {\n  index(id: Id): Id {\n    return id;\n  }\n}\n",
    'controllers/PlainController.mjs': 'export default {\n  index() {},\n  native: Math.max,\n  options() {},\n};\n',
    'controllers/OldController.js': 'export class OldController {\n\n  async hello() {}\n}\n',
  });
  const { code, out, err } = await runHere(run, [], { cwd });
  assert.equal(err, '');
  assert.equal(code, 0);
  const lines = out
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/));
  assert.deepEqual(lines.slice(0, 4), [
    ['POST', '/api/idp-signin', 'identity.signin'],
    ['POST', '/api/register', 'identity.register'],
    ['GET,HEAD', '/api/openapi.json', 'docs.openapi'],
    ['GET,HEAD', '/api/docs', 'docs.page'],
  ]);
  assert.deepEqual(lines.slice(4), [
    ['any', '/api/old/hello', 'hello', 'controllers/OldController.js'],
    ['GET,HEAD', '/api/plain', 'index', 'controllers/PlainController.mjs'],
    ['OPTIONS (authorized)', '/api/plain', 'options', 'controllers/PlainController.mjs'],
    ['any', '/api/plain/index', 'index', 'controllers/PlainController.mjs'],
    [
      'any',
      '/api/plain/native',
      'native',
      'controllers/PlainController.mjs',
      'not checked: its source is not followed: it is made by code, or comes from a package',
    ],
    ['any', '/api/plain/options', 'options', 'controllers/PlainController.mjs'],
    ['GET,HEAD', '/api/typed', 'index', 'controllers/TypedController.ts', 'data string'],
    ['POST', '/api/typed', 'created', 'controllers/TypedController.ts', 'data { id }'],
    ['any', '/api/typed/index', 'index', 'controllers/TypedController.ts', 'data string'],
    ['any', '/api/typed/created', 'created', 'controllers/TypedController.ts', 'data { id }'],
  ]);
});

test('routes, openapi and new print URLs with the base path', async (t) => {
  inspectHere(t);
  const cwd = makeProject(t, { 'controllers/AController.mjs': "export default {\n  'PUT'() {},\n};\n" });
  const env = { BASE_PATH: '/v1' };
  assert.match((await runHere(run, [], { cwd, env })).out, /^POST +\/v1\/register .*\nPUT +\/v1\/a +PUT +/ms);
  const made = await runHere((argv, io) => runCommand(newCommand, argv, io), ['user'], { cwd, env });
  assert.match(made.out, /GET,HEAD \/v1\/user {2}GET\n.*POST \/v1\/user {2}POST\n/);
  const text = (await runHere((argv, io) => runCommand(openapi, argv, io), [], { cwd, env })).out;
  const { servers, paths } = JSON.parse(text) as { servers: object[]; paths: object };
  assert.deepEqual([servers, Object.keys(paths)], [[{ url: '/v1' }], ['/a', '/user', '/user/{id}']]);
});

test('routes, openapi and new refuse an invalid base path', async (t) => {
  const cwd = makeProject(t, { 'controllers/AController.mjs': "export default {\n  'PUT'() {},\n};\n" });
  const env = { BASE_PATH: 'v1' };
  for (const [refusing, argv] of [
    [command, []],
    [openapi, []],
    [newCommand, ['user']],
  ] as const) {
    const { out, err, code } = await runHere((words, io) => runCommand(refusing, words, io), [...argv], { cwd, env });
    assert.deepEqual([out, code], ['', 1]);
    assert.match(err, /BASE_PATH: "v1" is not a path/);
  }
});

test('routes --json prints one value with the files that do not load, whatever the controllers print', async (t) => {
  const cwd = makeProject(t, {
    'controllers/LoudController.mjs':
      'console.log("{}"); console.error("loud"); setInterval(() => {}, 1000); export default { index() {}, options() {} };\n',
    'controllers/BrokenController.mjs': 'export default {\n  index( {\n};\n',
    'controllers/EmptyController.mjs': '',
    'controllers/ExitController.mjs': 'process.exit(7);',
    'controllers/KillController.mjs': 'process.kill(process.pid, "SIGKILL"); await new Promise(() => {});',
    'controllers/SpinController.mjs': 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);',
    'controllers/StuckController.mjs': 'await new Promise(() => {});',
  });
  const { code, out, err } = await runHere(run, ['--json'], { cwd, env: { LOAD_TIMEOUT: '500ms' } });
  assert.equal(code, 1);
  assert.equal(out.trimEnd().split('\n').length, 1);
  const json = JSON.parse(out) as { routes: { path: string }[]; not_loadable: Record<string, string>[] };
  assert.deepEqual(
    json.routes.slice(4).map(({ path }) => path),
    ['/api/loud', '/api/loud', '/api/loud/index', '/api/loud/options'],
  );
  const dir = join(cwd, 'controllers');
  const reasons = Object.fromEntries(json.not_loadable.map(({ group: name, error }) => [name, error]));
  assert.match(reasons.Broken ?? '', /SyntaxError/);
  assert.match(reasons.Stuck ?? '', /did not finish loading/);
  assert.deepEqual(
    { ...reasons, Broken: '', Stuck: '' },
    {
      Broken: '',
      Empty: 'Error: it exports no group: export a class or an object, as default or as EmptyController',
      Exit: 'it ended the process with exit code 7 while loading',
      Kill: 'SIGKILL ended the process while loading',
      Spin: 'it blocks the process while loading',
      Stuck: '',
    },
  );
  assert.match(json.not_loadable.find(({ group: name }) => name === 'Broken')?.at ?? '', /BrokenController\.mjs:3$/);
  assert.deepEqual(json.not_loadable.find(({ group: name }) => name === 'Empty')?.at, undefined);
  assert.equal(json.not_loadable[0]?.file, join(dir, 'BrokenController.mjs'));
  assert.equal(err.trimEnd().split('\n').length, 6);
  assert.match(err, /^gatefold routes: controllers\/BrokenController\.mjs:3 does not load: SyntaxError/m);
});

test('routes names a service file that does not load once', async (t) => {
  inspectHere(t);
  const cwd = makeProject(t, { 'controllers/service.mjs': 'export default 1;', 'controllers/AController.mjs': '' });
  const { code, out, err } = await runHere(run, ['--json'], { cwd });
  assert.equal(code, 1);
  const { not_loadable: broken } = JSON.parse(out) as { not_loadable: { file: string }[] };
  assert.deepEqual(
    broken.map(({ file }) => file),
    ['service.mjs', 'AController.mjs'].map((name) => join(cwd, 'controllers', name)),
  );
  assert.equal(err.match(/service\.mjs.* does not load/g)?.length, 1, err);
});

test('a command that reads the controllers refuses a missing folder', async (t) => {
  const cwd = makeProject(t);
  rmSync(join(cwd, 'controllers'), { recursive: true });
  for (const name of ['routes', 'openapi', 'types', 'contracts', 'tasks']) {
    const { code, out, err } = await runHere(runGatefold, [name, '--json'], { cwd });
    assert.deepEqual([code, out], [1, '']);
    assert.equal(
      err,
      `gatefold ${name}: Cannot read the controllers folder ${join(cwd, 'controllers')}: it does not exist\n`,
    );
  }
});

test('routes fails when a controller ends the process after it was loaded', async (t) => {
  const cwd = makeProject(t, {
    'controllers/LateController.mjs':
      'const end = process.send; process.send = (message, ...rest) => message.kind === "done" ? process.exit(4) : end.call(process, message, ...rest); export default { index() {} };\n',
  });
  const { code, err } = await runHere(run, [], { cwd });
  assert.equal(code, 1);
  assert.match(
    err,
    /^gatefold routes: Cannot load the controllers in .*: the code ended the process with exit code 4\n$/,
  );
});

test('routes shows the callers, the strict groups of the service file, and the fallback at its own path', async (t) => {
  const cwd = makeProject(t);
  const service = { ...group('service', []), file: 'service.ts' };
  const groups: LoadedGroup[] = [
    group(FALLBACK, ['GET', 'GET {path*}']),
    { ...group('B', ['index', 'pay']), strict: 'service' },
    { ...group('A', ['index']), strict: 'service' },
    { ...group('C', []), operations: [{ name: 'index', access: 'staff' }] },
  ];
  answerInspections(t, () => inspection({ service, groups }));
  const { code, out } = await runHere(run, [], { cwd });
  assert.equal(code, 0);
  const lines = out.trimEnd().split('\n');
  assert.deepEqual(
    lines.slice(4).map((line) => line.replaceAll(/ +/g, ' ')),
    [
      'GET,HEAD /api/a index /srv/AController.ts',
      'GET,HEAD /api/b index /srv/BController.ts',
      'POST /api/b/pay pay /srv/BController.ts',
      'GET,HEAD /api/c index staff /srv/CController.ts',
      'any /api/c/index index staff /srv/CController.ts',
      'GET,HEAD / GET /srv//*Controller.ts',
      'GET,HEAD /{path*} GET {path*} /srv//*Controller.ts',
      '',
      'Strict because of service.ts: A, B',
    ],
  );
  const { routes } = JSON.parse((await runHere(run, ['--json'], { cwd })).out) as { routes: { strict?: string }[] };
  assert.deepEqual(
    routes.slice(4).map(({ strict }) => strict),
    ['service', 'service', 'service', undefined, undefined, undefined, undefined],
  );
  const route = { kind: 'explicit', path: '/', operation: 'x' } as const;
  assert.equal(verbsOf({ ...route, methods: 'any', except: ['POST', 'GET'] }), 'any but POST,GET');
});

test('an inspection that fails ends the command with its reason', async (t) => {
  const cwd = makeProject(t);
  answerInspections(t, () => {
    throw new Error('the folder is gone');
  });
  assert.deepEqual(await runHere(run, [], { cwd }), { code: 1, out: '', err: 'gatefold routes: the folder is gone\n' });
});

test('openapi prints the document of the other controllers, and names one that does not load', async (t) => {
  const cwd = makeProject(t);
  const broken = { ...group('A', []), ok: false, error: 'no luck', path: join(cwd, 'AController.ts') };
  const document = { openapi: '3.1.0' } as unknown as NonNullable<Inspection['document']>;
  answerInspections(t, () => inspection({ document, groups: [broken] }));
  assert.deepEqual(await runHere((argv, io) => runCommand(openapi, argv, io), [], { cwd }), {
    code: 1,
    out: '{\n  "openapi": "3.1.0"\n}\n',
    err: 'gatefold openapi: AController.ts does not load and is not in the document: no luck\n',
  });
});

test('a folder with a new file that ends the process, each time, is left after as many times as it had files', async (t) => {
  const cwd = makeProject(t, { 'controllers/AController.js': '' });
  const skipped: unknown[] = [];
  answerInspections(t, ({ skip }, child) => {
    skipped.push(skip);
    child.emit('message', { kind: 'loading', file: `${'ABC'[skip.length]}Controller.js` });
    child.emit('close', 7, null);
    return undefined;
  });
  const { code, err } = await runHere(run, [], { cwd });
  const reason = 'it ended the process with exit code 7 while loading';
  assert.deepEqual(skipped, [[], [['AController.js', reason]]]);
  const advice = 'the folder keeps changing; try again when it does not';
  assert.deepEqual([code, err], [1, `gatefold routes: Cannot load the controllers: ${advice}\n`]);
});
