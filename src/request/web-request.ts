// The request as the web's own type `Request`, for `params.toRequest()` and for the handlers of mounts. Where the
// service knows its origin, the URL never has that of a stranger.
import { refusal } from '../base/errors.ts';
import { FALLBACK, isRoot } from '../base/group-name.ts';
import { isHttps } from '../callers/access/cookies.ts';
import { ALL_METHODS } from '../callers/access/cors.ts';
import type { MountFacts } from '../groups/mount.ts';
import { isRead } from './answer/conditional.ts';
import type { Exchange } from './exchange.ts';
import type { ParamsParts } from './params.ts';
import { firstMatch, type ResolvedPath } from './router.ts';

/** The headers that describe the connection and not the request (RFC 9110, 7.6.1). `Expect` has been answered. */
const OF_THE_CONNECTION: ReadonlySet<string> = new Set(
  'connection expect keep-alive proxy-connection te trailer transfer-encoding upgrade'.split(' '),
);

/**
 * @param bytes the inflated body; undefined when there is no body, or when the body is a stream
 * @throws HttpError MALFORMED_HOST, MALFORMED_PATH, MISDIRECTED_REQUEST
 */
export function createWebRequest(exchange: Exchange, parts: ParamsParts, bytes: Uint8Array | undefined): Request {
  checkSegments(exchange);
  const { request, verb, caller } = exchange;
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers))
    if (!OF_THE_CONNECTION.has(name) && name !== caller.keyHeader) headers.set(name, String(value));
  // A request with one of these methods has no body in the Fetch standard.
  const body = isRead(exchange) ? undefined : (exchange.body.stream ?? bytes);
  // Only the body of a mount is not inflated.
  if (body !== undefined && exchange.choice.operation.mount === undefined && headers.has('content-encoding')) {
    headers.delete('content-encoding');
    headers.delete('content-length');
  }
  if (body !== undefined && body === bytes) headers.set('content-length', String(bytes?.length));
  const url = originOf(exchange, parts) + targetOf(exchange);
  // Node accepts a stream as a body only with `duplex`, which the type `RequestInit` lacks.
  const init = { method: verb, headers, body: body ?? null, signal: exchange.signal, duplex: 'half' };
  return new Request(url, init as RequestInit);
}

/** Returns the path as the client sent it, with the query. The authority of an absolute target is ignored. */
export function targetOf({ resolvedPath, queryText }: Exchange): string {
  const { raw } = (resolvedPath as ResolvedPath).path;
  const path = raw.replace(/^[a-z]+:\/\/[^/]*/i, '') || '/';
  return queryText === '' ? path : `${path}?${queryText}`;
}

/**
 * Returns PUBLIC_ORIGIN, or else the origin that DOMAINS gives, or else that of `Host`. If there are several, the one
 * that `Host` names counts, or the first.
 *
 * @throws HttpError MISDIRECTED_REQUEST when `Host` is none of DOMAINS, MALFORMED_HOST
 */
function originOf(exchange: Exchange, parts: ParamsParts): string {
  const { publicOrigins, domains, port } = parts;
  const host = exchange.head.host?.toLowerCase() ?? 'localhost';
  if (publicOrigins.length > 0)
    return publicOrigins.find((origin) => origin.endsWith(`//${host}`)) ?? (publicOrigins[0] as string);
  if (domains.length === 0) {
    const origin = `${isHttps(exchange, parts) ? 'https' : 'http'}://${host}`;
    // A Host that is well-formed can still be none that a URL has, such as `256.1.1.1`.
    if (!URL.canParse(origin)) throw refusal('MALFORMED_HOST');
    return origin;
  }
  const name = host.replace(/:\d*$/, '');
  if (!domains.includes(name)) throw refusal('MISDIRECTED_REQUEST');
  return host === `${name}:${port}` && port !== 443 ? `https://${host}` : `https://${name}`;
}

/**
 * Refuses a path that the class `URL` reads in another way than this service. The class resolves dot segments and takes
 * a backslash for a slash, so `/api/open/../closed` would pass the `access` of `open`.
 */
function checkSegments({ resolvedPath }: Exchange): void {
  const { raw, segments } = (resolvedPath as ResolvedPath).path;
  if (raw.includes('\\') || segments.some((segment) => /^\.\.?$/.test(segment)))
    throw refusal('MALFORMED_PATH', 'The path has a dot segment or a backslash, which no URL keeps');
}

/**
 * Refuses a request that the handler of a mount would read in another way than this service.
 *
 * @throws HttpError MALFORMED_HOST, MALFORMED_PATH, METHOD_NOT_ALLOWED, MISDIRECTED_REQUEST, ROUTE_NOT_FOUND
 */
export function checkMountRequest(exchange: Exchange, { kind }: MountFacts, parts: ParamsParts): void {
  checkSegments(exchange);
  // In `auth%2Flogin`, the name of the group ends within a segment.
  const hasName = exchange.group !== FALLBACK && !isRoot(exchange.group);
  if (hasName && firstMatch((exchange.resolvedPath as ResolvedPath).matches, exchange.verb)?.isPartOfSegment)
    throw refusal('ROUTE_NOT_FOUND');
  // The class `Request` has no such method.
  if (kind === 'web' && exchange.verb === 'TRACE')
    throw refusal('METHOD_NOT_ALLOWED', undefined, { headers: { Allow: ALL_METHODS } });
  originOf(exchange, parts);
}
