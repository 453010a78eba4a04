// Parses STORE, STORE_KEY and STORE_MAX_AGE here, because src/operate/store is loaded only when STORE has an address.
import { resolve } from 'node:path';
import { attempt } from './failure.ts';
import { InvalidValue } from './setting-values.ts';
import { TIME_UNITS } from './time.ts';
import { withoutBrackets } from './values.ts';

export interface StoreAddress {
  /** The hosts of one PostgreSQL: its primary and its standbys. The host that accepts writes is used. */
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** `verify`: TLS, and the certificate must be valid for the host. `off`: no TLS. */
  readonly tls: 'verify' | 'off';
  /** Absolute path of the PEM file of the certificate authority; undefined when the authorities of Node are used. */
  readonly rootCertificate: string | undefined;
}

const FORM =
  'file or an address such as postgres://user:password@host:5432/database, with several hosts after commas if there are standbys';
/** Captures the user, the password (if any), the list of hosts, the database, and the query (if any). */
const ADDRESS = /^postgres(?:ql)?:\/\/([^@/?#\s:]+)(?::([^@/?#\s]*))?@([^@/?#\s]+)\/([^/?#\s]+)(?:\?([^#\s]*))?$/;
const HOST_WITH_PORT = /^(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+)(?::(\d{1,5}))?$/;
const KNOWN_PARAMETERS = new Set(['sslmode', 'sslrootcert', 'channel_binding']);
/** Parameters that providers of databases write for other clients, and that have no effect here. */
const IGNORED_PARAMETERS = new Set(['application_name', 'connect_timeout', 'pgbouncer']);

/** Returns the parser of STORE, which returns undefined for `file`. @param cwd the base of a relative `sslrootcert` */
export function storeAddressParser(cwd: string) {
  return (text: string): StoreAddress | undefined => {
    if (text === 'file') return undefined;
    const match = ADDRESS.exec(text);
    if (match === null) throw new InvalidValue(FORM);
    const [, user = '', password = '', hostList = '', database = '', query = ''] = match;
    const hosts = hostList.split(',').map(parseHost);
    const parameters = new URLSearchParams(query);
    for (const name of parameters.keys()) {
      if (!KNOWN_PARAMETERS.has(name) && !IGNORED_PARAMETERS.has(name))
        throw new InvalidValue(`${FORM}; its parameter ${name} is not known`);
      if (parameters.getAll(name).length > 1) throw new InvalidValue(`${FORM}; its parameter ${name} is given twice`);
    }
    const isLocal = hosts.every(({ host }) => isLoopback(host));
    const tls = parseMode(parameters.get('sslmode') ?? (isLocal ? 'disable' : 'verify-full'));
    checkChannelBinding(parameters.get('channel_binding') ?? 'prefer', tls);
    const rootCertificate = parameters.get('sslrootcert') ?? undefined;
    // Without TLS, nothing would check the certificate that the address trusts.
    if (rootCertificate !== undefined && tls === 'off')
      throw new InvalidValue(`${FORM}; its sslrootcert needs sslmode=verify-full`);
    return {
      hosts,
      user: decode(user),
      password: decode(password),
      database: decode(database),
      tls,
      rootCertificate: rootCertificate === undefined ? undefined : resolve(cwd, rootCertificate),
    };
  };
}

export function isLoopback(host: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/.test(host);
}

function parseHost(text: string): { host: string; port: number } {
  const [, host = '', port = '5432'] = HOST_WITH_PORT.exec(text) ?? [];
  if (host === '' || Number(port) < 1 || Number(port) > 65535) throw new InvalidValue(FORM);
  return { host: withoutBrackets(host), port: Number(port) };
}

/**
 * Accepts only `verify-full` and `disable`. The mode `disable` says openly that the connection has no TLS, and
 * operate/store/host.ts logs a warning for a host other than this machine. The other modes of PostgreSQL look like
 * protection, but the password can go to a server without TLS, with an unchecked certificate, or with that of another
 * host.
 */
function parseMode(mode: string): StoreAddress['tls'] {
  if (mode === 'verify-full') return 'verify';
  if (mode === 'disable') return 'off';
  throw new InvalidValue(`${FORM}; its sslmode is either verify-full or disable`);
}

/** Channel binding protects the password from a server in the middle. So does a certificate that is verified. */
function checkChannelBinding(binding: string, tls: StoreAddress['tls']): void {
  if (binding === 'prefer' || binding === 'disable' || (binding === 'require' && tls === 'verify')) return;
  throw new InvalidValue(`${FORM}; its channel_binding is prefer, disable, or with sslmode=verify-full require`);
}

function decode(text: string): string {
  const decoded = attempt(() => decodeURIComponent(text), undefined);
  if (decoded === undefined) throw new InvalidValue(`${FORM}; write % as %25`);
  return decoded;
}

/** Parses the keys that seal (encrypt) secrets in the store. The first one seals, and the others open old secrets. */
export function parseStoreKeys(text: string): readonly string[] {
  const keys = text === '' ? [] : text.split(',');
  if (keys.some((key) => key.length < 32)) throw new InvalidValue('32 characters or longer, each of them');
  return keys;
}

/** Parses `10m`, `24h`, `7d` to milliseconds, and `off` to infinity. */
export function parseAgeOrOff(text: string): number {
  if (text === 'off') return Number.POSITIVE_INFINITY;
  const match = /^(\d{1,6})([smhd])$/.exec(text);
  const age = match === null ? 0 : Number(match[1]) * (TIME_UNITS[match[2] as string] as number);
  if (age < 10_000) throw new InvalidValue('off or a time such as 30m, 24h or 7d, 10s at least');
  return age;
}
