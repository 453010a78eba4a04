// Rule 7 of "How it speaks" (CONTRIBUTING.md): comments and documents are written in plain sentences.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { findRefusedSentences, textFiles } from './support/language.ts';

const ROOT = resolve(import.meta.dirname, '..');
const rooms = ['src', 'test'].flatMap((tree) => readdirSync(join(ROOT, tree)).map((name) => `${tree}/${name}`));
const others = ['bench', 'controllers', 'deploy', 'docs', 'examples', 'judges', 'packages', 'build.mjs'];
const documents = ['CHANGELOG.md', 'CONTRIBUTING.md', 'README.md', 'SECURITY.md'];

describe('the language of comments and documents', () => {
  for (const room of [...rooms, ...others, ...documents]) {
    it(`is plain in ${room}`, () => {
      const findings = textFiles(join(ROOT, room)).flatMap((file) =>
        findRefusedSentences(file).map(({ line, text, rule }) => `${relative(ROOT, file)}:${line}: ${rule}: ${text}`),
      );
      assert.deepEqual(findings, []);
    });
  }
});
