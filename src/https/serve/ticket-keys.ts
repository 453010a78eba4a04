// The keys of session tickets: the first one makes new tickets, and any of them opens one, so that a change of keys
// costs no client a handshake; and each visit brings a new ticket, for a client that uses none twice (RFC 8446, C.4).
// Node's public interface takes one key alone and brings new tickets with whole handshakes only. The call below is in
// every release from 20 to 26; where a later one has it no more, it is as that interface has it.
import type { Server } from 'node:tls';
import { crypto } from '../../base/builtins.ts';

/**
 * What Node calls for each ticket. @returns 0: not ours, 1: ours, 2: ours, and a new one is wanted; then the parts of
 * its key
 */
type OnTicket = (name: Buffer, iv: Buffer, isNew: boolean) => readonly (number | Buffer)[];
interface TicketContext {
  onticketkeycallback?: OnTicket;
  enableTicketKeyCallback?(): void;
}

/** A key is a name, a key of the signature and a key of the cipher, as in Node's option `ticketKeys`. */
const PART = 16;
export const TICKET_KEY_BYTES = 3 * PART;

/** For the context that a server has now: to be called after each `setSecureContext`. */
export function acceptTickets(server: Server, keys: readonly Buffer[]): void {
  const context = (server as { _sharedCreds?: { context?: TicketContext } })._sharedCreds?.context;
  if (context?.enableTicketKeyCallback === undefined) return;
  const [newest] = keys;
  if (newest === undefined) return;
  context.onticketkeycallback = (name, _iv, isNew) => {
    if (isNew) return [1, ...secretsOf(newest), newest.subarray(0, PART), crypto().randomBytes(PART)];
    const key = keys.find((candidate) => candidate.subarray(0, PART).equals(name));
    // Node wants parts of that length also where it is to use none.
    return key === undefined ? [0, ...secretsOf(newest)] : [2, ...secretsOf(key)];
  };
  context.enableTicketKeyCallback();
}

function secretsOf(key: Buffer): [signature: Buffer, cipher: Buffer] {
  return [key.subarray(PART, 2 * PART), key.subarray(2 * PART)];
}
