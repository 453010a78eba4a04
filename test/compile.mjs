// Makes JavaScript of src and of test, once for all processes of a run. A process that loads 150 files of TypeScript by
// tsx takes 0.6 s more, and one that loads them by Node's own means 0.2 s more. A run starts some 200 such processes.
//
// Each file becomes one file, in the same tree. A stack trace leads to the lines of the source, by its source map.
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const root = join(import.meta.dirname, '..');
/** The entries of the tree that are links. `src` reads files of its package, and finds `node_modules` beside itself. */
const NOT_LINKED = ['src', 'test', '.git'];
/** Files that tests read but no module imports. */
const NOT_COMPILED = /^test\/(soak|contract\/samples|documents\/bookshop)\//;

/** @param {string} folder the folder to make */
export async function compile(folder) {
  mkdirSync(folder);
  for (const name of readdirSync(root))
    if (!NOT_LINKED.includes(name)) symlinkSync(join(root, name), join(folder, name));
  const options = { ...OPTIONS, outdir: folder };
  await Promise.all([
    build({ ...options, entryPoints: filesOf('src') }),
    build({ ...options, entryPoints: filesOf('test'), plugins: [ownPlace, separate], define: PLACE }),
  ]);
  // Gatefold recognizes its own frames in a stack by its folder. So a source map names the source as a file in that
  // folder, beside the output.
  for (const name of filesOf('src')) {
    const map = join(folder, name.replace(/\.ts$/, '.js.map'));
    writeFileSync(map, readFileSync(map, 'utf8').replace(/("sources": \[")[^"]*\//, '$1'));
  }
}

/** @param {string} tree */
function filesOf(tree) {
  return readdirSync(join(root, tree), { recursive: true, encoding: 'utf8' })
    .map((name) => `${tree}/${name.replaceAll(sep, '/')}`)
    .filter((name) => name.endsWith('.ts') && !NOT_COMPILED.test(name));
}

/**
 * Makes each file of src and test one module. esbuild changes the path of an import only in a bundle, so each output is
 * a bundle that leaves out its imports. A file of another folder, such as an example, becomes part of its importer.
 *
 * @type {import('esbuild').Plugin}
 */
const separate = {
  name: 'separate',
  setup({ onResolve }) {
    onResolve({ filter: /^\./ }, ({ path, kind, resolveDir }) => {
      if (kind === 'entry-point') return undefined;
      const file = join(resolveDir, path);
      if (!path.endsWith('.ts')) return { path: pathToFileURL(file).href, external: true };
      const [tree = ''] = relative(root, file).split(sep);
      return ['src', 'test'].includes(tree) ? { path: path.replace(/\.ts$/, '.js'), external: true } : undefined;
    });
  },
};

/** Keeps `import.meta` as in the source, because a test finds its fixtures, dist and the documents from there. */
const PLACE = {
  'import.meta.url': '$place.url',
  'import.meta.dirname': '$place.dirname',
  'import.meta.filename': '$place.filename',
};

/** @type {import('esbuild').Plugin} */
const ownPlace = {
  name: 'own-place',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const place = { url: pathToFileURL(path).href, dirname: dirname(path), filename: path };
      // The text is added to the first line, so that all lines keep their numbers.
      return { contents: `const $place = ${JSON.stringify(place)}; ${readFileSync(path, 'utf8')}`, loader: 'ts' };
    });
  },
};

/** @type {import('esbuild').BuildOptions} */
const OPTIONS = {
  absWorkingDir: root,
  outbase: '.',
  bundle: true,
  treeShaking: false,
  packages: 'external',
  plugins: [separate],
  platform: 'node',
  format: 'esm',
  target: 'node20',
  sourcemap: 'linked',
  sourcesContent: false,
  logLevel: 'warning',
};
