// Connects the parts of this room for one worker: the table (table/live-table.ts), the check of Authorization values
// (identify.ts), sessions (session.ts) and registration (write/).
import { isHttpError, refusal } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { type Identification, identifyCaller, whyNotLive } from './identify.ts';
import { createSessionToken, deriveSessionKey, makeSessionKey, readSessionKey, type Session } from './session.ts';
import { type ChangedRows, createEarlyRows } from './table/early-rows.ts';
import { createLiveTable } from './table/live-table.ts';
import type { CredentialRow, Owner } from './table/row.ts';
import { createRow, type NewRow, refuseRegistration } from './write/changes.ts';
import { ChangeRefused, tablePath, updateTable } from './write/table-file.ts';

/** Requests that wait for a look at the file. Further ones are answered from memory. */
export const MAX_WAITING = 100;

export type Registration = Pick<NewRow, 'name' | 'description'> & { readonly owner: Owner };

/** The kind `away`: the table is older than the setting STORE_MAX_AGE, so no credential is accepted. */
type IdentificationOrAway = Identification | { readonly kind: 'away' };

/**
 * The connection of a worker to the store: a PostgreSQL database whose rows several machines share (src/operate/store).
 * On a machine with a store, the file of the table is a copy of the rows in the store.
 */
export interface SharedTable {
  /** Makes the file equal to the store, if the store answers within seconds. Never rejects. */
  refresh(): Promise<void>;
  /** Adds a row. @throws Error when the store cannot be reached; HttpError when the owner may not register the row */
  register(row: object, request: Registration): Promise<void>;
  /** Whether the table is older than STORE_MAX_AGE, so that no credential may be accepted. */
  isTooOld(): boolean;
  /** Whether all machines get the session key from the store. When this is true, no machine makes its own key. */
  readonly sharesSessionKey: boolean;
  /** Registers a function that is called when the file or the session key may have changed. */
  onChange(listener: () => void): void;
  /** Registers a function that gets the rows that the store has just changed, before the file has them. */
  onRowsChanged(listener: (changed: ChangedRows) => void): void;
}

export type Credentials = Awaited<ReturnType<typeof createCredentials>>;

export interface CredentialsOptions {
  readonly dataDir: string;
  /** The value of the setting SESSION_KEY. When the value is undefined, the file session.key is used. */
  readonly sessionKey: string | undefined;
  readonly log: Log;
  readonly shared?: SharedTable | undefined;
  /** Unix milliseconds. */
  readonly now?: () => number;
}

/** @throws Error with a message of one line, when the file of the table or of the session key exists but is unusable */
export async function createCredentials(options: CredentialsOptions) {
  const { dataDir, sessionKey, log, shared, now = Date.now } = options;
  const table = await createLiveTable(tablePath(dataDir), log);
  const keys = createKeyHolder(dataDir, sessionKey, log, shared?.sharesSessionKey === true);
  let waitingRequests = 0;
  const early = createEarlyRows();
  shared?.onRowsChanged((changed) => early.note(changed, table.current()));
  shared?.onChange(() => {
    keys.forgetKey();
    void table.lookNow().then(() => early.forget(table.current()));
  });
  /** Reads the file again. With a store, the file is first made equal to the store. */
  const refresh = shared === undefined ? table.look : () => shared.refresh().then(table.lookNow);

  function identifyNow(authorization: string): Identification {
    const rows = early.with(table.current());
    const caller = identifyCaller(authorization, { table: rows, now: now(), sessionKey: keys.findKey });
    if (caller.kind !== 'row' || !early.revokes(caller.row.id)) return caller;
    return { kind: 'refused', reason: 'its row is revoked', id: caller.row.id };
  }

  function identify(authorization: string): Identification | Promise<Identification> {
    const caller = identifyNow(authorization);
    if (caller.kind !== 'refused' || !caller.mayBeInFile || waitingRequests >= MAX_WAITING) return caller;
    waitingRequests++;
    return refresh().then(() => {
      waitingRequests--;
      return identifyNow(authorization);
    });
  }

  /** Refuses all credentials while the table is too old: any may have been revoked. Values of other services pass. */
  async function identifyUnlessTooOld(authorization: string): Promise<IdentificationOrAway> {
    const caller = await identify(authorization);
    return shared?.isTooOld() && caller.kind !== 'foreign' ? { kind: 'away' } : caller;
  }

  return {
    /** Returns a promise only when the file must be read first, or the table is too old. Never throws or rejects. */
    identify: (authorization: string): IdentificationOrAway | Promise<IdentificationOrAway> =>
      shared?.isTooOld() ? identifyUnlessTooOld(authorization) : identify(authorization),
    /**
     * Returns the current table. Each change of the file and each revocation makes a new object. While the table is too
     * old, returns undefined. A caller who was identified with another value must be identified again.
     */
    table: (): unknown => (shared?.isTooOld() ? undefined : (early.latestRevocation() ?? table.current())),
    /** Creates a session token. @throws HttpError `SESSION_UNAVAILABLE` without a usable session key */
    issueSession(rowId: string): Session {
      try {
        return createSessionToken(keys.findOrMakeKey(), rowId, now());
      } catch (error) {
        throw refusal('SESSION_UNAVAILABLE', undefined, { cause: error });
      }
    },
    /**
     * Returns live rows, the oldest first. Reads the file first, because another process may just have written one. Its
     * rows are sorted, because a store writes them in the order of a hash (store/row-texts.ts).
     *
     * @throws HttpError `STORE_AWAY` while the table is too old
     */
    async findByOwner(owner: Owner): Promise<CredentialRow[]> {
      await refresh();
      if (shared?.isTooOld()) throw refusal('STORE_AWAY', undefined, { headers: { 'Retry-After': '5' } });
      return table
        .current()
        .rows.ownedBy(owner)
        .filter((row) => whyNotLive(row, now()) === undefined)
        .sort((one, other) => one.createdAt - other.createdAt);
    },
    /**
     * Appends a row to the table, in the store or in the file. Resolves when the row is in memory.
     *
     * @throws HttpError `ALREADY_REGISTERED`, `TOO_MANY_APPLICATIONS`, `REGISTRATION_UNAVAILABLE`, or
     *   `INVALID_REQUEST_DATA` for values that no row can have
     */
    async register(request: Registration): Promise<{ readonly row: CredentialRow; readonly token: string }> {
      try {
        const created = createRow(request, now());
        if (shared === undefined)
          await updateTable(
            dataDir,
            (edited) => {
              const rows = edited.find(request.owner.subject).map(edited.row);
              const code = refuseRegistration(rows, request.owner, request.name, now());
              if (code !== undefined) throw refusal(code);
              edited.append(created.row);
            },
            { known: table.current().text },
          );
        else await shared.register(created.row, request);
        // The client's next request can already use the new token, so the row must be in memory before the answer.
        await table.look();
        const row = table.current().rows.get(created.token.id);
        if (row === undefined)
          throw new Error('The row was written, but then another change removed it from the table');
        return { row, token: created.token.token };
      } catch (error) {
        if (error instanceof ChangeRefused) throw refusal('INVALID_REQUEST_DATA', error.message);
        throw isHttpError(error) ? error : refusal('REGISTRATION_UNAVAILABLE', undefined, { cause: error });
      }
    },
    status: table.status,
    close: table.close,
  };
}

/**
 * Keeps the key that signs session tokens in memory.
 *
 * @param setting the value of SESSION_KEY; when it is undefined, the key is in the file session.key
 * @param isShared whether the store writes that file; if so, this machine makes no key
 */
function createKeyHolder(dataDir: string, setting: string | undefined, log: Log, isShared: boolean) {
  const readKey = (): Buffer | undefined => {
    const text = setting ?? readSessionKey(dataDir);
    return text === undefined ? undefined : deriveSessionKey(text);
  };
  let key = readKey();
  /** The error that was logged last. The same error is not logged again. */
  let loggedMessage = '';
  return {
    /** @throws Error when there is no key and none can be made */
    findOrMakeKey: (): Buffer => {
      key ??= isShared ? readKey() : deriveSessionKey(makeSessionKey(dataDir));
      if (key === undefined) throw new Error('The store has not given this machine the session key yet');
      return key;
    },
    /** Removes the key from memory, because the store may have written another key to the file. */
    forgetKey(): void {
      if (isShared) key = undefined;
    },
    /** Reads the file if there is no key in memory, because another worker may have made the key. */
    findKey(): Buffer | undefined {
      try {
        key ??= readKey();
      } catch (error) {
        const { message } = error as Error;
        if (message !== loggedMessage) log.error('session-key-unusable', { error: message });
        loggedMessage = message;
      }
      return key;
    },
  };
}
