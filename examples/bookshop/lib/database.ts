// The database connection of a worker. SQLite's write-ahead log lets all workers use the database at the same time.
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

const file = process.env.BOOKSHOP_DB ?? './data/bookshop.sqlite';
mkdirSync(dirname(file), { recursive: true });
export const database = new DatabaseSync(file);
database.exec(`
  PRAGMA busy_timeout = 5000;
  PRAGMA journal_mode = WAL;
  PRAGMA foreign_keys = ON;
  CREATE TABLE IF NOT EXISTS book (
    id INTEGER PRIMARY KEY, title TEXT NOT NULL, author TEXT NOT NULL, isbn TEXT NOT NULL UNIQUE, price REAL NOT NULL,
    currency TEXT NOT NULL, pages INTEGER NOT NULL, publishedOn TEXT NOT NULL, inPrint INTEGER NOT NULL, language TEXT NOT NULL,
    tags TEXT NOT NULL, version INTEGER NOT NULL DEFAULT 1, cover BLOB, coverType TEXT
  ) STRICT;
  CREATE TABLE IF NOT EXISTS review (
    id INTEGER PRIMARY KEY, book INTEGER NOT NULL REFERENCES book ON DELETE CASCADE, stars INTEGER NOT NULL, text TEXT NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS purchase (id INTEGER PRIMARY KEY, book INTEGER NOT NULL, copies INTEGER NOT NULL, paid INTEGER NOT NULL DEFAULT 0) STRICT;
  CREATE TABLE IF NOT EXISTS mail (id INTEGER PRIMARY KEY, purchase INTEGER NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS session (token TEXT PRIMARY KEY, user TEXT NOT NULL) STRICT;
`);

/**
 * The base class of the groups that use the database. It closes the database when the worker ends.
 */
export abstract class ShopController {
  [Symbol.dispose](): void {
    if (database.isOpen) database.close();
  }
}
