// Makes dist: a few files for the supervisor, one for a worker, and a file a command. A worker loads 1 file
// instead of 65, and starting one is most of what a start and a changed controller cost (docs/PERFORMANCE.md has the
// figures). Nothing is minified: a stack still names what stands in src, and the maps beside the files lead there.
//
//   node build.mjs               builds
//   node build.mjs --separate    each file of src becomes one of dist, as coverage needs it: c8 cannot tell the sources of one file apart
//   node build.mjs --if-stale    builds only when dist is not what src would give: a machine that serves needs no tools
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const root = import.meta.dirname;
const dist = join(root, 'dist');
/** What dist was made of, and how. */
const STAMP = join(dist, '.built.json');
const ENTRIES = ['server', 'worker', 'cli', 'controller', 'client', 'testing'];
/** What a user of the package imports: these have types. */
const TYPED = ['controller', 'client', 'testing'];

if (process.argv[1] === import.meta.filename) await main(process.argv.slice(2));

/** @param {string[]} flags */
async function main(flags) {
  const kind = flags.includes('--separate') ? 'separate' : 'bundled';
  const isCurrent = isDistCurrent();
  if (flags.includes('--if-stale') && isCurrent && (readStamp()?.kind === kind || !hasTools())) return;
  if (!hasTools()) {
    const state = isCurrent ? '' : `; dist is ${readStamp() === undefined ? 'not there' : 'older than src'}`;
    process.stderr.write(`Cannot build: esbuild and typescript are not installed${state}. Run: npm ci\n`);
    process.exitCode = 1;
    return;
  }
  const sources = hashSources();
  rmSync(dist, { recursive: true, force: true });
  if (kind === 'separate') tsc('tsconfig.build.json');
  else await bundle();
  writeFileSync(join(dist, 'docs.html'), await docsPage());
  writeFileSync(STAMP, JSON.stringify({ kind, sources }));
}

async function bundle() {
  const { build } = await import('esbuild');
  // One after the other: together, what the commands share with the server would cut the server into many small files.
  for (const entry of ENTRIES) {
    await build({
      absWorkingDir: root,
      entryPoints: [`src/${entry}.ts`],
      outdir: 'dist',
      bundle: true,
      splitting: true,
      // A package is not ours: `tsx` stays where its user has installed it.
      packages: 'external',
      // Its errors are those that a test has imported from gatefold/client.
      plugins: entry === 'testing' ? [leaveOut(/\/client\.ts$/, './client.js')] : [],
      platform: 'node',
      format: 'esm',
      target: 'node20',
      sourcemap: true,
      logLevel: 'warning',
    });
  }
  tsc('tsconfig.types.json');
  keepTypesOf(TYPED);
}

/**
 * A file of dist that another one imports and does not contain.
 *
 * @param {RegExp} filter
 * @param {string} path
 * @returns {import('esbuild').Plugin}
 */
function leaveOut(filter, path) {
  return { name: 'leave-out', setup: ({ onResolve }) => onResolve({ filter }, () => ({ path, external: true })) };
}

/** The page at /api/docs, in one file: its style and its script where page.html has a place for them. */
async function docsPage() {
  const { build } = await import('esbuild');
  const folder = join(root, 'src/docs/page');
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

/** Whether dist is what a build would give now. By content: a checkout or a copy gives files any time of change. */
export function isDistCurrent() {
  return readStamp()?.sources === hashSources();
}

/** @returns {{ kind: string, sources: string } | undefined} */
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
    'tsconfig.build.json',
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
 * tsc writes the types of every file that it reads; most of them no user of the package can reach.
 *
 * @param {string[]} entries
 */
function keepTypesOf(entries) {
  const reached = new Set(entries.map((entry) => join(dist, `${entry}.d.ts`)));
  for (const file of reached) {
    // tsc leaves the `.ts` of an import as it is, and not every tool that reads types takes it.
    const text = readFileSync(file, 'utf8').replace(/(from '\.[^']+)\.ts'/g, "$1.js'");
    writeFileSync(file, text);
    for (const [, specifier] of text.matchAll(/from '(\.[^']+)\.js'/g))
      reached.add(join(dirname(file), `${specifier}.d.ts`));
  }
  const made = readdirSync(dist, { recursive: true, withFileTypes: true });
  for (const { name, parentPath } of made)
    if (name.endsWith('.d.ts') && !reached.has(join(parentPath, name))) rmSync(join(parentPath, name));
  for (const entry of made.filter((entry) => entry.isDirectory()).reverse())
    if (readdirSync(join(entry.parentPath, entry.name)).length === 0)
      rmSync(join(entry.parentPath, entry.name), { recursive: true });
}

/** @param {string} config */
function tsc(config) {
  const program = createRequire(import.meta.url)
    .resolve('typescript/package.json')
    .replace(/package\.json$/, 'bin/tsc');
  const { status } = spawnSync(process.execPath, [program, '-p', config], { stdio: 'inherit', cwd: root });
  // It has said why.
  if (status !== 0) process.exit(1);
}
