// The settings: one table, a row a setting. An environment variable and a flag are two spellings of the same row
// (`BODY_LIMIT=2MiB`, `--body-limit 2MiB`). It parses what it is given and reads no environment of its own.
import { constants } from 'node:buffer';
import { LOG_LEVELS, type LogLevel } from './log.ts';
import type { Rate } from './rate.ts';
import {
  addresses,
  duration,
  Expected,
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

export class SettingsError extends Error {}

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

/** One setting as it was given, or as it is when it was not. */
export interface SettingReading {
  readonly row: SettingRow;
  readonly source: 'flag' | 'environment' | 'default';
  readonly text: string;
  readonly value: unknown;
  /** One line, when the value makes no sense; then `value` is that of the fallback. */
  readonly problem?: string;
}

/**
 * The settings out of an environment and the flags of a command line; a flag wins over the environment.
 *
 * @param argv the words after the script name: `--name value` or `--name=value`
 * @throws SettingsError one line that names the setting, what it was given and what it takes
 */
export function parseSettings(env: Readonly<Record<string, string | undefined>>, argv: readonly string[], machine: Machine): Settings {
  const readings = readSettings(env, argv, machine);
  const problem = readings.find((reading) => reading.problem !== undefined)?.problem;
  if (problem !== undefined) throw new SettingsError(problem);
  return settingsOf(readings);
}

export function settingsOf(readings: readonly SettingReading[]): Settings {
  return Object.fromEntries(readings.map(({ row, value }) => [row.key, value])) as unknown as Settings;
}

/**
 * Every setting, sound or not, with where it came from.
 *
 * @throws SettingsError for flags that there are not, are given twice or have no value
 */
export function readSettings(
  env: Readonly<Record<string, string | undefined>>,
  argv: readonly string[],
  machine: Machine,
): SettingReading[] {
  const flags = parseFlags(argv, settingRows(machine));
  const hasDomains = (flags.get('DOMAINS') ?? env.DOMAINS ?? '') !== '';
  const readings = settingRows(machine, hasDomains).map((row): SettingReading => {
    const flag = flags.get(row.name);
    // An empty variable is an unset one: that is what `PORT= node …` and an empty line in an env file mean.
    const text = flag ?? (env[row.name] || row.fallback);
    const source = flag !== undefined ? 'flag' : env[row.name] ? 'environment' : 'default';
    try {
      return { row, source, text, value: row.parse(text) };
    } catch (error) {
      if (!(error instanceof Expected)) throw error;
      const name = source === 'flag' ? flagOf(row.name) : row.name;
      const problem = `${name}: ${row.secret ? 'the value' : JSON.stringify(text)} is not ${error.message}`;
      return { row, source, text, value: row.parse(row.fallback), problem };
    }
  });
  return readings.map((reading) => {
    const problem = conflictOf(reading, settingsOf(readings));
    return problem === undefined || reading.problem !== undefined ? reading : { ...reading, problem };
  });
}

/** What does not go together, said of one of the two. */
function conflictOf({ row: { key } }: SettingReading, { tlsCert, tlsKey, domains, httpPort, port, opsPort }: Settings): string | undefined {
  if (key === 'tlsCert' && tlsCert === undefined && tlsKey !== undefined) return 'TLS_CERT: TLS_KEY needs it';
  if (key === 'tlsKey' && tlsKey === undefined && tlsCert !== undefined) return 'TLS_KEY: TLS_CERT needs it';
  if (key === 'domains' && domains.length > 0 && tlsCert !== undefined)
    return 'DOMAINS: a certificate is either ordered or given by TLS_CERT';
  if (key !== 'httpPort' || httpPort === undefined) return undefined;
  if (!isSecure({ tlsCert, domains })) return 'HTTP_PORT: it leads to HTTPS, which takes DOMAINS or TLS_CERT';
  return httpPort !== 0 && (httpPort === port || httpPort === opsPort) ? `HTTP_PORT: ${httpPort} is taken by another port` : undefined;
}

/** Whether the service speaks HTTPS. */
export function isSecure({ tlsCert, domains }: Pick<Settings, 'tlsCert' | 'domains'>): boolean {
  return tlsCert !== undefined || domains.length > 0;
}

export function flagOf(name: string): string {
  return `--${name.toLowerCase().replaceAll('_', '-')}`;
}

/** Flags on a command line whose values are secrets: every user of the machine can read them there. */
export function secretFlags(argv: readonly string[]): string[] {
  const secrets = settingRows({ cores: 1 }).flatMap(({ name, secret }) => (secret ? [flagOf(name)] : []));
  return secrets.filter((flag) => argv.some((word) => word === flag || word.startsWith(`${flag}=`)));
}

function parseFlags(argv: readonly string[], rows: readonly SettingRow[]): Map<string, string> {
  const names = new Map(rows.map((row) => [flagOf(row.name), row.name]));
  const flags = new Map<string, string>();
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] as string;
    const equals = word.indexOf('=');
    const flag = equals < 0 ? word : word.slice(0, equals);
    const name = names.get(flag);
    if (name === undefined) throw new SettingsError(`${flag}: unknown setting`);
    if (flags.has(name)) throw new SettingsError(`${flag}: given twice`);
    const value = equals < 0 ? argv[++i] : word.slice(equals + 1);
    if (value === undefined) throw new SettingsError(`${flag}: the value is missing`);
    flags.set(name, value);
  }
  return flags;
}
