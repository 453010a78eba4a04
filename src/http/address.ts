// The address of a client. Behind trusted proxies, the address is the right-most entry of X-Forwarded-For that is not a
// trusted proxy. Any client can make up the entries to the left of that entry.
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, SocketAddress } from 'node:net';

/** A BlockList that is only read. */
export type TrustedProxies = Pick<BlockList, 'check'>;

const NOBODY: TrustedProxies = { check: () => false };

/** @param entries addresses and CIDR blocks; the setting has checked them */
export function parseTrustedProxies(entries: readonly string[]): TrustedProxies {
  if (entries.length === 0) return NOBODY;
  const list = new BlockList();
  for (const entry of entries) {
    const [address = '', bits] = entry.split('/');
    const family = isIP(address);
    list.addSubnet(address, Number(bits ?? (family === 4 ? 32 : 128)), familyName(family));
  }
  return list;
}

/** Maximum number of trusted proxies in a row. A longer row is a header that a client has made up. */
const MAX_PROXIES = 32;

/** Returns the address of the client of a request, by its connection or by trusted proxies. */
export function addressOf({ request }: { readonly request: IncomingMessage }, proxies: TrustedProxies): string {
  let address = plainAddress(request.socket.remoteAddress ?? '');
  if (proxies === NOBODY) return address;
  // Node builds the object of all headers when it is read for the first time. When the peer is not a proxy, the headers
  // are not read, which saves this cost.
  if (!isTrusted(address, proxies)) return address;
  const forwarded = String(request.headers['x-forwarded-for'] ?? '');
  for (let end = forwarded.length, hops = 0; end > 0 && hops < MAX_PROXIES; hops++) {
    const comma = forwarded.lastIndexOf(',', end - 1);
    const next = withoutPort(forwarded.slice(comma + 1, end).trim());
    // The entry is not an address: a proxy hides its client, or the header is nonsense. The last valid address counts.
    if (isIP(next) === 0) return address;
    address = canonicalAddress(next);
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

/**
 * Removes two parts of an address:
 * - the IPv6 prefix of an IPv4 address (`::ffff:192.0.2.1`), which a server on all interfaces sees
 * - the zone (`fe80::1%eth0`), which has a meaning only on this machine
 */
function plainAddress(address: string): string {
  // An IPv4 address has neither. Nearly all addresses are of this kind, and a log line or a span needs each of them.
  if (!address.includes(':')) return address;
  return /^::ffff:(\d+\.[\d.]+)$/.exec(address)?.[1] ?? address.replace(/%.*$/, '');
}

/** Spells an address as the kernel does: a header may spell one IPv6 address in many ways. */
function canonicalAddress(address: string): string {
  if (!address.includes(':')) return address;
  return plainAddress(new SocketAddress({ address: address.replace(/%.*$/, ''), family: 'ipv6' }).address);
}

/** Reads `192.0.2.1:1234`, `[2001:db8::1]:1234` and `"[2001:db8::1]"`, as some proxies write them. */
function withoutPort(text: string): string {
  const [, v6, v4] =
    /^"?(?:\[([0-9a-f:.]{2,45})\]|(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}))(?::\d{1,5})?"?$/i.exec(text) ?? [];
  return v6 ?? v4 ?? text;
}

/**
 * Returns the network that a rate limit counts. The network is an IPv4 address, or the /64 of an IPv6 address, because
 * one host may use every address of its /64.
 *
 * @param address as `addressOf` spells it
 */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const [before = [], after = []] = address.split('::').map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0');
  return `${[...before, ...zeros, ...after].slice(0, 4).join(':')}::/64`;
}
