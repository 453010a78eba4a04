// Headers that only the server writes. All names here are in lower case.

const RESERVED_HEADERS: ReadonlySet<string> = new Set(
  'connection content-length keep-alive trailer transfer-encoding upgrade x-request-id'.split(' '),
);

/** Says whether only the server may set the header: it concerns length, connection, request id or CORS. */
export function isReservedHeader(name: string): boolean {
  return RESERVED_HEADERS.has(name) || isCorsHeader(name);
}

export function isCorsHeader(name: string): boolean {
  return name.startsWith('access-control-');
}

/** Returns whether every answer has the header. So an operation that sets the header gets no warning. */
export function isOnEveryAnswer(name: string): boolean {
  return name === 'x-content-type-options';
}
