// `gatefold init` creates a project that works without a change, and overwrites nothing.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { isDistCurrent } from '../../../build.mjs';
import { startTest } from '../../../src/api/testing.ts';
import { runGatefold } from '../../../src/operate/cli/commands.ts';
import { packagePath } from '../../../src/own-files.ts';
import { makeProject, runHere } from '../../support/command-bench.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const init: Parameters<typeof runHere>[0] = (argv, io) => runGatefold(['init', ...argv], io);
const readJson = (path: string) => JSON.parse(readFileSync(path, 'utf8'));
const TSC = [join(ROOT, 'node_modules/typescript/bin/tsc'), '--noEmit'];
const STRIPS_TYPES = Boolean(process.features.typescript);

/** Installs the packages of this checkout, in the place of `npm install`. */
function install(project: string): void {
  mkdirSync(join(project, 'node_modules/@types'), { recursive: true });
  symlinkSync(ROOT, join(project, 'node_modules/gatefold'));
  for (const name of ['typescript', 'tsx', '@types/node'])
    symlinkSync(join(ROOT, 'node_modules', name), join(project, 'node_modules', name));
}

/**
 * Runs the compiler and the tests of a project. Returns the output of a failure. All tests run in one process.
 * test/readme.test.ts runs the script `test`.
 */
function check(project: string): string {
  assert.ok(isDistCurrent(), 'dist is older than src. Run: npm run build');
  const { NODE_TEST_CONTEXT, NODE_OPTIONS, ...env } = process.env;
  const imports = readdirSync(join(project, 'test')).map((name) => `await import('./test/${name}');`);
  const words = [...(STRIPS_TYPES ? [] : ['--import', 'tsx']), '--input-type=module', '-e', imports.join('\n')];
  const ran = [spawnSync(process.execPath, TSC, { cwd: project, encoding: 'utf8' })];
  ran.push(spawnSync(process.execPath, words, { cwd: project, encoding: 'utf8', env }));
  return ran.flatMap(({ status, stdout, stderr }) => (status === 0 ? [] : [stdout + stderr])).join('');
}

/** The example code of AGENTS.md as files of a project. */
function exampleFiles(): Readonly<Record<string, string>> {
  const text = readFileSync(join(ROOT, 'examples/smallest/AGENTS.md'), 'utf8');
  const [, controller = '', testing = ''] = text.split(/^```ts$/m).map((part) => part.split('\n```')[0] ?? '');
  return {
    'controllers/BookController.ts': controller,
    'lib/books.ts': `export interface NewBook { /** @minLength 1 */ title: string }
      export interface Book extends NewBook { id: number }
      const all: Book[] = [];
      export const books = {
        list: (author?: string) => (author === undefined ? all : []),
        find: (id: number) => all.find((book) => book.id === id),
        remove: (id: number) => void all.splice(0, all.length, ...all.filter((book) => book.id !== id)),
        add(book: NewBook): Book {
          const added = { id: all.length + 1, ...book };
          all.push(added);
          return added;
        },
      };`,
    'test/book.test.ts': testing.replace(
      /^const \{ book \}[\s\S]*$/m,
      (rest) => `test('a book', async () => {${rest}});`,
    ),
  };
}

test('init makes a project that compiles, serves and passes its test, also with the example of AGENTS.md', async (t) => {
  const cwd = makeProject(t);
  const { code, out, err } = await runHere(init, ['My API'], { cwd });
  assert.deepEqual([code, err], [0, '']);
  assert.match(out, /^Made My API\/package\.json$/m);
  assert.match(out, /Next:\n {2}cd 'My API'\n {2}npm install\n {2}npm run dev\n$/);
  const project = join(cwd, 'My API');
  const { name, type, scripts, dependencies } = readJson(join(project, 'package.json'));
  assert.deepEqual([name, type], ['my-api', 'module']);
  assert.equal(resolve(project, dependencies.gatefold.replace('file:', '')), packagePath());
  assert.equal(dependencies.tsx !== undefined, !STRIPS_TYPES);

  install(project);
  mkdirSync(join(project, 'lib'));
  for (const [path, text] of Object.entries(exampleFiles())) writeFileSync(join(project, path), text);
  assert.equal(scripts.test, `node ${STRIPS_TYPES ? '' : '--import tsx '}--test test/*.test.ts`);
  assert.equal(check(project), '');
  const api = await startTest({ controllers: join(project, 'controllers') });
  t.after(() => api.close());
  assert.deepEqual(await (await api.fetch('/hello/Ada')).json(), { hello: 'Ada' });
  assert.equal((await api.fetch('/hello/Ada/more')).status, 404, 'the project is strict: an extra segment is 404');
  assert.equal((await api.fetch('/hello', { method: 'DELETE' })).status, 405);
});

test('the modules that the documents show whole compile in a project that init makes', async (t) => {
  const cwd = makeProject(t);
  await runHere(init, ['.'], { cwd });
  install(cwd);
  symlinkSync(join(ROOT, 'node_modules/postgres'), join(cwd, 'node_modules/postgres'));
  mkdirSync(join(cwd, 'lib'));
  const modules = readdirSync(join(ROOT, 'docs')).flatMap((name) => {
    const blocks = readFileSync(join(ROOT, 'docs', name), 'utf8').matchAll(/^```ts\n([\s\S]*?)^```/gm);
    const texts = Array.from(blocks, ([, text = '']) => text).filter((text) => {
      const imports = Array.from(text.matchAll(/ from '([^']+)'/g), ([, specifier = '']) => specifier);
      return (
        imports.length > 0 &&
        !/^[^'\n]*…/m.test(text) &&
        imports.every((specifier) => /^(?:node:|gatefold|postgres)/.test(specifier))
      );
    });
    return texts.map((text, at) => [`${name}-${at}.ts`, text] as const);
  });
  assert.ok(modules.length > 10);
  for (const [name, text] of modules) writeFileSync(join(cwd, 'lib', name), text);
  const { stdout } = spawnSync(process.execPath, TSC, { cwd, encoding: 'utf8' });
  const isOfFragment = /: error TS(?:2304|2552):/; // a name that another block declares
  assert.deepEqual(
    stdout.split('\n').filter((line) => line.startsWith('lib/') && !isOfFragment.test(line)),
    [],
  );
});

test('init adds no controller, service file or test to a folder that has controllers', async (t) => {
  const cwd = makeProject(t, { 'controllers/MineController.js': 'export default class {}' });
  const { out } = await runHere(init, [], { cwd });
  assert.match(out, /^Made AGENTS\.md$/m);
  assert.deepEqual(readdirSync(join(cwd, 'controllers')), ['MineController.js']);
  assert.equal(existsSync(join(cwd, 'test')), false);
});

test('init prints a cd command with a quoted folder name, without control characters', async (t) => {
  const cwd = makeProject(t);
  for (const [folder, command] of [
    ["it's", "cd 'it'\\''s'"],
    ['a$(id)', "cd 'a$(id)'"],
    ['a\u001b[2J', "cd 'a\ufffd[2J'"],
    ['plain-1', 'cd plain-1'],
    ['../beside', 'cd ../beside'],
  ] as const) {
    const { code, out } = await runHere(init, [folder], { cwd });
    assert.equal(code, 0);
    assert.ok(out.includes(`  ${command}\n`) && !out.includes('\u001b'), out);
  }
});

test('init names the package api when the folder name has no Latin letter', async (t) => {
  const cwd = makeProject(t);
  await runHere(init, ['商店'], { cwd });
  assert.equal(JSON.parse(readFileSync(join(cwd, '商店/package.json'), 'utf8')).name, 'api');
});

test('init overwrites no file, and prints an npm command that adds missing fields to package.json', async (t) => {
  const mine = {
    name: 'mine',
    type: 'commonjs',
    scripts: { test: 'echo "Error: no test specified" && exit 1', start: 'mine' },
  };
  const cwd = makeProject(t, {
    'package.json': JSON.stringify(mine),
    'tsconfig.json': 'mine',
    'controllers/HelloController.ts': 'mine',
  });
  const { code, out } = await runHere(init, [], { cwd });
  assert.equal(code, 0);
  for (const path of ['package.json', 'tsconfig.json']) assert.ok(out.includes(`Kept ${path}\n`), path);
  assert.equal(readFileSync(join(cwd, 'controllers/HelloController.ts'), 'utf8'), 'mine');
  assert.deepEqual(readJson(join(cwd, 'package.json')), mine);
  assert.equal(readFileSync(join(cwd, 'tsconfig.json'), 'utf8'), 'mine');
  const [, command = ''] = /^ {2}(npm pkg set .*)$/m.exec(out) ?? [];
  execFileSync('sh', ['-c', command], { cwd, stdio: 'ignore' });
  const { type, scripts, dependencies, devDependencies } = readJson(join(cwd, 'package.json'));
  assert.deepEqual([type, scripts.start, scripts.dev], ['module', 'mine', 'gatefold dev']);
  assert.match(scripts.test, /^node .*--test/);
  assert.ok(dependencies.gatefold && devDependencies['@types/node'] && devDependencies.typescript);
  const again = await runHere(init, [], { cwd });
  assert.match(again.out, /\nNext:\n {2}npm install\n/);
  // The page adds to a script of `init`, and not to one of your own.
  const withPage = await runHere(init, ['--web'], { cwd });
  assert.match(withPage.out, /npm pkg set .*'scripts\.typecheck=tsc --noEmit && tsc --noEmit -p web'/);
  assert.doesNotMatch(withPage.out, /scripts\.start/);
});

test('init from an installed package depends on the installed version', (t) => {
  const cwd = makeProject(t);
  const installed = join(cwd, 'node_modules/gatefold');
  mkdirSync(installed, { recursive: true });
  for (const name of readdirSync(ROOT))
    if (/^(dist|package\.json|examples|deploy|src)$/.test(name))
      execFileSync('cp', ['-r', join(ROOT, name), installed]);
  const run = (folder: string) => {
    execFileSync(process.execPath, [join(installed, 'dist/cli.js'), 'init', folder], { cwd });
    return readJson(join(cwd, folder, 'package.json')).dependencies.gatefold;
  };
  assert.equal(run('registry'), `^${readJson(join(ROOT, 'package.json')).version}`);
  const lock = { packages: { 'node_modules/gatefold': { resolved: 'file:../gatefold-0.1.0.tgz' } } };
  writeFileSync(join(cwd, 'node_modules/.package-lock.json'), JSON.stringify(lock));
  assert.equal(run('tarball'), `file:${resolve(cwd, '../gatefold-0.1.0.tgz')}`);
  // `npm create gatefold` does the same by the package create-gatefold.
  const create = join(cwd, 'node_modules/create-gatefold');
  execFileSync('cp', ['-r', join(ROOT, 'packages/create-gatefold'), create]);
  execFileSync(process.execPath, [join(create, 'index.js'), 'created'], { cwd });
  assert.ok(existsSync(join(cwd, 'created/controllers/HelloController.ts')));
});

test('init --docker --systemd makes a Dockerfile and a systemd unit', async (t) => {
  const cwd = makeProject(t);
  const { code, out } = await runHere(init, ['shop', '--docker', '--systemd'], { cwd });
  assert.equal(code, 0);
  // An image is built only from files in the folder, so the package must be copied into it.
  assert.match(out, /^ {2}npm install \.\/\$\(npm pack --silent \S+\)$/m);
  const dockerfile = readFileSync(join(cwd, 'shop/Dockerfile'), 'utf8');
  assert.match(dockerfile, /^COPY package\.json package-lock\.json gatefold-\*\.tgz \.\/$/m);
  assert.match(dockerfile, /^COPY \. \.$/m);
  assert.match(readFileSync(join(cwd, 'shop/.dockerignore'), 'utf8'), /^node_modules$[\s\S]*^data$/m);
  assert.match(dockerfile, /^CMD \["node_modules\/\.bin\/gatefold", "serve"\]$/m);
  const unit = readFileSync(join(cwd, 'shop/shop.service'), 'utf8');
  assert.match(unit, /^ExecStart=\/usr\/bin\/node \/opt\/shop\/node_modules\/gatefold\/dist\/server\.js$/m);
  assert.match(unit, /^StateDirectory=shop$/m);
  assert.doesNotMatch(unit, /\/(?:opt|lib|etc)\/gatefold|gatefold\.socket/);
  assert.match(unit, /^Wants=.* shop\.socket$/m);
  assert.match(unit, /^Environment=READY=all$/m);
  const socket = readFileSync(join(cwd, 'shop/shop.socket'), 'utf8');
  assert.match(socket, /^ListenStream=3000\nFileDescriptorName=http\nBacklog=4096$/m);
  assert.doesNotMatch(socket, /gatefold\.s|deploy\//);
});

test('init --web makes a page that Vite builds, and the settings with which the service serves it', async (t) => {
  const cwd = makeProject(t, { 'old/controllers/MineController.js': 'export default class {}' });
  const { code, out } = await runHere(init, ['shop', '--web', '--docker', '--systemd'], { cwd });
  assert.equal(code, 0);
  assert.match(out, /\n {2}npm run dev\n {2}npm run dev:web/);
  const textOf = (path: string) => readFileSync(join(cwd, path), 'utf8');
  const { scripts, devDependencies } = readJson(join(cwd, 'shop/package.json'));
  assert.equal(scripts['build:web'], 'vite build web');
  assert.match(scripts.start, /--public-dir web\/dist --public-fallback index\.html$/);
  // judges/web.test.mjs builds the page with this version.
  assert.equal(devDependencies.vite, readJson(join(ROOT, 'judges/package.json')).devDependencies.vite);
  assert.match(textOf('shop/.gitignore'), /^web\/dist\/\n(?:.*\n)*data\/\ntls\/\n\.env\n\.env\.local\n$/m);
  assert.match(textOf('shop/Dockerfile'), /^ENV PUBLIC_DIR=web\/dist PUBLIC_FALLBACK=index\.html$/m);
  assert.match(textOf('shop/shop.service'), /^Environment=PUBLIC_DIR=\/opt\/shop\/web\/dist /m);
  assert.match(textOf('shop/README.md'), /npm run build:web/);
  assert.match(textOf('shop/web/src/main.ts'), /HelloController/);
  // The page of a project that has controllers must not name one that is missing.
  assert.equal((await runHere(init, ['old', '--web'], { cwd })).code, 0);
  assert.match(textOf('old/web/src/main.ts'), /^import \{ createClient \} from 'gatefold\/client';$/m);
  assert.doesNotMatch(textOf('old/web/src/main.ts'), /HelloController/);
});

test('init refuses a folder that it cannot make and a package.json that it cannot read', async (t) => {
  const cwd = makeProject(t, { file: '', 'broken/package.json': '{' });
  for (const [folder, reason] of [
    [
      'file',
      /Cannot (?:read|make) .*file\/package\.json: (?:something else has this name|a part of the path is not a folder)/,
    ],
    ...(process.platform === 'linux'
      ? [['/proc/x', /Cannot make \/proc\/x\/package\.json: no folder can be made in \/proc/] as const]
      : []),
    ['broken', /Cannot read .*broken\/package\.json: it is not JSON/],
  ] as const) {
    const { code, err } = await runHere(init, [folder], { cwd });
    assert.equal(code, 1);
    assert.match(err, reason);
  }
  assert.deepEqual(readdirSync(join(cwd, 'broken')), ['package.json'], 'nothing was made before');
});

test('the smallest example has the tool versions of this checkout', () => {
  const { devDependencies } = readJson(join(ROOT, 'package.json'));
  const template = readJson(join(ROOT, 'examples/smallest/package.json')).devDependencies;
  assert.equal(template['@types/node'], devDependencies['@types/node']);
  // judges/template.test.mjs compares the version with what the tools of a project take.
  assert.equal(template.typescript, readJson(join(ROOT, 'judges/package.json')).devDependencies.typescript);
});
