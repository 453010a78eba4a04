// Builds dist: a few files for the supervisor, one for a worker, and one for each command. A worker then loads 1 file
// instead of 65. Starting workers takes most of the time of a start and of a reload (docs/PERFORMANCE.md has figures).
// Nothing is minified, so stack traces have the names of src, and source maps lead there.
//
//   node build.mjs               builds
//   node build.mjs --packed      the same for npm pack: no file names its source map, since the package has only that of
//                                the client. Vite logs an error for each map that is named and missing
//   node build.mjs --if-stale    builds only if src has changed since the last build, so that a server needs no tools
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const root = import.meta.dirname;
const dist = join(root, 'dist');
/** Records a hash of the sources of the last build. */
const STAMP = join(dist, '.built.json');
const PROGRAMS = ['server', 'worker', 'store-host', 'cli'];
/** The entries that users of the package import, and that have types. */
const EXPORTS = ['controller', 'client', 'testing'];
/** The source of each entry, without its extension. The output is at the top of dist, whose names are public. */
const ENTRIES = [...PROGRAMS.map((name) => `bin/${name}`), ...EXPORTS.map((name) => `api/${name}`)];

if (process.argv[1] === import.meta.filename) await main(process.argv.slice(2));

/** @param {string[]} flags */
async function main(flags) {
  const isCurrent = isDistCurrent();
  if (flags.includes('--if-stale') && isCurrent) return;
  if (!hasTools()) {
    const state = isCurrent ? '' : `; dist is ${readStamp() === undefined ? 'missing' : 'older than src'}`;
    process.stderr.write(`Cannot build: esbuild and typescript are not installed${state}. Run: npm ci\n`);
    process.exitCode = 1;
    return;
  }
  const sources = hashSources();
  rmSync(dist, { recursive: true, force: true });
  await bundle(flags.includes('--packed'));
  writeFileSync(join(dist, 'docs.html'), await docsPage());
  writeFileSync(STAMP, JSON.stringify({ sources }));
}

/** @param {boolean} isPacked */
async function bundle(isPacked) {
  const { build } = await import('esbuild');
  // Each entry is built alone. Built together, code shared with the commands would split the server into many files.
  for (const entry of ENTRIES) {
    await build({
      absWorkingDir: root,
      entryPoints: [`src/${entry}.ts`],
      outdir: 'dist',
      bundle: true,
      splitting: true,
      // Packages are not bundled: a user installs `tsx`.
      packages: 'external',
      // The test kit must throw the error classes that a test imports from gatefold/client.
      plugins: entry === 'api/testing' ? [leaveOut(/\/client\.ts$/, './client.js')] : [],
      platform: 'node',
      format: 'esm',
      target: 'node20',
      sourcemap: isPacked && entry !== 'api/client' ? 'external' : true,
      logLevel: 'warning',
    });
  }
  tsc('tsconfig.types.json');
  // tsc writes the types in the folders of src.
  for (const name of EXPORTS) writeFileSync(join(dist, `${name}.d.ts`), `export * from './api/${name}.js';\n`);
  keepTypesOf(EXPORTS);
}

/**
 * Makes a bundle import a file of dist instead of containing it.
 *
 * @param {RegExp} filter
 * @param {string} path
 * @returns {import('esbuild').Plugin}
 */
function leaveOut(filter, path) {
  return { name: 'leave-out', setup: ({ onResolve }) => onResolve({ filter }, () => ({ path, external: true })) };
}

/** Builds the page at /api/docs as one file: inserts style and script into page.html. */
async function docsPage() {
  const { build } = await import('esbuild');
  const folder = join(root, 'src/documents/page');
  const style = readFileSync(join(folder, 'page.css'), 'utf8');
  const { outputFiles } = await build({
    entryPoints: [join(folder, 'main.js')],
    bundle: true,
    format: 'esm',
    target: 'es2022',
    charset: 'utf8',
    write: false,
  });
  const parts = {
    '<style></style>': style,
    '<script type="module"></script>': outputFiles.map((file) => file.text).join(''),
  };
  let page = readFileSync(join(folder, 'page.html'), 'utf8');
  for (const [place, text] of Object.entries(parts))
    page = page.replace(place, () => place.replace('><', () => `>\n${text}<`));
  return page;
}

/**
 * Returns whether dist was built from the current sources. Compares contents, because a checkout changes file times.
 */
export function isDistCurrent() {
  return readStamp()?.sources === hashSources();
}

/** @returns {{ sources: string } | undefined} */
function readStamp() {
  try {
    return JSON.parse(readFileSync(STAMP, 'utf8'));
  } catch {
    return undefined;
  }
}

function hashSources() {
  const hash = createHash('sha256');
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.(ts|js|css|html)$/.test(name),
  );
  const files = [
    ...sources.sort().map((name) => join('src', name)),
    'build.mjs',
    'tsconfig.json',
    'tsconfig.types.json',
  ];
  for (const name of files)
    hash
      .update(`${name}\0`)
      .update(readFileSync(join(root, name)))
      .update('\0');
  return hash.digest('base64url');
}

function hasTools() {
  const { resolve } = createRequire(import.meta.url);
  try {
    return ['esbuild', 'typescript/package.json'].every((name) => resolve(name) !== '');
  } catch {
    return false;
  }
}

/**
 * Removes the types that no entry reaches. tsc writes types for every file that it reads.
 *
 * @param {string[]} entries
 */
function keepTypesOf(entries) {
  const reached = new Set(entries.map((entry) => join(dist, `${entry}.d.ts`)));
  for (const file of reached) {
    // tsc keeps `.ts` in an import, which some tools that read types do not accept.
    const text = readFileSync(file, 'utf8').replace(/(from '\.[^']+)\.ts'/g, "$1.js'");
    writeFileSync(file, text);
    for (const [, specifier] of text.matchAll(/from '(\.[^']+)\.js'/g))
      reached.add(join(dirname(file), `${specifier}.d.ts`));
  }
  const built = readdirSync(dist, { recursive: true, withFileTypes: true });
  for (const { name, parentPath } of built)
    if (name.endsWith('.d.ts') && !reached.has(join(parentPath, name))) rmSync(join(parentPath, name));
  for (const entry of built.filter((entry) => entry.isDirectory()).reverse())
    if (readdirSync(join(entry.parentPath, entry.name)).length === 0)
      rmSync(join(entry.parentPath, entry.name), { recursive: true });
}

/** @param {string} config */
function tsc(config) {
  const program = createRequire(import.meta.url)
    .resolve('typescript/package.json')
    .replace(/package\.json$/, 'bin/tsc');
  const { status } = spawnSync(process.execPath, [program, '-p', config], { stdio: 'inherit', cwd: root });
  // tsc has printed its errors.
  if (status !== 0) process.exit(1);
}
