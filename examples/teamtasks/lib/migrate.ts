// Applies the files of migrations/ that the database does not have yet, and makes the queue of mails.
import { join } from 'node:path';
import { migrate as applyFiles } from 'drizzle-orm/postgres-js/migrator';
import PgBoss from 'pg-boss';
import { client, DATABASE_URL, db } from './database.ts';

export async function migrate(): Promise<void> {
  await applyFiles(db, { migrationsFolder: join(import.meta.dirname, '../migrations') });
  const boss = new PgBoss(DATABASE_URL);
  await boss.start();
  await boss.createQueue('mail');
  await boss.stop();
}

if (process.argv[1] === import.meta.filename) {
  await migrate();
  await client.end();
}
