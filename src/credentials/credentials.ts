// The registered credentials of one worker: the table in memory, kept in step with its file; session tokens;
// registration. It wires the parts of this room. What a header value means is identify.ts; what goes live is
// table/live-table.ts.
import { isHttpError, refusal } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { type Caller, identifyCaller, whyNotLive } from './identify.ts';
import { createSessionToken, deriveSessionKey, makeSessionKey, readSessionKey, type Session } from './session.ts';
import { createLiveTable, type TableStatus } from './table/live-table.ts';
import { type CredentialRow, findByOwner, type Owner } from './table/table.ts';
import { countLiveRows, createRow, ownsLiveRow } from './write/changes.ts';
import { ChangeRefused, tablePath, updateTable } from './write/store.ts';

/** While so many requests wait for a look at the file, further ones get their answer from the table in memory. */
export const MOST_WAITING = 100;
/** One identity may register so many applications that are live at a time. */
export const MOST_APPLICATIONS = 100;

export interface Registration {
  readonly owner: Owner;
  readonly name: string;
  readonly description?: string | undefined;
}

export interface Credentials {
  /**
   * It stands on the path of every request with an Authorization header, never throws, and never rejects. A promise
   * only when the file has to be looked at first.
   */
  identify(authorization: string): Caller | Promise<Caller>;
  /**
   * The current table. Each change replaces it, so a caller that one table identified must be identified again by the
   * next.
   */
  table(): unknown;
  /** @throws HttpError `SESSION_UNAVAILABLE` when there is no session key and none can be made */
  issueSession(rowId: string): Session;
  /** Live rows alone, those written a moment ago among them. */
  findByOwner(owner: Owner): Promise<CredentialRow[]>;
  /**
   * @throws HttpError `ALREADY_REGISTERED`, `TOO_MANY_APPLICATIONS`, `REGISTRATION_UNAVAILABLE`; `INVALID_REQUEST_DATA` for
   *   what
   *   no row can hold
   */
  register(request: Registration): Promise<{ readonly row: CredentialRow; readonly token: string }>;
  status(): TableStatus;
  /** Stops polling. */
  close(): void;
}

export interface CredentialsOptions {
  readonly dataDir: string;
  /** As the setting has it; `undefined`: the file session.key. */
  readonly sessionKey: string | undefined;
  readonly log: Log;
  /** Unix milliseconds. */
  readonly now?: () => number;
}

/**
 * @throws Error one line, when the table or the session key is there and cannot be used: a server must not start on
 * that
 */
export async function createCredentials({
  dataDir,
  sessionKey,
  log,
  now = Date.now,
}: CredentialsOptions): Promise<Credentials> {
  const table = await createLiveTable(tablePath(dataDir), log);
  const keys = createKeyHolder(dataDir, sessionKey, log);
  let waiting = 0;

  const identifyNow = (authorization: string): Caller =>
    identifyCaller(authorization, { table: table.current(), now: now(), sessionKey: keys.find });

  return {
    identify(authorization) {
      const caller = identifyNow(authorization);
      if (caller.kind !== 'refused' || !caller.isUnknown || waiting >= MOST_WAITING) return caller;
      // The row of a token may have been written a moment ago.
      waiting++;
      return table.look().then(() => {
        waiting--;
        return identifyNow(authorization);
      });
    },
    table: table.current,
    issueSession(rowId) {
      try {
        return createSessionToken(keys.findOrMake(), rowId, now());
      } catch (error) {
        throw refusal('SESSION_UNAVAILABLE', undefined, { cause: error });
      }
    },
    async findByOwner(owner) {
      await table.look();
      return findByOwner(table.current(), owner).filter((row) => whyNotLive(row, now()) === undefined);
    },
    async register(request) {
      try {
        const issued = createRow(request, now());
        await updateTable(dataDir, ({ rows, append }) => {
          if (ownsLiveRow(rows, request.owner, request.name, now())) throw refusal('ALREADY_REGISTERED');
          if (countLiveRows(rows, request.owner, now()) >= MOST_APPLICATIONS) throw refusal('TOO_MANY_APPLICATIONS');
          append(issued.row);
        });
        // The client may use its token on the very next request.
        await table.look();
        const row = table.current().rows.get(issued.token.id);
        if (row === undefined)
          throw new Error('The row was written, but the table was changed again at once and does not have it');
        return { row, token: issued.token.token };
      } catch (error) {
        if (error instanceof ChangeRefused) throw refusal('INVALID_REQUEST_DATA', error.message);
        throw isHttpError(error) ? error : refusal('REGISTRATION_UNAVAILABLE', undefined, { cause: error });
      }
    },
    status: table.status,
    close: table.close,
  };
}

function createKeyHolder(dataDir: string, setting: string | undefined, log: Log) {
  const derive = (text: string | undefined) => (text === undefined ? undefined : deriveSessionKey(text));
  let key = derive(setting ?? readSessionKey(dataDir));
  let told = '';
  return {
    findOrMake: (): Buffer => {
      key ??= deriveSessionKey(makeSessionKey(dataDir));
      return key;
    },
    /** Another worker may have made the file since the last look. */
    find(): Buffer | undefined {
      try {
        key ??= derive(readSessionKey(dataDir));
      } catch (error) {
        const { message } = error as Error;
        if (message !== told) log.error('session-key-unusable', { error: message });
        told = message;
      }
      return key;
    },
  };
}
