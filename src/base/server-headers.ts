// Headers that only the server writes. Their names are in lower case.

const SERVER_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'keep-alive',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-request-id',
]);

/**
 * Returns whether only the server may set the header, and no operation. Such a header frames the message, or concerns
 * the connection, the request or CORS.
 */
export function isReservedHeader(name: string): boolean {
  return SERVER_HEADERS.has(name) || name.startsWith('access-control-');
}

/** Returns whether every answer has the header. An operation that sets it changes nothing, and gets no warning. */
export function isOnEveryAnswer(name: string): boolean {
  return name === 'x-content-type-options';
}
