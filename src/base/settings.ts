// The settings: one table, a row a setting, with what each means, takes and is when nobody says. It reads nothing.
import { constants } from 'node:buffer';
import { LOG_LEVELS, type LogLevel } from './log.ts';
import type { Rate } from './rate.ts';
import {
  addresses,
  duration,
  file,
  folder,
  hostName,
  hostNames,
  httpsUrl,
  networks,
  oneOf,
  portOrOff,
  rateOrOff,
  sessionKey,
  size,
  sizeOrAuto,
  wholeNumber,
} from './setting-values.ts';

/** Times are milliseconds, sizes are bytes. */
export interface Settings {
  readonly port: number;
  /** `undefined`: all interfaces, IPv6 and IPv4. */
  readonly host: string | undefined;
  readonly workers: number;
  /** Absolute, as is `dataDir`: a controller that calls `process.chdir` moves neither. */
  readonly controllersDir: string;
  readonly dataDir: string;
  readonly bodyLimit: number;
  readonly operationTimeout: number;
  readonly keepAliveTimeout: number;
  readonly headersTimeout: number;
  readonly requestTimeout: number;
  readonly drainTimeout: number;
  readonly maxInFlight: number;
  readonly maxConnections: number;
  /** `undefined`: by the limit of the heap. */
  readonly bodyBudget: number | undefined;
  /** Of a caller without a credential, by its address; `undefined`: no limit. */
  readonly rateLimit: Rate | undefined;
  /** Addresses and CIDR blocks. */
  readonly trustedProxies: readonly string[];
  /** `undefined`: no operations port. */
  readonly opsPort: number | undefined;
  readonly opsHost: string;
  /** PEM files; `undefined`: no HTTPS by files. Both or none. */
  readonly tlsCert: string | undefined;
  readonly tlsKey: string | undefined;
  /** Host names in lower case; empty: no certificate is ordered. Never together with `tlsCert`. */
  readonly domains: readonly string[];
  readonly acmeDirectory: string;
  /** E-mail addresses. */
  readonly acmeContact: readonly string[];
  /** `undefined`: no port for challenges and redirects. */
  readonly httpPort: number | undefined;
  /** Who may see the OpenAPI document and the page of it: everybody, applications alone, nobody. */
  readonly docs: 'on' | 'application' | 'off';
  readonly logLevel: LogLevel;
  /** `auto`: `pretty` on a terminal, else `json`. */
  readonly logFormat: 'auto' | 'json' | 'pretty';
  /** The key that session tokens are made with, as text; `undefined`: `data/session.key`. */
  readonly sessionKey: string | undefined;
  /** `NODE_ENV` is `development`: a 500 tells the client its cause. */
  readonly development: boolean;
}

export interface SettingRow {
  readonly key: keyof Settings;
  /** The environment variable; the flag is the same in lower case with dashes. */
  readonly name: string;
  /** As a person would write it. */
  readonly fallback: string;
  readonly parse: (text: string) => unknown;
  readonly about: string;
  /** Never shown, neither in a message nor by `gatefold doctor`. */
  readonly secret?: true;
}

export interface Machine {
  readonly cores: number;
  /** What relative folders are relative to; default: the working directory of this moment. */
  readonly cwd?: string;
}

/** @param hasDomains DOMAINS is set: the ports are then those of the web */
export function settingRows({ cores, cwd = process.cwd() }: Machine, hasDomains = false): readonly SettingRow[] {
  return [
    {
      key: 'port',
      name: 'PORT',
      fallback: hasDomains ? '443' : '3000',
      parse: wholeNumber(0, 65535),
      about: 'TCP port of the service, 443 by default with DOMAINS; 0 takes any free one',
    },
    { key: 'host', name: 'HOST', fallback: '', parse: hostName, about: 'Address to listen on; empty: all interfaces' },
    {
      key: 'workers',
      name: 'WORKERS',
      fallback: String(cores),
      parse: wholeNumber(1, 1024),
      about: 'Worker processes; default: the available cores',
    },
    {
      key: 'controllersDir',
      name: 'CONTROLLERS_DIR',
      fallback: './controllers',
      parse: folder(cwd),
      about: 'The folder of controller files',
    },
    {
      key: 'dataDir',
      name: 'DATA_DIR',
      fallback: './data',
      parse: folder(cwd),
      about: 'The folder of the credentials table and the identity providers',
    },
    {
      key: 'bodyLimit',
      name: 'BODY_LIMIT',
      fallback: '1MiB',
      // The text of a body has to fit into one string.
      parse: size(1, constants.MAX_STRING_LENGTH),
      about: 'Largest request body, counted after inflating',
    },
    { key: 'operationTimeout', name: 'OPERATION_TIMEOUT', fallback: '30s', parse: duration(1), about: 'Longest an operation may take' },
    {
      key: 'keepAliveTimeout',
      name: 'KEEP_ALIVE_TIMEOUT',
      fallback: '72s',
      parse: duration(1),
      about: 'Longest a connection may idle between two requests',
    },
    {
      key: 'headersTimeout',
      name: 'HEADERS_TIMEOUT',
      fallback: '10s',
      parse: duration(1),
      about: 'Longest a header section may take to arrive',
    },
    {
      key: 'requestTimeout',
      name: 'REQUEST_TIMEOUT',
      fallback: '60s',
      parse: duration(1),
      about: 'Longest a whole request may take to arrive',
    },
    {
      key: 'drainTimeout',
      name: 'DRAIN_TIMEOUT',
      fallback: '30s',
      parse: duration(0),
      about: 'Longest a worker may take to finish what is under way when it is told to end',
    },
    {
      key: 'maxInFlight',
      name: 'MAX_IN_FLIGHT',
      fallback: '1000',
      parse: wholeNumber(1, 1_000_000),
      about: 'Requests under way in one worker; more are refused with 503 OVERLOADED',
    },
    {
      key: 'maxConnections',
      name: 'MAX_CONNECTIONS',
      fallback: '10000',
      parse: wholeNumber(1, 1_000_000),
      about: 'Connections of one worker; beyond it the one that has idled longest is ended',
    },
    {
      key: 'bodyBudget',
      name: 'BODY_BUDGET',
      fallback: 'auto',
      parse: sizeOrAuto(64 * 1024),
      about: 'Bytes of all bodies under way in one worker; more wait or are refused with 503 OVERLOADED',
    },
    {
      key: 'rateLimit',
      name: 'RATE_LIMIT',
      fallback: 'off',
      parse: rateOrOff,
      about: 'Requests of a caller without a credential, by its address: 100/s, 5000/h burst 200; more get 429 RATE_LIMITED',
    },
    {
      key: 'trustedProxies',
      name: 'TRUSTED_PROXIES',
      fallback: '',
      parse: networks,
      about: "Addresses and blocks of the proxies whose X-Forwarded-For tells a client's address",
    },
    { key: 'opsPort', name: 'OPS_PORT', fallback: 'off', parse: portOrOff, about: 'Port of /livez, /readyz and /metrics; off: none' },
    { key: 'opsHost', name: 'OPS_HOST', fallback: '127.0.0.1', parse: hostName, about: 'Address of the operations port' },
    {
      key: 'domains',
      name: 'DOMAINS',
      fallback: '',
      parse: hostNames,
      about: 'Host names, with commas: HTTPS with a certificate that is obtained and renewed by itself',
    },
    {
      key: 'acmeDirectory',
      name: 'ACME_DIRECTORY',
      fallback: 'https://acme-v02.api.letsencrypt.org/directory',
      parse: httpsUrl,
      about: 'Where the certificate for DOMAINS comes from',
    },
    { key: 'acmeContact', name: 'ACME_CONTACT', fallback: '', parse: addresses, about: 'E-mail addresses that the directory may write to' },
    {
      key: 'httpPort',
      name: 'HTTP_PORT',
      fallback: hasDomains ? '80' : 'off',
      parse: portOrOff,
      about: 'Port that sends plain HTTP to HTTPS and answers http-01 challenges, 80 by default with DOMAINS; off: none',
    },
    { key: 'tlsCert', name: 'TLS_CERT', fallback: '', parse: file(cwd), about: 'PEM file of a certificate and its chain: HTTPS with it' },
    { key: 'tlsKey', name: 'TLS_KEY', fallback: '', parse: file(cwd), about: 'PEM file of its private key' },
    {
      key: 'docs',
      name: 'DOCS',
      fallback: 'on',
      parse: oneOf(['on', 'application', 'off']),
      about: 'The OpenAPI document and the page at /api/docs: on, application (for a credential alone) or off',
    },
    {
      key: 'logLevel',
      name: 'LOG_LEVEL',
      fallback: 'info',
      parse: oneOf(LOG_LEVELS),
      about: 'debug, info (a line a request), warn, error or silent',
    },
    {
      key: 'logFormat',
      name: 'LOG_FORMAT',
      fallback: 'auto',
      parse: oneOf(['auto', 'json', 'pretty'] as const),
      about: 'json: a line for machines; pretty: for people; auto: pretty on a terminal, else json',
    },
    {
      key: 'sessionKey',
      name: 'SESSION_KEY',
      fallback: '',
      parse: sessionKey,
      about: 'Key of the session tokens, 32 characters or more; empty: data/session.key',
      secret: true,
    },
    {
      key: 'development',
      name: 'NODE_ENV',
      fallback: 'production',
      parse: (text) => text === 'development',
      about: 'development: a 500 answer tells its cause',
    },
  ];
}

/** Whether the service speaks HTTPS. */
export function isSecure({ tlsCert, domains }: Pick<Settings, 'tlsCert' | 'domains'>): boolean {
  return tlsCert !== undefined || domains.length > 0;
}
