// Makes dist: a few files for the supervisor, one for a worker, and a file a command. A worker loads 1 file
// instead of 65, and starting one is most of what a start and a changed controller cost (docs/PERFORMANCE.md has the
// figures). Nothing is minified: a stack still names what stands in src, and the maps beside the files lead there.
//
// With --separate each file of src becomes one of dist, as coverage needs it: c8 cannot tell the sources of one file apart.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';

const root = import.meta.dirname;
rmSync(`${root}/dist`, { recursive: true, force: true });

if (process.argv.includes('--separate')) {
  tsc('tsconfig.build.json');
} else {
  // One after the other: together, what the commands share with the server would cut the server into many small files.
  for (const entry of ['server', 'worker', 'cli', 'controller', 'client', 'testing']) {
    await build({
      absWorkingDir: root,
      entryPoints: [`src/${entry}.ts`],
      outdir: 'dist',
      bundle: true,
      splitting: true,
      // A package is not ours: `tsx` stays where its user has installed it.
      packages: 'external',
      platform: 'node',
      format: 'esm',
      target: 'node20',
      sourcemap: true,
      logLevel: 'warning',
    });
  }
  // The types of what `import … from 'gatefold'`, `'gatefold/client'` and `'gatefold/testing'` give, and no others.
  tsc('tsconfig.types.json');
  keepTypesOf(['controller', 'client', 'testing']);
}

/**
 * tsc writes the types of every file that it reads; most of them no user of the package can reach.
 *
 * @param {string[]} entries
 */
function keepTypesOf(entries) {
  const reached = new Set(entries.map((entry) => join(root, 'dist', `${entry}.d.ts`)));
  for (const file of reached) {
    // tsc leaves the `.ts` of an import as it is, and not every tool that reads types takes it.
    const text = readFileSync(file, 'utf8').replace(/(from '\.[^']+)\.ts'/g, "$1.js'");
    writeFileSync(file, text);
    for (const [, specifier] of text.matchAll(/from '(\.[^']+)\.js'/g)) reached.add(join(dirname(file), `${specifier}.d.ts`));
  }
  for (const name of readdirSync(join(root, 'dist'), { recursive: true, encoding: 'utf8' })) {
    const file = join(root, 'dist', name);
    if (name.endsWith('.d.ts') && !reached.has(file)) rmSync(file);
  }
  for (const entry of readdirSync(join(root, 'dist'), { withFileTypes: true }))
    if (
      entry.isDirectory() &&
      readdirSync(join(root, 'dist', entry.name), { recursive: true }).every((name) => !String(name).includes('.'))
    )
      rmSync(join(root, 'dist', entry.name), { recursive: true });
}

/** @param {string} config */
function tsc(config) {
  const program = createRequire(import.meta.url)
    .resolve('typescript/package.json')
    .replace(/package\.json$/, 'bin/tsc');
  execFileSync(process.execPath, [program, '-p', config], { stdio: 'inherit', cwd: root });
}
