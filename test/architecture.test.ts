// Rules that keep the tree readable. A file imports only from its own part and from what its row of ROOMS lists, and it
// has at most 250 lines of code. `import type` may lead anywhere, because it does not exist at run time. Biome finds
// import cycles (noImportCycles).
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import { describe, it } from 'node:test';

const SRC = resolve(import.meta.dirname, '../src');

/**
 * The ten rooms, and what each may import at run time. A part of a room is a folder or a file in it, and `*` is the rest
 * of the room. A file may import from its own part. `*` may also import the parts of its room that the row lists.
 */
const ROOMS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  base: { '*': 'own-files' },
  api: {
    controller: 'base',
    client: 'base',
    'controller.ts': 'base api/controller',
    'client.ts': 'base api/client',
    'testing.ts': 'base api/controller api/client.ts live/channels live/load live/worker',
  },
  contract: {
    source: 'base',
    types: 'base contract/source',
    schema: 'base contract/source contract/types',
    check: 'base api/controller contract/source contract/types contract/schema',
    '*': 'base api/controller contract/source contract/types contract/schema contract/check',
  },
  callers: {
    credentials: 'base',
    rates: 'base',
    identity: 'base',
    access: 'base api/controller request/body',
  },
  groups: { '*': 'base api/controller contract callers/access' },
  request: {
    body: 'base',
    '*': 'base api/controller callers/access callers/rates groups request/body',
  },
  live: {
    channels: 'base request',
    load: 'own-files base contract groups live/tasks',
    tasks: 'base',
    folder: 'base live/load',
    worker: 'own-files base callers documents live/channels live/load live/tasks operate/tools request',
    supervisor: 'own-files base callers/rates live/channels live/load live/folder live/tasks live/worker',
  },
  documents: { '*': 'base api/controller contract callers/access' },
  operate: {
    https: 'base',
    trace: 'base',
    ops: 'own-files base',
    store: 'base callers/credentials',
    tools: 'base callers/access contract groups request',
    cli: 'own-files base callers contract documents groups live request operate/https operate/store operate/trace',
  },
  bin: { '*': 'own-files base documents live operate' },
};
/** Maximum lines with code in a file. Comments do not count. */
const MAX_CODE_LINES = 250;
const MAX_WIDTH = 120;
/** Text that the formatter never breaks: a string, a template or a regular expression. */
const UNBROKEN = /['"`/].{40,}['"`/]/;
const FEWEST_LINES = 20;
/** The files that decide who may call an operation. */
const REVIEWED =
  /^(?:callers\/(?:access|credentials|rates)\/.+|request\/[^/]+|groups\/(?:operations|operation-settings|protections)\.ts)$/;

interface SourceFile {
  /** The path relative to src. */
  readonly path: string;
  /** `callers/access`, `api/client.ts`, or `base/*`. */
  readonly part: string;
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
  it('has only imports that the row of each part in ROOMS lists', () => {
    assert.deepEqual(
      files.flatMap(({ path, part, imports }) => {
        const allowed = [part, ...importsOf(part)];
        return imports
          .filter((target) => !allowed.includes(partOf(target)))
          .map((target) => `${path} imports ${target}`);
      }),
      [],
    );
  });

  it('has no circle of parts that may import each other', () => {
    const free = new Set(['own-files']);
    const parts = Object.entries(ROOMS).flatMap(([room, rows]) => Object.keys(rows).map((part) => `${room}/${part}`));
    const isFree = (part: string): boolean => importsOf(part).every((target) => free.has(target) || target === part);
    for (let size = 0; size !== free.size; ) {
      size = free.size;
      for (const part of parts) if (isFree(part)) free.add(part);
    }
    assert.deepEqual(
      parts.filter((part) => !free.has(part)),
      [],
    );
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
    // An entry only connects the rooms, so it has no logic.
    const isEntry = (path: string): boolean => /^(?:bin|api)\/[^/]+$/.test(path);
    const short = files.filter(({ path, lines }) => lines < FEWEST_LINES && !isEntry(path));
    const users = (path: string): SourceFile[] => files.filter(({ imports }) => imports.includes(path));
    const isAlone = (path: string): boolean =>
      users(path).length < 2 && users(path).every((user) => !isEntry(user.path));
    assert.deepEqual(
      short.filter(({ path }) => isAlone(path)).map(({ path }) => path),
      [],
    );
  });

  it('has only rooms and parts that ARCHITECTURE.md names', () => {
    const text = readFileSync(join(SRC, '../docs/ARCHITECTURE.md'), 'utf8');
    const folders = new Set(files.map(({ part }) => part.replace(/\*$|[^/]+\.ts$/, '').replace(/\/?$/, '/')));
    folders.delete('own-files/');
    assert.deepEqual(
      [...folders].filter((folder) => !text.includes(`\`${folder}\``)),
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
    part: partOf(posix),
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

/** @param path relative to src */
function partOf(path: string): string {
  if (path === 'own-files.ts') return 'own-files';
  const [room = '', part = ''] = path.split('/');
  const rows = ROOMS[room];
  assert.ok(rows, `${path} is in no room: add a row to ROOMS and to docs/ARCHITECTURE.md`);
  if (part in rows) return `${room}/${part}`;
  assert.ok('*' in rows, `${path} is in no part of ${room}: add it to ROOMS and to docs/ARCHITECTURE.md`);
  return `${room}/*`;
}

/** Returns the parts that a part may import. A row can name a part, or a room for all its parts. */
function importsOf(part: string): string[] {
  const [room = '', name = ''] = part.split('/');
  return (ROOMS[room]?.[name] ?? '').split(' ').flatMap((target) => {
    const rows = ROOMS[target];
    return rows === undefined ? [target] : Object.keys(rows).map((key) => `${target}/${key}`);
  });
}
