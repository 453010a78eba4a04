// The connection pool of a worker, and the refusals that errors of the database become.
import { HttpError } from 'gatefold';
import postgres from 'postgres';

/**
 * At most POOL connections for each worker. A connection opens with a query, and closes when it is idle for a minute.
 */
export const sql = postgres(process.env.DATABASE_URL ?? 'postgres://localhost/conduit', {
  max: Number(process.env.POOL ?? 5),
  connect_timeout: 5,
  idle_timeout: 60,
  // Half a second between two attempts, so that a worker soon answers again after a restart of the database.
  backoff: () => 0.5,
  connection: { application_name: `conduit ${process.pid}` },
  transform: postgres.camel,
});

/** The codes of `postgres` for a connection that ended or never began, and those of PostgreSQL while it restarts. */
const AWAY = /^(?:ECONN|ENOTFOUND|EAI_|EPIPE|CONNECT|08|57P0|53300)/;

/** Whether an error says that the database cannot be reached at the moment. */
export const isAway = (error: unknown): boolean => AWAY.test(codeOf(error));

/** Whether an error says that PostgreSQL cannot store a value (class 22): a text with a NUL, a number beyond its range. */
export const isUnstorable = (error: unknown): boolean => codeOf(error).startsWith('22');

const codeOf = (error: unknown): string => String((error as { code?: unknown } | undefined)?.code);

/** For `.catch`: a duplicate row becomes a refusal, which names the field of the violated constraint. */
export function refuseTaken(error: unknown): never {
  if (!(error instanceof postgres.PostgresError) || error.code !== '23505') throw error;
  throw new HttpError(422, 'TAKEN', `${error.constraint_name} has already been taken`, { cause: error });
}
