// The states of rows, the caller for each header value, and that no header value makes the check throw.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { identifyCaller } from '../../../src/callers/credentials/identify.ts';
import { createSessionToken, deriveSessionKey } from '../../../src/callers/credentials/session.ts';
import { type CredentialTable, parseTable } from '../../../src/callers/credentials/table/table.ts';
import { generateToken, hashSecret } from '../../../src/callers/credentials/token.ts';
import { makeRow, tableText } from '../../support/credentials-bench.ts';
import { startService } from '../../support/service.ts';

const NOW = Date.parse('2026-11-21T12:00:00Z');
const KEY = deriveSessionKey('a key of thirty-two characters, at least');
const PAST = '2026-11-21T12:00:00Z';
const FUTURE = '2026-11-21T12:00:01Z';

function identify(table: CredentialTable, authorization: string) {
  return identifyCaller(authorization, { table, now: NOW, sessionKey: () => KEY });
}

/** Returns `row`, `foreign`, or the reason of a refusal. */
function outcome(table: CredentialTable, authorization: string): string {
  const caller = identify(table, authorization);
  return caller.kind === 'refused' ? caller.reason : caller.kind;
}

test('parseTable refuses a text that is not a table, with one line that quotes nothing of the text', () => {
  const rows: [string, string, RegExp][] = [
    ['an empty text', '', /^it is not JSON \(it is empty\)$/],
    ['a torn text', '{"production":[{"id":"SECRET', /^it is not JSON \(28 bytes\)$/],
    ['an array', '[]', /^it has no list "production"$/],
    ['null', 'null', /^it has no list/],
    ['another object', '{"prod":[]}', /^it has no list/],
    ['an object instead of the list', '{"production":{}}', /^it has no list/],
    ['two lists', '{"production":[1],"production":[2]}', /^it has the list "production" twice$/],
    ['a list and then none', '{"production":[1],"production":null}', /^it has the list "production" twice$/],
    ['a list behind __proto__', '{"__proto__":{"production":[]}}', /^it has no list/],
    ['a depth of 200,000', '['.repeat(200_000), /^it is not JSON/],
  ];
  for (const [name, text, message] of rows) assert.throws(() => parseTable(text), { message }, name);
});

test('parseTable accepts a byte order mark and an empty table', () => {
  assert.equal(parseTable('\uFEFF{"production":[]}').rows.size, 0);
  assert.equal(parseTable('{ "comment": 1, "production": [] }').rows.size, 0);
});

const OTHER_HASH = hashSecret('other');
const EARLIER = generateToken();

/** Fields added to a good row, the expected outcome for its token, and the reason for a quarantine. */
const STATES: readonly [name: string, fields: Record<string, unknown>, expected: string, quarantined?: RegExp][] = [
  ['a good row', {}, 'row'],
  ['unknown fields', { colour: 'red', last_used: 5 }, 'row'],
  [
    'every field',
    { handler: 'orders', methods: ['GET'], expires_at: FUTURE, owner: { issuer: 'i', subject: 's' }, description: 'd' },
    'row',
  ],
  [
    'null for every optional field',
    {
      handler: null,
      methods: null,
      expires_at: null,
      revoked_at: null,
      previous: null,
      owner: null,
      description: null,
    },
    'row',
  ],
  ['a created_at that is a number', { created_at: 7 }, 'row'],
  ['an empty list of methods', { methods: [] }, 'row'],
  ['expired at this moment', { expires_at: PAST }, 'its row has expired'],
  ['expired, as a day', { expires_at: '2026-11-21' }, 'its row has expired'],
  ['revoked', { revoked_at: PAST }, 'its row is revoked'],
  ['revoked by a clock that is ahead', { revoked_at: FUTURE }, 'its row is revoked'],
  ['revoked with a value that is not a time', { revoked_at: true }, 'its row is revoked'],
  ['revoked and expired', { revoked_at: PAST, expires_at: PAST }, 'its row is revoked'],
  ['another hash', { hash: OTHER_HASH }, 'its secret is not that of the row'],
  ['no hash', { hash: undefined }, 'no row has its id', /^"hash" is not/],
  ['a hash in hex', { hash: 'ab'.repeat(32) }, 'no row has its id', /^"hash" is not/],
  ['a hash that is too short', { hash: 'sha256:abc' }, 'no row has its id', /^"hash" is not/],
  ['a hash with loose bits', { hash: `sha256:${'A'.repeat(42)}B` }, 'no row has its id', /^"hash" is not/],
  ['a hash that is an object', { hash: { toString: 'x' } }, 'no row has its id', /^"hash" is not/],
  ['groups', { groups: ['orders', 'User'], scopes: ['a:b'] }, 'row'],
  ['a star for all groups', { groups: '*', handler: null }, 'row'],
  [
    'groups and a handler',
    { groups: ['a'], handler: 'Sdk' },
    'no row has its id',
    /^it has both "handler" and "groups"/,
  ],
  ['groups that are a text', { groups: 'orders' }, 'no row has its id', /^"groups" is neither/],
  ['a group that is a path', { groups: ['../x'] }, 'no row has its id', /^"groups" is neither/],
  ['scopes that are a text', { scopes: 'a' }, 'no row has its id', /^"scopes" is not a list of scopes/],
  ['a scope with a space', { scopes: ['a b'] }, 'no row has its id', /^"scopes" is not a list of scopes/],
  ['no name', { name: undefined }, 'no row has its id', /^"name" is not a text/],
  ['an empty name', { name: '' }, 'no row has its id', /^"name" is not a text/],
  ['a name of 1,000 characters', { name: 'n'.repeat(1000) }, 'row'],
  ['a name of 1,001 characters', { name: 'n'.repeat(1001) }, 'no row has its id', /longer than 1,000/],
  ['a description that is a number', { description: 5 }, 'no row has its id', /^"description"/],
  ['an owner that is a text', { owner: 'me' }, 'no row has its id', /^"owner" is not an object/],
  ['an owner without a subject', { owner: { issuer: 'i' } }, 'no row has its id', /^"owner.subject"/],
  ['a handler of 200 characters', { handler: 'h'.repeat(200) }, 'row'],
  ['a handler of 201 characters', { handler: 'h'.repeat(201) }, 'no row has its id', /^"handler"/],
  ['a method of 32 letters', { methods: ['M'.repeat(32)] }, 'row'],
  ['a method of 33 letters', { methods: ['M'.repeat(33)] }, 'no row has its id', /^"methods"/],
  ['a handler with a path', { handler: '../Sdk' }, 'no row has its id', /^"handler"/],
  ['a handler that is a list', { handler: ['Sdk'] }, 'no row has its id', /^"handler"/],
  ['methods that are a text', { methods: 'GET' }, 'no row has its id', /^"methods"/],
  ['a method with a comma', { methods: ['GET,POST'] }, 'no row has its id', /^"methods"/],
  ['a method that is null', { methods: ['GET', null] }, 'no row has its id', /^"methods"/],
  ['an expiry in words', { expires_at: 'tomorrow' }, 'no row has its id', /^"expires_at" is not a time/],
  ['an expiry in another zone', { expires_at: '2030-01-01T00:00:00+02:00' }, 'no row has its id', /^"expires_at"/],
  ['an expiry that is a number', { expires_at: 1_900_000_000 }, 'no row has its id', /^"expires_at"/],
  ['30 February', { expires_at: '2030-02-30' }, 'no row has its id', /^"expires_at"/],
  ['a limit in words', { limit: 'fast' }, 'no row has its id', /^"limit" is not a rate/],
  ['a limit that is a number', { limit: 5 }, 'no row has its id', /^"limit" is not a rate/],
  ['a previous that is an object', { previous: {} }, 'no row has its id', /^"previous"/],
  [
    'a previous secret without an expiry',
    { previous: [{ hash: OTHER_HASH }] },
    'no row has its id',
    /^"previous.expires_at"/,
  ],
  ['a previous hash that is a number', { previous: [{ hash: 1, expires_at: FUTURE }] }, 'no row has its id', /^"hash"/],
  ['a hash and a literal', { authorization: 'Basic eA==' }, 'no row has its id', /both "hash" and "authorization"/],
];

/** Names that people write for a restricting field: `[name, value, field]`. Without `field`, the name is allowed. */
const FIELDS: readonly [name: string, value: unknown, field?: string][] = [
  ...[
    'expires',
    'expiry',
    'expire',
    'expires_on',
    'expires_in',
    'expiresAt',
    'expire_at',
    'expired_at',
    'expires-at',
    'EXPIRES_AT',
    'exipres_at',
  ].map((name): [string, unknown, string] => [name, '2020-01-01', 'expires_at']),
  ...[
    'expiration',
    'expiration_date',
    'expirationTime',
    'valid_until',
    'valid_to',
    'not_after',
    'notAfter',
    'until',
    'ttl',
    'exp',
    'epxires_at',
    'not_valid_after',
    'ends_at',
    'endDate',
    'is_expired',
  ].map((name): [string, unknown, string] => [name, 1_600_000_000, 'expires_at']),
  ...[
    'revoked',
    'revoke',
    'revokedAt',
    'revoked_on',
    'revoked_by',
    'revoke_at',
    'rovoked_at',
    'Revoked_At',
    'disabled',
    'disabled_at',
    'blocked',
    'suspended',
    'deleted',
    'deleted_at',
    'banned',
    'locked',
    'is_revoked',
    'isDisabled',
    'is_inactive',
    'revocation_date',
    'revoked_time',
  ].map((name): [string, unknown, string] => [name, true, 'revoked_at']),
  ['active', false, 'revoked_at'],
  ['enabled', 'no', 'revoked_at'],
  ['inactive', true, 'revoked_at'],
  ['is_active', false, 'revoked_at'],
  ['isEnabled', 0, 'revoked_at'],
  ['valid', false, 'revoked_at'],
  ['state', 'revoked', 'revoked_at'],
  ['status', 'Disabled', 'revoked_at'],
  ['state', 'expired', 'revoked_at'],
  ...[
    'method',
    'Methods',
    'METHODS',
    'methds',
    'mehtods',
    'metods',
    'methodes',
    'verbs',
    'http_methods',
    'allowedMethods',
    'methods ',
  ].map((name): [string, unknown, string] => [name, ['GET'], 'methods']),
  ['method', 'GET', 'methods'],
  ['mthds', ['GET'], 'methods'],
  ['expre_at', PAST, 'expires_at'],
  ['quota', 0, 'limit'],
  ['method', [], 'methods'],
  ...['group', 'Groups', 'gruops', 'goups', 'allowed_groups', 'controllers', 'controller', 'handler_groups'].map(
    (name): [string, unknown, string] => [name, ['order'], 'groups'],
  ),
  ['group', 'order', 'groups'],
  ...['scope', 'Scopes', 'scops', 'sopes', 'allowed_scopes'].map((name): [string, unknown, string] => [
    name,
    'orders:read',
    'scopes',
  ]),
  ...['limits', 'Limit', 'limt', 'rate', 'rate_limit', 'rateLimit', 'quota', 'throttle'].map(
    (name): [string, unknown, string] => [name, '1/h', 'limit'],
  ),
  ...['handlers', 'Handler', 'hadnler', 'handlerGroup'].map((name): [string, unknown, string] => [
    name,
    'Order',
    'handler',
  ]),
  ...[
    'allowed_ips',
    'ip_whitelist',
    'ip_allowlist',
    'ips',
    'cidrs',
    'allowed_origins',
    'not_before',
    'valid_from',
    'denylist',
  ].map((name): [string, unknown, string] => [name, ['10.0.0.0/8'], '']),
  ['revoked', false],
  ['revoked', 0],
  ['disabled', 'false'],
  ['deleted_at', null],
  ['expires', null],
  ['expires', ''],
  ['expires', false],
  ['active', true],
  ['isActive', true],
  ['is_revoked', false],
  ['is_expired', false],
  ['isInactive', false],
  ['island', 'no'],
  ['enabled', 1],
  ['state', 'live'],
  ['status', 'active'],
  ['state', 'California'],
  ...[
    'colour',
    'note',
    'notes',
    'team',
    'tags',
    'props',
    'stores',
    'types',
    'email',
    'plan',
    'list',
    'last_used',
    'updated_at',
    'created_by',
    'created',
    'createdAt',
    'comment',
    'environment',
    'env',
    'contact',
    'url',
    'ip',
    'header',
    'version',
    'region',
  ]
    .filter((name) => name !== 'ip')
    .map((name): [string, unknown] => [name, 'x']),
];

test('parseTable quarantines a row with an unread field that was meant to restrict the row', () => {
  for (const [name, value, field] of FIELDS) {
    const [tested, good] = [makeRow({ [name]: value }), makeRow()];
    const table = parseTable(tableText(tested.row, good.row));
    assert.equal(outcome(table, `Bearer ${tested.token}`), field === undefined ? 'row' : 'no row has its id', name);
    assert.equal(outcome(table, `Bearer ${good.token}`), 'row', name);
    const reason = `its field ${JSON.stringify(name)} has no effect; these restrict it: expires_at, revoked_at, methods, groups, scopes, limit, handler`;
    assert.equal(table.quarantined[0]?.reason, field === undefined ? undefined : reason, name);
  }
});

test('parseTable quarantines a row whose earlier secret has an unread restriction, unless the row is revoked', () => {
  const previous = (fields: object) => makeRow({ previous: [{ hash: OTHER_HASH, expires_at: FUTURE, ...fields }] });
  for (const [tested, expected] of [
    [previous({}), 'row'],
    [previous({ note: 'x' }), 'row'],
    [previous({ revoked_at: PAST }), 'no row has its id'],
    [previous({ methods: ['GET'] }), 'no row has its id'],
    [makeRow({ revoked_at: PAST, revoked_by: 'Ann', expires: PAST }), 'its row is revoked'],
  ] as const)
    assert.equal(outcome(parseTable(tableText(tested.row)), `Bearer ${tested.token}`), expected);
});

test('parseTable quarantines a row that has a field twice', () => {
  for (const [first, last] of [
    ['"revoked_at":"2026-01-01"', '"revoked_at":null'],
    ['"methods":["GET"]', '"methods":["GET","POST"]'],
    ['"expires_at":"2020-01-01"', '"expires\\u005fat":"2030-01-01"'],
    ['"owner":{"issuer":"a","subject":"b","subject":"c"}', '"note":"\\":"'],
  ] as const) {
    const [tested, good] = [makeRow(), makeRow()];
    const text = tableText(tested.row, good.row).replace('"name":', `${first},"name":`).replace('},{', `,${last}},{`);
    const table = parseTable(text);
    assert.equal(outcome(table, `Bearer ${tested.token}`), 'no row has its id', first);
    assert.match(table.quarantined[0]?.reason ?? '', /^it has the field "\w+" twice$/);
    assert.equal(outcome(table, `Bearer ${good.token}`), 'row', first);
  }
});

test('parseTable gives each row its state, and keeps a good row beside it live', () => {
  for (const [name, fields, expected, quarantined] of STATES) {
    const [tested, good] = [makeRow(fields), makeRow()];
    const table = parseTable(tableText(tested.row, good.row));
    assert.equal(outcome(table, `Bearer ${tested.token}`), expected, name);
    assert.equal(outcome(table, `Bearer ${good.token}`), 'row', name);
    assert.equal(table.quarantined.length, quarantined === undefined ? 0 : 1, name);
    if (quarantined !== undefined) assert.match(table.quarantined[0]?.reason ?? '', quarantined, name);
  }
});

test('parseTable quarantines a row without a valid id, and reports its name or number', () => {
  const good = makeRow();
  const bad: [unknown, string][] = [
    ['a text', 'row 2'],
    [null, 'row 3'],
    [[[]], 'row 4'],
    [{}, 'row 5'],
    [{ ...makeRow().row, id: '__proto__', name: 'proto' }, 'proto'],
    [{ ...makeRow().row, id: 'constructor', name: undefined }, 'constructor'],
    [{ ...makeRow().row, id: 5, name: 5 }, 'row 8'],
    [{ ...makeRow().row, id: 'abc', name: 'x'.repeat(500) }, 'x'.repeat(100)],
  ];
  const text = tableText(good.row, ...bad.map(([row]) => row)).replace(
    '{}',
    '{"__proto__":{"id":"aaaaaaaaaaaa","name":"n"}}',
  );
  const table = parseTable(text);
  assert.deepEqual(
    table.quarantined.map((row) => row.name),
    bad.map(([, name]) => name),
  );
  assert.deepEqual(
    Array.from(table.rows.values(), ({ id }) => id),
    [good.id],
  );
});

test('parseTable quarantines all rows whose id is repeated', () => {
  const variants: [string, Record<string, unknown>][] = [
    ['a copy', {}],
    ['a revoked copy', { revoked_at: PAST }],
    ['a copy that is quarantined itself', { methods: 5 }],
  ];
  for (const [name, fields] of variants) {
    for (const order of ['first', 'last']) {
      const [one, good] = [makeRow(), makeRow()];
      const copy = { ...one.row, ...fields };
      const table = parseTable(
        order === 'first' ? tableText(copy, one.row, good.row) : tableText(one.row, good.row, copy),
      );
      assert.equal(outcome(table, one.token), 'no row has its id', `${name}, ${order}`);
      assert.equal(outcome(table, good.token), 'row', name);
      assert.equal(table.quarantined.length, 2, name);
    }
  }
  const thrice = makeRow();
  assert.equal(parseTable(tableText(thrice.row, thrice.row, thrice.row)).quarantined.length, 3);
});

test('parseTable compiles the application, the handler and the methods of a row', () => {
  const { row, id } = makeRow({
    name: 'n',
    handler: 'orders',
    methods: ['get', 'POST'],
    owner: { issuer: 'i', subject: 's', more: 1 },
    description: 'd',
  });
  const compiled = parseTable(tableText(row)).rows.get(id);
  assert.deepEqual(compiled?.application, { id, name: 'n', description: 'd', owner: { issuer: 'i', subject: 's' } });
  assert.ok(Object.isFrozen(compiled?.application));
  assert.equal(compiled?.handler, 'orders');
  assert.deepEqual(compiled?.methods, new Set(['GET', 'POST']));
  const plain = makeRow({ name: 'n' });
  const bare = parseTable(tableText(plain.row)).rows.get(plain.id);
  assert.deepEqual([bare?.handler, bare?.methods, bare?.application], ['Sdk', undefined, { id: plain.id, name: 'n' }]);
});

test('ownedBy returns rows by issuer and subject together, in the order of the file', () => {
  const owned = (issuer: string, subject: string) => makeRow({ owner: { issuer, subject } });
  const [a, b, c, d] = [owned('i', 's'), owned('i', 't'), owned('j', 's'), owned('i', 's')] as const;
  const table = parseTable(tableText(a.row, b.row, c.row, makeRow().row, d.row));
  assert.deepEqual(
    table.rows.ownedBy({ issuer: 'i', subject: 's' }).map((row) => row.id),
    [a.id, d.id],
  );
  assert.deepEqual(table.rows.ownedBy({ issuer: 'i', subject: 'none' }), []);
});

test('identifyCaller accepts a rotated secret until its overlap ends', () => {
  const rows: [string, string, string][] = [
    ['within the overlap', FUTURE, 'row'],
    ['after the overlap', PAST, 'its secret was rotated and the overlap is over'],
  ];
  for (const [name, expires_at, expected] of rows) {
    const current = makeRow();
    const earlier = generateToken(undefined, current.id);
    const previous = [
      { hash: OTHER_HASH, expires_at: FUTURE },
      { hash: hashSecret(earlier.secret), expires_at },
    ];
    const table = parseTable(tableText({ ...current.row, previous }));
    assert.equal(outcome(table, earlier.token), expected, name);
    assert.equal(outcome(table, current.token), 'row', name);
    assert.equal(
      outcome(parseTable(tableText({ ...current.row, previous, revoked_at: PAST })), earlier.token).startsWith('its '),
      true,
      name,
    );
  }
});

test('identifyCaller classifies each header value as a row, as foreign or as refused', () => {
  const { row, token, id } = makeRow();
  const table = parseTable(tableText(row));
  const unknown = generateToken().token;
  const damaged = 'it looks like a damaged token';
  const shape = 'its shape or checksum is wrong';
  const session = createSessionToken(KEY, id, NOW).token;
  const rows: [string, string, string][] = [
    ['Bearer and the token', `Bearer ${token}`, 'row'],
    ['the bare token', token, 'row'],
    ['the scheme in other case', `bEaReR ${token}`, 'row'],
    ['several spaces', `Bearer   ${token}`, 'row'],
    ['an unknown id', `Bearer ${unknown}`, 'no row has its id'],
    ['the id with another secret', generateToken(undefined, id).token, 'its secret is not that of the row'],
    ['the prefix in capitals', `Bearer ${token.replace('gfk_', 'GFK_')}`, damaged],
    ['the token in lower case', `Bearer ${token.toLowerCase()}`, shape],
    ['the token in capitals', token.toUpperCase(), damaged],
    ['the prefix alone', 'gfk_', shape],
    ['Bearer and the prefix alone', 'Bearer gfk_', shape],
    ['half a token', `Bearer ${token.slice(0, 30)}`, shape],
    ['a token of 5 KB', `Bearer gfk_${'a'.repeat(5000)}`, shape],
    ['the token and 5 KB', `Bearer ${token}${'a'.repeat(5000)}`, shape],
    ['__proto__ as id', `Bearer gfk___proto_____${'a'.repeat(43)}_aaaaaa`, shape],
    ['U+00A0 behind', `Bearer ${token}\u00a0`, shape],
    ['U+00A0 before', `Bearer \u00a0${token}`, damaged],
    ['U+00A0 for the space', `Bearer\u00a0${token}`, damaged],
    ['a tab for the space', `Bearer\t${token}`, damaged],
    ['no space', `Bearer${token}`, damaged],
    ['in quotes', `Bearer "${token}"`, damaged],
    ['a comma and more', `Bearer ${token}, Basic eA==`, shape],
    ['a second token', `${token} ${token}`, shape],
    ['Bearer twice', `Bearer Bearer ${token}`, damaged],
    ['another scheme', `Token ${token}`, damaged],
    ['another scheme with a parameter', `Token token=${token}`, damaged],
    ['another scheme, half a token', `ApiKey ${token.slice(0, 30)}`, damaged],
    ['a letter in front', `Bearer x${token}`, damaged],
    ['a session token', `Bearer ${session}`, 'row'],
    ['a session token, bare', session, 'row'],
    [
      'a session token of a missing row',
      createSessionToken(KEY, 'abcdefghijkl', NOW).token,
      'its row is gone or quarantined',
    ],
    ['a session that is over', createSessionToken(KEY, id, NOW - 3_600_000).token, 'the session is over'],
    [
      'a session of another key',
      createSessionToken(Buffer.alloc(32), id, NOW).token,
      'it is not signed with the session key',
    ],
    ['a session token, prefix in capitals', session.replace('gfs', 'GFS'), damaged],
    ['a session token, damaged', `gfs_${'a'.repeat(300)}`, 'it does not have the shape of a session token'],
    ['a session token behind a letter', `Bearer x${session}`, damaged],
    ['a foreign bearer', 'Bearer eyJhbGciOiJSUzI1NiJ9.e30.c2ln', 'foreign'],
    ['a foreign bearer with gfk_ inside', 'Bearer eyJhbGciOiJSUzI1NiJ9.agfk_b.-gfs_c', 'foreign'],
    ['Basic', 'Basic dXNlcjpwYXNz', 'foreign'],
    ['Bearer alone', 'Bearer', 'foreign'],
    ['Bearer and a space', 'Bearer ', 'foreign'],
    ['a word', '__proto__', 'foreign'],
    ['gfk without its underscore', 'gfk', 'foreign'],
  ];
  for (const [name, value, expected] of rows) assert.equal(outcome(table, value), expected, name);
});

test('identifyCaller refuses a session whose row is revoked or expired', () => {
  const { row, id } = makeRow();
  const { token } = createSessionToken(KEY, id, NOW);
  assert.equal(outcome(parseTable(tableText({ ...row, revoked_at: PAST })), token), 'its row is revoked');
  assert.equal(outcome(parseTable(tableText({ ...row, expires_at: PAST })), token), 'its row has expired');
  const noKey = identifyCaller(token, { table: parseTable(tableText(row)), now: NOW, sessionKey: () => undefined });
  assert.deepEqual(noKey, { kind: 'refused', reason: 'there is no session key' });
});

test('identifyCaller accepts a literal authorization only by its exact value', () => {
  const rows: [string, Record<string, unknown>, string, string][] = [
    ['exactly that value', { authorization: 'Basic dXNlcjpwYXNz' }, 'Basic dXNlcjpwYXNz', 'row'],
    ['another value', { authorization: 'Basic dXNlcjpwYXNz' }, 'Basic dXNlcjpwYXNa', 'foreign'],
    ['another case', { authorization: 'Basic dXNlcjpwYXNz' }, 'basic dXNlcjpwYXNz', 'foreign'],
    [
      'a value in UTF-8, as Node hands it over',
      { authorization: 'Key grün' },
      Buffer.from('Key grün').toString('latin1'),
      'row',
    ],
    ['a value that looks like a token of Gatefold', { authorization: 'Bearer gfk_old' }, 'Bearer gfk_old', 'row'],
    ['an id of another format', { authorization: 'k', id: 'billing' }, 'k', 'row'],
    ['revoked', { authorization: 'k', revoked_at: PAST }, 'k', 'its row is revoked'],
    ['expired', { authorization: 'k', expires_at: PAST }, 'k', 'its row has expired'],
    ['quarantined', { authorization: 'k', methods: 5 }, 'k', 'its row is quarantined'],
    ['with a hash', { authorization: 'k', hash: OTHER_HASH }, 'k', 'its row is quarantined'],
    ['an id that is a number', { authorization: 'k', id: 5 }, 'k', 'its row is quarantined'],
    ['a value that no request can carry', { authorization: ' k' }, ' k', 'its row is quarantined'],
    ['a value with a line feed', { authorization: 'k\nx' }, 'k', 'foreign'],
    ['a value that is a number', { authorization: 5 }, '5', 'foreign'],
    ['an empty value', { authorization: '' }, 'k', 'foreign'],
  ];
  for (const [name, fields, value, expected] of rows) {
    assert.equal(outcome(parseTable(tableText({ name: 'old', ...fields })), value), expected, name);
  }
});

test('parseTable names a literal row by its number, and quarantines literal rows with a repeated value or name', () => {
  const single = identify(parseTable(tableText({ authorization: 'k' })), 'k');
  assert.equal(single.kind === 'row' ? single.row.application.name : undefined, 'row 1');
  const named = identify(parseTable(tableText({ authorization: 'k', id: 'one' })), 'k');
  assert.deepEqual(named.kind === 'row' ? named.row.application : undefined, { id: 'one', name: 'one' });
  const sameValue = parseTable(
    tableText({ authorization: 'k', name: 'a' }, { authorization: 'k', name: 'b' }, { authorization: 'k', name: 'c' }),
  );
  assert.equal(outcome(sameValue, 'k'), 'its row is quarantined');
  assert.deepEqual(
    sameValue.quarantined.map((row) => row.name),
    ['a', 'b', 'c'],
  );
  const sameIdAndValue = parseTable(tableText({ id: 'a', authorization: 'k' }, { id: 'a' }, { authorization: 'k' }));
  assert.deepEqual(sameIdAndValue.quarantined.map(({ name }) => name).sort(), ['a', 'a', 'row 3']);
  const sameName = parseTable(tableText({ authorization: 'k', name: 'a' }, { authorization: 'l', name: 'a' }));
  assert.deepEqual([outcome(sameName, 'k'), outcome(sameName, 'l')], Array(2).fill('its row is quarantined'));
});

test('identifyCaller refuses a token with the id of a literal row', () => {
  const { token, id } = makeRow();
  assert.equal(outcome(parseTable(tableText({ id, authorization: 'k' })), token), 'no row has its id');
});

test('parseTable accepts 20,000 rows, and returns them by id', () => {
  const hash = hashSecret('s');
  const rows = Array.from({ length: 20_000 }, (_, i) => ({
    id: String(i).padStart(12, '0'),
    name: `n${i}`,
    hash,
    expires_at: '2030-01-01T00:00:00Z',
  }));
  const table = parseTable(tableText(...rows));
  assert.equal(table.rows.size, 20_000);
  assert.equal(table.rows.get('000000019999')?.name, 'n19999');
});

test('parseTable and identifyCaller never throw, whatever the rows contain', () => {
  const field = fc.oneof(fc.jsonValue(), fc.constantFrom('GET', PAST, hashSecret('s'), 'aaaaaaaaaaaa', '__proto__'));
  const names = [
    'id',
    'name',
    'hash',
    'handler',
    'methods',
    'expires_at',
    'revoked_at',
    'previous',
    'owner',
    'description',
    'authorization',
    '__proto__',
  ];
  const row = fc.dictionary(fc.constantFrom(...names), field, { noNullPrototype: false });
  fc.assert(
    fc.property(fc.array(fc.oneof(row, fc.jsonValue()), { maxLength: 6 }), fc.string(), (rows, value) => {
      const table = parseTable(tableText(...rows));
      assert.ok(table.rows.size + table.quarantined.length === rows.length);
      identify(table, value);
    }),
    { numRuns: Number(process.env.RUNS ?? 300) },
  );
});

test('any Authorization value over a socket gets the status of its caller: 200, 401, 404 or 500', async (t) => {
  const live = makeRow({ handler: 'test' });
  const revoked = makeRow({ revoked_at: PAST });
  const table = parseTable(
    tableText(live.row, revoked.row, { authorization: 'Basic old', name: 'old', handler: 'none' }),
  );
  const credentials = { identify: (authorization: string) => identify(table, authorization) };
  const service = await startService({ parts: { credentials } });
  t.after(() => service.close());
  const pieces = fc.constantFrom(
    'Bearer ',
    'bearer\t',
    'Token ',
    'gfk_',
    'gfs_',
    'eyJ.',
    live.token,
    revoked.token,
    EARLIER.token,
    '\u00a0',
    '"',
    ',',
    '\x7f',
  );
  // All bytes that a header line can contain (RFC 9110, 5.5).
  const noise = fc.string({ unit: fc.integer({ min: 0x21, max: 0xff }).map((code) => String.fromCharCode(code)) });
  const value = fc
    .array(fc.oneof(pieces, noise), { maxLength: 4 })
    .map((parts) => parts.join('').replaceAll('\x7f', ''));
  await fc.assert(
    fc.asyncProperty(value, fc.constantFrom('test', 'nobody'), async (authorization, group) => {
      const request = `GET /api/${group} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${authorization}\r\nConnection: close\r\n\r\n`;
      const answer = await service.raw(Buffer.from(request, 'latin1'));
      const trimmed = authorization.replaceAll(/^[ \t]+|[ \t]+$/g, '');
      const caller = identify(table, trimmed).kind;
      const expected =
        trimmed === ''
          ? group === 'test'
            ? 200
            : 404
          : caller === 'refused'
            ? 401
            : caller === 'row' || group === 'test'
              ? 200
              : 500;
      assert.match(answer, new RegExp(`^HTTP/1\\.1 ${expected} `), `${JSON.stringify(authorization)} on ${group}`);
      if (expected === 401) assert.match(answer, /\r\nWWW-Authenticate: Bearer error="invalid_token"\r\n/i);
      if (expected === 401) assert.doesNotMatch(answer, /revoked|expired|checksum|no row/);
    }),
    { numRuns: Number(process.env.RUNS ?? 100) },
  );
});
