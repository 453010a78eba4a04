// Finds environment variables that are probably misspelt settings: `RATELIMIT`, `TRUST_PROXY`. Another program may read
// them, so they do not stop a start. The callers report them.
import { isNear, lettersOf } from './near.ts';

/** Each setting that protects the service, and other names that people use for it. Typing errors are found without. */
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

type Environment = Readonly<Record<string, string | undefined>>;

const PREFIX = 'GATEFOLD_';

/**
 * Returns `GATEFOLD_` and the setting's name where that variable is set: no other program reads it, so it is an error.
 * Exempt are the links that Kubernetes sets for a service called gatefold (`tcp://…`).
 */
export function prefixedName(setting: string, env: Environment): string | undefined {
  const value = env[PREFIX + setting] ?? '';
  return value === '' || /^(?:tcp|udp|sctp):\/\//.test(value) ? undefined : PREFIX + setting;
}

export interface IgnoredVariable {
  readonly variable: string;
  /** The setting that was probably meant. It is not set. */
  readonly setting: string;
}

export function ignoredVariables(env: Environment): IgnoredVariable[] {
  const unset = PROTECTIVE_SETTINGS.filter(([setting]) => !env[setting]);
  return Object.keys(env).flatMap((variable) => {
    const name = variable.startsWith(PREFIX) ? variable.slice(PREFIX.length) : variable;
    if (!env[variable] || PROTECTIVE_SETTINGS.some(([setting]) => setting === name)) return [];
    const [setting] =
      unset.find(([setting, ...others]) => others.includes(name) || isTypo(lettersOf(name), lettersOf(setting))) ?? [];
    return setting === undefined ? [] : [{ variable, setting }];
  });
}

/** Allows fewer typing errors in a short name, because other words are close to it: `POST`, `HOSTS`. */
function isTypo(letters: string, setting: string): boolean {
  const most = setting.length > 8 ? 2 : setting.length > 6 ? 1 : 0;
  return isNear(letters, setting, most);
}
