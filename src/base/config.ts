// The settings: one table, a row a setting. An environment variable and a flag are two spellings of the same row
// (`BODY_LIMIT=2MiB`, `--body-limit 2MiB`). It parses what it is given and reads no environment of its own.
import { constants } from 'node:buffer';
import { resolve } from 'node:path';
import { LOG_LEVELS, type LogLevel } from './log.ts';

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
  /** `undefined`: no operations port. */
  readonly opsPort: number | undefined;
  readonly opsHost: string;
  readonly logLevel: LogLevel;
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

/** What `parse` throws: what the value should have been. */
class Expected extends Error {}

export interface Machine {
  readonly cores: number;
  /** What relative folders are relative to; default: the working directory of this moment. */
  readonly cwd?: string;
}

export function settingRows({ cores, cwd = process.cwd() }: Machine): readonly SettingRow[] {
  return [
    { key: 'port', name: 'PORT', fallback: '3000', parse: wholeNumber(0, 65535), about: 'TCP port of the service; 0 takes any free one' },
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
    { key: 'opsPort', name: 'OPS_PORT', fallback: 'off', parse: portOrOff, about: 'Port of /livez, /readyz and /metrics; off: none' },
    { key: 'opsHost', name: 'OPS_HOST', fallback: '127.0.0.1', parse: hostName, about: 'Address of the operations port' },
    {
      key: 'logLevel',
      name: 'LOG_LEVEL',
      fallback: 'info',
      parse: oneOf(LOG_LEVELS),
      about: 'debug, info (a line a request), warn, error or silent',
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
  const rows = settingRows(machine);
  const flags = parseFlags(argv, rows);
  return rows.map((row) => {
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
}

export function flagOf(name: string): string {
  return `--${name.toLowerCase().replaceAll('_', '-')}`;
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

function wholeNumber(min: number, max: number) {
  return (text: string): number => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max)) throw new Expected(`a whole number from ${min} to ${max}`);
    return value;
  };
}

function portOrOff(text: string): number | undefined {
  if (text === 'off') return undefined;
  try {
    return wholeNumber(0, 65535)(text);
  } catch {
    throw new Expected('off or a whole number from 0 to 65535');
  }
}

function hostName(text: string): string | undefined {
  if (/[\s/@,]/.test(text)) throw new Expected('a host name or address');
  return text === '' ? undefined : text.replace(/^\[(.*)\]$/, '$1');
}

function folder(cwd: string) {
  return (text: string): string => {
    if (text === '' || text.includes('\0')) throw new Expected('a path');
    return resolve(cwd, text);
  };
}

function oneOf<T extends string>(values: readonly T[]) {
  return (text: string): T => {
    if (!(values as readonly string[]).includes(text)) throw new Expected(`one of ${values.join(', ')}`);
    return text as T;
  };
}

function sessionKey(text: string): string | undefined {
  if (text === '') return undefined;
  if (text.length < 32) throw new Expected('32 characters or longer');
  return text;
}

const DURATION_UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** `500ms`, `30s`, `2m`, `1h`; a bare number is seconds, as in the defaults. */
function duration(min: number) {
  return (text: string): number => {
    const match = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)?$/.exec(text);
    const value = match === null ? Number.NaN : Math.round(Number(match[1]) * (DURATION_UNITS[match[2] ?? 's'] as number));
    // Above 2^31 - 1 ms Node's timers fire at once.
    if (!(value >= min && value <= 86_400_000)) throw new Expected('a time such as 500ms, 30s or 2m, a day at most');
    return value;
  };
}

const SIZE_UNITS: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  k: 1024,
  kb: 1024,
  kib: 1024,
  m: 1024 ** 2,
  mb: 1024 ** 2,
  mib: 1024 ** 2,
};

/** Bytes, or `64KiB`, `2MiB` (`k`, `kb`, `m`, `mb` mean the same powers of 1,024). */
function size(min: number, max: number) {
  return (text: string): number => {
    const match = /^(\d{1,10})([a-z]*)$/i.exec(text);
    const unit = SIZE_UNITS[(match?.[2] ?? '').toLowerCase()];
    const value = match === null || unit === undefined ? Number.NaN : Number(match[1]) * unit;
    if (!(value >= min && value <= max)) throw new Expected(`a size such as 65536, 64KiB or 2MiB, from ${min} to ${max} bytes`);
    return value;
  };
}
