// Finds environment variables that are probably misspelt settings: `RATELIMIT`, `TRUST_PROXY`. Such a variable may
// belong to another program, so it does not stop the service from starting. The callers report it. But the name of a
// setting behind the prefix `GATEFOLD_` belongs to no other program, so the service refuses to start (config.ts).
import { isNear, lettersOf } from './near.ts';

/**
 * The settings that protect the service, each with other names that people use for it. Names with typing errors are not
 * listed, because `isTypo` recognizes them.
 */
const PROTECTIVE_SETTINGS = [
  'HOST BIND_ADDRESS LISTEN_ADDRESS',
  'BODY_LIMIT BODY_SIZE_LIMIT MAX_BODY_SIZE',
  'MAX_CONNECTIONS MAX_CONNS',
  'TRUSTED_PROXIES TRUSTED_PROXY TRUST_PROXY',
  'TLS_CERT TLS_CERT_FILE TLS_CERTIFICATE SSL_CERT',
  'TLS_KEY TLS_KEY_FILE SSL_KEY',
  'DOCS API_DOCS',
  'SESSION_KEY SESSION_SECRET',
  ...'BODY_BUDGET OPERATION_TIMEOUT KEEP_ALIVE_TIMEOUT HEADERS_TIMEOUT REQUEST_TIMEOUT'.split(' '),
  ...'MAX_IN_FLIGHT RATE_LIMIT OPS_HOST DOMAINS'.split(' '),
].map((names) => names.split(' ') as [setting: string, ...others: string[]]);

const PREFIX = 'GATEFOLD_';

/**
 * Returns `GATEFOLD_PORT` for the setting PORT, when that variable is set. No other program reads such a variable, so
 * the caller refuses to start. A value such as `tcp://10.0.0.1:80` is exempt, because Kubernetes sets variables with
 * such values for a service called gatefold.
 */
export function prefixedName(setting: string, env: NodeJS.ProcessEnv): string | undefined {
  const value = env[PREFIX + setting] ?? '';
  return value === '' || /^(?:tcp|udp|sctp):\/\//.test(value) ? undefined : PREFIX + setting;
}

export interface IgnoredVariable {
  readonly variable: string;
  /** The setting that was probably meant. The environment does not set this setting. */
  readonly setting: string;
}

/** Returns the variables that are probably misspelt settings. The exact name of a setting is not misspelt. */
export function ignoredVariables(env: NodeJS.ProcessEnv): IgnoredVariable[] {
  const unsetSettings = PROTECTIVE_SETTINGS.filter(([setting]) => !env[setting]);
  return Object.keys(env).flatMap((variable) => {
    const name = variable.startsWith(PREFIX) ? variable.slice(PREFIX.length) : variable;
    if (!env[variable] || PROTECTIVE_SETTINGS.some(([setting]) => setting === name)) return [];
    const letters = lettersOf(name);
    const [setting] =
      unsetSettings.find(([setting, ...others]) => others.includes(name) || isTypo(letters, lettersOf(setting))) ?? [];
    return setting === undefined ? [] : [{ variable, setting }];
  });
}

/**
 * Returns whether a name is probably a misspelt setting. For a short setting, fewer errors are allowed, or none,
 * because other words are near: `POST` and `HOSTS` are near to `HOST`.
 */
function isTypo(nameLetters: string, settingLetters: string): boolean {
  const maxErrors = settingLetters.length > 8 ? 2 : settingLetters.length > 6 ? 1 : 0;
  return isNear(nameLetters, settingLetters, maxErrors);
}
