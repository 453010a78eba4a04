// base64url as RFC 7515 section 2 defines it: one spelling for each sequence of bytes. Node's decoder also accepts
// padding, `+` and `/`, junk between the characters and stray low bits, so that many texts would carry one signature.

const ALPHABET = /^[A-Za-z0-9_-]*$/;

/** The bytes, or `undefined` when the text is not their one spelling. An empty text is no bytes. */
export function decodeBase64url(text: unknown): Buffer | undefined {
  if (typeof text !== 'string' || !ALPHABET.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : undefined;
}

/** The JSON object in these bytes, or `undefined`. Fatal UTF-8: U+FFFD for a bad byte would change what was signed. */
export function parseJsonObject(bytes: Uint8Array): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
