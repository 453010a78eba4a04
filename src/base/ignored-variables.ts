// Finds environment variables that are probably misspelt names of settings that protect: `RATELIMIT`. Without a report,
// the protection would be absent in silence. The variable may belong to another program, so the service starts. But the
// name of a setting behind the prefix `GATEFOLD_` belongs to no other program, so config.ts refuses it.
import { isNear, lettersOf } from './near.ts';

const PROTECTIVE_SETTINGS = [
  ...'HOST BODY_LIMIT BODY_BUDGET MAX_CONNECTIONS MAX_IN_FLIGHT RATE_LIMIT TRUSTED_PROXIES TLS_CERT TLS_KEY'.split(' '),
  ...'DOMAINS DOCS SESSION_KEY OPS_HOST OPERATION_TIMEOUT KEEP_ALIVE_TIMEOUT HEADERS_TIMEOUT REQUEST_TIMEOUT'.split(
    ' ',
  ),
];
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

/** Returns each variable with the setting that was probably meant. The environment does not set this setting. */
export function ignoredVariables(env: NodeJS.ProcessEnv) {
  const unsetSettings = PROTECTIVE_SETTINGS.filter((setting) => !env[setting]);
  return Object.keys(env).flatMap((variable) => {
    const name = variable.startsWith(PREFIX) ? variable.slice(PREFIX.length) : variable;
    if (!env[variable] || PROTECTIVE_SETTINGS.includes(name)) return [];
    const setting = unsetSettings.find((setting) => isTypo(lettersOf(name), lettersOf(setting)));
    return setting === undefined ? [] : [{ variable, setting }];
  });
}

/** Allows an edit for four letters. Short names allow none, because other words are near: `POST` is near to `HOST`. */
function isTypo(name: string, setting: string): boolean {
  return isNear(name, setting, setting.length < 6 ? 0 : Math.floor(setting.length / 4));
}
