// Applies the files of migrations/ that the database does not have yet, in the order of their names. Each file runs in
// a transaction. The lock lets only one process at a time apply files.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from './database.ts';

const FOLDER = join(import.meta.dirname, '../migrations');

/** @returns the names of the applied files */
export function migrate(): Promise<string[]> {
  return sql.begin(async (transaction) => {
    await transaction`select pg_advisory_xact_lock(4711)`;
    await transaction`create table if not exists migrations (name text primary key, applied_at timestamptz default now())`;
    const applied = new Set((await transaction`select name from migrations`).map(({ name }) => name));
    const missing = readdirSync(FOLDER)
      .filter((name) => name.endsWith('.sql') && !applied.has(name))
      .sort();
    for (const name of missing) {
      await transaction.unsafe(readFileSync(join(FOLDER, name), 'utf8'));
      await transaction`insert into migrations (name) values (${name})`;
    }
    return missing;
  });
}

if (process.argv[1] === import.meta.filename) {
  console.log((await migrate()).map((name) => `applied ${name}`).join('\n') || 'nothing to apply');
  await sql.end();
}
