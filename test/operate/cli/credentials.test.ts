// `gatefold credentials`: each command, each refusal, the printed texts, and the secrets that are never printed. Runs
// in this process and as a process.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { acquireLock } from '../../../src/base/folder-lock.ts';
import { createSessionToken, deriveSessionKey } from '../../../src/callers/credentials/session.ts';
import { parseTable } from '../../../src/callers/credentials/table/table.ts';
import { generateToken, hashSecret } from '../../../src/callers/credentials/token.ts';
import { readRevokedHere, writeRevokedHere } from '../../../src/callers/credentials/write/local-revocations.ts';
import { runGatefold } from '../../../src/operate/cli/commands.ts';
import { CLI } from '../../support/command-bench.ts';
import { createFolder, makeRow, tableText, writeTable } from '../../support/credentials-bench.ts';
import { LOADER } from '../../support/own-modules.ts';

const NOW = Date.parse('2026-11-21T12:00:00Z');
const TOKEN = /^gfk_[0-9A-Za-z]{12}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/;

interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  readonly json: Record<string, unknown>;
}

interface RunOptions {
  readonly stdin?: string | Buffer;
  readonly env?: Record<string, string>;
  readonly now?: number;
}

function collect(): { stream: Writable; text: () => string } {
  let text = '';
  const stream = new Writable({
    decodeStrings: false,
    write(chunk, _encoding, done) {
      text += chunk;
      done();
    },
  });
  return { stream, text: () => text };
}

async function run(words: readonly string[], { stdin = '', env = {}, now = NOW }: RunOptions = {}): Promise<Outcome> {
  const [stdout, stderr] = [collect(), collect()];
  const code = await runGatefold(['credentials', ...words], {
    env,
    cwd: process.cwd(),
    stdin: Readable.from([Buffer.from(stdin)]),
    stdout: stdout.stream,
    stderr: stderr.stream,
    isTTY: false,
    now: () => now,
  });
  const out = stdout.text();
  return { code, out, err: stderr.text(), json: words.includes('--json') && out !== '' ? JSON.parse(out) : {} };
}

/** Runs commands on one data folder. */
function bench(t: TestContext, folder = createFolder(t)) {
  const env = { DATA_DIR: folder };
  return {
    folder,
    table: () =>
      JSON.parse(readFileSync(join(folder, 'production.json'), 'utf8')).production as Record<string, unknown>[],
    run: (words: string, options: RunOptions = {}) =>
      run(words.split(' '), { ...options, env: { ...env, ...options.env } }),
  };
}

test('issue prints the token on a line, and stores only its hash in the table', async (t) => {
  const { table, run } = bench(t);
  const { code, out, err } = await run(
    'issue --name Orders --methods get,POST,GET --expires 90d --handler orders --description note',
  );
  assert.equal(code, 0);
  assert.match(err, /^gatefold credentials issue: there is no handler group orders in \S+\/controllers yet\n$/);
  const token = out.split('\n').find((line) => TOKEN.test(line)) ?? '';
  const [, id, secret = ''] = token.split('_');
  assert.equal(
    out,
    `Issued ${id} (Orders), it expires 2027-02-19T12:00:00.000Z. The token, shown this once:\n\n${token}\n\n`,
  );
  assert.deepEqual(table(), [
    {
      id,
      name: 'Orders',
      hash: hashSecret(secret),
      handler: 'orders',
      methods: ['GET', 'POST'],
      created_at: '2026-11-21T12:00:00.000Z',
      expires_at: '2027-02-19T12:00:00.000Z',
      description: 'note',
    },
  ]);
});

test('issue --json prints one value with id, name and token, and no hash', async (t) => {
  const { folder, run } = bench(t);
  const { code, json } = await run('issue --name Orders --json');
  assert.equal(code, 0);
  assert.match(String(json.token), TOKEN);
  assert.deepEqual(Object.keys(json), ['id', 'name', 'handler', 'created_at', 'token']);
  // The first key of a newcomer, in a project without a group for it.
  const first = await run('issue --name first', { env: { CONTROLLERS_DIR: folder } });
  assert.match(first.err, /no handler group Sdk in .* yet, so each call .* is a 500\. .*--groups '\*'\n$/);
  const times: [string, string][] = [
    ['2030-01-31', '2030-01-31T00:00:00.000Z'],
    ['2030-01-31T12:00:00Z', '2030-01-31T12:00:00.000Z'],
    ['1m', '2026-11-21T12:01:00.000Z'],
  ];
  for (const [text, iso] of times)
    assert.equal((await run(`issue --name n --json --expires=${text}`)).json.expires_at, iso);
});

test('issue --limit takes a rate and refuses any other value', async (t) => {
  const { run } = bench(t);
  assert.equal((await run('issue --name one --limit 100/s --json')).json.limit, '100/s');
  const { code, err } = await run('issue --name two --limit fast');
  assert.equal(code, 2);
  assert.match(String(err), /--limit must be a rate such as 100\/s/);
});

test('issue stores --groups and --scopes, and reports a missing group; list shows both', async (t) => {
  const { run, table } = bench(t);
  const one = await run('issue --name one --groups test,order,test --scopes orders:read,orders:write --json');
  assert.equal(one.code, 0);
  assert.match(one.err, /^gatefold credentials issue: there is no handler group order in \S+ yet\n$/);
  assert.deepEqual(Object.keys(one.json), ['id', 'name', 'groups', 'scopes', 'created_at', 'token']);
  const all = await run('issue --name all --groups * --expires 45s');
  assert.deepEqual([all.code, all.err], [0, '']);
  assert.deepEqual(
    table().map(({ handler, groups, scopes, expires_at }) => ({ handler, groups, scopes, expires_at })),
    [
      { handler: undefined, groups: ['test', 'order'], scopes: ['orders:read', 'orders:write'], expires_at: undefined },
      { handler: undefined, groups: '*', scopes: undefined, expires_at: '2026-11-21T12:00:45.000Z' },
    ],
  );
  const { out } = await run('list');
  assert.match(out, /one +live +never +all +- +Test,Order +orders:read,orders:write$/m);
  assert.match(out, /all +live +\S+ +all +- +\* +-$/m);
});

test('issue makes a missing data folder that only its owner can read', async (t) => {
  const { folder, run } = bench(t);
  const data = join(folder, 'deep/data');
  const { code } = await run(`issue --name n --data-dir ${data}`);
  assert.deepEqual([code, readdirSync(data), statSync(data).mode & 0o777], [0, ['production.json'], 0o700]);
  writeFileSync(join(folder, 'file'), '');
  const { err } = await run(`issue --name n --data-dir ${folder}/file`);
  assert.match(err, /Cannot make \S+\/file: /);
});

test('list prints a table, and list --json an array, without hashes and literal header values', async (t) => {
  const { folder, run } = bench(t);
  assert.equal((await run('list')).out, 'There are no credentials.\n');
  assert.deepEqual((await run('list --json')).json, []);
  const owner = { issuer: 'https://issuer.example', subject: 's' };
  const rows = [
    makeRow({ name: 'live', methods: ['GET', 'POST'], owner }),
    makeRow({ name: 'expired', expires_at: '2026-01-01' }),
    makeRow({ name: 'revoked\u001b[2J\u202e', revoked_at: '2026-01-01T00:00:00Z', handler: 'orders' }),
    makeRow({ name: 'rotated', previous: [{ hash: hashSecret('x'), expires_at: '2026-12-01T00:00:00Z' }] }),
    makeRow({ name: 'bad', methods: 5 }),
  ] as const;
  writeTable(folder, ...rows.map(({ row }) => row), { authorization: 'Basic c2VjcmV0', name: 'old' }, 7);
  const { out } = await run('list');
  const [live, expired, revoked, rotated, bad] = rows;
  const lines = out.split('\n');
  assert.deepEqual(
    lines.map((line) => line.replaceAll(/ {2,}/g, ' | ')),
    [
      'ID | NAME | STATE | EXPIRES | METHODS | HANDLER | GROUPS | SCOPES',
      `${live.id} | live | live | never | GET,POST | Sdk | - | -`,
      `${expired.id} | expired | expired | 2026-01-01T00:00:00.000Z | all | Sdk | - | -`,
      `${revoked.id} | revoked\ufffd[2J\ufffd | revoked | never | all | orders | - | -`,
      `${rotated.id} | rotated | live | never | all | Sdk | - | -`,
      'old | old | live | never | all | Sdk | - | -',
      `${bad.id} | bad | quarantined: "methods" is not a list of HTTP methods | - | - | - | - | -`,
      '- | row 7 | quarantined: it is not an object | - | - | - | - | -',
      '',
    ],
  );
  const { json, out: text } = await run('list --json');
  assert.doesNotMatch(text, /sha256|c2VjcmV0/);
  assert.deepEqual(json, [
    {
      id: live.id,
      name: 'live',
      owner,
      state: 'live',
      handler: 'Sdk',
      methods: ['GET', 'POST'],
      created_at: '2026-01-01T00:00:00Z',
    },
    {
      id: expired.id,
      name: 'expired',
      state: 'expired',
      handler: 'Sdk',
      created_at: '2026-01-01T00:00:00Z',
      expires_at: '2026-01-01T00:00:00.000Z',
    },
    {
      id: revoked.id,
      name: revoked.row.name,
      state: 'revoked',
      handler: 'orders',
      created_at: '2026-01-01T00:00:00Z',
      revoked_at: '2026-01-01T00:00:00Z',
    },
    {
      id: rotated.id,
      name: 'rotated',
      state: 'live',
      handler: 'Sdk',
      created_at: '2026-01-01T00:00:00Z',
      previous_expires_at: '2026-12-01T00:00:00.000Z',
    },
    { id: 'old', name: 'old', state: 'live', handler: 'Sdk', literal: true },
    { name: 'bad', id: bad.id, reason: '"methods" is not a list of HTTP methods', state: 'quarantined' },
    { name: 'row 7', reason: 'it is not an object', state: 'quarantined' },
  ]);
});

test('rotate keeps the old secret valid until the overlap ends, or ends it at once without an overlap', async (t) => {
  const { run } = bench(t);
  const first = (await run('issue --name n --json')).json;
  const { code, json } = await run(`rotate ${first.id} --overlap 7d --json`);
  assert.equal(code, 0);
  assert.deepEqual(
    { ...json, token: '' },
    { id: first.id, name: 'n', token: '', previous_expires_at: '2026-11-28T12:00:00.000Z' },
  );
  const isLive = async (token: unknown, now = NOW) =>
    (await run('check --json', { stdin: String(token), now })).json.live;
  assert.deepEqual([await isLive(first.token), await isLive(json.token)], [true, true]);
  assert.deepEqual(
    [await isLive(first.token, NOW + 7 * 86_400_000), await isLive(json.token, NOW + 7 * 86_400_000)],
    [false, true],
  );
  const { out } = await run(`rotate ${first.id}`);
  assert.match(
    out,
    new RegExp(
      `^Rotated ${first.id} \\(n\\), the old secret has ended\\. The token, shown this once:\n\ngfk_\\S+\n\n$`,
    ),
  );
  assert.deepEqual([await isLive(first.token), await isLive(json.token)], [false, false]);
  assert.deepEqual(Object.keys((await run(`rotate ${first.id} --json`)).json), ['id', 'name', 'token']);
  assert.match(
    (await run(`rotate ${first.id} --overlap 1h`)).out,
    /the old secret is valid until 2026-11-21T13:00:00\.000Z\./,
  );
});

test('revoke ends a row, and a second revoke keeps the first date', async (t) => {
  const { run, table } = bench(t);
  const { id, token } = (await run('issue --name n --json')).json;
  assert.equal((await run(`revoke ${id}`)).out, `Revoked ${id} (n), as of 2026-11-21T12:00:00.000Z.\n`);
  const again = await run(`revoke ${id} --json`, { now: NOW + 5000 });
  assert.deepEqual([again.code, again.json], [0, { id, name: 'n', revoked_at: '2026-11-21T12:00:00.000Z' }]);
  assert.equal(table()[0]?.revoked_at, '2026-11-21T12:00:00.000Z');
  assert.equal((await run('check', { stdin: String(token) })).code, 1);
  assert.match(
    (await run(`rotate ${id}`)).err,
    /^gatefold credentials rotate: Cannot rotate \S+: the row is revoked; issue a new one\n$/,
  );
});

test('check reports the shape, checksum and state of the token on standard input', async (t) => {
  const { folder, run } = bench(t);
  const live = makeRow({ name: 'n' });
  const revoked = makeRow({ revoked_at: '2026-01-01' });
  writeTable(folder, live.row, revoked.row, { authorization: 'Basic eA==', name: 'old' });
  const unknown = generateToken().token;
  const typo = live.token.slice(0, -1) + (live.token.endsWith('0') ? '1' : '0');
  const key = 'a key of thirty-two characters, at least';
  const session = createSessionToken(deriveSessionKey(key), live.id, NOW).token;
  const ended = createSessionToken(deriveSessionKey(key), live.id, NOW - 3_600_000).token;
  const [yes, no] = [true, false];
  const rows: [string, string, object][] = [
    ['a live token', live.token, { shape: yes, checksum: yes, live: yes, id: live.id, name: 'n' }],
    [
      'a header value with a line end',
      `Bearer ${live.token}\r\n`,
      { shape: yes, checksum: yes, live: yes, id: live.id, name: 'n' },
    ],
    ['a revoked token', revoked.token, { shape: yes, checksum: yes, live: no, reason: 'its row is revoked' }],
    ['a token without a row', unknown, { shape: yes, checksum: yes, live: no, reason: 'no row has its id' }],
    ['a token with a typo', typo, { shape: yes, checksum: no, live: no, reason: 'its shape or checksum is wrong' }],
    [
      'a token before U+00A0',
      `${live.token}\u00a0`,
      { shape: no, checksum: no, live: no, reason: 'its shape or checksum is wrong' },
    ],
    [
      'half of a token',
      live.token.slice(0, 20),
      { shape: no, checksum: no, live: no, reason: 'its shape or checksum is wrong' },
    ],
    [
      'a text that is no token',
      'hello',
      { shape: no, checksum: no, live: no, reason: 'this is not a token of Gatefold' },
    ],
    ['a literal row', 'Basic eA==', { shape: no, checksum: no, live: yes, id: 'old', name: 'old' }],
    ['a session token', session, { shape: yes, checksum: yes, live: yes, id: live.id, name: 'n' }],
    ['an expired session token', ended, { shape: yes, checksum: yes, live: no, reason: 'the session is over' }],
  ];
  for (const [name, stdin, expected] of rows) {
    const { code, json } = await run('check --json', { stdin, env: { SESSION_KEY: key } });
    assert.deepEqual(json, expected, name);
    assert.equal(code, 'reason' in expected ? 1 : 0, name);
  }
  const withoutKey = await run('check --json', { stdin: session });
  assert.deepEqual(withoutKey.json, { shape: yes, checksum: no, live: no, reason: 'there is no session key' });
  assert.deepEqual(readdirSync(folder), ['production.json']);
  assert.equal(
    (await run('check', { stdin: live.token })).out,
    `shape:    right\nchecksum: right\nlive:     yes, ${live.id} (n)\n`,
  );
  assert.equal(
    (await run('check', { stdin: 'x' })).out,
    'shape:    wrong\nchecksum: wrong\nlive:     no, this is not a token of Gatefold\n',
  );
});

test('a wrong call exits with 2, prints one line on standard error and writes nothing', async (t) => {
  const { folder, run } = bench(t);
  const rows: [string, RegExp, string?][] = [
    ['', /^gatefold credentials: a command is missing; see gatefold credentials --help$/],
    ['isue --name n', /^gatefold credentials: unknown command "isue"; see/],
    ['__proto__', /unknown command "__proto__"/],
    ['issue', /^gatefold credentials issue: --name is missing; see gatefold credentials issue --help$/],
    ['issue --name', /--name: the value is missing/],
    ['issue --name=', /--name: the value is empty/],
    ['issue --name n --name m', /--name: given twice/],
    ['issue --name n extra', /too many arguments/],
    ['issue --name n --colour red', /--colour: unknown flag/],
    ['issue --name n --json=yes', /--json: it takes no value/],
    [`issue --name ${'n'.repeat(201)}`, /--name: the value has 201 characters, the limit is 200/],
    ['issue --name a\nb', /--name: the value has control characters/],
    ['issue --name n --description=\u0007', /--description: the value has control characters/],
    ['issue --name n --methods GET,FETCH', /--methods: "FETCH" is not an HTTP method/],
    ['issue --name n --methods=', /--methods: "" is not an HTTP method/],
    ['issue --name n --handler ../x', /--handler: "\.\.\/x" is not the name of a handler group/],
    ['issue --name n --groups a,../x', /--groups: "\.\.\/x" is not the name of a handler group/],
    ['issue --name n --groups=', /--groups: "" is not the name of a handler group/],
    ['issue --name n --groups a --handler b', /--groups and --handler exclude each other/],
    ['issue --name n --scopes a,"', /--scopes: "\\"" is not a scope such as orders:write/],
    ['issue --name n --expires soon', /--expires: "soon" is not a time such as 2030-01-31 or 90d/],
    ['issue --name n --expires 2026-11-21', /--expires: 2026-11-21 is in the past/],
    ['issue --name n --expires 2026-11-21T12:00:00Z', /--expires: 2026-11-21T12:00:00Z is in the past/],
    ['issue --name n --data-dir=', /--data-dir: the value is empty/],
    ['issue --name n --data-dir=\0', /--data-dir: "\\u0000" is not a path/],
    ['rotate', /missing ID/],
    ['rotate a b', /too many arguments/],
    ['rotate a --overlap 7', /--overlap: "7" is not a span such as 30m, 12h or 7d/],
    ['revoke', /missing ID/],
    ['revoke a --undo', /--undo needs --here/],
    ['revoke a --here', /--here is for machines that share a store/],
    ['prune', /--revoked-before is missing/],
    ['prune --revoked-before 2030-01-01', /--revoked-before: "2030-01-01" is not a time in the past/],
    ['prune --revoked-before 2026-11-21T12:00:01Z', /"2026-11-21T12:00:01Z" is not a time in the past/],
    ['list all', /too many arguments/],
    ['check', /there is no token on standard input/, '\n'],
    ['check', /standard input is too long to be a token/, 'x'.repeat(65_537)],
  ];
  for (const [words, message, stdin] of rows) {
    const { code, out, err } = await run(words, stdin === undefined ? {} : { stdin });
    assert.deepEqual([code, out], [2, ''], words);
    assert.match(err.trimEnd(), message, words);
    assert.equal(err.indexOf('\n'), err.length - 1, words);
  }
  assert.equal((await run('check', { stdin: 'x'.repeat(65_536) })).code, 1);
  assert.deepEqual(readdirSync(folder), []);
});

test('a refused call exits with 1, prints one line on standard error and keeps the table', async (t) => {
  const { folder, run } = bench(t);
  const row = makeRow();
  const path = join(folder, 'production.json');
  for (const command of ['rotate', 'revoke']) {
    const { code, err } = await run(`${command} ${row.id}`);
    assert.deepEqual(
      [code, err],
      [1, `gatefold credentials ${command}: Cannot ${command} ${row.id}: there is no such row\n`],
    );
  }
  writeFileSync(path, '{"production":[');
  for (const words of ['issue --name n', `rotate ${row.id}`, `revoke ${row.id}`, 'list', 'check']) {
    const { code, out, err } = await run(words, { stdin: row.token });
    assert.deepEqual([code, out], [1, ''], words);
    assert.match(
      err,
      /^gatefold credentials \w+: Cannot (read|write) \S+production\.json: it is not JSON \(15 bytes\)\n$/,
      words,
    );
  }
  assert.equal(readFileSync(path, 'utf8'), '{"production":[');
  for (const words of ['list', `rotate ${row.id}`, `revoke ${row.id}`]) {
    const { code, err } = await run(`${words} --data-dir ${folder}/none`);
    assert.equal(code, 1);
    assert.match(err, /: the folder does not exist\n$/);
  }
  writeFileSync(path, tableText());
  writeFileSync(join(folder, 'session.key'), 'torn');
  assert.match((await run('check', { stdin: 'gfs_a' })).err, /Cannot use \S+session\.key: it has 4 characters/);
});

test('revoke takes the name of a row with a literal that has no id, as list shows it', async (t) => {
  const { folder, run, table } = bench(t);
  const rows = [makeRow().row, { name: 'old-app', authorization: 'Basic eA==' }, { authorization: 'Basic eQ==' }];
  writeTable(folder, ...rows);
  assert.equal((await run('revoke old-app')).code, 0);
  assert.deepEqual(
    table().map((row) => 'revoked_at' in row),
    [false, true, false],
  );
});

test('prune removes rows that were revoked long ago, and no row whose token could then be accepted', async (t) => {
  const { folder, table, run } = bench(t);
  const [old, recent, live, twin, other, named] = Array.from({ length: 6 }, () => makeRow());
  const revoked = (time: string, row = {}) => ({ ...row, revoked_at: time });
  const literal = { id: 'literal', name: 'literal', authorization: 'Basic eA==' };
  const kept = [
    revoked('2026-08-24', recent?.row),
    live?.row,
    revoked('2020-01-01', twin?.row),
    twin?.row,
    revoked('2020-01-01', literal),
    revoked('long ago', other?.row),
    revoked('2020-01-01', named?.row),
    { name: named?.id, authorization: 'Basic eQ==' },
    // The author may have left a row that is no object.
    null,
  ];
  writeTable(folder, revoked('2026-08-22', old?.row), ...kept);
  const { code, json } = await run('prune --revoked-before 90d --json');
  assert.deepEqual([code, json], [0, { removed: 1, revoked_before: '2026-08-23T12:00:00.000Z' }]);
  assert.deepEqual(table(), kept);
  assert.equal((await run('prune --revoked-before 2026-08-25 --json')).json.removed, 1);
  // The present moment is a time that is not in the future.
  assert.equal((await run('prune --revoked-before 2026-11-21T12:00:00Z --json')).code, 0);
  assert.deepEqual(table(), kept.slice(1));
});

test('revoke --here revokes beside a row with a repeated field, and that row stays quarantined', async (t) => {
  const { folder, run } = bench(t);
  const [good, twice] = [makeRow(), makeRow()];
  const text = JSON.stringify({ store: { version: 'a/b/1' }, production: [good.row, twice.row] });
  const path = join(folder, 'production.json');
  writeFileSync(path, text.replace(`"id":"${twice.id}"`, `$&,"name":"n"`));
  const env = { STORE: 'postgres://user@127.0.0.1:1/db' };
  const { code, err } = await run(`revoke ${good.id} --here`, { env });
  assert.deepEqual([code, err], [0, '']);
  const table = parseTable(readFileSync(path, 'utf8'));
  assert.equal(table.rows.get(good.id)?.revoked, true);
  assert.deepEqual(
    table.quarantined.map(({ id, reason }) => [id, reason]),
    [[twice.id, 'it has the field "name" twice']],
  );
});

test('revoke --here changes its list under the lock of the table, so no other command loses the revocation', async (t) => {
  const { folder, run } = bench(t);
  const [one, other] = [makeRow(), makeRow()];
  const path = join(folder, 'production.json');
  writeFileSync(path, JSON.stringify({ store: { version: 'a/b/1' }, production: [one.row, other.row] }));
  const env = { STORE: 'postgres://user@127.0.0.1:1/db' };
  const lock = await acquireLock(`${path}.lock`);
  const revoking = run(`revoke ${one.id} --here`, { env });
  // Another command, which has the lock, writes a list that it has read before.
  const before = readRevokedHere(folder);
  await new Promise(setImmediate);
  assert.equal(readRevokedHere(folder).size, 0);
  writeRevokedHere(folder, new Map([...before, [other.id, '2026-01-01T00:00:00.000Z']]));
  await lock.release();
  assert.equal((await revoking).code, 0);
  assert.deepEqual([...readRevokedHere(folder).keys()].sort(), [one.id, other.id].sort());
});

test('revoke --here --undo takes back its own revocation alone, and an earlier one stays', async (t) => {
  const { folder, run } = bench(t);
  const [good, old, other] = [makeRow(), makeRow(), makeRow()];
  const ended = { ...old.row, revoked_at: '2026-01-01T00:00:00.000Z' };
  // A part of this row looks like the good row.
  const rows = [{ ...other.row, note: good.id }, ended, good.row];
  const path = join(folder, 'production.json');
  writeFileSync(path, JSON.stringify({ store: { version: 'a/b/1' }, production: rows }));
  const env = { STORE: 'postgres://user@127.0.0.1:1/db' };
  const revoked = () => [...parseTable(readFileSync(path, 'utf8')).rows.values()].map((row) => row.revoked);
  for (const { id } of [good, old]) await run(`revoke ${id} --here`, { env });
  assert.deepEqual(revoked(), [false, true, true]);
  const { out, json } = await run(`revoke ${good.id} --here --undo --json`, { env });
  assert.deepEqual(json, { id: good.id, revoked_here: false }, out);
  assert.deepEqual(revoked(), [false, true, false]);
  const undone = await run(`revoke ${old.id} --here --undo`, { env });
  assert.equal(undone.out, `${old.id} is on this machine what it is in the store.\n`);
  assert.deepEqual(revoked(), [false, true, false]);
  assert.deepEqual(readRevokedHere(folder).size, 0);
  // The key may have been issued elsewhere since, so it is listed all the same.
  const unknown = await run('revoke wrong --here', { env });
  assert.deepEqual(
    [unknown.code, unknown.err],
    [0, `gatefold credentials revoke: ${path} has no row wrong yet: is the id right?\n`],
  );
  assert.deepEqual([...readRevokedHere(folder).keys()], ['wrong']);
  rmSync(path);
  const elsewhere = await run('revoke wrong --here', { env });
  assert.deepEqual(
    [elsewhere.code, elsewhere.err],
    [1, `gatefold credentials revoke: There is no ${path}: set DATA_DIR to the data folder of the service\n`],
  );
});

test("without STORE, a store's copy is read with a warning, and no command changes it", async (t) => {
  const { folder, run } = bench(t);
  const row = makeRow();
  const path = join(folder, 'production.json');
  const text = JSON.stringify({ store: { version: 'a/b/1' }, production: [row.row] });
  writeFileSync(path, text);
  for (const words of ['issue --name n', `rotate ${row.id}`, `revoke ${row.id}`, 'prune --revoked-before 90d']) {
    const { code, out, err } = await run(words);
    assert.deepEqual([code, out], [1, ''], words);
    assert.match(
      err,
      /Cannot write \S+: it is a copy of a store's table.*; set STORE \(and STORE_KEY\) as the service/,
    );
  }
  assert.equal(readFileSync(path, 'utf8'), text);
  for (const words of ['list', 'check']) {
    const { code, err } = await run(words, { stdin: row.token });
    assert.deepEqual([code, /\S+production\.json is a copy of a store's table; set STORE/.test(err)], [0, true], err);
  }
});

test('JSON output and errors contain no control character of a file', async (t) => {
  const { folder, run } = bench(t);
  const { row } = makeRow({ name: 'a\u009b\u202eb' });
  writeTable(folder, row);
  const { out } = await run('list --json');
  assert.doesNotMatch(out.trimEnd(), /\p{C}/u);
  assert.equal(JSON.parse(out)[0].name, row.name);
  const target = join(folder, '\u001b[2J');
  mkdirSync(target);
  writeFileSync(join(target, 'production.json'), '{');
  const link = join(folder, 'link');
  symlinkSync(target, link);
  const { code, err } = await run(`issue --name n --data-dir ${link}`);
  assert.equal(code, 1);
  assert.match(err, /Cannot write \S+\ufffd\[2J\/production\.json: it is not JSON/);
});

test('--help prints the subcommands, and the usage and flags of each subcommand', async (t) => {
  const { run } = bench(t);
  for (const words of ['--help', '-h', 'help']) {
    const { code, out } = await run(words);
    assert.equal(code, 0);
    for (const name of ['issue', 'list', 'rotate', 'revoke', 'check'])
      assert.match(out, new RegExp(`^  ${name} `, 'm'));
  }
  for (const name of ['issue', 'list', 'rotate', 'revoke', 'check']) {
    const { code, out, err } = await run(`${name} --help`);
    assert.deepEqual([code, err], [0, '']);
    assert.match(out, new RegExp(`^Usage: gatefold credentials ${name}`));
    for (const flag of ['--data-dir', '--json', '--help']) assert.ok(out.includes(flag), `${name} ${flag}`);
  }
});

test('--data-dir overrides DATA_DIR', async (t) => {
  const { folder, run } = bench(t);
  const other = join(folder, 'other');
  mkdirSync(other);
  await run(`issue --name n --data-dir ${other}`);
  assert.deepEqual([readdirSync(folder), readdirSync(other)], [['other'], ['production.json']]);
  await run(`issue --name n --data-dir=${other}`);
  assert.equal(JSON.parse(readFileSync(join(other, 'production.json'), 'utf8')).production.length, 2);
});

test('issue exits with 1 and names the row to revoke when it cannot print the token', async (t) => {
  const folder = createFolder(t);
  const stderr = collect();
  const stdout = new Writable({ write: (_chunk, _encoding, done) => done(new Error('EPIPE')) });
  const code = await runGatefold(['credentials', 'issue', '--name', 'n'], {
    env: { DATA_DIR: folder },
    cwd: folder,
    isTTY: false,
    stdin: Readable.from([]),
    stdout,
    stderr: stderr.stream,
  });
  assert.equal(code, 1);
  assert.match(
    stderr.text(),
    /^gatefold credentials issue: Cannot print: EPIPE; the row \w{12} was added: revoke it\n$/,
  );
});

test('credentials as a process returns exit codes and prints no stack, even when the pipe is closed', async (t) => {
  const folder = createFolder(t);
  const start = (words: readonly string[]) =>
    spawn(process.execPath, [...LOADER, CLI, 'credentials', ...words], {
      env: { ...process.env, NODE_OPTIONS: '', DATA_DIR: folder },
    });
  const finish = async (words: readonly string[], stdin = '') => {
    const child = start(words);
    const [out, err] = [child.stdout, child.stderr].map(
      (stream) => stream?.setEncoding('utf8').toArray() ?? Promise.resolve([]),
    );
    child.stdin?.end(stdin);
    const [code] = await once(child, 'close');
    return { code, out: ((await out) ?? []).join(''), err: ((await err) ?? []).join('') };
  };
  const issued = await finish(['issue', '--name', 'n', '--json']);
  assert.deepEqual([issued.code, issued.err], [0, '']);
  const { id, token } = JSON.parse(issued.out);
  const [checked, refused, wrong] = await Promise.all([
    finish(['check'], token),
    finish(['revoke', 'x']),
    finish(['revoke']),
  ]);
  assert.deepEqual([checked.code, refused.code, wrong.code], [0, 1, 2]);
  assert.ok(checked.out.includes(id));
  for (const { err } of [refused, wrong]) assert.match(err, /^gatefold credentials revoke: .*\n$/);
  const closed = start(['issue', '--name', 'n']);
  closed.stdout?.destroy();
  const [err] = await Promise.all([closed.stderr?.setEncoding('utf8').toArray(), once(closed, 'close')]);
  assert.equal(closed.exitCode, 1);
  assert.match(
    err?.join('') ?? '',
    /^gatefold credentials issue: Cannot print: .*EPIPE; the row \w{12} was added: revoke it\n$/,
  );
});

test('the shell examples of docs/CREDENTIALS.md run in their order', async (t) => {
  const folder = createFolder(t);
  const bin = createFolder(t);
  const data = join(folder, 'data');
  mkdirSync(data);
  mkdirSync(join(folder, 'controllers'));
  for (const group of ['Sdk', 'Order']) writeFileSync(join(folder, 'controllers', `${group}Controller.mjs`), '');
  symlinkSync(process.execPath, join(bin, 'node'));
  const words = [process.execPath, ...LOADER, CLI].map((word) => `"${word}"`).join(' ');
  writeFileSync(join(bin, 'gatefold'), `#!/bin/sh\nexec ${words} "$@"\n`, { mode: 0o755 });
  const text = readFileSync(new URL('../../../docs/CREDENTIALS.md', import.meta.url), 'utf8');
  const examples = [...text.matchAll(/```sh\n([\s\S]*?)```/g)]
    .map((match) => match[1] as string)
    .filter((example) => !example.startsWith('curl'));
  assert.equal(examples.length, 6);
  const row = makeRow({ name: 'the one of $ID and $TOKEN' });
  writeTable(data, row.row);
  const env = { PATH: `${bin}:/usr/bin:/bin`, DATA_DIR: data, ID: row.id, TOKEN: row.token };
  const child = spawn('/bin/sh', ['-e'], { cwd: folder, env, stdio: ['pipe', 'pipe', 'pipe'] });
  const [out, err] = [child.stdout.setEncoding('utf8').toArray(), child.stderr.setEncoding('utf8').toArray()];
  child.stdin.end(examples.join('\n'));
  const [code] = await once(child, 'close');
  assert.deepEqual([code, (await err).join('')], [0, '']);
  const output = (await out).join('');
  for (const sign of [
    /^Issued \w{12} \(Orders app\), it expires /m,
    /^\{"id":/m,
    /^ID +NAME/m,
    /^live: {5}yes/m,
    /^Rotated /m,
    /^Revoked /m,
    /^Removed 0 rows/m,
  ]) {
    assert.match(output, sign);
  }
});
