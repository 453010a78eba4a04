// createIdentity without a network: the checks of a request, the form post of Google Identity Services, the choice of
// the row, the order of the refusals, and the returned claims.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isHttpError } from '../../../src/base/errors.ts';
import { type Accounts, createIdentity, type Identity } from '../../../src/callers/identity/handler.ts';
import {
  makeAccounts,
  makeDataFolder,
  makeParams,
  type RememberedLog,
  rememberLog,
} from '../../support/identity-bench.ts';
import { type Json, makeKey, signByJose } from '../../support/identity-tokens.ts';

const NOW = 1_790_000_000;
const key = makeKey('RS256', 'g-1');
const google = { name: 'google', issuer: 'https://accounts.google.com', client_ids: ['web'], registration: 'open' };
const json = makeParams();
const form = (cookie?: string) =>
  makeParams({
    'content-type': 'application/x-www-form-urlencoded; charset=utf-8',
    ...(cookie === undefined ? {} : { cookie }),
  });

function tokenWith(changes: Json = {}): Promise<string> {
  return signByJose(key, { iss: google.issuer, sub: 'u-1', aud: 'web', iat: NOW, exp: NOW + 3600, ...changes });
}

interface Bench {
  readonly identity: Identity;
  readonly accounts: ReturnType<typeof makeAccounts>;
  readonly log: RememberedLog;
}

async function withIdentity(
  rows: unknown,
  run: (bench: Bench) => Promise<void>,
  replaced: Partial<Accounts> = {},
): Promise<void> {
  const folder = makeDataFolder(rows);
  const log = rememberLog();
  const accounts = { ...makeAccounts(), ...replaced };
  const fetch = async (url: string) => {
    const isDiscovery = url.endsWith('/openid-configuration');
    return Response.json(
      isDiscovery ? { issuer: google.issuer, jwks_uri: 'https://keys.example/' } : { keys: [key.jwk] },
    );
  };
  const identity = createIdentity({ dataDir: folder.dir, log, accounts, fetch, now: () => NOW * 1000 });
  try {
    await run({ identity, accounts, log });
  } finally {
    identity.close();
    folder.remove();
  }
}

describe('signin and register answer malformed data with 400, also without providers', () => {
  for (const [name, data, message] of [
    ['undefined', undefined, /must be an object or a form/],
    ['null', null, /must be an object or a form/],
    ['a text', 'credential', /must be an object or a form/],
    ['a list', [{ credential: 'x' }], /must be an object or a form/],
    ['no credential', {}, /^credential must be/],
    ['an empty credential', { credential: '' }, /^credential must be/],
    ['a credential that is an object', { credential: { toString: 'x' } }, /^credential must be/],
    ['a credential given twice', { credential: ['a', 'b'] }, /^credential must be/],
    ['a nonce that is a number', { credential: 'x', nonce: 1 }, /^nonce must be/],
    ['an empty nonce', { credential: 'x', nonce: '' }, /^nonce must be/],
    ['a nonce of 256 characters', { credential: 'x', nonce: 'n'.repeat(256) }, /^nonce must be/],
  ] as const) {
    test(`refuse ${name}`, () =>
      withIdentity([], async ({ identity }) => {
        const wanted = { status: 400, code: 'INVALID_REQUEST_DATA', message };
        await assert.rejects(identity.signin(data, json), wanted);
        const isObject = typeof data === 'object' && data !== null && !Array.isArray(data);
        await assert.rejects(
          identity.register(isObject ? { ...data, application: { name: 'A' } } : data, json),
          wanted,
        );
      }));
  }

  for (const [name, application, message] of [
    ['no application', undefined, /must be an object with a name/],
    ['an application that is null', null, /must be an object with a name/],
    ['an application that is a list', ['A'], /application.name must be a text/],
    ['an application without a name', {}, /must be an object with a name/],
    ['a name that is a number', { name: 1 }, /application.name must be a text/],
    ['a name of blanks', { name: '  ' }, /application.name must have 1 to 100/],
    ['a name of 101 characters', { name: 'n'.repeat(101) }, /application.name must have 1 to 100/],
    ['a short name in many blanks', { name: `Shop${' '.repeat(400)}` }, /application.name must have 1 to 100/],
    [
      'many marks, which take hours to sort',
      { name: '\u0300\u0316'.repeat(4e6) },
      /application.name must have 1 to 100/,
    ],
    ['a name with a line feed', { name: 'a\nb' }, /cannot be printed/],
    ['a name with an escape', { name: '\u001b[2Ja' }, /cannot be printed/],
    ['a name with a right-to-left override', { name: 'a\u202Eb' }, /cannot be printed/],
    ['a name with an Arabic letter mark', { name: 'a\u061Cb' }, /cannot be printed/],
    ['a name with half a surrogate pair', { name: 'a\uD800' }, /cannot be printed/],
    ['a description that is a list', { name: 'A', description: [] }, /application.description must be a text/],
    [
      'a description of 501 characters',
      { name: 'A', description: 'd'.repeat(501) },
      /application.description must have/,
    ],
  ] as const) {
    test(`register refuses ${name}`, () =>
      withIdentity([], async ({ identity }) => {
        await assert.rejects(identity.register({ credential: 'x', application }, json), {
          code: 'INVALID_REQUEST_DATA',
          message,
        });
      }));
  }

  test('the longest nonce, name and description are well formed', () =>
    withIdentity([], async ({ identity }) => {
      // Each letter of the name is written as four characters, a letter and its marks.
      const application = { name: '\u03b1\u0313\u0300\u0345'.repeat(100), description: 'd'.repeat(500) };
      const data = { credential: 'x', nonce: 'n'.repeat(255), application };
      await assert.rejects(identity.register(data, json), { code: 'IDENTITY_NOT_CONFIGURED' });
    }));

  test('signin refuses an application that is an object', () =>
    withIdentity([], async ({ identity }) => {
      const data = { credential: 'x', application: {} };
      await assert.rejects(identity.signin(data, json), {
        code: 'INVALID_REQUEST_DATA',
        message: /^application, the id or name/,
      });
    }));

  for (const [name, rows] of [
    ['no file', undefined],
    ['no rows', []],
    ['only a malformed row', [{ ...google, issuer: 'x' }]],
  ] as const) {
    test(`a valid request gets IDENTITY_NOT_CONFIGURED with ${name}`, () =>
      withIdentity(rows, async ({ identity }) => {
        const wanted = { status: 503, code: 'IDENTITY_NOT_CONFIGURED' };
        await assert.rejects(identity.signin({ credential: 'x' }, json), wanted);
        await assert.rejects(identity.register({ credential: 'x', application: { name: 'A' } }, json), wanted);
      }));
  }
});

describe('the form post of Google Identity Services', () => {
  for (const [name, token, cookie] of [
    ['no cookie', 'c-1', undefined],
    ['another value in the cookie', 'c-1', 'g_csrf_token=c-2'],
    ['a cookie of another name', 'c-1', 'x_g_csrf_token=c-1'],
    ['no token in the form', undefined, 'g_csrf_token=c-1'],
    ['an empty token and an empty cookie', '', 'g_csrf_token='],
    ['a token given twice', ['c-1', 'c-1'], 'g_csrf_token=c-1'],
    ['two cookies of which only the first matches', 'c-1', 'g_csrf_token=c-1; g_csrf_token=c-2'],
  ] as const) {
    test(`gets CSRF_TOKEN_MISMATCH with ${name}`, () =>
      withIdentity([google], async ({ identity }) => {
        const data = { credential: await tokenWith(), ...(token === undefined ? {} : { g_csrf_token: token }) };
        const wanted = { status: 400, code: 'CSRF_TOKEN_MISMATCH' };
        await assert.rejects(identity.signin(data, form(cookie)), wanted);
        await assert.rejects(identity.register({ ...data, application: 'A' }, form(cookie)), wanted);
        const multipart = {
          'content-type': 'Multipart/Form-Data; boundary=x',
          ...(cookie === undefined ? {} : { cookie }),
        };
        await assert.rejects(identity.signin(data, makeParams(multipart)), wanted);
      }));
  }

  test('without a content type is told to send one', () =>
    withIdentity([google], async ({ identity }) => {
      const attempt = identity.signin({ credential: await tokenWith() }, makeParams({ cookie: 'a=1' }));
      const message = 'Send a Content-Type: application/json, or that of the form';
      await assert.rejects(attempt, { code: 'CSRF_TOKEN_MISMATCH', message });
    }));

  test('is accepted by signin and register as the browser sends it', () =>
    withIdentity([google], async ({ identity }) => {
      const fields = { credential: await tokenWith(), g_csrf_token: 'c-1', select_by: 'btn' };
      const data = Object.assign(Object.create(null), fields) as Json;
      const params = form('theme=dark; g_csrf_token=c-1; g_state={"i_l":0}');
      assert.equal((await identity.register({ ...data, application: 'Shop' }, params)).status, 201);
      assert.equal((await identity.signin(data, params)).status, 200);
    }));

  test('a JSON body needs no g_csrf_token, with or without a content type', () =>
    withIdentity([google], async ({ identity }) => {
      const credential = await tokenWith();
      for (const params of [json, makeParams({})]) {
        await assert.rejects(identity.signin({ credential }, params), { code: 'NOT_REGISTERED' });
      }
    }));
});

describe('signin', () => {
  test('uses the oldest application by default, or the application with the given id, then name', () =>
    withIdentity([google], async ({ identity, accounts, log }) => {
      const credential = await tokenWith();
      // The name of the second row is the id of the first.
      for (const name of ['First', 'row1', 'Third'])
        await identity.register({ credential, application: { name } }, json);
      const bound = async (application?: string) => {
        const { body } = await identity.signin(
          application === undefined ? { credential } : { credential, application },
          json,
        );
        return (body.application as { id: string }).id;
      };
      assert.deepEqual(
        [await bound(), await bound('row1'), await bound('row2'), await bound('Third')],
        ['row1', 'row1', 'row2', 'row3'],
      );
      assert.deepEqual(accounts.sessions, ['row1', 'row1', 'row2', 'row3']);
      const [registered, signedIn] = ['identity-registered', 'identity-signed-in'].map((event) => {
        const { time, pid, ...line } = JSON.parse(log.lines.findLast((text) => text.includes(event)) ?? '{}');
        return line;
      });
      const ids = { level: 'info', request_id: 'test-1', provider: 'google', application: 'row3' };
      assert.deepEqual(registered, { ...ids, event: 'identity-registered' });
      assert.deepEqual(signedIn, { ...ids, event: 'identity-signed-in' });
      await assert.rejects(identity.signin({ credential, application: 'Fourth' }, json), {
        code: 'NOT_REGISTERED',
        message: 'This identity has no application with this id or name',
      });
    }));

  test('accepts both issuer spellings of Google as one person', () =>
    withIdentity([google], async ({ identity }) => {
      await identity.register(
        { credential: await tokenWith({ iss: 'accounts.google.com' }), application: { name: 'A' } },
        json,
      );
      const { body } = await identity.signin({ credential: await tokenWith() }, json);
      assert.equal((body.user as Json).issuer, 'https://accounts.google.com');
    }));

  for (const [name, given, claim, passes] of [
    ['the same nonce', 'n-1', 'n-1', true],
    ['a nonce that the client did not send', undefined, 'n-1', true],
    ['another nonce', 'n-1', 'n-2', false],
    ['a longer nonce', 'n-1', 'n-11', false],
    ['a token without the nonce that the client sent', 'n-1', undefined, false],
  ] as const) {
    test(`${passes ? 'accepts' : 'refuses'} ${name}`, () =>
      withIdentity([google], async ({ identity }) => {
        const data = {
          credential: await tokenWith({ nonce: claim }),
          ...(given === undefined ? {} : { nonce: given }),
        };
        await assert.rejects(identity.signin(data, json), (error) => {
          assert.ok(isHttpError(error));
          assert.equal(error.code, passes ? 'NOT_REGISTERED' : 'INVALID_ID_TOKEN');
          return passes || (error.cause as { reason?: unknown }).reason === 'nonce-mismatch';
        });
      }));
  }
});

describe('register', () => {
  test('passes owner, normalized name and description to the credentials room', () => {
    const seen: unknown[] = [];
    const register: Accounts['register'] = async (request) => {
      seen.push(request);
      return { row: { id: 'r', application: { id: 'r', name: request.name } }, token: 'gfk_r' };
    };
    return withIdentity(
      [google],
      async ({ identity }) => {
        const credential = await tokenWith();
        await identity.register({ credential, application: { name: ' Cafe\u0301 ', description: 'd' } }, json);
        await identity.register({ credential, application: { name: 'B', description: null } }, json);
        const owner = { issuer: google.issuer, subject: 'u-1' };
        assert.deepEqual(seen, [
          { owner, name: 'Caf\u00e9', description: 'd' },
          { owner, name: 'B', description: undefined },
        ]);
      },
      { register },
    );
  });

  test('throws the error of the credentials room unchanged', () => {
    const register: Accounts['register'] = async () => {
      throw new Error('disk full');
    };
    return withIdentity(
      [google],
      async ({ identity }) => {
        const attempt = identity.register({ credential: await tokenWith(), application: { name: 'A' } }, json);
        await assert.rejects(attempt, (error) => !isHttpError(error) && (error as Error).message === 'disk full');
      },
      { register },
    );
  });

  test('is closed when the provider row has no registration', () =>
    withIdentity([{ ...google, registration: undefined }], async ({ identity }) => {
      const attempt = identity.register({ credential: await tokenWith(), application: { name: 'A' } }, json);
      await assert.rejects(attempt, { status: 403, code: 'REGISTRATION_CLOSED' });
    }));
});

describe('the user in the answers of register and signin', () => {
  for (const [name, claims, user] of [
    [
      'the claims of the token',
      { email: 'a@b.example', email_verified: false, name: 'A' },
      { email: 'a@b.example', email_verified: false, name: 'A' },
    ],
    [
      'no field for a claim that is null',
      { email: null, email_verified: null, name: null, picture: null, hd: null },
      {},
    ],
    [
      'no email_verified when the claim is a text',
      { email: 'a@b.example', email_verified: 'true' },
      { email: 'a@b.example' },
    ],
    ['a picture with an https address', { picture: 'https://p.example/a.png' }, { picture: 'https://p.example/a.png' }],
    ['no picture when the address is a script', { picture: 'javascript:alert(1)' }, {}],
    ['no picture when the address is a data URL', { picture: 'data:image/svg+xml,<svg/>' }, {}],
  ] as const) {
    test(`has ${name}`, () =>
      withIdentity([google], async ({ identity }) => {
        const credential = await tokenWith(claims);
        const registered = await identity.register({ credential, application: { name: 'A' } }, json);
        const signedIn = await identity.signin({ credential }, json);
        for (const { body } of [registered, signedIn])
          assert.deepEqual(JSON.parse(JSON.stringify(body.user)), { issuer: google.issuer, subject: 'u-1', ...user });
      }));
  }
});

describe('status', () => {
  test('counts providers, refused rows, fetches and failures', () =>
    withIdentity([google, { name: 'bad' }], async ({ identity }) => {
      assert.deepEqual(identity.status(), { providers: ['google'], refusedRows: 1, keyFetches: 0, keyFailures: 0 });
      await assert.rejects(identity.signin({ credential: await tokenWith() }, json), { code: 'NOT_REGISTERED' });
      assert.deepEqual(identity.status(), { providers: ['google'], refusedRows: 1, keyFetches: 2, keyFailures: 0 });
    }));
});
