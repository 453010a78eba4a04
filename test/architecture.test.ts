// Rules that keep the tree readable. A file imports only from its own room and from lower floors, and it has at most
// 250 lines of code. `import type` may cross floors, because it does not exist at run time. Biome finds import cycles
// (noImportCycles).
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import { describe, it } from 'node:test';

const SRC = resolve(import.meta.dirname, '../src');

/** The floors, lowest first. At run time a file may import from its own room and from floors below its own. */
const FLOORS: readonly (readonly string[])[] = [
  ['own-files'],
  ['base'],
  ['controller', 'client'],
  ['contract', 'credentials', 'https', 'identity', 'limits', 'service', 'trace'],
  ['groups', 'ops', 'store'],
  ['docs', 'http'],
  ['mcp'],
  ['worker'],
  ['supervisor'],
  ['cli'],
  ['cli.ts', 'server.ts', 'worker.ts', 'store-host.ts', 'testing.ts'],
];
/** The floors of the room `contract`, lowest first. The files directly in the room are the highest floor. */
const CONTRACT_FLOORS = ['source', 'types', 'schema', 'check', 'contract'];
/** Maximum lines with code in a file. Comments do not count. */
const MAX_CODE_LINES = 250;
const MAX_WIDTH = 120;
/** Text that the formatter never breaks: a string, a template or a regular expression. */
const UNBROKEN = /['"`/].{40,}['"`/]/;
const FEWEST_LINES = 20;
/** The files that decide who may call an operation. */
const REVIEWED =
  /^(?:http\/[^/]+|(?:credentials|limits)\/.+|groups\/(?:operations|operation-settings|protections)\.ts)$/;

interface SourceFile {
  /** The path relative to src. */
  readonly path: string;
  readonly room: string;
  readonly lines: number;
  readonly code: number;
  /** Numbers of the lines that are too wide. */
  readonly wide: readonly number[];
  /** The files of src that this file imports at run time, relative to src. */
  readonly imports: readonly string[];
}

const files: readonly SourceFile[] = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map(readSource);

describe('the tree of src', () => {
  it('has only imports from the own room and from lower floors', () => {
    const isLower = (target: string, room: string) =>
      roomOf(target) === room || floorOf(roomOf(target)) < floorOf(room);
    assert.deepEqual(
      files.flatMap(({ path, room, imports }) =>
        imports.filter((target) => !isLower(target, room)).map((target) => `${path} imports ${target}`),
      ),
      [],
    );
  });

  it('has no file in the room contract that imports from a higher floor', () => {
    const floorIn = (path: string): number => CONTRACT_FLOORS.indexOf(path.split('/').at(-2) ?? '');
    const upward = files
      .filter(({ room }) => room === 'contract')
      .flatMap(({ path, imports }) =>
        imports
          .filter((target) => roomOf(target) === 'contract' && floorIn(target) > floorIn(path))
          .map((target) => `${path} imports ${target}`),
      );
    assert.deepEqual(upward, []);
  });

  it('has at most 250 lines of code in each file', () => {
    assert.deepEqual(
      files.filter(({ code }) => code > MAX_CODE_LINES).map(({ path, code }) => `${path}: ${code} lines of code`),
      [],
    );
  });

  it('has no line that is wider than 120 columns, except a literal', () => {
    assert.deepEqual(
      files.flatMap(({ path, wide }) => wide.map((line) => `${path}:${line}`)),
      [],
    );
  });

  it('has no file under 20 lines that only one other file imports', () => {
    const short = files.filter(({ path, lines }) => lines < FEWEST_LINES && path.includes('/'));
    // An entry file only connects the rooms, so it has no logic.
    const users = (path: string): SourceFile[] => files.filter(({ imports }) => imports.includes(path));
    const isAlone = (path: string): boolean =>
      users(path).length < 2 && users(path).every((user) => user.path.includes('/'));
    assert.deepEqual(
      short.filter(({ path }) => isAlone(path)).map(({ path }) => path),
      [],
    );
  });

  it('has only rooms that ARCHITECTURE.md names', () => {
    const text = readFileSync(join(SRC, '../docs/ARCHITECTURE.md'), 'utf8');
    const rooms = new Set(files.filter(({ path }) => path.includes('/')).map(({ room }) => room));
    assert.deepEqual(
      [...rooms].filter((room) => !text.includes(`\`${room}/\``)),
      [],
    );
  });

  it('has fewer lines for a security reviewer than ARCHITECTURE.md states', () => {
    const text = readFileSync(join(SRC, '../docs/ARCHITECTURE.md'), 'utf8');
    const stated = Number(/under ([\d,]+) lines/.exec(text)?.[1]?.replace(',', ''));
    const lines = files.filter(({ path }) => REVIEWED.test(path)).reduce((sum, file) => sum + file.lines, 0);
    assert.ok(lines < stated, `${lines} lines, stated: under ${stated}`);
  });
});

function readSource(path: string): SourceFile {
  const text = readFileSync(join(SRC, path), 'utf8');
  const posix = path.split(sep).join('/');
  const lines = text.split('\n').slice(0, -1);
  const isComment = (line: string): boolean => /^\s*(?:\/\/|\/\*|\*)/.test(line);
  return {
    path: posix,
    room: roomOf(posix),
    lines: lines.length,
    code: lines.filter((line) => line.trim() !== '' && !isComment(line)).length,
    wide: lines.flatMap((line, index) =>
      line.length > MAX_WIDTH && (isComment(line) || !UNBROKEN.test(line)) ? [index + 1] : [],
    ),
    imports: runTimeImports(text, path),
  };
}

/** Returns the imports at run time. `import type` and lists of types alone are erased, so they do not count. */
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
  assert.notEqual(floor, -1, `${room} has no floor: add it to FLOORS and to docs/ARCHITECTURE.md`);
  return floor;
}
