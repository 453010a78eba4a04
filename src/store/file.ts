// Presents the files of the data folder as a store, for import and export. The files are production.json with the rows,
// and session.key. The service itself reads these files directly (credentials/table/, credentials/session.ts).
import { readFile } from 'node:fs/promises';
import { errorCode } from '../base/failure.ts';
import { readSessionKey, writeSessionKey } from '../credentials/session.ts';
import { parseTableText } from '../credentials/table/text.ts';
import { sha256 } from '../credentials/token.ts';
import { tablePath, updateTable } from '../credentials/write/store.ts';
import { createRowNames } from './entries.ts';
import { SESSION_KEY } from './session-key.ts';
import { type Entry, type Snapshot, type Store, StoreAway } from './store.ts';

export function createFileStore(dataDir: string): Store {
  async function read(space: 'keys' | 'secrets'): Promise<Snapshot> {
    try {
      const entries = space === 'keys' ? rowEntries(await readRows(dataDir)) : secretEntries(dataDir);
      return { version: digest([...entries].map(([name, { version }]) => `${name} ${version}`).join()), entries };
    } catch (error) {
      throw new StoreAway((error as Error).message, { isFinal: true, cause: error });
    }
  }

  return {
    async read(space, names) {
      const { version, entries } = await read(space);
      const wanted = names === undefined ? entries : [...entries].filter(([name]) => names.includes(name));
      return { version, entries: new Map(wanted) };
    },
    async since(space, version) {
      return (await read(space)).version === version ? { version, changes: [], isComplete: true } : undefined;
    },
    async write(space, changes, _id, spaceVersion) {
      if (space === 'secrets') {
        for (const { value } of changes) writeSessionKey(dataDir, value);
        return true;
      }
      return updateTable(dataDir, ({ rows, append, change }) => {
        const entries = rowEntries(rows);
        const indexes = new Map([...entries.keys()].map((name, index) => [name, index]));
        const version = digest([...entries].map(([name, entry]) => `${name} ${entry.version}`).join());
        const areExpected = changes.every(
          ({ name, expectedVersion }) => (entries.get(name)?.version ?? '') === expectedVersion,
        );
        if (!areExpected || (spaceVersion !== undefined && spaceVersion !== version)) return false;
        for (const { name, value } of changes) {
          const index = indexes.get(name);
          if (index === undefined) append(JSON.parse(value) as object);
          else change(index, JSON.parse(value) as Record<string, unknown>);
        }
        return true;
      });
    },
    async close() {},
  };
}

function rowEntries(rows: readonly unknown[]): Map<string, Entry> {
  const nameOf = createRowNames();
  return new Map(
    rows.map((row) => {
      const value = JSON.stringify(row);
      return [nameOf(row), { version: digest(value), value }];
    }),
  );
}

function secretEntries(dataDir: string): Map<string, Entry> {
  const key = readSessionKey(dataDir);
  return new Map(key === undefined ? [] : [[SESSION_KEY, { version: digest(key), value: key }]]);
}

async function readRows(dataDir: string): Promise<readonly unknown[]> {
  const path = tablePath(dataDir);
  try {
    return parseTableText(await readFile(path)).rows;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw new Error(`Cannot read ${path}: ${(error as Error).message}`);
  }
}

function digest(text: string): string {
  return sha256(text).toString('base64url');
}
