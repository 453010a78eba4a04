// `gatefold store` prepares and shows the store, and copies credentials and the session key from and to a data folder.
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { crypto } from '../../base/builtins.ts';
import { makeFolder } from '../../base/make-folder.ts';
import { writeSessionKey } from '../../callers/credentials/session.ts';
import { FILLING_ADVICE, FILLING_BYTES, MAX_BYTES } from '../../callers/credentials/table/live-table.ts';
import { tablePath, updateTable } from '../../callers/credentials/write/table-file.ts';
import { readTableFile } from '../store/entries.ts';
import type { PostgresStore } from '../store/postgres.ts';
import { SCHEMA } from '../store/schema.ts';
import { createSeal } from '../store/seal.ts';
import { SESSION_KEY, syncSessionKey } from '../store/session-key.ts';
import type { Change } from '../store/store.ts';
import { retryWhileAway } from '../store/update.ts';
import { type Answer, type Command, type CommandCall, CommandError } from './command.ts';
import { withStore } from './credentials-table.ts';

const READS: Command['reads'] = ['controllersDir', 'dataDir', 'store', 'storeKeys'];

export const command: readonly Command[] = [
  {
    name: 'store init',
    about: 'Make the tables of the store; what exists stays as it is',
    flags: { print: 'Print the SQL for an administrator, and change nothing' },
    reads: READS,
    run: init,
  },
  {
    name: 'store status',
    about: 'Show the store, its rows and its machines; exit 1 when it is away',
    reads: READS,
    run: status,
  },
  {
    name: 'store import',
    about: 'Copy the table and the session key of a data folder into the store, all or nothing',
    flags: { merge: 'The store may have rows: add the ones that it lacks, and change none' },
    operands: ['[FOLDER]'],
    reads: READS,
    run: importFolder,
  },
  {
    name: 'store export',
    about: 'Copy the table and the session key of the store into a new data folder',
    operands: ['FOLDER'],
    reads: READS,
    run: exportFolder,
  },
];

async function init({ settings, switches }: CommandCall): Promise<Answer> {
  if (switches.has('print')) return { json: { sql: SCHEMA.trim() }, text: SCHEMA.trim() };
  await withStore(settings, (store) => retryWhileAway(store.init));
  return { json: { prepared: true }, text: 'The store is prepared: schema gatefold.' };
}

async function status({ settings }: CommandCall): Promise<Answer> {
  return withStore(settings, async (store) => {
    const description = await describeStore(store, settings.storeKeys);
    const { version, rows, bytes, machines, secondsAhead: clock, standbys, isWritable: writable } = description;
    const lines = [
      `version:  ${version}`,
      `rows:     ${rows}`,
      `bytes:    ${describeBytes(bytes)}`,
      `writes:   ${writable ? 'accepted' : 'refused, it is read-only'}`,
      `standbys: ${standbys === '' ? 'none is synchronous, so a failover may lose the last keys that were issued' : standbys}`,
      `clock:    ${clock} s ahead of this machine`,
      ...machines.map(({ name, seconds }) => `machine:  ${name}, reported ${seconds} s ago`),
    ];
    return {
      json: { version, rows, bytes, limit: MAX_BYTES, writable, standbys, clock, machines },
      text: lines.join('\n'),
    };
  });
}

export function describeBytes(bytes: number): string {
  const share = `${bytes} of ${MAX_BYTES}, ${Math.floor((100 * bytes) / MAX_BYTES)} %`;
  return bytes > FILLING_BYTES ? `${share}: ${FILLING_ADVICE}` : share;
}

export type StoreDescription = Awaited<ReturnType<typeof describeStore>>;

/** @param keys the keys of STORE_KEY. @throws StoreAway */
export async function describeStore(store: PostgresStore, keys: readonly string[]) {
  const measured = await store.measure();
  const encryptedKey = await readEncryptedKey(store);
  const machines = await store.query(
    `select name, extract(epoch from clock_timestamp() - seen)::int as seconds from gatefold.machine
      where seen > clock_timestamp() - interval '1 hour' order by name`,
  );
  const askedAt = Date.now();
  const [facts] = await store.query(
    `select extract(epoch from clock_timestamp())::float8 as clock, current_setting('transaction_read_only') as read_only,
      current_setting('synchronous_standby_names') as standbys`,
  );
  return {
    /** The version of the rows, which differs after each change, and their number and bytes. */
    ...measured,
    isWritable: facts?.read_only === 'off',
    /** The PostgreSQL setting `synchronous_standby_names`. When it is empty, a failover may lose a confirmed write. */
    standbys: String(facts?.standbys ?? ''),
    /**
     * Whole seconds by which the clock of the store is ahead of the clock here; negative when it is behind. The store
     * read its clock, in seconds, about halfway between the question and the answer, in milliseconds.
     */
    secondsAhead: Math.round(Number(facts?.clock) - (askedAt + Date.now()) / 2 / 1000),
    /** The machines that have reported in the last hour. `seconds` is the age of a machine's latest report. */
    machines: machines.map(({ name, seconds }) => ({ name: String(name), seconds: Number(seconds) })),
    /** Why STORE_KEY does not decrypt the session key in the store; undefined when it does, or when it is not set. */
    keyFailure: encryptedKey === undefined || keys.length === 0 ? undefined : whyUndecryptable(keys, encryptedKey),
  };
}

async function readEncryptedKey(store: PostgresStore): Promise<string | undefined> {
  return (await store.read('secrets', [SESSION_KEY])).entries.get(SESSION_KEY)?.value;
}

function whyUndecryptable(keys: readonly string[], encryptedKey: string): string | undefined {
  try {
    createSeal(keys).open(SESSION_KEY, encryptedKey);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

async function importFolder({ settings, operands, io, switches }: CommandCall): Promise<Answer> {
  const folder = operands[0] === undefined ? settings.dataDir : resolve(io.cwd, operands[0]);
  if (!existsSync(folder)) throw new CommandError(`There is no folder ${folder}`);
  const rows = [...(readTableFile(folder)?.rows ?? [])];
  return withStore(settings, async (store) => {
    const { version, entries } = await store.read('keys');
    if (entries.size > 0 && !switches.has('merge'))
      throw new CommandError(`The store has ${entries.size} rows; --merge adds the ones that it lacks`);
    // An empty expected version means that the store must not have the row.
    const changes = rows.flatMap(([name, value]): Change[] =>
      entries.has(name) ? [] : [{ name, expectedVersion: '', value }],
    );
    const differing = rows.filter(([name, value]) => entries.has(name) && entries.get(name)?.value !== value);
    const copiesKey = settings.storeKeys.length > 0;
    // With a wrong STORE_KEY, this throws before a row is written.
    if (copiesKey) await syncSessionKey(store, createSeal(settings.storeKeys), folder);
    if (changes.length > 0 && !(await store.write('keys', changes, crypto().randomUUID(), version)))
      throw new CommandError('Another process has changed the store meanwhile; run the command again');
    return {
      json: { folder, rows: changes.length, different: differing.map(([name]) => name), session_key: copiesKey },
      text: `Imported ${changes.length} rows of ${tablePath(folder)}.`,
      warnings: [
        ...differing.map(([name]) => `${name} differs in the store, and stays as it is there`),
        ...(copiesKey ? [] : ['the session key was not imported: STORE_KEY is not set']),
      ],
    };
  });
}

async function exportFolder({ settings, operands, io }: CommandCall): Promise<Answer> {
  const folder = resolve(io.cwd, operands[0] ?? '');
  if (existsSync(tablePath(folder))) throw new CommandError(`${tablePath(folder)} exists; name a new folder`);
  return withStore(settings, async (store) => {
    const { entries } = await store.read('keys');
    const encryptedKey = await readEncryptedKey(store);
    const hasKeyToExport = encryptedKey !== undefined && settings.storeKeys.length > 0;
    // With a wrong STORE_KEY, this throws before a file is written.
    const key = hasKeyToExport ? createSeal(settings.storeKeys).open(SESSION_KEY, encryptedKey).text : undefined;
    makeFolder(folder, 0o700);
    // Another process may have made the table since the check above.
    const isNew = await updateTable(folder, ({ length, append }) => {
      if (length > 0) return false;
      for (const { value } of entries.values()) append(JSON.parse(value) as object);
      return true;
    });
    if (!isNew) throw new CommandError(`${tablePath(folder)} was made at the same time`);
    if (key !== undefined) writeSessionKey(folder, key);
    const isKeyLeftOut = encryptedKey !== undefined && key === undefined;
    return {
      json: { folder, rows: entries.size, session_key: key !== undefined },
      text: `Exported ${entries.size} rows to ${tablePath(folder)}.`,
      warnings: isKeyLeftOut ? ['the session key was not exported: STORE_KEY is not set'] : [],
    };
  });
}
