// The table of all settings, from which the type `Settings` is derived. config.ts reads the values.
import { constants } from 'node:buffer';
import { LOG_LEVELS } from './log.ts';
import * as parse from './setting-values.ts';
import { parseAgeOrOff, parseStoreKeys, storeAddressParser } from './store-address.ts';

/** The facts about this process that default values and relative paths depend on. */
export interface ProcessFacts {
  /** The number of processor cores that the process may use. */
  readonly cores: number;
  /** The base folder of relative paths. The default is the current working directory. */
  readonly cwd?: string;
}

/**
 * @param name the environment variable; the flag has the same name in lower case with dashes
 * @param fallback the default value, as text
 * @param about the description that `gatefold help` prints
 * @param secret true to hide the value from messages and from `gatefold doctor`
 */
function row<T>(name: string, fallback: string, parse: (text: string) => T, about: string, secret = false) {
  return { name, fallback, parse, about, secret };
}

const port = parse.wholeNumber(0, 65_535);

/** Times are milliseconds, sizes bytes. Undefined means `off`, `auto` or an empty text. */
function tableOf({ cores, cwd = process.cwd() }: ProcessFacts, hasDomains: boolean) {
  return {
    port: row(
      'PORT',
      hasDomains ? '443' : '3000',
      port,
      'TCP port of the service, 443 by default with DOMAINS; 0 takes any free one',
    ),
    /** Undefined when the service listens on all interfaces, IPv6 and IPv4. */
    host: row('HOST', '', parse.optional(parse.hostName), 'Address to listen on; empty: all interfaces'),
    workers: row(
      'WORKERS',
      String(cores),
      parse.wholeNumber(1, 1024),
      'Worker processes; default: the available cores',
    ),
    /** An absolute path, like `dataDir`, because a controller may call `process.chdir`. */
    controllersDir: row('CONTROLLERS_DIR', './controllers', parse.folder(cwd), 'The folder of controller files'),
    dataDir: row(
      'DATA_DIR',
      './data',
      parse.folder(cwd),
      'The folder of the credentials table and the identity providers',
    ),
    /** The prefix of all paths, without a slash at its end; '' when the paths begin at the root. */
    basePath: row('BASE_PATH', '/api', parse.basePath, 'Path that everything is under; / is the root'),
    // V8 cannot create a longer string, and the text of a body becomes one string.
    bodyLimit: row(
      'BODY_LIMIT',
      '1MiB',
      parse.size(1, constants.MAX_STRING_LENGTH),
      'Largest request body, counted after inflating',
    ),
    loadTimeout: row('LOAD_TIMEOUT', '10s', parse.duration(1), 'Longest CPU time that a file may take to load'),
    operationTimeout: row('OPERATION_TIMEOUT', '30s', parse.duration(1), 'Longest an operation may take'),
    keepAliveTimeout: row(
      'KEEP_ALIVE_TIMEOUT',
      '72s',
      parse.duration(1),
      'Longest a connection may idle between two requests',
    ),
    headersTimeout: row('HEADERS_TIMEOUT', '10s', parse.duration(1), 'Longest a header section may take to arrive'),
    requestTimeout: row('REQUEST_TIMEOUT', '60s', parse.duration(1), 'Longest a body may take to arrive'),
    drainTimeout: row(
      'DRAIN_TIMEOUT',
      '30s',
      parse.duration(0),
      'Longest a worker may take to finish its requests when it stops',
    ),
    maxInFlight: row(
      'MAX_IN_FLIGHT',
      '1000',
      parse.wholeNumber(1, 1_000_000),
      'Requests in progress in one worker; more are refused with 503 OVERLOADED',
    ),
    maxConnections: row(
      'MAX_CONNECTIONS',
      '10000',
      parse.wholeNumber(1, 1_000_000),
      'Connections of one worker; beyond it the one that has idled longest is ended',
    ),
    /** Undefined for `auto`: the budget is then derived from the limit of the heap. */
    bodyBudget: row(
      'BODY_BUDGET',
      'auto',
      parse.orWord('auto', parse.size(64 * 1024)),
      'Bytes of all bodies in progress in one worker; more wait or are refused with 503 OVERLOADED',
    ),
    rateLimit: row(
      'RATE_LIMIT',
      'off',
      parse.orWord('off', parse.rate),
      'Requests of a caller without a credential, by its address: 100/s, 5000/h burst 200; more get 429 RATE_LIMITED',
    ),
    trustedProxies: row(
      'TRUSTED_PROXIES',
      '',
      parse.networks,
      "Addresses and blocks of the proxies whose X-Forwarded-For names a client's address",
    ),
    publicOrigin: row(
      'PUBLIC_ORIGIN',
      '',
      parse.origins,
      'Origins that browsers have for this service behind a proxy, with commas: https://api.example.com',
    ),
    /** An absolute path; undefined when no files are served. */
    publicDir: row(
      'PUBLIC_DIR',
      '',
      parse.optional(parse.folder(cwd)),
      'Folder of files to serve at /, outside of BASE_PATH',
    ),
    publicFallback: row(
      'PUBLIC_FALLBACK',
      '',
      parse.optional(parse.fileName),
      'Page in PUBLIC_DIR for paths that a front end routes: index.html; empty: none',
    ),
    compression: row(
      'COMPRESSION',
      'off',
      parse.oneOf(['on', 'off']),
      'Compress JSON and text of 1 KB and more; off is right behind a proxy that does it',
    ),
    opsPort: row('OPS_PORT', 'off', parse.orWord('off', port), 'Port of /livez, /readyz and /metrics; off: none'),
    ready: row(
      'READY',
      'some',
      parse.oneOf(['some', 'all']),
      'The groups that must load before /readyz is 200: some, or all until the service was ready once',
    ),
    opsHost: row('OPS_HOST', '127.0.0.1', parse.hostName, 'Address of the operations port'),
    /** Host names in lower case. When it is empty, no certificate is ordered. Never set together with `tlsCert`. */
    domains: row(
      'DOMAINS',
      '',
      parse.hostNames,
      'Host names, with commas: HTTPS with a certificate that is obtained and renewed by itself',
    ),
    acmeDirectory: row(
      'ACME_DIRECTORY',
      'https://acme-v02.api.letsencrypt.org/directory',
      parse.httpsUrl,
      'Where the certificate for DOMAINS comes from',
    ),
    acmeContact: row('ACME_CONTACT', '', parse.emailAddresses, 'E-mail addresses that the directory may write to'),
    httpPort: row(
      'HTTP_PORT',
      hasDomains ? '80' : 'off',
      parse.orWord('off', port),
      'Port that sends plain HTTP to HTTPS and answers http-01 challenges, 80 by default with DOMAINS; off: none',
    ),
    /** `tlsCert` and `tlsKey` are set together, or neither of them is set. */
    tlsCert: row(
      'TLS_CERT',
      '',
      parse.optional(parse.file(cwd)),
      'PEM file of a certificate and its chain: HTTPS with it',
    ),
    tlsKey: row('TLS_KEY', '', parse.optional(parse.file(cwd)), 'PEM file of its private key'),
    docs: row(
      'DOCS',
      'on',
      parse.oneOf(['on', 'application', 'off']),
      'The OpenAPI document and the page at /api/docs: on, application (for a credential alone) or off',
    ),
    mcp: row(
      'MCP',
      'off',
      parse.oneOf(['on', 'application', 'off']),
      'Tools for agents at /api/mcp: on, application (for a credential alone) or off',
    ),
    /** Hosts in lower case, or `'all'` for every host. `*.example.com` covers the names below example.com. */
    tracePropagate: row(
      'TRACE_PROPAGATE',
      'all',
      parse.hostPatterns,
      'Hosts that get the trace with the requests of controllers: all, off, or a list such as api.example.com,*.internal',
    ),
    traceCapture: row(
      'TRACE_CAPTURE',
      '',
      parse.capturedValues,
      'Values of a request that its span gets, with commas: query, and names of headers such as user-agent',
    ),
    logLevel: row(
      'LOG_LEVEL',
      'info',
      parse.oneOf(LOG_LEVELS),
      'debug, info (a line a request), warn, error or silent',
    ),
    lastRequest: row(
      'LAST_REQUEST',
      'auto',
      parse.oneOf(['auto', 'on', 'off']),
      'Note the operation that a worker began last, for the log line of its end: on, off, or auto: after a first death',
    ),
    logFormat: row(
      'LOG_FORMAT',
      'auto',
      parse.oneOf(['auto', 'json', 'pretty']),
      'json: a line for machines; pretty: for people; auto: pretty on a terminal, else json',
    ),
    /**
     * The key as text; undefined when SESSION_KEY is empty. Then the key is in the file `session.key` of `dataDir`, and
     * with STORE_KEY, the machines share that key through the store.
     */
    sessionKey: row(
      'SESSION_KEY',
      '',
      parse.optional(parse.sessionKey),
      'Key of the session tokens, 32 characters or more; empty: data/session.key',
      true,
    ),
    /** Undefined when the files of `dataDir` are the store. Secret, because the address may contain a password. */
    store: row(
      'STORE',
      'file',
      storeAddressParser(cwd),
      'Where keys, rates and the session key are: file (the data folder), or the PostgreSQL that several machines share',
      true,
    ),
    /** The first key seals (encrypts). The list is empty when the session key is not in the store. */
    storeKeys: row(
      'STORE_KEY',
      '',
      parseStoreKeys,
      'Seals the session key in the store, 32 characters or more; empty: each machine has its own session key',
      true,
    ),
    /** Milliseconds; infinite for `off`. */
    storeMaxAge: row(
      'STORE_MAX_AGE',
      '24h',
      parseAgeOrOff,
      'How long credentials are accepted while the store is away; off: without end',
    ),
    /** A file that has been read before the settings were parsed (env-files.ts). */
    envFile: row(
      'ENV_FILE',
      'off',
      parse.orWord('off', parse.file(cwd)),
      'File of variables that are not set yet: a path, off, or dev (.env.local, then .env)',
    ),
    development: row(
      'NODE_ENV',
      'production',
      (text) => text === 'development',
      'development: an error answer says at which step the request ended, and why',
    ),
  };
}

type Table = ReturnType<typeof tableOf>;

export type Settings = { readonly [K in keyof Table]: ReturnType<Table[K]['parse']> };

export type SettingRow = ReturnType<typeof row<unknown>> & { readonly key: keyof Settings };

/** @param hasDomains whether DOMAINS is set. With DOMAINS, the default ports are 443 and 80. */
export function settingRows(processFacts: ProcessFacts, hasDomains = false): readonly SettingRow[] {
  const table = tableOf(processFacts, hasDomains);
  return Object.entries(table).map(([key, row]) => ({ key: key as keyof Settings, ...row }));
}

/** Returns whether the service speaks HTTPS. */
export function isSecure({ tlsCert, domains }: Pick<Settings, 'tlsCert' | 'domains'>): boolean {
  return tlsCert !== undefined || domains.length > 0;
}
