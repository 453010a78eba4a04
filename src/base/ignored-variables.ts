// Variables of the environment that nothing reads and that were probably meant for a setting: `RATELIMIT`,
// `TRUST_PROXY`. Other programs share the environment and may mean them, so they stop no start. The callers report
// them.
import { editDistance, lettersOf } from './near.ts';

/** Each setting that protects, and other names that people write for it. Slips of the pen need no name here. */
const PROTECTING = [
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
 * A setting with our name in front. No other program can mean it; Kubernetes can, whose links have the name of a
 * service.
 */
export function prefixedName(setting: string, env: Environment): string | undefined {
  const value = env[PREFIX + setting] ?? '';
  return value === '' || /^(?:tcp|udp|sctp):\/\//.test(value) ? undefined : PREFIX + setting;
}

export interface IgnoredVariable {
  readonly variable: string;
  /** The one that was probably meant, which is not set. */
  readonly setting: string;
}

export function ignoredVariables(env: Environment): IgnoredVariable[] {
  const unset = PROTECTING.filter(([setting]) => !env[setting]);
  return Object.keys(env).flatMap((variable) => {
    const name = variable.startsWith(PREFIX) ? variable.slice(PREFIX.length) : variable;
    if (!env[variable] || PROTECTING.some(([setting]) => setting === name)) return [];
    const [setting] =
      unset.find(([one, ...others]) => others.includes(name) || isSlip(lettersOf(name), lettersOf(one))) ?? [];
    return setting === undefined ? [] : [{ variable, setting }];
  });
}

/** A few letters from a short name are other words: `POST`, `HOSTS`. */
function isSlip(letters: string, setting: string): boolean {
  const most = setting.length > 8 ? 2 : setting.length > 6 ? 1 : 0;
  return Math.abs(letters.length - setting.length) <= most && editDistance(letters, setting) <= most;
}
