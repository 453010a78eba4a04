// Compares our parser with TypeScript's, declaration by declaration, on this repository and on installed packages.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { differences, outlineOfOurs, outlineOfTypeScript } from './oracle/parsers.ts';

const ROOT = resolve(import.meta.dirname, '../..');

/** Known differences: only TypeScript's own library uses `intrinsic`, which our parser reads as a name. */
const KNOWN = /^alias (?:BuiltinIteratorReturn|Uppercase|Lowercase|Capitalize|Uncapitalize|NoInfer):/;

function compare(files: readonly string[], least: number): void {
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
  assert.ok(count >= least, `${count} declarations were compared`);
}

function typeScriptBelow(folder: string, skipped: RegExp): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.[mc]?ts$/.test(path) && !skipped.test(path))
    .map((path) => join(folder, path));
}

test('our parser reads the same declarations as TypeScript in this repository', () => {
  const samples = typeScriptBelow(join(ROOT, 'test/contract'), /broken/);
  compare([...typeScriptBelow(join(ROOT, 'src'), /^$/), ...samples], 2000);
});

test('our parser reads the same declarations as TypeScript in installed packages', () => {
  const files = typeScriptBelow(join(ROOT, 'node_modules'), /(?:^|\/)typescript-5\/lib\/(?:typescript|tsserver)/);
  const step = process.env.ALL_FILES === undefined ? 10 : 1;
  compare(
    files.filter((_, i) => i % step === 0),
    1000,
  );
});
