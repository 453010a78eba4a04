// Compares our parser with TypeScript's, declaration by declaration, on some files of this repository and of installed
// packages. test/slow/more-rounds.slow.ts compares more of them.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { differences, outlineOfOurs, outlineOfTypeScript } from './oracle/parsers.ts';

const ROOT = resolve(import.meta.dirname, '../..');

/** When it is set: all files of this repository, and each n-th file of the packages. */
const { ALL_FILES } = process.env;

/** Known differences: only TypeScript's own library uses `intrinsic`, which our parser reads as a name. */
const KNOWN = /^alias (?:BuiltinIteratorReturn|Uppercase|Lowercase|Capitalize|Uncapitalize|NoInfer):/;

/** Not each file has declarations: fewer than `least` for a file mean that they were not found. */
function compare(all: readonly string[], step: number, least: number): void {
  const files = all.filter((_, i) => i % step === 0);
  const found: string[] = [];
  let count = 0;
  for (const file of files) {
    const source = readFileSync(file, 'utf8');
    const theirs = outlineOfTypeScript(file, source);
    if (theirs === undefined) continue;
    const { compared, different } = differences(outlineOfOurs(source), theirs);
    count += compared;
    found.push(...different.filter((one) => !KNOWN.test(one)).map((one) => `${file}: ${one}`));
  }
  assert.deepEqual(found, []);
  assert.ok(count >= least * files.length, `${count} declarations of ${files.length} files were compared`);
}

function typeScriptBelow(folder: string, skipped = /^$/): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.[mc]?ts$/.test(path) && !skipped.test(path))
    .map((path) => join(folder, path));
}

test('our parser reads the same declarations as TypeScript in this repository', () => {
  compare(typeScriptBelow(join(import.meta.dirname, 'samples')), 1, 10);
  compare(
    ['src', 'test/contract'].flatMap((name) => typeScriptBelow(join(ROOT, name))),
    ALL_FILES === undefined ? 8 : 1,
    5,
  );
});

test('our parser reads the same declarations as TypeScript in installed packages', () => {
  const files = typeScriptBelow(join(ROOT, 'node_modules'), /(?:^|\/)typescript-5\/lib\/(?:typescript|tsserver)/);
  compare(files, Number(ALL_FILES ?? 80), 1);
});
