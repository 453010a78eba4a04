// Decodes base64url as RFC 7515 section 2 defines it: each sequence of bytes has one spelling. Node's own decoder also
// accepts `TQ==` and `TR` for `TQ`, and `T+Q0` for `T-Q0`. With that decoder, one signature would have many spellings.
import { attempt } from '../../base/failure.ts';
import { type Fields, parseObject } from '../../base/values.ts';

const ALPHABET = /^[A-Za-z0-9_-]*$/;

/** @returns undefined when the text is not base64url, or not the one spelling of its bytes */
export function decodeBase64url(text: unknown): Buffer | undefined {
  if (typeof text !== 'string' || !ALPHABET.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : undefined;
}

/** @returns undefined for a value that is no JSON object, and for bytes that are not UTF-8 */
export function parseJsonObject(bytes: Uint8Array): Fields | undefined {
  // With `ignoreBOM`, a byte order mark stays in the text, which then is not JSON.
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  return attempt(() => parseObject(decoder.decode(bytes)), undefined);
}
