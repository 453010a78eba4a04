// Each citation of a document in the code has its target, and each link between documents, too.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, it } from 'node:test';

const ROOT = resolve(import.meta.dirname, '..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const sources = ['src', 'test', 'controllers']
  .flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
  )
  .filter((path) => path.endsWith('.ts'));
const documents = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'CHANGELOG.md',
  ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`),
].filter((path) => path.endsWith('.md'));

/** Returns the citable numbers of a document: `4` for a section `## 4.`, and `4.1` for its list item `1.`. */
function numbersOf(text: string): Set<string> {
  const numbers = new Set<string>();
  let section = '';
  for (const line of text.split('\n')) {
    section = /^## (\d+)\./.exec(line)?.[1] ?? section;
    if (section !== '') numbers.add(section);
    const item = /^(\d+)\. /.exec(line)?.[1];
    if (item !== undefined) numbers.add(`${section}.${item}`);
  }
  return numbers;
}

describe('citations', () => {
  for (const [word, document] of [
    ['decisions', 'docs/DECISIONS.md'],
    ['reference', 'docs/REFERENCE.md'],
  ] as const) {
    it(`of "${word}" name a section or list item that ${document} has`, () => {
      const known = numbersOf(read(document));
      const astray = sources.flatMap((path) =>
        Array.from(read(path).matchAll(new RegExp(`\\b${word} (\\d+(?:\\.\\d+)?)`, 'g')), ([text, number = '']) => ({
          path,
          text,
          number,
        })),
      );
      assert.ok(astray.length > 0);
      assert.deepEqual(
        astray.filter(({ number }) => !known.has(number)),
        [],
      );
    });
  }
});

it('the changelog has the version of package.json', () => {
  const { version } = JSON.parse(read('package.json')) as { version: string };
  assert.match(read('CHANGELOG.md'), new RegExp(`^## ${version.replaceAll('.', '\\.')}\\b`, 'm'));
});

describe('links', () => {
  for (const path of documents) {
    it(`in ${path} lead to existing files`, () => {
      const targets = Array.from(
        read(path).matchAll(/\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)/g),
        ([, target = '']) => target,
      );
      assert.deepEqual(
        targets.filter((target) => !existsSync(resolve(ROOT, path, '..', target))),
        [],
      );
    });
  }
});

it('the last column of docs/GLOSSARY.md names files and rooms of src', () => {
  const places = Array.from(read('docs/GLOSSARY.md').matchAll(/\| ([^|]*) \|$/gm), ([, cell = '']) => cell);
  const paths = places.flatMap((cell) => Array.from(cell.matchAll(/`([^`]+)`/g), ([, path = '']) => path));
  assert.ok(paths.length > 20);
  assert.deepEqual(
    paths.filter((path) => !existsSync(join(ROOT, 'src', path))),
    [],
  );
});

it('a document in the package links only to files of the package', () => {
  const { files } = JSON.parse(read('package.json')) as { files: string[] };
  // npm always adds the last three files.
  const shipped = [...files.filter((path) => !path.startsWith('!')), 'README.md', 'LICENSE', 'package.json'];
  const isShipped = (path: string) => shipped.some((root) => path === root || path.startsWith(`${root}/`));
  const dead = documents.filter(isShipped).flatMap((document) =>
    Array.from(read(document).matchAll(/\]\((?![a-z]+:|#|\{)([^)#\s]+)/g), ([, link = '']) => ({
      document,
      target: relative(ROOT, resolve(ROOT, dirname(document), link)),
    })).filter(({ target }) => !isShipped(target)),
  );
  assert.deepEqual(dead, []);
});

it('CONTRIBUTING.md names existing files and identifiers', () => {
  const text = read('CONTRIBUTING.md');
  for (const [, path = ''] of text.matchAll(/`((?:src|test|\.ci)\/[\w./-]+)`/g))
    assert.ok(existsSync(join(ROOT, path)), path);
  for (const [name, path] of [
    ['tableOf', 'src/base/settings.ts'],
    ['CATALOGUE', 'src/base/errors.ts'],
    ['METRICS', 'src/operate/ops/metrics.ts'],
    ['ROUTES', 'src/request/routes.ts'],
  ] as const)
    assert.ok(text.includes(name) && read(path).includes(name), name);
});
