// Request ids: the client's own when it is well formed, else a new one, unique by process and count.

export interface RequestIds {
  /** @param sent the value of `X-Request-Id` */
  of(sent: string | undefined): string;
}

export function createRequestIds(prefix: string = randomHex(12)): RequestIds {
  let count = 0;
  return { of: (sent) => (sent !== undefined && isWellFormed(sent) ? sent : `${prefix}-${(count++).toString(36)}`) };
}

/** 1 to 128 characters of `[A-Za-z0-9._-]`: safe in a header, a log line and a file name. */
function isWellFormed(id: string): boolean {
  if (id.length === 0 || id.length > 128) return false;
  for (let i = 0; i < id.length; i++) {
    const code = id.charCodeAt(i);
    const letter = (code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a;
    if (!letter && !(code >= 0x30 && code <= 0x39) && code !== 0x2d && code !== 0x2e && code !== 0x5f) return false;
  }
  return true;
}

/** Nobody gains by guessing an id, so no node:crypto for it (builtins.ts). */
function randomHex(digits: number): string {
  return Array.from({ length: digits }, () => Math.floor(Math.random() * 16).toString(16)).join('');
}
