// Request ids. When the client sends a well-formed id, the request has that id. Otherwise, the request gets a new id,
// which is made of a prefix of the process and a count.

export interface RequestIds {
  /** @param sent the value of `X-Request-Id` */
  idFor(sent: string | undefined): string;
}

/** Matches an id of the client that is safe in a header, a log line and a file name. */
const WELL_FORMED = /^[\w.-]{1,128}$/;

export function createRequestIds(prefix: string = randomHex(12)): RequestIds {
  let count = 0;
  return {
    idFor: (sent) => (sent !== undefined && WELL_FORMED.test(sent) ? sent : `${prefix}-${(count++).toString(36)}`),
  };
}

/** Returns random digits. An id is not a secret, so this process need not load node:crypto (builtins.ts). */
function randomHex(digits: number): string {
  return Array.from({ length: digits }, () => Math.floor(Math.random() * 16).toString(16)).join('');
}
