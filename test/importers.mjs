// Lists the tests that a change of a file may break, the nearest first. It reads the imports of src and test.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';

/** A text that names another module: an import that is left at run time, or a module that a test starts or writes. */
const NAMES =
  /^(?:import|export)(?! type )[^;']*?from '(\.[^']+)'|\bimport\('(\.[^']+)'\)|module(?:Path|Url)\('([^']+)'\)/gm;
/** A helper of test with this text starts the built service or command, so that its tests reach every file of src. */
const STARTS_DIST = /['"/](?:dist|bin)\/|isDistCurrent/;

/**
 * @typedef {object} Tests
 * @property {string[]} room the tests of the file's own room
 * @property {string[]} direct the tests of other rooms that import the file themselves
 * @property {string[]} far the other tests that reach the file: first by imports, then by starting `dist`
 */

/**
 * @param {string} root the checkout
 * @param {string} changed the path of a file, from there
 * @returns {Tests}
 */
export function testsOf(root, changed) {
  const files = ['src', 'test'].flatMap((tree) =>
    readdirSync(join(root, tree), { recursive: true, encoding: 'utf8' })
      .map((name) => `${tree}/${name.replaceAll(sep, '/')}`)
      .filter((name) => /\.(?:ts|mjs|js)$/.test(name)),
  );
  /** @type {Map<string, string[]>} the files that import a file */
  const importers = new Map(files.map((file) => [file, []]));
  /** @type {string[]} */
  const starters = [];
  for (const file of files) {
    const text = readFileSync(join(root, file), 'utf8');
    for (const [, from, called, named] of text.matchAll(NAMES)) {
      const target =
        named === undefined ? join(dirname(file), from ?? called ?? '').replaceAll(sep, '/') : `${named}.ts`;
      importers.get(target)?.push(file);
    }
    if (file.startsWith('test/') && STARTS_DIST.test(text)) starters.push(file);
  }
  const isTest = (/** @type {string} */ file) => file.endsWith('.test.ts');
  const reached = reach([changed], importers);
  const room = changed.split('/')[1]?.replace(/\.ts$/, '') ?? '';
  const direct = (importers.get(changed) ?? []).concat(changed).filter(isTest);
  const all = [...new Set([...reached, ...(changed.startsWith('src/') ? reach(starters, importers) : [])])].filter(
    isTest,
  );
  const isOwn = (/** @type {string} */ file) => changed.startsWith('src/') && file.startsWith(`test/${room}/`);
  return {
    room: all.filter(isOwn),
    direct: direct.filter((file) => !isOwn(file)),
    far: all.filter((file) => !isOwn(file) && !direct.includes(file)),
  };
}

/**
 * Returns the files that import one of the files, also over others, in the order of their distance.
 *
 * @param {readonly string[]} from
 * @param {ReadonlyMap<string, readonly string[]>} importers
 */
function reach(from, importers) {
  const reached = new Set(from);
  for (const file of reached) for (const importer of importers.get(file) ?? []) reached.add(importer);
  return reached;
}
