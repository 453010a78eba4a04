// Reads the settings from environment variables and flags. Each setting has a variable and a flag: `BODY_LIMIT=2MiB`
// and `--body-limit 2MiB`.
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { whyNotPublic } from './files/public-dir.ts';
import { prefixedName } from './ignored-variables.ts';
import { InvalidValue, isKeyText } from './setting-values.ts';
import { isSecure, type ProcessFacts, type SettingRow, type Settings, settingRows } from './settings.ts';
import type { Fields } from './values.ts';

export class SettingsError extends Error {}

export type FlagOptions = NonNullable<ParseArgsConfig['options']>;

/** Flags of one start, which are no settings. A variable would hold for all later starts, too. */
export const START_FLAGS = {
  'without-service-file': { type: 'boolean' },
  'exit-if-not-ready': { type: 'boolean' },
  /** Set by `gatefold dev`. */
  dev: { type: 'boolean' },
  inspect: { type: 'string' },
} as const satisfies FlagOptions;

/** Placeholder facts, for the names of the settings. Only the default values depend on the facts. */
const ANY_PROCESS: ProcessFacts = { cores: 1 };

export interface SettingReading {
  readonly row: SettingRow;
  readonly source: 'flag' | 'environment' | 'default';
  readonly text: string;
  /** The parsed `text`, or the parsed default of the setting when `text` is invalid. */
  readonly value: unknown;
  /** The reason why the setting is refused, in one line. Absent when the setting is accepted. */
  readonly problem?: string;
}

/**
 * Reads all settings and refuses invalid ones. A flag overrides the environment.
 *
 * @param argv the words after the script name: `--name value` or `--name=value`
 * @throws SettingsError for the first wrong setting. Its message is one line: the setting, the value (unless the value
 *   is a secret), and the form that the value needs; or the word of `argv` that is no setting
 */
export function parseSettings(env: NodeJS.ProcessEnv, argv: readonly string[], processFacts: ProcessFacts): Settings {
  const { values, positionals } = parseCommandLine(argv, START_FLAGS);
  const [operand] = positionals;
  if (operand !== undefined) throw new SettingsError(`${operand.split('=', 1)[0]}: unknown setting`);
  const readings = readSettings(env, values, processFacts);
  const problem = readings.find((reading) => reading.problem !== undefined)?.problem;
  if (problem !== undefined) throw new SettingsError(problem);
  return settingsOf(readings);
}

export function settingsOf(readings: readonly SettingReading[]): Settings {
  return Object.fromEntries(readings.map(({ row, value }) => [row.key, value])) as unknown as Settings;
}

export function readSettings(env: NodeJS.ProcessEnv, flags: Fields, processFacts: ProcessFacts): SettingReading[] {
  const hasDomains = (flags.domains ?? env.DOMAINS ?? '') !== '';
  const readings = settingRows(processFacts, hasDomains).map((row): SettingReading => {
    const flag = flags[flagNameOf(row.name)] as string | undefined;
    // An empty variable is treated as unset, as in `PORT= node …` and in an env file.
    const text = flag ?? (env[row.name] || row.fallback);
    const source = flag !== undefined ? 'flag' : env[row.name] ? 'environment' : 'default';
    const wrongName = prefixedName(row.name, env);
    try {
      const problem = wrongName === undefined ? {} : { problem: `${wrongName}: the variable is called ${row.name}` };
      return { row, source, text, value: row.parse(text), ...problem };
    } catch (error) {
      if (!(error instanceof InvalidValue)) throw error;
      const name = source === 'flag' ? flagOf(row.name) : row.name;
      const problem = `${name}: ${row.secret || isKeyText(text) ? 'the value' : JSON.stringify(text)} is not ${error.message}`;
      return { row, source, text, value: row.parse(row.fallback), problem };
    }
  });
  const settings = settingsOf(readings);
  return readings.map((reading) => {
    const problem = reading.problem ?? conflictOf(reading, settings);
    return problem === undefined ? reading : { ...reading, problem };
  });
}

function conflictOf(
  { row: { key }, source }: SettingReading,
  { tlsCert, tlsKey, domains, httpPort, port, opsPort, publicDir, publicFallback, ...folders }: Settings,
): string | undefined {
  if (key === 'publicFallback' && publicFallback !== undefined && publicDir === undefined)
    return 'PUBLIC_FALLBACK: PUBLIC_DIR needs to name its folder';
  if (key === 'publicDir' && publicDir !== undefined) {
    const reason = whyNotPublic(publicDir, { CONTROLLERS_DIR: folders.controllersDir, DATA_DIR: folders.dataDir });
    return reason === undefined ? undefined : `PUBLIC_DIR: ${publicDir} cannot be served: ${reason}`;
  }
  if (key === 'tlsCert' && tlsCert === undefined && tlsKey !== undefined) return 'TLS_CERT: TLS_KEY needs it';
  if (key === 'tlsKey' && tlsKey === undefined && tlsCert !== undefined) return 'TLS_KEY: TLS_CERT needs it';
  if (key === 'domains' && domains.length > 0 && tlsCert !== undefined)
    return 'DOMAINS: a certificate is either ordered or given by TLS_CERT';
  if (key !== 'httpPort' || httpPort === undefined) return undefined;
  // The default is 80 for DOMAINS alone, so DOMAINS has a problem of its own.
  if (!isSecure({ tlsCert, domains }))
    return source === 'default' ? undefined : 'HTTP_PORT: it leads to HTTPS, which takes DOMAINS or TLS_CERT';
  return httpPort !== 0 && (httpPort === port || httpPort === opsPort)
    ? `HTTP_PORT: ${httpPort} is taken by another port`
    : undefined;
}

/** Returns `--body-limit` for `BODY_LIMIT`. */
export function flagOf(variable: string): string {
  return `--${flagNameOf(variable)}`;
}

const flagNameOf = (variable: string): string => variable.toLowerCase().replaceAll('_', '-');

/** Returns the flags of `argv` whose values are secrets: `--store`. Every user of a machine can read command lines. */
export function secretFlags(argv: readonly string[]): string[] {
  const flags = settingRows(ANY_PROCESS).flatMap(({ name, secret }) => (secret ? [flagOf(name)] : []));
  return flags.filter((flag) => argv.some((word) => word === flag || word.startsWith(`${flag}=`)));
}

/**
 * Parses a command line: flags of settings, flags of a command, and operands. The keys of `values` are names of flags
 * without their leading dashes.
 *
 * @param ownFlags the command's own flags, as `util.parseArgs` takes them
 * @throws SettingsError for a flag that is unknown, is given twice, lacks its value, or has a value that it does not
 *   take; and for the flag of a setting when its value is empty
 */
export function parseCommandLine(argv: readonly string[], ownFlags: FlagOptions = {}) {
  const settingFlags = settingRows(ANY_PROCESS).map(({ name }) => [flagNameOf(name), { type: 'string' }]);
  const options: FlagOptions = { ...Object.fromEntries(settingFlags), ...ownFlags };
  const { values, positionals, tokens } = parseArgs({
    args: [...argv],
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const givenFlags = new Set<string>();
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const { name, rawName, value, inlineValue } = token;
    const refuse = (reason: string): never => {
      throw new SettingsError(`${rawName}: ${reason}`);
    };
    if (!Object.hasOwn(options, name)) refuse('unknown flag');
    if (givenFlags.has(name)) refuse('given twice');
    givenFlags.add(name);
    const takesValue = options[name]?.type === 'string';
    if (!takesValue && value !== undefined) refuse('it takes no value');
    // In `--host --port 80`, `parseArgs` takes `--port` as the value of `--host`.
    const hasValue = value !== undefined && (inlineValue || !value.startsWith('--'));
    if (takesValue && !hasValue) refuse('the value is missing');
    // In a shell, `--tls-cert "$CERT"` has an empty value when CERT is unset. The empty value is refused, because a
    // service must not start without the certificate that the operator wanted.
    if (value === '' && !Object.hasOwn(ownFlags, name)) refuse('the value is empty');
  }
  return { values, positionals };
}
