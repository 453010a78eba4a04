// Makes dist: a few files for the supervisor, one for a worker, and a file a command. A worker loads 1 file
// instead of 65, and starting one is most of what a start and a changed controller cost (docs/PERFORMANCE.md has the
// figures). Nothing is minified: a stack still names what stands in src, and the maps beside the files lead there.
//
// With --separate each file of src becomes one of dist, as coverage needs it: c8 cannot tell the sources of one file apart.
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { build } from 'esbuild';

const root = import.meta.dirname;
rmSync(`${root}/dist`, { recursive: true, force: true });

if (process.argv.includes('--separate')) {
  tsc('tsconfig.build.json');
} else {
  // One after the other: together, what the commands share with the server would cut the server into many small files.
  for (const entry of ['server', 'worker', 'cli', 'controller', 'client']) {
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
  // The types of what `import … from 'gatefold'` and `'gatefold/client'` give.
  tsc('tsconfig.types.json');
}

/** @param {string} config */
function tsc(config) {
  const program = createRequire(import.meta.url)
    .resolve('typescript/package.json')
    .replace(/package\.json$/, 'bin/tsc');
  execFileSync(process.execPath, [program, '-p', config], { stdio: 'inherit', cwd: root });
}
