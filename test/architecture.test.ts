// The rules that keep the tree readable: no import runs upward, and rooms of one floor meet only in what stands above them.
// `import type` may cross: it is gone before anything runs. Circles are Biome's (noImportCycles).
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import { describe, it } from 'node:test';

const SRC = resolve(import.meta.dirname, '../src');

/** Lowest first. A file may import, at run time, from its own room and from floors below its own. */
const FLOORS: readonly (readonly string[])[] = [
  ['own-files'],
  ['base'],
  ['controller', 'client'],
  ['contract', 'credentials', 'docs', 'https', 'identity', 'limits'],
  ['groups', 'ops'],
  ['http'],
  ['worker'],
  ['supervisor'],
  ['cli'],
  ['cli.ts', 'server.ts', 'worker.ts', 'testing.ts'],
];

interface SourceFile {
  /** Relative to src. */
  readonly path: string;
  readonly room: string;
  /** Files of src that it imports at run time, relative to src. */
  readonly imports: readonly string[];
}

const files: readonly SourceFile[] = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map(readSource);

describe('the tree of src', () => {
  for (const file of files) {
    it(`${file.path} imports nothing from above or beside it`, () => {
      for (const target of file.imports) {
        const room = roomOf(target);
        if (room === file.room) continue;
        assert.ok(floorOf(room) < floorOf(file.room), `${file.path} imports ${target}, which does not stand below it`);
      }
    });
  }

  it('names every room in ARCHITECTURE.md', () => {
    const text = readFileSync(join(SRC, '../docs/ARCHITECTURE.md'), 'utf8');
    const rooms = new Set(files.filter(({ path }) => path.includes('/')).map(({ room }) => room));
    assert.deepEqual(
      [...rooms].filter((room) => !text.includes(`\`${room}/\``)),
      [],
    );
  });
});

function readSource(path: string): SourceFile {
  const text = readFileSync(join(SRC, path), 'utf8');
  const posix = path.split(sep).join('/');
  return { path: posix, room: roomOf(posix), imports: runTimeImports(text, path) };
}

/** `import type` and lists of nothing but types are erased, and `import('…')` counts only where it is called. */
function runTimeImports(text: string, from: string): string[] {
  const found: string[] = [];
  for (const [, names = '', specifier = '', called = ''] of text.matchAll(
    /^(?:import|export)\s+([^;']*?)from\s+'(\.[^']+)'|^(?!\s*(?:\/\/|\*)).*?\bimport\('(\.[^']+)'\)/gm,
  )) {
    const inside = /^\{([^}]*)\}\s*$/.exec(names.trim())?.[1];
    const isErased = names.startsWith('type ') || inside?.split(',').every((name) => /^\s*(type |$)/.test(name));
    if (called !== '' || !isErased)
      found.push(
        relative(SRC, resolve(SRC, from, '..', called || specifier))
          .split(sep)
          .join('/'),
      );
  }
  return found;
}

function roomOf(path: string): string {
  const [first = ''] = path.split('/');
  if (path.includes('/')) return first;
  const name = first.replace(/\.ts$/, '');
  return FLOORS.some((floor) => floor.includes(first)) ? first : name;
}

function floorOf(room: string): number {
  const floor = FLOORS.findIndex((rooms) => rooms.includes(room));
  assert.notEqual(floor, -1, `${room} stands on no floor: name it in FLOORS and in docs/ARCHITECTURE.md`);
  return floor;
}
