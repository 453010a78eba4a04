// Encrypts values for the store with AES-256-GCM. The key is derived from STORE_KEY and the name of the entry, so a
// sealed value cannot be opened under another name. There is no default key.
import { crypto } from '../../base/builtins.ts';
import { attempt } from '../../base/failure.ts';

export type Seal = ReturnType<typeof createSeal>;

/** The beginning of each sealed value, which has the form `v1.<nonce, tag and encrypted text in base64url>`. */
const FORM = 'v1';
/** The lengths in bytes. */
const NONCE_LENGTH = 12;
const TAG_LENGTH = 16;
const OPTIONS = { authTagLength: TAG_LENGTH };

/** @param keys the keys in STORE_KEY: the first one seals values, and every key is tried to open a value */
export function createSeal(keys: readonly string[]) {
  const { createCipheriv, createDecipheriv, hkdfSync, randomBytes } = crypto();
  const derive = (key: string, name: string) =>
    Buffer.from(hkdfSync('sha256', key, '', `gatefold store ${FORM} ${name}`, 32));

  /** @throws Error when the value was sealed with another key or under another name, or when it was changed */
  function openWith(key: string, name: string, bytes: Buffer): string {
    const decipher = createDecipheriv('aes-256-gcm', derive(key, name), bytes.subarray(0, NONCE_LENGTH), OPTIONS);
    decipher.setAAD(Buffer.from(name));
    decipher.setAuthTag(bytes.subarray(NONCE_LENGTH, NONCE_LENGTH + TAG_LENGTH));
    return decipher.update(bytes.subarray(NONCE_LENGTH + TAG_LENGTH), undefined, 'utf8') + decipher.final('utf8');
  }

  return {
    seal(name: string, text: string): string {
      const nonce = randomBytes(NONCE_LENGTH);
      const cipher = createCipheriv('aes-256-gcm', derive(keys[0] as string, name), nonce, OPTIONS);
      cipher.setAAD(Buffer.from(name));
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return `${FORM}.${Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url')}`;
    },
    /**
     * Opens (decrypts) a value.
     *
     * @returns the text, and whether the value was sealed with the first key, which seals new values
     * @throws Error with a message of one line, when no key opens the value
     */
    open(name: string, sealed: string) {
      const [form, body = ''] = sealed.split('.');
      const bytes = Buffer.from(body, 'base64url');
      if (form !== FORM || bytes.length < NONCE_LENGTH + TAG_LENGTH)
        throw new Error(`The store's value ${name} is not sealed in a form that this version knows`);
      for (const [index, key] of keys.entries()) {
        const text = attempt(() => openWith(key, name, bytes), undefined);
        if (text !== undefined) return { text, isCurrent: index === 0 };
      }
      throw new Error(`STORE_KEY does not open the store's value ${name}: it was sealed with another key, or changed`);
    },
  };
}
