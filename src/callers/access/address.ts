// Finds the address of a client. Behind trusted proxies, this is the right-most entry of X-Forwarded-For that is not a
// trusted proxy, because a client can make up all entries to the left of that one. If all entries are trusted proxies,
// the left-most one is the address.
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, type Socket, SocketAddress } from 'node:net';

export type TrustedProxies = Pick<BlockList, 'check'>;

const NO_PROXIES = new BlockList();

/** @param entries valid addresses and CIDR blocks */
export function parseTrustedProxies(entries: readonly string[]): TrustedProxies {
  if (entries.length === 0) return NO_PROXIES;
  const list = new BlockList();
  for (const entry of entries) {
    const [address = '', bits] = entry.split('/');
    const family = familyName(isIP(address));
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}

/** Maximum entries of X-Forwarded-For that are read, from the right. If all are trusted, the last one read counts. */
const MAX_PROXIES = 32;

/** Returns the address of the client: the peer of the connection, or the address that trusted proxies report. */
export function addressOf(
  { request, socket }: { readonly request: IncomingMessage; readonly socket: Socket },
  proxies: TrustedProxies,
): string {
  let address = plainAddress(socket.remoteAddress ?? '');
  // When the peer is no proxy, `headers` is not read, because Node builds that object at its first use.
  if (proxies === NO_PROXIES || !isTrusted(address, proxies)) return address;
  const forwarded = String(request.headers['x-forwarded-for'] ?? '');
  for (let end = forwarded.length, hops = 0; end > 0 && hops < MAX_PROXIES; hops++) {
    const comma = forwarded.lastIndexOf(',', end - 1);
    const entry = withoutPort(forwarded.slice(comma + 1, end).trim());
    // An entry can be no address, such as `unknown` from a proxy that hides its client. Then the entry to the right
    // of it counts, which `address` still holds.
    if (isIP(entry) === 0) return address;
    address = canonicalAddress(entry);
    if (!isTrusted(address, proxies)) return address;
    end = comma;
  }
  return address;
}

function isTrusted(address: string, proxies: TrustedProxies): boolean {
  const family = isIP(address);
  return family !== 0 && proxies.check(address, familyName(family));
}

function familyName(family: number): 'ipv4' | 'ipv6' {
  return family === 4 ? 'ipv4' : 'ipv6';
}

/** Removes the IPv6 prefix of an IPv4 address (`::ffff:192.0.2.1`), and the zone of this machine (`fe80::1%eth0`). */
function plainAddress(address: string): string {
  // An IPv4 address has neither part. Nearly all addresses are IPv4, so this line saves the regular expressions.
  if (!address.includes(':')) return address;
  return /^::ffff:(\d+\.[\d.]+)$/.exec(address)?.[1] ?? address.replace(/%.*$/, '');
}

/** Spells an address as the kernel does, because a header can spell one IPv6 address in many ways. */
function canonicalAddress(address: string): string {
  if (!address.includes(':')) return address;
  return plainAddress(new SocketAddress({ address: address.replace(/%.*$/, ''), family: 'ipv6' }).address);
}

/** Removes a port, brackets and quotes, which some proxies write: `192.0.2.1:1234`, `"[2001:db8::1]"`. */
function withoutPort(text: string): string {
  const [, v6, v4] =
    /^"?(?:\[([0-9a-f:.]{2,45})\]|(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}))(?::\d{1,5})?"?$/i.exec(text) ?? [];
  return v6 ?? v4 ?? text;
}

/**
 * Returns the network whose calls a rate limit counts: an IPv4 address, or the /64 of an IPv6 address, because one host
 * can use every address of its /64. In an IPv6 address, `::` stands for the zeros that are missing.
 *
 * @param address as `addressOf` spells it
 */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const [leading = [], trailing = []] = address
    .split('::')
    .map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = Array<string>(Math.max(0, 8 - leading.length - trailing.length)).fill('0');
  return `${[...leading, ...zeros, ...trailing].slice(0, 4).join(':')}::/64`;
}
