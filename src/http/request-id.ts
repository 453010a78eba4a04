// Request ids: the client's own when it is well formed, else a new one, unique by process and count.

export interface RequestIds {
  /** @param sent the value of `X-Request-Id` */
  of(sent: string | undefined): string;
}

/** An id of the client is safe in a header, a log line and a file name. */
const WELL_FORMED = /^[\w.-]{1,128}$/;

export function createRequestIds(prefix: string = randomHex(12)): RequestIds {
  let count = 0;
  return {
    of: (sent) => (sent !== undefined && WELL_FORMED.test(sent) ? sent : `${prefix}-${(count++).toString(36)}`),
  };
}

/** Nobody gains by guessing an id, so no node:crypto for it (builtins.ts). */
function randomHex(digits: number): string {
  return Array.from({ length: digits }, () => Math.floor(Math.random() * 16).toString(16)).join('');
}
