// The drawings of docs/LIVE.md and docs/ARCHITECTURE.md name the same states, results and files as the code.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';

const ROOT = resolve(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const LIVE = read('docs/LIVE.md');

/** Returns the text of LIVE.md between this heading and the next one. */
function section(heading: string): string {
  return LIVE.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? assert.fail(`LIVE.md has no section ${heading}`);
}

/** Returns the first block of code in the text. */
function drawing(text: string): string {
  return text.split('```')[1] ?? assert.fail('the section has no drawing');
}

/** Returns the words in the boxes of a drawing. */
function boxes(text: string): string[] {
  return Array.from(text.matchAll(/│ ([a-z]+) [├│]/g), ([, word = '']) => word);
}

/** Returns the strings between `start` and `end` of a source file that this pattern matches. */
function wordsIn(path: string, start: string, end: string, pattern: RegExp): Set<string> {
  const text = read(path).split(start)[1]?.split(end)[0] ?? assert.fail(`${path} has no ${start}`);
  return new Set(Array.from(text.matchAll(pattern), ([, word = '']) => word));
}

function assertFiles(paths: readonly string[]): void {
  assert.ok(paths.length > 5);
  assert.deepEqual(
    paths.filter((path) => !existsSync(join(ROOT, `src/${path}.ts`))),
    [],
  );
}

describe('the drawings in the docs', () => {
  it('show the states of the folder watch', () => {
    const states = wordsIn('src/supervisor/folder/watch.ts', 'type State =', '\ninterface', /kind: '(\w+)'/g);
    assert.deepEqual(new Set(boxes(drawing(section('How a change is seen')))), states);
  });

  it('show the states of a worker', () => {
    const states = wordsIn('src/supervisor/workers/worker-handle.ts', 'export type WorkerState =', ';', /'(\w+)'/g);
    const drawn = drawing(section('The life of a worker'));
    assert.deepEqual(new Set([...boxes(drawn), 'gone']), states);
    const line = /worker\/ \((.*)\)/.exec(read('docs/ARCHITECTURE.md'))?.[1];
    assert.equal(line, [...states].join(' → '));
    const orders = wordsIn(
      'src/worker/messages.ts',
      'export type ToWorker =',
      'export type FromWorker',
      /kind: '(\w+)'/g,
    );
    for (const [, order = ''] of drawn.matchAll(/the order to (\w+)/g)) assert.ok(orders.has(order), order);
  });

  it('name existing files for a generation', () => {
    const paths = drawing(section('How a generation takes over')).match(/\b(?:supervisor|worker|groups)\/[\w/-]+/g);
    assertFiles(paths ?? []);
    const lines = /\nsupervisor\/ .*\n([^`]*)```/.exec(read('docs/ARCHITECTURE.md'))?.[1] ?? '';
    assertFiles(Array.from(lines.matchAll(/^ +([\w/-]+)/gm), ([, name]) => `supervisor/${name}`));
  });

  it('show a new group with the messages, functions and files of the code', () => {
    const text = section('How a new group begins to answer');
    const drawn = text.split('```').filter((_, i) => i % 2 === 1);
    assert.equal(drawn.length, 2);
    const messages = wordsIn(
      'src/worker/messages.ts',
      'export type ToWorker',
      'interface Envelope',
      /kind: '([\w-]+)'/g,
    );
    const quoted = Array.from(text.matchAll(/"([a-z-]+)"/g), ([, word = '']) => word);
    assert.deepEqual(
      quoted.filter((word) => !messages.has(word)),
      [],
    );
    const paths = text.match(/\b(?:supervisor|worker|groups)\/[\w/-]+/g) ?? [];
    assertFiles(paths);
    const code = [...new Set(paths), 'supervisor/rollout', 'supervisor/group-table', 'supervisor/workers/worker-handle']
      .map((path) => read(`src/${path}.ts`))
      .join();
    const names = new Set(text.match(/\b[a-z]+[A-Z]\w*/g));
    assert.ok(names.size > 8);
    assert.deepEqual(
      [...names].filter((name) => !code.includes(name)),
      [],
    );
  });

  it('name existing files for a request, a key and a certificate', () => {
    const drawn = read('docs/ARCHITECTURE.md')
      .split('```')
      .filter((_, i) => i % 2 === 1)
      .join();
    const paths = drawn.match(/\b[a-z]+\/[\w/-]+(?=\.ts\b)/g) ?? [];
    assert.ok(paths.length > 30);
    assertFiles(paths);
  });

  it('name every result of a step', () => {
    const results = wordsIn('src/supervisor/service.ts', 'export type StepResult =', '\n\n', /kind: '([\w-]+)'/g);
    const text = section('How a generation takes over');
    assert.deepEqual(
      [...results].filter((result) => !text.includes(`\`${result}\``)),
      [],
    );
  });
});
