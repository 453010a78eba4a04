// Sets the keys of session tickets. The first key encrypts new tickets, and every key decrypts, so clients can resume
// their sessions after a change of keys. Each resumption sends a new ticket: a client should not use one twice (RFC
// 8446, C.4). Node's option `ticketKeys` takes only one key, and sends new tickets only after full handshakes. So this
// file uses an internal callback of Node 20 to 26. On a Node without it, the server behaves as with the option.
import type { Server } from 'node:tls';
import { crypto } from '../../../base/builtins.ts';
import { setTicketCallback } from '../../../base/node-internals.ts';

/** Bytes of each part of a key: its name, its HMAC key and its AES key, as in Node's option `ticketKeys`. */
const PART_BYTES = 16;
export const TICKET_KEY_BYTES = 3 * PART_BYTES;

/** Call this after each `setSecureContext`, because each creates a new context. */
export function setTicketKeys(server: Server, keys: readonly Buffer[]): void {
  const [newKey] = keys;
  if (newKey === undefined) return;
  setTicketCallback(server, (name, _iv, isNew) => {
    // 1: encrypt a new ticket with these keys, under this name, with this initialization vector.
    if (isNew) return [1, ...secretParts(newKey), newKey.subarray(0, PART_BYTES), crypto().randomBytes(PART_BYTES)];
    const key = keys.find((candidate) => candidate.subarray(0, PART_BYTES).equals(name));
    // 2: decrypt, and send a new ticket. 0: full handshake; Node ignores the keys but checks their length.
    return key === undefined ? [0, ...secretParts(newKey)] : [2, ...secretParts(key)];
  });
}

function secretParts(key: Buffer): [hmacKey: Buffer, aesKey: Buffer] {
  return [key.subarray(PART_BYTES, 2 * PART_BYTES), key.subarray(2 * PART_BYTES)];
}
