// The table of all settings, from which the type `Settings` is derived. config.ts reads the values.
import { constants } from 'node:buffer';
import { LOG_LEVELS } from './log.ts';
import * as parse from './setting-values.ts';
import { parseAgeOrOff, parseStoreKeys, storeAddressParser } from './store-address.ts';

/** The facts about this process that default values and relative paths depend on. */
export interface ProcessFacts {
  readonly cores: number;
  readonly cwd?: string;
}

/**
 * @param name the environment variable; the flag has the same name in lower case with dashes
 * @param fallback the default value, as text
 * @param secret `SECRET` to hide the value from messages and from `gatefold doctor`
 */
function row<T>(name: string, fallback: string, parse: (text: string) => T, secret = false) {
  return { name, fallback, parse, secret };
}

const SECRET = true;
const port = parse.wholeNumber(0, 65_535);

/** Times are milliseconds, sizes bytes. Undefined means `off`, `auto` or an empty text. */
function tableOf({ cores, cwd = process.cwd() }: ProcessFacts, hasDomains: boolean) {
  return {
    port: row('PORT', hasDomains ? '443' : '3000', port),
    /** Undefined when the service listens on all interfaces, IPv6 and IPv4. */
    host: row('HOST', '', parse.optional(parse.hostName)),
    workers: row('WORKERS', String(cores), parse.wholeNumber(1, 1024)),
    /** An absolute path, like `dataDir`, because a controller may call `process.chdir`. */
    controllersDir: row('CONTROLLERS_DIR', './controllers', parse.folder(cwd)),
    dataDir: row('DATA_DIR', './data', parse.folder(cwd)),
    /** The prefix of all paths, without a slash at its end; '' when the paths begin at the root. */
    basePath: row('BASE_PATH', '/api', parse.basePath),
    // V8 cannot create a longer string, and the text of a body becomes one string.
    bodyLimit: row('BODY_LIMIT', '1MiB', parse.size(1, constants.MAX_STRING_LENGTH)),
    loadTimeout: row('LOAD_TIMEOUT', '10s', parse.duration(1)),
    operationTimeout: row('OPERATION_TIMEOUT', '30s', parse.duration(1)),
    keepAliveTimeout: row('KEEP_ALIVE_TIMEOUT', '72s', parse.duration(1)),
    headersTimeout: row('HEADERS_TIMEOUT', '10s', parse.duration(1)),
    requestTimeout: row('REQUEST_TIMEOUT', '60s', parse.duration(1)),
    drainTimeout: row('DRAIN_TIMEOUT', '30s', parse.duration(0)),
    maxInFlight: row('MAX_IN_FLIGHT', '1000', parse.wholeNumber(1, 1_000_000)),
    /** Undefined for `auto`: the number is then derived from the limit of the heap. */
    maxConnections: row('MAX_CONNECTIONS', 'auto', parse.orWord('auto', parse.wholeNumber(1, 1_000_000))),
    /** Undefined for `auto`: the budget is then derived from the limit of the heap. */
    bodyBudget: row('BODY_BUDGET', 'auto', parse.orWord('auto', parse.size(64 * 1024))),
    rateLimit: row('RATE_LIMIT', 'off', parse.orWord('off', parse.rate)),
    trustedProxies: row('TRUSTED_PROXIES', '', parse.networks),
    publicOrigin: row('PUBLIC_ORIGIN', '', parse.origins),
    /** An absolute path; undefined when no files are served. */
    publicDir: row('PUBLIC_DIR', '', parse.optional(parse.folder(cwd))),
    publicFallback: row('PUBLIC_FALLBACK', '', parse.optional(parse.fileName)),
    compression: row('COMPRESSION', 'off', parse.oneOf(['on', 'off'])),
    opsPort: row('OPS_PORT', 'off', parse.orWord('off', port)),
    ready: row('READY', 'some', parse.oneOf(['some', 'all'])),
    opsHost: row('OPS_HOST', '127.0.0.1', parse.hostName),
    /** Host names in lower case. When it is empty, no certificate is ordered. Never set together with `tlsCert`. */
    domains: row('DOMAINS', '', parse.hostNames),
    acmeDirectory: row('ACME_DIRECTORY', 'https://acme-v02.api.letsencrypt.org/directory', parse.httpsUrl),
    acmeContact: row('ACME_CONTACT', '', parse.emailAddresses),
    httpPort: row('HTTP_PORT', hasDomains ? '80' : 'off', parse.orWord('off', port)),
    /** `tlsCert` and `tlsKey` are set together, or neither of them is set. */
    tlsCert: row('TLS_CERT', '', parse.optional(parse.file(cwd))),
    tlsKey: row('TLS_KEY', '', parse.optional(parse.file(cwd))),
    docs: row('DOCS', 'on', parse.oneOf(['on', 'application', 'off'])),
    mcp: row('MCP', 'off', parse.oneOf(['on', 'application', 'off'])),
    /** Hosts in lower case, or `'all'` for every host. `*.example.com` covers the names below example.com. */
    tracePropagate: row('TRACE_PROPAGATE', 'all', parse.hostPatterns),
    logLevel: row('LOG_LEVEL', 'info', parse.oneOf(LOG_LEVELS)),
    lastRequest: row('LAST_REQUEST', 'auto', parse.oneOf(['auto', 'on', 'off'])),
    logFormat: row('LOG_FORMAT', 'auto', parse.oneOf(['auto', 'json', 'pretty'])),
    /**
     * The key as text; undefined when SESSION_KEY is empty. Then the key is in the file `session.key` of `dataDir`, and
     * with STORE_KEY, the machines share that key through the store.
     */
    sessionKey: row('SESSION_KEY', '', parse.optional(parse.sessionKey), SECRET),
    /** Undefined when the files of `dataDir` are the store. Secret, because the address may contain a password. */
    store: row('STORE', 'file', storeAddressParser(cwd), SECRET),
    /** The first key seals (encrypts). The list is empty when the session key is not in the store. */
    storeKeys: row('STORE_KEY', '', parseStoreKeys, SECRET),
    /** Milliseconds; infinite for `off`. */
    storeMaxAge: row('STORE_MAX_AGE', '24h', parseAgeOrOff),
    /** A file that has been read before the settings were parsed (env-files.ts). */
    envFile: row('ENV_FILE', 'off', parse.orWord('off', parse.file(cwd))),
    development: row('NODE_ENV', 'production', (text) => text === 'development'),
  };
}

type Table = ReturnType<typeof tableOf>;

export type Settings = { readonly [K in keyof Table]: ReturnType<Table[K]['parse']> };

const ABOUT: Readonly<Record<keyof Settings, string>> = {
  port: 'TCP port of the service, 443 by default with DOMAINS; 0 takes any free one',
  host: 'Address to listen on; empty: all interfaces',
  workers: 'Worker processes; default: the available cores',
  controllersDir: 'The folder of controller files',
  dataDir: 'The folder of the credentials table and the identity providers',
  basePath: 'Path that everything is under; / is the root',
  bodyLimit: 'Largest request body, counted after inflating',
  loadTimeout: 'Longest CPU time that a file may take to load',
  operationTimeout: 'Longest an operation may take',
  keepAliveTimeout: 'Longest a connection may idle between two requests',
  headersTimeout: 'Longest a header section may take to arrive',
  requestTimeout: 'Longest a body may take to arrive',
  drainTimeout: 'Longest a worker may take to finish its requests when it stops',
  maxInFlight: 'Requests in progress in one worker; more are refused with 503 OVERLOADED',
  maxConnections: 'Connections of one worker; beyond it the one that has idled longest is ended',
  bodyBudget: 'Bytes of all bodies in progress in one worker; more wait or are refused with 503 OVERLOADED',
  rateLimit:
    'Requests of a caller without a credential, by its address: 100/s, 5000/h burst 200; more get 429 RATE_LIMITED',
  trustedProxies: "Addresses and blocks of the proxies whose X-Forwarded-For names a client's address",
  publicOrigin: 'Origins that browsers have for this service behind a proxy, with commas: https://api.example.com',
  publicDir: 'Folder of files to serve at /, outside of BASE_PATH',
  publicFallback: 'Page in PUBLIC_DIR for paths that a front end routes: index.html; empty: none',
  compression: 'Compress JSON and text of 1 KB and more; off is right behind a proxy that does it',
  opsPort: 'Port of /livez, /readyz and /metrics; off: none',
  ready: 'The groups that must load before /readyz is 200: some, or all until the service was ready once',
  opsHost: 'Address of the operations port',
  domains: 'Host names, with commas: HTTPS with a certificate that is obtained and renewed by itself',
  acmeDirectory: 'Where the certificate for DOMAINS comes from',
  acmeContact: 'E-mail addresses that the directory may write to',
  httpPort: 'Port that sends plain HTTP to HTTPS and answers http-01 challenges, 80 by default with DOMAINS; off: none',
  tlsCert: 'PEM file of a certificate and its chain: HTTPS with it',
  tlsKey: 'PEM file of its private key',
  docs: 'The OpenAPI document and the page at /api/docs: on, application (for a credential alone) or off',
  mcp: 'Tools for agents at /api/mcp: on, application (for a credential alone) or off',
  tracePropagate:
    'Hosts that get the trace with the requests of controllers: all, off, or a list such as api.example.com,*.internal',
  logLevel: 'debug, info (a line a request), warn, error or silent',
  lastRequest:
    'Note the operation that a worker began last, for the log line of its end: on, off, or auto: after a first death',
  logFormat: 'json: a line for machines; pretty: for people; auto: pretty on a terminal, else json',
  sessionKey: 'Key of the session tokens, 32 characters or more; empty: data/session.key',
  store:
    'Where keys, rates and the session key are: file (the data folder), or the PostgreSQL that several machines share',
  storeKeys: 'Seals the session key in the store, 32 characters or more; empty: each machine has its own session key',
  storeMaxAge: 'How long credentials are accepted while the store is away; off: without end',
  envFile: 'File of variables that are not set yet: a path, off, or dev (.env.local, then .env)',
  development: 'development: an error answer says at which step the request ended, and why',
};

export type SettingRow = ReturnType<typeof row<unknown>> & { readonly key: keyof Settings; readonly about: string };

/** @param hasDomains whether DOMAINS is set. With DOMAINS, the default ports are 443 and 80. */
export function settingRows(processFacts: ProcessFacts, hasDomains = false): readonly SettingRow[] {
  const table = tableOf(processFacts, hasDomains);
  const keys = Object.keys(table) as (keyof Settings)[];
  return keys.map((key) => ({ key, ...table[key], about: ABOUT[key] }));
}

export function isSecure({ tlsCert, domains }: Pick<Settings, 'tlsCert' | 'domains'>): boolean {
  return tlsCert !== undefined || domains.length > 0;
}
