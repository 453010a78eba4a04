// The forms of STORE, STORE_KEY and STORE_MAX_AGE.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { InvalidValue } from '../../src/base/setting-values.ts';
import { parseAgeOrOff, parseStoreKeys, storeAddressParser } from '../../src/base/store-address.ts';

const parse = storeAddressParser('/srv');

describe('STORE', () => {
  it('selects the store of files with the value file', () => assert.equal(parse('file'), undefined));
  it('accepts a postgres address with one host or several', () => {
    assert.deepEqual(parse('postgres://gatefold:a%20b@db1,db2:5433/api?sslrootcert=ca.pem'), {
      hosts: [
        { host: 'db1', port: 5432 },
        { host: 'db2', port: 5433 },
      ],
      ...{ user: 'gatefold', password: 'a b', database: 'api', tls: 'verify', rootCertificate: '/srv/ca.pem' },
    });
    assert.deepEqual(parse('postgresql://u@[::1]:5432/d')?.hosts, [{ host: '::1', port: 5432 }]);
  });

  const modes: readonly (readonly [address: string, tls: string])[] = [
    ['postgres://u@db/d', 'verify'],
    ['postgres://u@localhost/d', 'off'],
    ['postgres://u@127.0.0.1,db/d', 'verify'],
    ['postgres://u@localhost/d?sslmode=verify-full', 'verify'],
    ['postgres://u@db/d?sslmode=disable', 'off'],
    ['postgres://u@db/d?application_name=x&connect_timeout=10&pgbouncer=true&channel_binding=prefer', 'verify'],
    ['postgres://u@db/d?sslmode=disable&channel_binding=disable', 'off'],
    ['postgres://u@db/d?sslmode=verify-full&channel_binding=require', 'verify'],
    ['postgres://u@db/d?channel_binding=require', 'verify'],
  ];
  for (const [address, tls] of modes)
    it(`sets TLS to ${tls} for ${address}`, () => assert.equal(parse(address)?.tls, tls));

  const wrong: Readonly<Record<string, readonly string[]>> = {
    '': [
      ...['', 'files', 'postgres', 'redis://u@h/d', 'postgres://h/d', 'postgres://u@h', 'postgres://u@/d'],
      ...['postgres://u@h,/d', 'postgres://u@h/d#x', 'postgres://u:a@b@h/d/e'],
    ],
    '; its sslmode is either verify-full or disable': ['postgres://u@h/d?sslmode=require'],
    '; its parameter sslmode is given twice': ['postgres://u@h/d?sslmode=disable&sslmode=verify-full'],
    '; its channel_binding is prefer, disable, or with sslmode=verify-full require': [
      ...['postgres://u@h/d?sslmode=disable&channel_binding=require', 'postgres://u@h/d?channel_binding=other'],
    ],
    '; its sslrootcert needs sslmode=verify-full': [
      ...['postgres://u@localhost/d?sslrootcert=ca.pem', 'postgres://u@h/d?sslmode=disable&sslrootcert=ca.pem'],
    ],
    '; its parameter pgbouncer is given twice': ['postgres://u@h/d?pgbouncer=true&pgbouncer=true'],
    '; its parameter ssl is not known': ['postgres://u@h/d?ssl=off'],
    '; write % as %25': ['postgres://u:%zz@h/d'],
  };
  const form =
    'file or an address such as postgres://user:password@host:5432/database, with several hosts after commas if there are standbys';
  for (const [reason, addresses] of Object.entries(wrong))
    for (const address of addresses)
      it(`refuses ${JSON.stringify(address)}`, () =>
        assert.throws(() => parse(address), new InvalidValue(`${form}${reason}`)));
});

describe('STORE_KEY and STORE_MAX_AGE', () => {
  it('accept keys of 32 characters, and an age or off', () => {
    assert.deepEqual(parseStoreKeys(''), []);
    assert.deepEqual(parseStoreKeys(`${'a'.repeat(32)},${'b'.repeat(40)}`), ['a'.repeat(32), 'b'.repeat(40)]);
    assert.deepEqual(['off', '10s', '24h', '7d'].map(parseAgeOrOff), [Number.POSITIVE_INFINITY, 1e4, 864e5, 6048e5]);
  });
  for (const keys of ['short', `${'a'.repeat(32)},`, `${'a'.repeat(32)},short`])
    it(`refuse the keys ${keys}`, () =>
      assert.throws(() => parseStoreKeys(keys), new InvalidValue('32 characters or longer, each of them')));
  const ages = new InvalidValue('off or a time such as 30m, 24h or 7d, 10s at least');
  for (const age of ['', '0', '24', '1w', '-1h', 'never'])
    it(`refuse the age ${JSON.stringify(age)}`, () => assert.throws(() => parseAgeOrOff(age), ages));
});
