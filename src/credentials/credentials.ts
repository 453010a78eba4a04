// The registered credentials of one worker. Connects the parts of this room: the table in memory (table/live-table.ts),
// the check of Authorization values (identify.ts), session tokens (session.ts) and registration (write/).
import { isHttpError, refusal } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { type Caller, identifyCaller, whyNotLive } from './identify.ts';
import { createSessionToken, deriveSessionKey, makeSessionKey, readSessionKey, type Session } from './session.ts';
import { createLiveTable, type TableStatus } from './table/live-table.ts';
import { type CredentialRow, findByOwner, type Owner } from './table/table.ts';
import { createRow, refuseRegistration } from './write/changes.ts';
import { ChangeRefused, tablePath, updateTable } from './write/store.ts';

/** Requests that may wait for a new read of the file. Further ones are answered from the table in memory. */
export const MAX_WAITING = 100;
export interface Registration {
  readonly owner: Owner;
  readonly name: string;
  readonly description?: string | undefined;
}

/** `away`: the table is older than STORE_MAX_AGE, so no credential is accepted. */
export type KnownCaller = Caller | { readonly kind: 'away' };

/** The store that several machines share (src/store). The file of the table is then its replica. */
export interface SharedTable {
  /** Makes the file equal to the store. Returns at once while the store is away, and soon otherwise. Never rejects. */
  refresh(): Promise<void>;
  /** Adds a row, unless the identity may not register it. @throws Error when the store is away, or HttpError */
  register(row: object, request: Registration): Promise<void>;
  /** Whether the table is older than STORE_MAX_AGE, so that no credential may be accepted. */
  isTooOld(): boolean;
  /** Whether all machines have the session key of the store, so that no machine makes one. */
  readonly sharesSessionKey: boolean;
  /** Calls back when the file or the session key has changed. */
  onChange(look: () => void): void;
}

export interface Credentials {
  /**
   * Identifies the caller of a request with an Authorization header. Returns a promise only when the file must be read
   * first. Never throws or rejects.
   */
  identify(authorization: string): KnownCaller | Promise<KnownCaller>;
  /** The current table. A change replaces it, and then each caller must be identified again. */
  table(): unknown;
  /** Creates a session token. @throws HttpError `SESSION_UNAVAILABLE` without a session key that can be used or made */
  issueSession(rowId: string): Session;
  /** The owner's live rows, after a read of the file: another process may just have written one. */
  findByOwner(owner: Owner): Promise<CredentialRow[]>;
  /**
   * Appends a row to the table's file.
   *
   * @throws HttpError `ALREADY_REGISTERED`, `TOO_MANY_APPLICATIONS`, `REGISTRATION_UNAVAILABLE`, or
   *   `INVALID_REQUEST_DATA` for values that no row can have
   */
  register(request: Registration): Promise<{ readonly row: CredentialRow; readonly token: string }>;
  status(): TableStatus;
  /** Stops polling. */
  close(): void;
}

export interface CredentialsOptions {
  readonly dataDir: string;
  /** The value of the setting SESSION_KEY. Without one, the file session.key is used. */
  readonly sessionKey: string | undefined;
  readonly log: Log;
  /** Undefined: the file is the only place of the table. */
  readonly shared?: SharedTable | undefined;
  /** Unix milliseconds. */
  readonly now?: () => number;
}

/** @throws Error one line, when the file of the table or of the session key exists and cannot be used */
export async function createCredentials({
  dataDir,
  sessionKey,
  log,
  shared,
  now = Date.now,
}: CredentialsOptions): Promise<Credentials> {
  const table = await createLiveTable(tablePath(dataDir), log);
  const keys = createKeyHolder(dataDir, sessionKey, log, shared?.sharesSessionKey === true);
  let waiting = 0;
  shared?.onChange(() => {
    keys.forget();
    void table.lookNow();
  });
  const refresh = shared === undefined ? table.look : () => shared.refresh().then(table.lookNow);

  const identifyNow = (authorization: string): Caller =>
    identifyCaller(authorization, { table: table.current(), now: now(), sessionKey: keys.find });

  function identify(authorization: string): Caller | Promise<Caller> {
    const caller = identifyNow(authorization);
    if (caller.kind !== 'refused' || !caller.isUnknown || waiting >= MAX_WAITING) return caller;
    // The row of the token may have been written since the last read.
    waiting++;
    return refresh().then(() => {
      waiting--;
      return identifyNow(authorization);
    });
  }

  /** Refuses each credential while the table is too old: a revocation may have happened since. */
  async function identifyUnlessTooOld(authorization: string): Promise<KnownCaller> {
    const caller = await identify(authorization);
    return shared?.isTooOld() && caller.kind !== 'foreign' ? { kind: 'away' } : caller;
  }

  return {
    identify:
      shared === undefined
        ? identify
        : (authorization) => (shared.isTooOld() ? identifyUnlessTooOld(authorization) : identify(authorization)),
    table: table.current,
    issueSession(rowId) {
      try {
        return createSessionToken(keys.findOrMake(), rowId, now());
      } catch (error) {
        throw refusal('SESSION_UNAVAILABLE', undefined, { cause: error });
      }
    },
    async findByOwner(owner) {
      await refresh();
      return findByOwner(table.current(), owner).filter((row) => whyNotLive(row, now()) === undefined);
    },
    async register(request) {
      try {
        const issued = createRow(request, now());
        if (shared === undefined)
          await updateTable(dataDir, ({ rows, append }) => {
            const code = refuseRegistration(rows, request.owner, request.name, now());
            if (code !== undefined) throw refusal(code);
            append(issued.row);
          });
        else await shared.register(issued.row, request);
        // The client's next request may use the new token.
        await table.look();
        const row = table.current().rows.get(issued.token.id);
        if (row === undefined)
          throw new Error('The row was written, but then another change removed it from the table');
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

/** @param isShared the store writes the key file */
function createKeyHolder(dataDir: string, setting: string | undefined, log: Log, isShared: boolean) {
  const derive = (text: string | undefined) => (text === undefined ? undefined : deriveSessionKey(text));
  let key = derive(setting ?? readSessionKey(dataDir));
  let lastReported = '';
  return {
    findOrMake: (): Buffer => {
      if (isShared) key ??= derive(readSessionKey(dataDir));
      else key ??= deriveSessionKey(makeSessionKey(dataDir));
      if (key === undefined) throw new Error('The store has not given this machine the session key yet');
      return key;
    },
    /** The store may have written another key. */
    forget(): void {
      if (isShared && setting === undefined) key = undefined;
    },
    /** Reads the key file while there is no key: another worker may have made the file meanwhile. */
    find(): Buffer | undefined {
      try {
        key ??= derive(readSessionKey(dataDir));
      } catch (error) {
        const { message } = error as Error;
        if (message !== lastReported) log.error('session-key-unusable', { error: message });
        lastReported = message;
      }
      return key;
    },
  };
}
