// The tools of others in a project that `gatefold init` has made: its TypeScript is one that typescript-eslint and
// openapi-typescript take, and all files of the project are compiled and linted.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import semver from 'semver';

const root = resolve(import.meta.dirname, '..');
const run = promisify(execFile);
const here = createRequire(import.meta.url);
const readPackage = (name) => JSON.parse(readFileSync(join(import.meta.dirname, 'node_modules', name, 'package.json')));

test("the template's TypeScript is the newest that its tools take, and compiles every file", {
  timeout: 300_000,
}, async (t) => {
  const work = mkdtempSync(join(import.meta.dirname, 'template-'));
  t.after(() => rmSync(work, { recursive: true, force: true }));
  await run(process.execPath, [join(root, 'dist/cli.js'), 'init', 'shop'], { cwd: work });
  const project = join(work, 'shop');
  const { devDependencies } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'));
  const range = devDependencies.typescript;
  for (const tool of ['typescript-eslint', 'openapi-typescript']) {
    const { version, peerDependencies } = readPackage(tool);
    assert.ok(
      semver.subset(range, peerDependencies.typescript),
      `${tool} ${version} takes ${peerDependencies.typescript}`,
    );
  }
  // When both tools take the next TypeScript, this fails: raise the template's.
  const next = `^${semver.minVersion(range).major + 1}.0.0`;
  const takesNext = (tool) => semver.intersects(next, readPackage(tool).peerDependencies.typescript);
  assert.ok(!(takesNext('typescript-eslint') && takesNext('openapi-typescript')), `both tools take ${next}`);
  assert.ok(semver.satisfies(readPackage('typescript').version, range));

  const links = { gatefold: root, '@types/node': join(root, 'node_modules/@types/node') };
  for (const name of ['typescript', 'eslint', 'typescript-eslint', 'undici-types'])
    links[name] = join(name === 'undici-types' ? root : import.meta.dirname, 'node_modules', name);
  for (const [name, target] of Object.entries(links)) {
    mkdirSync(dirname(join(project, 'node_modules', name)), { recursive: true });
    symlinkSync(target, join(project, 'node_modules', name));
  }
  const tsc = () => run(process.execPath, [here.resolve('typescript/bin/tsc'), '--noEmit'], { cwd: project });
  await tsc();
  const rules = `import tools from 'typescript-eslint';
    export default tools.config(tools.configs.recommendedTypeChecked, { languageOptions: { parserOptions: { projectService: true } } });`;
  writeFileSync(join(project, 'eslint.config.js'), rules);
  const eslint = join(import.meta.dirname, 'node_modules/eslint/bin/eslint.js');
  await run(process.execPath, [eslint, 'controllers'], { cwd: project });
  // A file beside the folders is compiled, too: `worker.ts`, `drizzle.config.ts`.
  writeFileSync(join(project, 'worker.ts'), 'export const n: number = "text";\n');
  await assert.rejects(tsc(), ({ stdout }) => stdout.includes('worker.ts(1,14)'));
});
