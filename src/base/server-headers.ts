// Names of headers that the server alone writes. Names are in lower case.

const OWN: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'keep-alive',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-request-id',
]);

/** Whether no answer may bring the header: it frames the message, or is about the connection, the request or CORS. */
export function isReservedHeader(name: string): boolean {
  return OWN.has(name) || name.startsWith('access-control-');
}

/** Whether every answer has the header anyway. One that an operation brings is skipped, without a line in the log. */
export function isOnEveryAnswer(name: string): boolean {
  return name === 'x-content-type-options';
}
