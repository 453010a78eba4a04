// The table in memory follows its file, which people and programs change in every possible way. The files and the
// poll's clock are real.
import assert from 'node:assert/strict';
import fs, {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { HttpError } from '../../../src/base/errors.ts';
import { type Credentials, createCredentials } from '../../../src/callers/credentials/credentials.ts';
import { type ChangedRows, createEarlyRows } from '../../../src/callers/credentials/table/early-rows.ts';
import { createLiveTable } from '../../../src/callers/credentials/table/live-table.ts';
import { EMPTY_TABLE, parseTable } from '../../../src/callers/credentials/table/table.ts';
import { updateTable } from '../../../src/callers/credentials/write/table-file.ts';
import {
  createFolder,
  createMemoryLog,
  type MemoryLog,
  makeRow,
  tableText,
  until,
  writeTable,
} from '../../support/credentials-bench.ts';

interface Bench {
  readonly folder: string;
  readonly file: string;
  readonly log: MemoryLog;
  readonly credentials: Credentials;
}

async function start(t: TestContext, folder = createFolder(t), sessionKey?: string): Promise<Bench> {
  const log = createMemoryLog();
  const credentials = await createCredentials({ dataDir: folder, sessionKey, log });
  t.after(() => credentials.close());
  return { folder, file: join(folder, 'production.json'), log, credentials };
}

async function kindOf(credentials: Credentials, token: string): Promise<string> {
  return (await credentials.identify(`Bearer ${token}`)).kind;
}

async function becomes(credentials: Credentials, token: string, kind: string): Promise<void> {
  while ((await kindOf(credentials, token)) !== kind) await new Promise((resolve) => setTimeout(resolve, 10));
}

const KEY = 'a key of thirty-two characters, at least';

test('createCredentials treats a missing file as an empty table, and loads the file once it exists', async (t) => {
  const { folder, credentials } = await start(t);
  const one = makeRow();
  assert.equal(await kindOf(credentials, one.token), 'refused');
  assert.equal((await credentials.identify('Basic eA==')).kind, 'foreign');
  assert.equal(credentials.status().rows, 0);
  writeTable(folder, one.row);
  await becomes(credentials, one.token, 'row');
  assert.deepEqual(credentials.status(), { rows: 1, quarantined: [], reloads: 1, reloadFailures: 0 });
});

test('createCredentials throws an error of one line for an unusable table or session key', async (t) => {
  const rows: [string, (folder: string) => void, RegExp][] = [
    [
      'a torn table',
      (folder) => writeFileSync(join(folder, 'production.json'), '{"production":['),
      /^Cannot read .*production\.json: it is not JSON \(15 bytes\)$/,
    ],
    [
      'an empty table file',
      (folder) => writeFileSync(join(folder, 'production.json'), ''),
      /it is not JSON \(it is empty\)$/,
    ],
    [
      'a table that is not UTF-8',
      (folder) => writeFileSync(join(folder, 'production.json'), Buffer.from([0xff])),
      /it is not UTF-8$/,
    ],
    [
      'a folder in place of the table',
      (folder) => mkdirSync(join(folder, 'production.json')),
      /it is not a regular file$/,
    ],
    [
      'a link to itself',
      (folder) => symlinkSync('production.json', join(folder, 'production.json')),
      /go round in a circle$/,
    ],
    [
      'a torn session key',
      (folder) => writeFileSync(join(folder, 'session.key'), 'short'),
      /^Cannot use .*session\.key: it has 5 characters/,
    ],
  ];
  for (const [name, prepare, message] of rows) {
    const folder = createFolder(t);
    prepare(folder);
    await assert.rejects(
      createCredentials({ dataDir: folder, sessionKey: undefined, log: createMemoryLog() }),
      { message },
      name,
    );
  }
});

test('createCredentials throws for a table without read permission', {
  skip: process.getuid?.() === 0 && 'root may read everything',
}, async (t) => {
  const folder = createFolder(t);
  writeTable(folder);
  chmodSync(join(folder, 'production.json'), 0);
  await assert.rejects(
    createCredentials({ dataDir: folder, sessionKey: KEY, log: createMemoryLog() }),
    /permission denied$/,
  );
});

/** Ways to replace the text of a file. */
const WAYS: readonly [string, (file: string, text: string) => void][] = [
  ['in place', (file, text) => writeFileSync(file, text)],
  [
    'by rename',
    (file, text) => {
      writeFileSync(`${file}.new`, text);
      renameSync(`${file}.new`, file);
    },
  ],
  [
    'in place, with the same size and time',
    (file, text) => {
      const { atime, mtime } = statSync(file);
      writeFileSync(file, text);
      utimesSync(file, atime, mtime);
    },
  ],
  [
    'by rename, with the same size and time',
    (file, text) => {
      const { atime, mtime } = statSync(file);
      writeFileSync(`${file}.new`, text);
      utimesSync(`${file}.new`, atime, mtime);
      renameSync(`${file}.new`, file);
    },
  ],
  [
    'removed and written again',
    (file, text) => {
      rmSync(file);
      writeFileSync(file, text);
    },
  ],
  [
    'as a link to a file elsewhere',
    (file, text) => {
      writeFileSync(`${file}.real`, text);
      rmSync(file);
      symlinkSync(`${file}.real`, file);
    },
  ],
];

for (const [name, write] of WAYS) {
  test(`a change of the table is live: ${name}`, async (t) => {
    const folder = createFolder(t);
    const [one, two] = [makeRow(), makeRow()];
    writeTable(folder, one.row);
    const { file, credentials } = await start(t, folder);
    assert.equal(await kindOf(credentials, one.token), 'row');
    write(file, tableText(two.row));
    await becomes(credentials, two.token, 'row');
    assert.equal(await kindOf(credentials, one.token), 'refused');
  });
}

test('a change by a command is live at once, without a poll', async (t) => {
  const folder = createFolder(t);
  writeTable(folder, makeRow().row);
  const hour = 3_600_000;
  const table = await createLiveTable(join(folder, 'production.json'), createMemoryLog(), hour);
  t.after(() => table.close());
  for (let count = 2; count < 5; count++) {
    await updateTable(folder, ({ append }) => append(makeRow().row));
    await until(() => table.current().rows.size === count);
  }
});

test('a table in a folder that cannot be watched is found by the polls', async (t) => {
  const [folder, target] = [createFolder(t), createFolder(t)];
  const other = makeRow();
  writeTable(target, makeRow().row);
  symlinkSync(join(target, 'production.json'), join(folder, 'production.json'));
  const { credentials } = await start(t, folder);
  await updateTable(folder, ({ append }) => append(other.row));
  await until(() => credentials.status().rows === 2);
});

test('a change of the table is live: the swap of a mounted secret', async (t) => {
  const folder = createFolder(t);
  const [one, two] = [makeRow(), makeRow()];
  for (const [version, row] of [
    ['..1', one.row],
    ['..2', two.row],
  ] as const) {
    mkdirSync(join(folder, version));
    writeFileSync(join(folder, version, 'production.json'), tableText(row));
    utimesSync(join(folder, version, 'production.json'), 0, 0);
  }
  symlinkSync('..1', join(folder, '..data'));
  symlinkSync('..data/production.json', join(folder, 'production.json'));
  const { credentials } = await start(t, folder);
  assert.equal(await kindOf(credentials, one.token), 'row');
  symlinkSync('..2', join(folder, '..data_tmp'));
  renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
  await becomes(credentials, two.token, 'row');
});

test('each change of a large table is live, also right after another change', async (t) => {
  const folder = createFolder(t);
  const padding = makeRow({ description: 'x'.repeat(900), padding: 'x'.repeat(100_000) });
  const rows = Array.from({ length: 4 }, () => makeRow());
  writeTable(folder, padding.row, rows[0]?.row);
  const { credentials, file } = await start(t, folder);
  for (const { row, token } of rows.slice(1)) {
    const { atime, mtime } = statSync(file);
    writeFileSync(file, tableText(padding.row, row));
    utimesSync(file, atime, mtime);
    await becomes(credentials, token, 'row');
  }
});

test('a bad file keeps the last good table live, and is logged once until the file is good again', async (t) => {
  const folder = createFolder(t);
  const [one, two] = [makeRow(), makeRow()];
  writeTable(folder, one.row);
  const { file, log, credentials } = await start(t, folder);
  const failures = () => log.lines.filter((line) => line.event === 'credentials-reload-failed');
  truncateSync(file, 20);
  await until(() => failures().length === 1);
  assert.equal(await kindOf(credentials, one.token), 'row');
  const { lastFailure, reloadFailures } = credentials.status();
  assert.match(lastFailure ?? '', /production\.json: it is not JSON \(20 bytes\)$/);
  assert.equal(reloadFailures, 1);
  writeFileSync(file, '{"production":5}');
  await until(() => failures().length === 2);
  writeFileSync(file, tableText(one.row));
  await until(() => credentials.status().lastFailure === undefined);
  writeFileSync(file, tableText(two.row));
  await becomes(credentials, two.token, 'row');
  assert.equal(failures().length, 2);
  assert.ok(failures().every((line) => line.level === 'error'));
});

test('an unreadable file keeps the last good table live', async (t) => {
  const folder = createFolder(t);
  const one = makeRow();
  writeTable(folder, one.row);
  const { file, log, credentials } = await start(t, folder);
  rmSync(file);
  mkdirSync(file);
  await until(() => log.lines.some((line) => line.event === 'credentials-reload-failed'));
  assert.equal(await kindOf(credentials, one.token), 'row');
  assert.match(credentials.status().lastFailure ?? '', /it is not a regular file$/);
});

test('a deleted file counts as an empty table, whose tokens are refused', async (t) => {
  const folder = createFolder(t);
  const one = makeRow();
  writeTable(folder, one.row);
  const { file, log, credentials } = await start(t, folder);
  rmSync(file);
  await becomes(credentials, one.token, 'refused');
  assert.equal(log.lines.at(-1)?.fields.missing, true);
});

test('createLiveTable logs quarantined and literal rows once by name, and never their values', async (t) => {
  const folder = createFolder(t);
  const path = join(folder, 'production.json');
  const bad = { ...makeRow().row, name: 'bad one', methods: 5 };
  const literal = { authorization: 'Basic c2VjcmV0', name: 'old one' };
  const log = createMemoryLog();
  writeTable(folder, bad, literal);
  const table = await createLiveTable(path, log);
  t.after(() => table.close());
  const warnings = () => log.lines.filter((line) => line.level === 'warn').map(({ event, fields }) => [event, fields]);
  const first = [
    ['credentials-row-quarantined', { name: 'bad one', reason: '"methods" is not a list of HTTP methods' }],
    ['credentials-literal-rows', { count: 1, names: ['old one'] }],
  ];
  assert.deepEqual(warnings(), first);
  writeTable(folder, bad, literal, makeRow().row);
  await table.look();
  assert.deepEqual(warnings(), first);
  writeTable(folder, ...Array.from({ length: 25 }, (_, i) => ({ name: `bad ${i}` })));
  await table.look();
  assert.equal(warnings().length, 2 + 20 + 1);
  assert.deepEqual(warnings().at(-1), ['credentials-row-quarantined', { more: 5 }]);
  assert.doesNotMatch(JSON.stringify(log.lines), /c2VjcmV0|sha256/);
});

test('issueSession returns a token that every worker of the folder accepts until its row is revoked', async (t) => {
  const folder = createFolder(t);
  const one = makeRow();
  writeTable(folder, one.row);
  const [here, there] = [await start(t, folder), await start(t, folder)];
  assert.deepEqual(readdirSync(folder), ['production.json']);
  const { token, expiresAt } = here.credentials.issueSession(one.id);
  assert.ok(Math.abs(expiresAt - Date.now() / 1000 - 3600) < 60);
  for (const { credentials } of [here, there, await start(t, folder)]) {
    const caller = await credentials.identify(`Bearer ${token}`);
    assert.equal(caller.kind === 'row' ? caller.row.id : caller.kind, one.id);
  }
  writeTable(folder, { ...one.row, revoked_at: '2026-01-01T00:00:00Z' });
  await becomes(there.credentials, token, 'refused');
});

test('machines with the same session key accept each other’s session tokens', async (t) => {
  const one = makeRow();
  const folders = [createFolder(t), createFolder(t), createFolder(t)];
  for (const folder of folders) writeTable(folder, one.row);
  const [a, b] = (await Promise.all(folders.slice(0, 2).map((folder) => start(t, folder, KEY)))).map(
    ({ credentials }) => credentials,
  ) as [Credentials, Credentials];
  assert.equal(await kindOf(b, a.issueSession(one.id).token), 'row');
  assert.equal(
    await kindOf((await start(t, folders[1], `${KEY}!`)).credentials, a.issueSession(one.id).token),
    'refused',
  );
  const withFile = (await start(t, folders[2])).credentials;
  const { token } = withFile.issueSession(one.id);
  const text = readFileSync(join(folders[2] as string, 'session.key'), 'utf8').trim();
  assert.equal(await kindOf((await start(t, folders[0], text)).credentials, token), 'row');
});

test('a session key that is unusable at run time is logged once, and session tokens are refused', async (t) => {
  const folder = createFolder(t);
  const one = makeRow();
  writeTable(folder, one.row);
  const { log, credentials } = await start(t, folder);
  const { token } = (await start(t, createFolder(t), KEY)).credentials.issueSession(one.id);
  assert.deepEqual(await credentials.identify(token), { kind: 'refused', reason: 'there is no session key' });
  writeFileSync(join(folder, 'session.key'), 'torn');
  for (let i = 0; i < 3; i++) assert.equal((await credentials.identify(token)).kind, 'refused');
  assert.throws(
    () => credentials.issueSession(one.id),
    (error: Error & { code?: string }) =>
      error.code === 'SESSION_UNAVAILABLE' && /it has 4 characters/.test(String(error.cause)),
  );
  assert.equal(log.lines.filter((line) => line.event === 'session-key-unusable').length, 1);
});

const OWNER = { issuer: 'https://issuer.example', subject: 's-1' };

test('register writes a row of the owner, which its own worker accepts at once', async (t) => {
  const { credentials: here, folder } = await start(t);
  const { row, token } = await here.register({ owner: OWNER, name: 'app', description: 'd' });
  assert.equal(await kindOf(here, token), 'row');
  assert.deepEqual(row.application, { id: row.id, name: 'app', description: 'd', owner: OWNER });
  assert.deepEqual(await here.findByOwner(OWNER), [row]);
  await assert.rejects(here.register({ owner: OWNER, name: 'app' }), { code: 'ALREADY_REGISTERED', status: 409 });
  const second = await here.register({ owner: OWNER, name: 'app 2' });
  await here.register({ owner: { ...OWNER, subject: 's-2' }, name: 'app' });
  assert.deepEqual(
    (await here.findByOwner(OWNER)).map(({ id }) => id),
    [row.id, second.row.id],
  );
  await updateTable(folder, (table) => table.change(0, { revoked_at: '2026-01-01T00:00:00Z' }));
  await becomes(here, token, 'refused');
  assert.deepEqual(
    (await here.findByOwner(OWNER)).map(({ id }) => id),
    [second.row.id],
  );
  await here.register({ owner: OWNER, name: 'app' });
});

test('findByOwner returns the oldest row first, also where a store has written the table in another order', async (t) => {
  const folder = createFolder(t);
  const days = ['2026-03-01', '2026-01-01', undefined, '2026-02-01'];
  const rows = days.map((created_at) => makeRow({ owner: OWNER, created_at }));
  writeTable(folder, ...rows.map(({ row }) => row));
  const { credentials } = await start(t, folder);
  const [third, first, last, second] = rows.map(({ id }) => id);
  assert.deepEqual(
    (await credentials.findByOwner(OWNER)).map(({ id }) => id),
    [first, second, third, last],
  );
});

test('register creates one row for ten concurrent requests with the same name', async (t) => {
  const { credentials } = await start(t);
  const outcomes = await Promise.allSettled(
    Array.from({ length: 10 }, () => credentials.register({ owner: OWNER, name: 'app' })),
  );
  assert.equal(outcomes.filter((outcome) => outcome.status === 'fulfilled').length, 1);
  for (const outcome of outcomes)
    if (outcome.status === 'rejected') assert.equal(outcome.reason.code, 'ALREADY_REGISTERED');
});

test('register throws a 503 when the table cannot be written, and a 400 for an invalid name', async (t) => {
  const { credentials, file } = await start(t);
  await assert.rejects(credentials.register({ owner: OWNER, name: '' }), { code: 'INVALID_REQUEST_DATA', status: 400 });
  writeFileSync(file, '{"production":');
  await assert.rejects(credentials.register({ owner: OWNER, name: 'app' }), (error: Error & { code?: string }) => {
    assert.equal(error.code, 'REGISTRATION_UNAVAILABLE');
    assert.match(String(error.cause), /Cannot write .*: it is not JSON/);
    return true;
  });
  assert.equal(readFileSync(file, 'utf8'), '{"production":');
});

test('register throws a 503 without a token when the table loses the row right after the write', async (t) => {
  const { credentials, folder } = await start(t);
  const path = join(realpathSync(folder), 'production.json');
  const { renameSync: rename } = fs;
  let written = '';
  t.mock.method(fs, 'renameSync', (from: string, to: string) => {
    rename(from, to);
    if (to !== path) return;
    written = readFileSync(path, 'utf8');
    writeTable(folder);
  });
  syncBuiltinESMExports();
  try {
    await assert.rejects(credentials.register({ owner: OWNER, name: 'app' }), (error: HttpError) => {
      assert.deepEqual([error.code, error.status], ['REGISTRATION_UNAVAILABLE', 503]);
      assert.match(String(error.cause), /another change removed it from the table/);
      return true;
    });
  } finally {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  }
  assert.equal(JSON.parse(written).production.length, 1);
  assert.deepEqual(await credentials.findByOwner(OWNER), []);
});

test('register returns a token that is accepted at once, and refused when the table loses the row after it', async (t) => {
  // No event of this folder reports a change of the file that the link names.
  const folder = createFolder(t);
  symlinkSync(join(createFolder(t), 'table.json'), join(folder, 'production.json'));
  const { credentials } = await start(t, folder);
  const { row, token } = await credentials.register({ owner: OWNER, name: 'app' });
  assert.equal(await kindOf(credentials, token), 'row');
  assert.equal(row.application.name, 'app');
  writeTable(folder);
  await becomes(credentials, token, 'refused');
  assert.deepEqual(await credentials.findByOwner(OWNER), []);
});

test('a store without a session key and without the new row makes issueSession and register throw', async (t) => {
  const folder = createFolder(t);
  let change = () => {};
  const shared = {
    ...{ refresh: async () => {}, register: async () => {}, onRowsChanged: () => {} },
    ...{ isTooOld: () => false, sharesSessionKey: true },
    onChange(listener: () => void) {
      change = listener;
    },
  };
  const credentials = await createCredentials({
    ...{ dataDir: folder, sessionKey: undefined, log: createMemoryLog(), shared, now: () => 0 },
  });
  t.after(() => credentials.close());
  const issue = () => credentials.issueSession('abcdefghijkl').token;
  assert.throws(issue, { code: 'SESSION_UNAVAILABLE' });
  assert.deepEqual(readdirSync(folder), []);
  // The key of the store holds until the store says that it may have another one.
  writeFileSync(join(folder, 'session.key'), KEY);
  const token = issue();
  writeFileSync(join(folder, 'session.key'), `${KEY}!`);
  assert.equal(issue(), token);
  change();
  assert.notEqual(issue(), token);
  await assert.rejects(credentials.register({ owner: OWNER, name: 'app' }), { code: 'REGISTRATION_UNAVAILABLE' });
});

test('findByOwner throws STORE_AWAY while the table is too old, because no session would be accepted', async (t) => {
  const folder = createFolder(t);
  writeTable(folder, makeRow({ owner: OWNER }).row);
  let isTooOld = true;
  const shared = {
    ...{ refresh: async () => {}, register: async () => {}, onChange: () => {}, onRowsChanged: () => {} },
    ...{ isTooOld: () => isTooOld, sharesSessionKey: false },
  };
  const log = createMemoryLog();
  const credentials = await createCredentials({ dataDir: folder, sessionKey: KEY, log, shared });
  t.after(() => credentials.close());
  await assert.rejects(credentials.findByOwner(OWNER), { code: 'STORE_AWAY', status: 503 });
  isTooOld = false;
  assert.equal((await credentials.findByOwner(OWNER)).length, 1);
});

test('a row that the store has revoked is refused before the file has the revocation, and until the file has it', async (t) => {
  const folder = createFolder(t);
  const [one, other] = [makeRow(), makeRow()];
  writeTable(folder, one.row, other.row);
  let [announce, change] = [(_changed: ChangedRows) => {}, () => {}];
  const revoke = (revoked: readonly string[]) => announce({ revoked, added: [] });
  const shared = {
    ...{ refresh: async () => {}, register: async () => {}, isTooOld: () => false, sharesSessionKey: false },
    onRowsChanged(listener: typeof announce) {
      announce = listener;
    },
    onChange(listener: typeof change) {
      change = listener;
    },
  };
  const log = createMemoryLog();
  const credentials = await createCredentials({ dataDir: folder, sessionKey: KEY, log, shared });
  t.after(() => credentials.close());
  const session = credentials.issueSession(String(one.row.id));
  const kinds = () => Promise.all([one, session, other].map(({ token }) => kindOf(credentials, token)));
  assert.deepEqual(await kinds(), ['row', 'row', 'row']);
  const before = credentials.table();
  revoke([String(one.row.id), 'ofNoRowHere1']);
  assert.deepEqual(await kinds(), ['refused', 'refused', 'row']);
  // Open streams of the key end, because the table is another one.
  assert.notEqual(credentials.table(), before);
  const announced = credentials.table();
  revoke([String(other.row.id)]);
  assert.notEqual(credentials.table(), announced);
  // A file that is older than the revocation does not undo it.
  writeTable(folder, one.row, other.row, makeRow().row);
  change();
  await until(() => credentials.status().rows === 3);
  assert.deepEqual(await kinds(), ['refused', 'refused', 'refused']);
  const revoked_at = '2026-01-01T00:00:00Z';
  writeTable(folder, { ...one.row, revoked_at });
  change();
  await until(() => credentials.status().rows === 1);
  // From here, the file decides again.
  writeTable(folder, one.row, other.row);
  change();
  for (const { token } of [one, session, other]) await becomes(credentials, token, 'row');
  // A new row is live before the file has it, unless it has a mistake, or is revoked.
  const [early, wrong, gone] = [makeRow(), makeRow({ groups: 7 }), makeRow()];
  const add = (...rows: object[]) => announce({ revoked: [], added: rows.map((row) => JSON.stringify(row)) });
  const news = () => Promise.all([early, wrong, gone].map(({ token }) => kindOf(credentials, token)));
  const table = credentials.table();
  add(early.row, wrong.row, gone.row);
  assert.deepEqual(await news(), ['row', 'refused', 'row']);
  assert.equal(credentials.table(), table);
  revoke([String(gone.row.id)]);
  assert.deepEqual(await news(), ['row', 'refused', 'refused']);
  add(gone.row);
  assert.deepEqual(await news(), ['row', 'refused', 'row']);
  // From the file on, the file decides, also where it quarantines the row.
  writeTable(folder, early.row, early.row);
  change();
  await until(() => credentials.status().quarantined.length > 0);
  await becomes(credentials, early.token, 'refused');
  add(early.row);
  assert.deepEqual(await news(), ['refused', 'refused', 'row']);
  // A row that two tables lack is gone.
  writeTable(folder, one.row);
  change();
  await becomes(credentials, gone.token, 'refused');
});

test('createCredentials uses the clock of its options', async (t) => {
  const folder = createFolder(t);
  let now = Date.parse('2026-11-21T00:00:00Z');
  const credentials = await createCredentials({
    dataDir: folder,
    sessionKey: KEY,
    log: createMemoryLog(),
    now: () => now,
  });
  t.after(() => credentials.close());
  const { row, token } = await credentials.register({ owner: OWNER, name: 'app' });
  assert.equal(
    JSON.parse(readFileSync(join(folder, 'production.json'), 'utf8')).production[0].created_at,
    '2026-11-21T00:00:00.000Z',
  );
  const session = credentials.issueSession(row.id);
  assert.equal(session.expiresAt, now / 1000 + 3600);
  now += 3_600_000;
  assert.deepEqual([await kindOf(credentials, session.token), await kindOf(credentials, token)], ['refused', 'row']);
});

test('close stops the polling of the table', async (t) => {
  const { folder, credentials } = await start(t);
  credentials.close();
  const one = makeRow();
  writeTable(folder, one.row);
  await new Promise((resolve) => setTimeout(resolve, 600));
  assert.equal(await kindOf(credentials, one.token), 'refused');
});

test('a new row waits for two tables, and the same table counts once', () => {
  const { row } = makeRow();
  const early = createEarlyRows();
  const [one, other] = [parseTable('{"production":[]}'), parseTable('{"production":[]}')];
  early.note({ revoked: [], added: [JSON.stringify(row)] }, EMPTY_TABLE);
  const isKnownAfter = (table: typeof one) => {
    early.forget(table);
    return early.with(table).rows.get(String(row.id)) !== undefined;
  };
  assert.deepEqual([EMPTY_TABLE, one, one, other].map(isKnownAfter), [true, true, true, false]);
});

test('10,000 new rows at most wait for the table', () => {
  const { row } = makeRow();
  const rows = Array.from({ length: 10_001 }, (_, i) => JSON.stringify({ ...row, id: String(i).padStart(12, '0') }));
  const early = createEarlyRows();
  early.note({ revoked: [], added: rows.slice(1) }, EMPTY_TABLE);
  assert.equal(early.with(EMPTY_TABLE).rows.get('000000010000')?.id, '000000010000');
  early.note({ revoked: [], added: rows.slice(0, 1) }, EMPTY_TABLE);
  assert.equal(early.with(EMPTY_TABLE), EMPTY_TABLE);
});
