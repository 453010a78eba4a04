// Shares the session key between machines: sealed in the store, and in the file session.key for the workers of each
// machine. If the store has no key, a machine writes its own, so that the tokens of its users stay valid.
import { crypto } from '../../base/builtins.ts';
import { readSessionKey, writeSessionKey } from '../../callers/credentials/session.ts';
import type { Seal } from './seal.ts';
import type { Store } from './store.ts';

export const SESSION_KEY = 'session-key';

/**
 * Makes the key file of this machine equal to the key in the store.
 *
 * @returns whether the file has changed
 * @throws StoreAway; Error with a message of one line, when STORE_KEY does not open the value
 */
export async function syncSessionKey(store: Store, seal: Seal, dataDir: string): Promise<boolean> {
  const localKey = readSessionKey(dataDir);
  const entry = (await store.read('secrets', [SESSION_KEY])).entries.get(SESSION_KEY);
  if (entry === undefined) {
    const text = localKey ?? crypto().randomBytes(32).toString('base64url');
    const wasWritten = await writeKey(store, seal, text, '');
    // If another machine has written its key first, a second call reads that key.
    if (!wasWritten) return syncSessionKey(store, seal, dataDir);
    if (localKey === undefined) writeSessionKey(dataDir, text);
    return localKey === undefined;
  }
  const { text, isCurrent } = seal.open(SESSION_KEY, entry.value);
  if (!isCurrent) await writeKey(store, seal, text, entry.version);
  if (localKey === text) return false;
  writeSessionKey(dataDir, text);
  return true;
}

function writeKey(store: Store, seal: Seal, text: string, expectedVersion: string): Promise<boolean> {
  const change = { name: SESSION_KEY, expectedVersion, value: seal.seal(SESSION_KEY, text) };
  return store.write('secrets', [change], crypto().randomUUID());
}
