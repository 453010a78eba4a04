// The settings table: two spellings, units, refusals in one line. docs/SETTINGS.md has exactly the settings of the
// table.
import assert from 'node:assert/strict';
import { constants } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { flagOf, parseSettings, readSettings, SettingsError, secretFlags } from '../../src/base/config.ts';
import { ignoredVariables } from '../../src/base/ignored-variables.ts';
import { settingRows } from '../../src/base/settings.ts';

const parse = (env: Record<string, string | undefined>, argv: string[] = []) =>
  parseSettings(env, argv, { cores: 4, cwd: '/srv/app' });

test('parseSettings returns the default of every setting without variables and flags', () => {
  assert.deepEqual(parse({}), {
    port: 3000,
    host: undefined,
    workers: 4,
    controllersDir: '/srv/app/controllers',
    dataDir: '/srv/app/data',
    basePath: '/api',
    bodyLimit: 1_048_576,
    loadTimeout: 10_000,
    operationTimeout: 30_000,
    keepAliveTimeout: 72_000,
    headersTimeout: 10_000,
    requestTimeout: 60_000,
    drainTimeout: 30_000,
    maxInFlight: 1000,
    maxConnections: undefined,
    tracePropagate: 'all',
    trustedProxies: [],
    compression: 'off',
    publicDir: undefined,
    publicFallback: undefined,
    publicOrigin: [],
    bodyBudget: undefined,
    rateLimit: undefined,
    opsPort: undefined,
    ready: 'some',
    opsHost: '127.0.0.1',
    domains: [],
    acmeDirectory: 'https://acme-v02.api.letsencrypt.org/directory',
    acmeContact: [],
    docs: 'on',
    mcp: 'off',
    httpPort: undefined,
    tlsCert: undefined,
    tlsKey: undefined,
    logLevel: 'info',
    lastRequest: 'auto',
    logFormat: 'auto',
    sessionKey: undefined,
    store: undefined,
    storeKeys: [],
    storeMaxAge: 86_400_000,
    envFile: undefined,
    development: false,
  });
});

test('parseSettings resolves folders to absolute paths', () => {
  const { controllersDir, dataDir } = parse({ CONTROLLERS_DIR: '../other', DATA_DIR: '/var/lib/gatefold/' });
  assert.deepEqual([controllersDir, dataDir], ['/srv/other', '/var/lib/gatefold']);
  assert.equal(parseSettings({}, [], { cores: 1 }).dataDir, join(process.cwd(), 'data'));
});

test('a later process.chdir moves no path of the settings', () => {
  const start = process.cwd();
  const env = {
    CONTROLLERS_DIR: 'controllers',
    DATA_DIR: './data',
    TLS_CERT: 'tls/cert.pem',
    TLS_KEY: '../key.pem',
    STORE: 'postgres://u:p@db.example/g?sslrootcert=tls/root.pem',
  };
  const settings = parseSettings(env, [], { cores: 1 });
  const { controllersDir, dataDir, tlsCert = '', tlsKey = '', store } = settings;
  const paths = [controllersDir, dataDir, tlsCert, tlsKey, store?.rootCertificate ?? ''];
  try {
    process.chdir(tmpdir());
    assert.notEqual(process.cwd(), start);
    assert.deepEqual(
      paths.map((path) => resolve(path)),
      ['controllers', 'data', 'tls/cert.pem', '../key.pem', 'tls/root.pem'].map((path) => join(start, path)),
    );
  } finally {
    process.chdir(start);
  }
});

test('secretFlags finds secrets on a command line, in both spellings', () => {
  for (const argv of [['--port', '1', '--session-key', 'x'], ['--session-key=x']])
    assert.deepEqual(secretFlags(argv), ['--session-key']);
  for (const argv of [[], ['--port', '1'], ['session-key']]) assert.deepEqual(secretFlags(argv), []);
});

describe('parseSettings accepts', () => {
  const rows: [name: string, env: Record<string, string>, argv: string[], key: string, value: unknown][] = [
    ['a variable', { PORT: '8080' }, [], 'port', 8080],
    ['a flag', {}, ['--port', '8080'], 'port', 8080],
    ['a flag with an equals sign', {}, ['--body-limit=64KiB'], 'bodyLimit', 65_536],
    ['a flag, which overrides the variable', { PORT: '1' }, ['--port', '2'], 'port', 2],
    ['an empty variable as an unset setting', { PORT: '' }, [], 'port', 3000],
    ['port 0, for any free port', { PORT: '0' }, [], 'port', 0],
    ['milliseconds', { DRAIN_TIMEOUT: '500ms' }, [], 'drainTimeout', 500],
    ['seconds', { DRAIN_TIMEOUT: '2s' }, [], 'drainTimeout', 2000],
    ['a bare number as seconds', { DRAIN_TIMEOUT: '2' }, [], 'drainTimeout', 2000],
    ['a fraction of a second', { DRAIN_TIMEOUT: '0.25s' }, [], 'drainTimeout', 250],
    ['minutes', { DRAIN_TIMEOUT: '2m' }, [], 'drainTimeout', 120_000],
    ['hours', { DRAIN_TIMEOUT: '1h' }, [], 'drainTimeout', 3_600_000],
    ['bytes', { BODY_LIMIT: '1000' }, [], 'bodyLimit', 1000],
    ['megabytes', { BODY_LIMIT: '2mb' }, [], 'bodyLimit', 2_097_152],
    ['IPv6 in brackets', { HOST: '[::1]' }, [], 'host', '::1'],
    ['an operations port in OPS_PORT', { OPS_PORT: '9100' }, [], 'opsPort', 9100],
    ['OPS_PORT=off', { OPS_PORT: 'off' }, [], 'opsPort', undefined],
    ['NODE_ENV=development', { NODE_ENV: 'development' }, [], 'development', true],
    ['another NODE_ENV, which is not development', { NODE_ENV: 'test' }, [], 'development', false],
    ['a session key', { SESSION_KEY: 'k'.repeat(32) }, [], 'sessionKey', 'k'.repeat(32)],
  ];
  const names: typeof rows = [
    [
      'a list of domains, in lower case and without duplicates',
      { DOMAINS: 'API.example.com, www.example.com,www.example.com' },
      [],
      'domains',
      ['api.example.com', 'www.example.com'],
    ],
    ['a domain that is not ASCII', { DOMAINS: 'bücher.example' }, [], 'domains', ['xn--bcher-kva.example']],
    ['domains, which make 443 the default of PORT', { DOMAINS: 'a.example.com' }, [], 'port', 443],
    ['domains, which make 80 the default of HTTP_PORT', { DOMAINS: 'a.example.com' }, [], 'httpPort', 80],
    ['domains with HTTP_PORT=off', { DOMAINS: 'a.example.com', HTTP_PORT: 'off' }, [], 'httpPort', undefined],
    [
      'a list of contacts',
      { ACME_CONTACT: 'a@example.com,mailto:b@example.com' },
      [],
      'acmeContact',
      ['a@example.com', 'b@example.com'],
    ],
    ['TRACE_PROPAGATE=off', { TRACE_PROPAGATE: 'off' }, [], 'tracePropagate', []],
    [
      'a list of hosts in TRACE_PROPAGATE',
      { TRACE_PROPAGATE: 'API.example.com, *.internal,[::1],127.0.0.1' },
      [],
      'tracePropagate',
      ['api.example.com', '*.internal', '::1', '127.0.0.1'],
    ],
    ['the paths of TLS_CERT and TLS_KEY', { TLS_CERT: 'c.pem', TLS_KEY: '/k.pem' }, [], 'tlsKey', '/k.pem'],
  ];
  for (const [name, env, argv, key, value] of [...rows, ...names]) {
    test(name, () => assert.deepEqual(parse(env, argv)[key as 'port'], value));
  }
});

describe('parseSettings refuses a wrong setting, in one line that names it', () => {
  const rows: [env: Record<string, string>, argv: string[], line: RegExp][] = [
    [{ PORT: 'abc' }, [], /^PORT: "abc" is not a whole number from 0 to 65535$/],
    [{ PORT: '-1' }, [], /^PORT/],
    [{ PORT: '3000 ' }, [], /^PORT/],
    [{ PORT: '1e3' }, [], /^PORT/],
    [{ PORT: '0x10' }, [], /^PORT/],
    [{ WORKERS: '1.5' }, [], /^WORKERS: "1\.5" is not a whole number from 1 to 1024$/],
    [{ HOST: 'a b' }, [], /^HOST/],
    [{ HOST: 'http://x' }, [], /^HOST/],
    // Without the brackets the text is empty, and an empty address would mean all interfaces.
    [{ HOST: '[]' }, [], /^HOST: "\[\]" is not a host name or address$/],
    [{ OPS_HOST: '[]' }, [], /^OPS_HOST: "\[\]" is not a host name or address$/],
    [{}, ['--ops-host', '[]'], /^--ops-host: "\[\]" is not a host name or address$/],
    [{ BODY_BUDGET: '1' }, [], /^BODY_BUDGET: "1" is not auto or a size such as .*, 65536 bytes at least$/],
    [{ BODY_BUDGET: '9999999999m' }, [], /^BODY_BUDGET: "9999999999m" is not auto or a size/],
    [{ BODY_LIMIT: '1TB' }, [], /^BODY_LIMIT/],
    [
      { BODY_LIMIT: 'lots' },
      [],
      /^BODY_LIMIT: "lots" is not a size such as 65536, 64KiB or 2MiB, from 1 to 5\d+ bytes$/,
    ],
    [{ OPERATION_TIMEOUT: 'Infinity' }, [], / is not a time such as 500ms, 30s or 2m, a day at most$/],
    [{ OPS_PORT: 'yes' }, [], /^OPS_PORT: "yes" is not off or a whole number from 0 to 65535$/],
    [{ LOG_LEVEL: 'loud' }, [], /^LOG_LEVEL: "loud" is not one of debug, info, warn, error, silent$/],
    [{ SESSION_KEY: 'short' }, [], /^SESSION_KEY: the value is not 32 characters or longer$/],
    [{ CONTROLLERS_DIR: 'a\0b' }, [], /^CONTROLLERS_DIR: .* is not a path$/],
    [{ PUBLIC_FALLBACK: '.a' }, [], / is not the name of a file in the folder, such as index\.html$/],
    ...['api', '//', '/a//b', '/a b', '/..', '/a/../b', '/./a', '/{page}', '/%61', '/a?b', '/a#', '/ä', '/a\n'].map(
      (base): [Record<string, string>, string[], RegExp] => [
        { BASE_PATH: base },
        [],
        /^BASE_PATH: ".*" is not a path such as \/api, \/shop\/v1 or \/, of letters, digits, - \. _ and ~$/,
      ],
    ),
    [
      { DOMAINS: '*.example.com' },
      [],
      /" is not a list of host names such as api\.example\.com,www\.example\.com, 100 at most, without \* and addresses$/,
    ],
    [{ DOMAINS: '192.0.2.1' }, [], /^DOMAINS/],
    [{ DOMAINS: 'localhost' }, [], /^DOMAINS/],
    [{ DOMAINS: 'a.example.com,' }, [], /^DOMAINS/],
    [{ DOMAINS: 'https://a.example.com' }, [], /^DOMAINS/],
    [
      { DOMAINS: 'a.example.com', TLS_CERT: 'c', TLS_KEY: 'k' },
      [],
      /^DOMAINS: a certificate is either ordered or given by TLS_CERT$/,
    ],
    [{ TLS_CERT: 'c' }, [], /^TLS_KEY: TLS_CERT needs it$/],
    [{ TLS_KEY: 'k' }, [], /^TLS_CERT: TLS_KEY needs it$/],
    [{ HTTP_PORT: '80' }, [], /^HTTP_PORT: it leads to HTTPS, which takes DOMAINS or TLS_CERT$/],
    [{ DOMAINS: 'a.example.com', HTTP_PORT: '443' }, [], /^HTTP_PORT: 443 is taken by another port$/],
    [{ ACME_DIRECTORY: 'http://ca.example.com' }, [], /^ACME_DIRECTORY: .* is not a URL that begins with https:\/\/$/],
    [{ ACME_DIRECTORY: 'ca' }, [], /^ACME_DIRECTORY: "ca" is not a URL/],
    [{ ACME_CONTACT: 'nobody' }, [], /^ACME_CONTACT: "nobody" is not an e-mail address, or several with commas$/],
    [{ ACME_CONTACT: 'a@example.com,b' }, [], /^ACME_CONTACT: /],
    [{}, ['--prot', '1'], /^--prot: unknown flag$/],
    [{}, ['extra'], /^extra: unknown setting$/],
    [{}, ['SESSION_KEY=secret'], /^SESSION_KEY: unknown setting$/],
    [{}, ['--port'], /^--port: the value is missing$/],
    [{}, ['--tls-cert', '--tls-key', 'k'], /^--tls-cert: the value is missing$/],
    [{}, ['--__proto__'], /^--__proto__: unknown flag$/],
    [{}, ['--port', '1', '--port=2'], /^--port: given twice$/],
    [{}, ['--dev=1'], /^--dev: it takes no value$/],
    [
      { PUBLIC_DIR: '/' },
      [],
      /^PUBLIC_DIR: \/ cannot be served: it is CONTROLLERS_DIR, or one of the two is in the other$/,
    ],
    [{}, ['--port', 'x'], /^--port: "x" is not/],
    [{}, ['--ops-host', ''], /^--ops-host: the value is empty$/],
    [{ OPS_HOST: '127.0.0.1' }, ['--ops-host='], /^--ops-host: the value is empty$/],
    [{}, ['--tls-cert=', '--tls-key='], /^--tls-cert: the value is empty$/],
    [{}, ['--domains='], /^--domains: the value is empty$/],
    [{}, ['--trusted-proxies='], /^--trusted-proxies: the value is empty$/],
    [{}, ['--session-key='], /^--session-key: the value is empty$/],
    [{}, ['--ratelimit', '1/s'], /^--ratelimit: unknown flag$/],
    [{}, ['--RATE-LIMIT', '1/s'], /^--RATE-LIMIT: unknown flag$/],
    ...[
      '100',
      '100/min',
      '100 / s',
      '100/S',
      '0/s',
      '-1/s',
      '100/s;',
      'on',
      'OFF',
      'none',
      '1e3/s',
      '100/s burst',
      '100/s burst 0',
      ' 100/s',
      '"100/s"',
    ].map((text): [Record<string, string>, string[], RegExp] => [
      { RATE_LIMIT: text },
      [],
      /^RATE_LIMIT: .* is not off or a rate such as/,
    ]),
    ...[
      '*',
      'all',
      'loopback',
      '10.0.0.0/',
      '10.0.0/8',
      '10.0.0.0/8,',
      '10.0.0.1-10.0.0.9',
      '10.0.0.0 10.0.0.1',
      'proxy.example.com',
      'true',
    ].map((text): [Record<string, string>, string[], RegExp] => [
      { TRUSTED_PROXIES: text },
      [],
      /^TRUSTED_PROXIES: .* is not a list of addresses and blocks such as 10\.0\.0\.0\/8,::1$/,
    ]),
    ...[
      '*',
      'null',
      'api.example.com',
      'https://a.example/',
      'https://*.a.example',
      'https://a.example,',
      'ftp://a',
    ].map((text): [Record<string, string>, string[], RegExp] => [
      { PUBLIC_ORIGIN: text },
      [],
      /^PUBLIC_ORIGIN: .* is not an origin such as https:\/\/api\.example\.com, or several with commas, without a path$/,
    ]),
    ...['OFF', 'false', 'no', '0', 'Application', 'private', 'off '].map(
      (text): [Record<string, string>, string[], RegExp] => [
        { DOCS: text },
        [],
        /^DOCS: .* is not one of on, application, off$/,
      ],
    ),
    ...['10 s', '10sec', '-1s', '1.5.5s', '5M', 'never', 'off'].map(
      (text): [Record<string, string>, string[], RegExp] => [
        { REQUEST_TIMEOUT: text },
        [],
        /^REQUEST_TIMEOUT: .* is not a time/,
      ],
    ),
    ...['1,000', '1 MiB', '1GiB', '-1', '1.5MiB', 'off', 'unlimited'].map(
      (text): [Record<string, string>, string[], RegExp] => [{ BODY_LIMIT: text }, [], /^BODY_LIMIT: .* is not a size/],
    ),
    ...[
      ',',
      'a.test,',
      'a b',
      'a.test:80',
      'http://a.test',
      '*',
      '*.',
      '.a.test',
      'a*.test',
      'a..test',
      'a.test;b.test',
    ].map((text): [Record<string, string>, string[], RegExp] => [
      { TRACE_PROPAGATE: text },
      [],
      /^TRACE_PROPAGATE: .* is not all, off or a list of hosts such as api\.example\.com,\*\.internal, without ports$/,
    ]),
    [
      { TLS_KEY: '-----BEGIN PRIVATE KEY-----\nMIGHAg', TLS_CERT: 'c' },
      [],
      /^TLS_KEY: the value is not the path of a file$/,
    ],
    [
      { TLS_KEY: '-----BEGIN PRIVATE KEY-----MIGHAg', TLS_CERT: 'c' },
      [],
      /^TLS_KEY: the value is not the path of a file$/,
    ],
    [{ GATEFOLD_RATE_LIMIT: '100/s' }, [], /^GATEFOLD_RATE_LIMIT: the variable is called RATE_LIMIT$/],
    [{ GATEFOLD_DOCS: 'off', DOCS: 'off' }, [], /^GATEFOLD_DOCS: the variable is called DOCS$/],
    [{ GATEFOLD_SESSION_KEY: 'k'.repeat(40) }, [], /^GATEFOLD_SESSION_KEY: the variable is called SESSION_KEY$/],
    [{ GATEFOLD_PORT: '80' }, [], /^GATEFOLD_PORT: the variable is called PORT$/],
  ];
  for (const [env, argv, line] of rows) {
    test(`${JSON.stringify(env)} ${argv.join(' ')}`, () => {
      assert.throws(
        () => parse(env, argv),
        (error) => error instanceof SettingsError && line.test(error.message) && !error.message.includes('\n'),
      );
    });
  }
});

test('readSettings blames no default of another setting for a mistake in DOMAINS', () => {
  const readings = readSettings({ DOMAINS: '*.example.com' }, {}, { cores: 1 });
  const problems = readings.flatMap(({ row, problem }) => (problem === undefined ? [] : [row.name]));
  assert.deepEqual(problems, ['DOMAINS']);
});

describe('parseSettings accepts the smallest and the largest value, and nothing beyond', () => {
  const names = (count: number) => Array.from({ length: count }, (_, i) => `a${i}.example.com`).join();
  const ONE_TO_A_DAY = [
    ['1ms', '24h'],
    ['0', '86400.001s'],
  ] as const;
  const rows: [name: string, accepted: readonly string[], refused: readonly string[]][] = [
    ['PORT', ['65535'], ['65536']],
    ['WORKERS', ['1', '1024'], ['0', '1025']],
    ['BODY_LIMIT', ['1', `${constants.MAX_STRING_LENGTH}`], ['0', `${constants.MAX_STRING_LENGTH + 1}`]],
    ['BODY_BUDGET', ['65536'], ['65535']],
    ['OPERATION_TIMEOUT', ...ONE_TO_A_DAY],
    ['KEEP_ALIVE_TIMEOUT', ...ONE_TO_A_DAY],
    ['HEADERS_TIMEOUT', ...ONE_TO_A_DAY],
    ['REQUEST_TIMEOUT', ...ONE_TO_A_DAY],
    ['DRAIN_TIMEOUT', ['0', '24h'], ['86400.001s']],
    ['MAX_IN_FLIGHT', ['1', '1000000'], ['0', '1000001']],
    ['MAX_CONNECTIONS', ['1', '1000000'], ['0', '1000001']],
    ['TRUSTED_PROXIES', ['10.0.0.1/32', '::1/128'], ['10.0.0.1/33', '::1/129']],
    ['DOMAINS', [names(100)], [names(101)]],
    ['SESSION_KEY', ['k'.repeat(32)], ['k'.repeat(31)]],
    ['STORE', ['postgres://u@h:1/d', 'postgres://u@h:65535/d'], ['postgres://u@h:0/d', 'postgres://u@h:65536/d']],
    ['STORE_KEY', ['k'.repeat(32)], ['k'.repeat(31)]],
    ['STORE_MAX_AGE', ['10s'], ['9s']],
  ];
  for (const [name, accepted, refused] of rows)
    test(name, () => {
      for (const value of accepted) parse({ [name]: value });
      for (const value of refused) assert.throws(() => parse({ [name]: value }), SettingsError, value);
    });
});

test('parseSettings ignores the variables that Kubernetes sets for a service named gatefold', () => {
  const env = {
    GATEFOLD_PORT: 'tcp://10.0.0.1:80',
    GATEFOLD_OPS_PORT: 'tcp://10.0.0.1:3001',
    GATEFOLD_SERVICE_HOST: '10.0.0.1',
  };
  assert.equal(parse(env).port, 3000);
  assert.deepEqual(ignoredVariables(env), []);
  assert.deepEqual(
    ignoredVariables({ GATEFOLD_DOCS: 'off' }),
    [],
    'parseSettings refuses GATEFOLD_DOCS, so it is not an ignored variable',
  );
});

describe('ignoredVariables', () => {
  const rows: [setting: string, variables: string[]][] = [
    ['RATE_LIMIT', ['RATELIMIT', 'RATE_LIMITS', 'rate_limit', 'RATE-LIMIT', 'RATE_LMIT', 'GATEFOLD_RATELIMIT']],
    ['BODY_LIMIT', ['BODYLIMIT', 'BODY_LIMITS', 'BODY_LIMT']],
    ['BODY_BUDGET', ['BODYBUDGET', 'BODY_BUGDET']],
    ['TRUSTED_PROXIES', ['TRUSTED_PROXY', 'TRUST_PROXIES', 'TRUSTEDPROXIES', 'TRUSTED_PROXYS']],
    ['HEADERS_TIMEOUT', ['HEADER_TIMEOUT', 'HEADERSTIMEOUT', 'HEADERS_TIME_OUT']],
    ['REQUEST_TIMEOUT', ['REQUESTS_TIMEOUT', 'REQUESTTIMEOUT', 'RQUEST_TIMEOUT']],
    ['OPERATION_TIMEOUT', ['OPERATIONS_TIMEOUT', 'OPERATION_TIMOUT']],
    ['KEEP_ALIVE_TIMEOUT', ['KEEPALIVE_TIMEOUT']],
    ['MAX_IN_FLIGHT', ['MAX_INFLIGHT', 'MAXINFLIGHT']],
    ['MAX_CONNECTIONS', ['MAX_CONNECTION', 'MAXCONNECTIONS']],
    ['DOMAINS', ['DOMAIN', 'domains', 'DOMIANS']],
    ['TLS_CERT', ['TLSCERT', 'TLS_CERTS', 'TLSCRET']],
    ['TLS_KEY', ['TLSKEY', 'TLS_KEYS']],
    ['DOCS', ['docs']],
    ['OPS_HOST', ['OPSHOST', 'OP_HOST']],
    ['HOST', ['host']],
    ['SESSION_KEY', ['SESSIONKEY', 'SESSION_KEYS']],
  ];
  for (const [setting, variables] of rows) {
    test(`reports ${setting} as the setting meant by ${variables.join(', ')}`, () => {
      for (const variable of variables) {
        assert.deepEqual(ignoredVariables({ [variable]: 'x', PATH: '/bin' }), [{ variable, setting }], variable);
        assert.deepEqual(
          ignoredVariables({ [variable]: 'x', [setting]: 'y' }),
          [],
          'a variable is not reported when the setting itself is given',
        );
        assert.deepEqual(ignoredVariables({ [variable]: '' }), []);
      }
    });
  }

  test('reports only settings that exist, and accepts every setting', () => {
    const names = settingRows({ cores: 1 }).map(({ name }) => name);
    for (const [setting] of rows) assert.ok(names.includes(setting), setting);
    const none = names.flatMap((name) => ignoredVariables({ [name]: 'x' }));
    assert.deepEqual(none, [], 'no setting is taken for a misspelling of another one');
  });

  test('skips the variables of other programs', () => {
    const names = [
      'HOSTNAME',
      'HOSTTYPE',
      'HTTP_PROXY',
      'NO_PROXY',
      'SESSION_ID',
      'XDG_SESSION_ID',
      'SSL_CERT_FILE',
      'SSL_CERT_DIR',
      'SSL_KEY',
      'TRUST_PROXY',
      'CONNECTION_TIMEOUT',
      'IDLE_TIMEOUT',
      'TIME_LIMIT',
      'API_KEY',
      'NODE_OPTIONS',
    ];
    const others = [
      'NODE_EXTRA_CA_CERTS',
      'PORTS',
      'POST',
      'HOME',
      'HOSTS',
      'DOC',
      'WORKER',
      'TIMEOUT',
      'KEY',
      'CERT',
      'TLS_CA',
      'DEBUG',
      'LIMIT',
    ];
    const env = Object.fromEntries([...names, ...others].map((name) => [name, 'x']));
    assert.deepEqual(ignoredVariables(env), []);
    assert.deepEqual(ignoredVariables(process.env), []);
  });
});

test('docs/SETTINGS.md has every setting with its flag and default, and no other', () => {
  const text = readFileSync(new URL('../../docs/SETTINGS.md', import.meta.url), 'utf8');
  const documented = Array.from(
    text.matchAll(/^\| `([A-Z_]+)` \| `(--[a-z-]+)` \| (.*?) \|/gm),
    ([, name, flag, fallback]) => ({
      name,
      flag,
      fallback,
    }),
  );
  const cores = 'available cores';
  for (const { name, about } of settingRows({ cores: 4 })) assert.match(about, /\w \w/, name);
  assert.deepEqual(
    documented,
    settingRows({ cores: 4 }).map(({ name, fallback }) => ({
      name,
      flag: flagOf(name),
      fallback: name === 'WORKERS' ? cores : fallback === '' ? 'empty' : `\`${fallback}\``,
    })),
  );
});
