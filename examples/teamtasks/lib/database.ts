// The connection pool of a worker, and what its errors mean.
import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';

export const DATABASE_URL = process.env.DATABASE_URL ?? 'postgres://localhost/teamtasks';

/** At most POOL connections for each worker. */
export const client = postgres(DATABASE_URL, {
  max: Number(process.env.POOL ?? 5),
  connect_timeout: 5,
  idle_timeout: 60,
  backoff: () => 0.5,
  transform: { undefined: null },
  connection: { application_name: `teamtasks ${process.pid}` },
});

export const db = drizzle(client);

const AWAY = /^(?:ECONN|ENOTFOUND|EAI_|EPIPE|CONNECT|08|57P0|53300)/;

/** Whether an error says that the database cannot be reached. */
export const isAway = (error: unknown): boolean => hasCode(error, AWAY);

/** Whether an error says that PostgreSQL cannot store a value (class 22): a text with a NUL, a number beyond its range. */
export const isUnstorable = (error: unknown): boolean => hasCode(error, /^22/);

/** Drizzle has the error of the client as `cause`. */
function hasCode(error: unknown, codes: RegExp): boolean {
  if (!(error instanceof Error)) return false;
  return codes.test(String((error as { code?: unknown }).code)) || hasCode(error.cause, codes);
}
