// data/identity-providers.json: which rows are good, and what a start does with a bad file. A change is live.
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { mayRegister, type Provider, parseProviderRows } from '../../../src/callers/identity/provider-rows.ts';
import { createProviders } from '../../../src/callers/identity/providers.ts';
import { type DataFolder, makeDataFolder, type RememberedLog, rememberLog } from '../../support/identity-bench.ts';

const google = { name: 'google', issuer: 'https://accounts.google.com', client_ids: ['1.apps.example'] };
const acme = {
  name: 'acme',
  issuer: 'https://id.acme.example',
  client_ids: ['web'],
  algorithms: ['ES256', 'EdDSA'],
  registration: 'open',
};

describe('parseProviderRows', () => {
  test('fills in the defaults: RS256 and ES256, discovery, registration closed', () => {
    const { providers, refused } = parseProviderRows(`\uFEFF${JSON.stringify([google, acme])}`);
    assert.deepEqual(refused, []);
    assert.deepEqual(providers[0], {
      name: 'google',
      issuer: 'https://accounts.google.com',
      clientIds: ['1.apps.example'],
      jwksUri: undefined,
      algorithms: ['RS256', 'ES256'],
      registration: 'closed',
    });
    assert.deepEqual(providers[1]?.algorithms, ['ES256', 'EdDSA']);
    assert.equal(providers[1]?.registration, 'open');
  });

  test('accepts 100 rows, a name of 100 characters and a client id of 255', () => {
    const rows = Array.from({ length: 100 }, (_, i) => ({ ...acme, name: `${i}`, issuer: `https://id.example/${i}` }));
    const longest = { ...acme, name: 'n'.repeat(100), client_ids: ['c'.repeat(255)] };
    const { providers, refused } = parseProviderRows(JSON.stringify([...rows.slice(1), longest]));
    assert.deepEqual([providers.length, refused], [100, []]);
  });

  const ISSUER = /^its issuer is not an https address \(http: on loopback alone\) without query or fragment$/;
  const ALGORITHMS =
    /^its algorithms have an unsupported one: choose from RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, Ed25519, EdDSA$/;
  const REGISTRATION = /^its registration is not "open", "closed", or an object of hosted_domains and emails$/;
  for (const [name, change, reason] of [
    ['a client id of 256 characters', { client_ids: ['c'.repeat(256)] }, /^its client_ids is not a list of texts$/],
    ['no issuer', { issuer: undefined }, ISSUER],
    ['an issuer over http', { issuer: 'http://id.acme.example' }, ISSUER],
    ['a jwks_uri over http', { jwks_uri: 'http://id.acme.example/k' }, /^its jwks_uri is not an https address$/],
    ['a jwks_uri that is null', { jwks_uri: null }, /^its jwks_uri is not an https address$/],
    ['no client_ids', { client_ids: undefined }, /^its client_ids is not a list of texts$/],
    ['an empty list of client_ids', { client_ids: [] }, /^its client_ids is not a list of texts$/],
    ['a client id that is empty', { client_ids: ['a', ''] }, /^its client_ids is not a list of texts$/],
    ['client_ids as a text', { client_ids: 'web' }, /^its client_ids is not a list of texts$/],
    ['the algorithm none', { algorithms: ['RS256', 'none'] }, ALGORITHMS],
    ['the algorithm HS256', { algorithms: ['HS256'] }, ALGORITHMS],
    ['an algorithm in lower case', { algorithms: ['rs256'] }, ALGORITHMS],
    ['no algorithm at all', { algorithms: [] }, /^its algorithms is not a list of texts$/],
    ['a registration that is a typo', { registration: 'opne' }, REGISTRATION],
    ['a registration that is true', { registration: true }, REGISTRATION],
    ['a registration without rules', { registration: {} }, REGISTRATION],
    ['a registration with an unknown rule', { registration: { emails: ['a@b.example'], domains: [] } }, REGISTRATION],
    ['a registration that is a list', { registration: ['a@b.example'] }, REGISTRATION],
    [
      'an e-mail with a wild card',
      { registration: { emails: ['*@acme.example'] } },
      /^emails has an entry that is not a complete address$/,
    ],
    [
      'a domain in the list of e-mails',
      { registration: { emails: ['acme.example'] } },
      /^emails has an entry that is not a complete address$/,
    ],
    [
      'an e-mail in the list of domains',
      { registration: { hosted_domains: ['@acme.example'] } },
      /^hosted_domains has an entry that is not a domain$/,
    ],
    ['an empty list of domains', { registration: { hosted_domains: [] } }, /^hosted_domains is not a list of texts$/],
    ['an empty list of e-mails', { registration: { emails: [] } }, /^emails is not a list of texts$/],
    [
      'a field that is misspelled',
      { registraton: 'closed' },
      /^it has an unknown field, "registraton"; its fields are name, issuer, client_ids, jwks_uri, algorithms, registration$/,
    ],
    ['the name of a row above', { name: 'google' }, /^a row above has the same name$/],
    ['the issuer of a row above', { issuer: google.issuer }, /^a row above, "google", has the same issuer$/],
  ] as const) {
    test(`refuses by name a row with ${name}, and keeps the others`, () => {
      const { providers, refused } = parseProviderRows(
        JSON.stringify([google, { ...acme, ...change }, { ...acme, name: 'last' }]),
      );
      assert.equal(refused.length, 1);
      assert.equal(refused[0]?.name, 'name' in change ? 'google' : 'acme');
      assert.match(refused[0]?.reason ?? '', reason);
      assert.deepEqual(
        providers.map((provider) => provider.name),
        ['google', 'last'],
      );
    });
  }

  test('refuses a row without a usable name, by the number of the row', () => {
    const rows = [
      google,
      1,
      null,
      [],
      { ...acme, name: ' ' },
      { ...acme, name: 'a\nb' },
      { ...acme, name: 'n'.repeat(101) },
    ];
    const { providers, refused } = parseProviderRows(JSON.stringify(rows));
    assert.equal(providers.length, 1);
    const noName = 'its name is not a text of 1 to 100 printable characters';
    const reasons = [...Array(3).fill('it is not an object'), ...Array(3).fill(noName)];
    assert.deepEqual(
      refused,
      reasons.map((reason, i) => ({ name: `row ${i + 2}`, reason })),
    );
  });

  const twice = JSON.stringify([acme]).replace('"registration":', '"registration":"closed","registration":');
  const NO_LIST = 'it is not a list of rows: [{"name": …, "issuer": …, "client_ids": […]}]';
  for (const [text, message] of [
    [twice, 'one of its rows has the field "registration" twice'],
    ['', 'it is not JSON'],
    ['{', 'it is not JSON'],
    ['{}', NO_LIST],
    ['null', NO_LIST],
    ['"x"', NO_LIST],
    [JSON.stringify(Array(101).fill(acme)), 'it has 101 rows, the limit is 100'],
  ] as const)
    test(`throws for a text that is not a valid list of rows: ${text.slice(0, 10)}`, () =>
      assert.throws(() => parseProviderRows(text), { message }));
});

describe('mayRegister', () => {
  const rules = { hosted_domains: ['Acme.example'], emails: ['Ada@Else.example', 'kim@k.example'] };
  const [ruled, open, closed] = parseProviderRows(
    JSON.stringify([
      { ...acme, registration: rules },
      { ...google, registration: 'open' },
      { ...acme, name: 'c', issuer: 'https://c.example', registration: 'closed' },
    ]),
  ).providers as [Provider, Provider, Provider];
  const who = { issuer: acme.issuer, subject: '1' };

  for (const [name, provider, identity, expected] of [
    ['any identity with open registration', open, who, true],
    [
      'any identity with closed registration',
      closed,
      { ...who, email: 'ada@else.example', emailVerified: true, hostedDomain: 'acme.example' },
      false,
    ],
    ['the allowed hosted domain', ruled, { ...who, hostedDomain: 'acme.EXAMPLE' }, true],
    ['a subdomain of the allowed hosted domain', ruled, { ...who, hostedDomain: 'sub.acme.example' }, false],
    [
      'an e-mail of the allowed domain without the claim hd',
      ruled,
      { ...who, email: 'x@acme.example', emailVerified: true },
      false,
    ],
    ['an allowed e-mail that is verified', ruled, { ...who, email: 'ada@else.example', emailVerified: true }, true],
    [
      'an allowed e-mail that is not verified',
      ruled,
      { ...who, email: 'ada@else.example', emailVerified: false },
      false,
    ],
    ['an allowed e-mail without the claim email_verified', ruled, { ...who, email: 'ada@else.example' }, false],
    [
      'an allowed e-mail that is spelled with a Kelvin sign',
      ruled,
      { ...who, email: '\u212Aim@k.example', emailVerified: true },
      false,
    ],
    ['an identity without e-mail and domain', ruled, who, false],
  ] as const) {
    test(`returns ${expected} for ${name}`, () => assert.equal(mayRegister(provider, identity), expected));
  }
});

describe('createProviders', () => {
  type Providers = ReturnType<typeof createProviders>;
  const names = (providers: Providers) => providers.list.map((provider) => provider.name);

  async function withProviders(
    rows: unknown,
    run: (bench: { providers: Providers; folder: DataFolder; log: RememberedLog }) => Promise<void>,
  ) {
    const folder = makeDataFolder(rows);
    const log = rememberLog();
    const providers = createProviders({ path: folder.file, log, pollMs: 5 });
    try {
      await run({ providers, folder, log });
    } finally {
      providers.close();
      folder.remove();
    }
  }

  async function until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise((resolve) => setTimeout(resolve, 2));
  }

  test('find matches the exact issuer, and both spellings of the issuer of Google', () =>
    withProviders([google, acme], async ({ providers }) => {
      assert.equal(providers.find('https://accounts.google.com')?.name, 'google');
      assert.equal(providers.find('accounts.google.com')?.name, 'google');
      assert.equal(providers.find('https://id.acme.example')?.name, 'acme');
      for (const other of ['id.acme.example', 'https://id.acme.example/', '__proto__', ''])
        assert.equal(providers.find(other), undefined);
    }));

  test('a file that appears, changes by rename or disappears is live', () =>
    withProviders(undefined, async ({ providers, folder }) => {
      assert.deepEqual(names(providers), []);
      folder.write([google]);
      await until(() => providers.list.length === 1);
      writeFileSync(`${folder.file}.new`, JSON.stringify([google, acme]));
      renameSync(`${folder.file}.new`, folder.file);
      await until(() => providers.list.length === 2);
      rmSync(folder.file);
      await until(() => providers.list.length === 0);
      assert.equal(providers.find(google.issuer), undefined);
    }));

  test('a file behind a swapped symlink is live, as in a mounted volume', () =>
    withProviders(undefined, async ({ providers, folder }) => {
      for (const [version, rows] of [
        ['v1', [google]],
        ['v2', [acme]],
      ] as const) {
        mkdirSync(join(folder.dir, version));
        writeFileSync(join(folder.dir, version, 'identity-providers.json'), JSON.stringify(rows));
        symlinkSync(join(version, 'identity-providers.json'), `${folder.file}.new`);
        renameSync(`${folder.file}.new`, folder.file);
        await until(() => providers.list[0]?.name === rows[0].name);
      }
    }));

  test('a torn file keeps the last good rows live and is logged once, until the file is repaired', () =>
    withProviders([google], async ({ providers, folder, log }) => {
      folder.write('[{"name":');
      await until(() => log.events().includes('identity-providers-unreadable'));
      await new Promise((resolve) => setTimeout(resolve, 50));
      assert.deepEqual(names(providers), ['google']);
      assert.equal(log.events().filter((event) => event === 'identity-providers-unreadable').length, 1);
      folder.write([acme]);
      await until(() => names(providers)[0] === 'acme');
    }));

  test('a malformed row is refused and logged by name, while the good rows go live', () =>
    withProviders([google], async ({ providers, folder, log }) => {
      folder.write([
        { ...acme, issuer: 'nowhere' },
        { ...acme, name: 'good' },
      ]);
      await until(() => names(providers)[0] === 'good');
      assert.deepEqual(
        providers.refused.map((row) => row.name),
        ['acme'],
      );
      const line = log.lines.find((text) => text.includes('identity-provider-refused')) ?? '';
      assert.match(line, /"provider":"acme","reason":"its issuer is not an https address/);
    }));

  test('close stops the polling of the file', () =>
    withProviders([google], async ({ providers, folder }) => {
      providers.close();
      folder.write([acme]);
      await new Promise((resolve) => setTimeout(resolve, 50));
      assert.deepEqual(names(providers), ['google']);
    }));

  for (const [name, spoil] of [
    ['a torn text', (folder: DataFolder) => folder.write('[')],
    ['an empty file', (folder: DataFolder) => folder.write('')],
    ['an object instead of a list', (folder: DataFolder) => folder.write({})],
    ['a folder instead of a file', (folder: DataFolder) => mkdirSync(folder.file)],
    ['a file of two megabytes', (folder: DataFolder) => folder.write(`[${' '.repeat(2 ** 21)}]`)],
  ] as const) {
    test(`throws an error of one line at the start: ${name}`, () => {
      const folder = makeDataFolder();
      spoil(folder);
      assert.throws(
        () => createProviders({ path: folder.file, log: rememberLog() }),
        ({ message }: Error) =>
          message.startsWith(`Cannot read the identity providers: ${folder.file}: it is `) && !message.includes('\n'),
      );
      folder.remove();
    });
  }

  test('throws an error of one line at the start: a file without read permission', {
    skip: process.getuid?.() === 0,
  }, () => {
    const folder = makeDataFolder([google]);
    chmodSync(folder.file, 0);
    assert.throws(
      () => createProviders({ path: folder.file, log: rememberLog() }),
      /^Error: Cannot read the identity providers: .*permission denied$/,
    );
    folder.remove();
  });
});
