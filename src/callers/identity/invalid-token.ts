// The reasons why an ID token is refused, each with a sentence for the log. A client only gets INVALID_ID_TOKEN,
// because details would help a forger. No sentence contains a part of a token.

export const TOKEN_REASONS = {
  'not-a-token': 'it is not a string',
  'too-long': 'it is longer than 16 KiB',
  'not-three-segments': 'it is not three non-empty segments',
  'not-base64url': 'a segment is not the one base64url spelling of its bytes (RFC 7515 section 2)',
  'header-not-an-object': 'the header is not a JSON object in UTF-8',
  'payload-not-an-object': 'the payload is not a JSON object in UTF-8',
  'not-an-id-token': 'it is another kind of token of the same provider: for logging out, for access or for refreshing',
  'alg-not-allowed': 'the alg is not one that the provider row allows',
  'typ-not-jwt': 'the typ is something else than JWT',
  'crit-present': 'the header has a crit, and no extension is supported (RFC 7515 section 4.1.11)',
  'kid-malformed': 'the kid is not a string of at most 256 characters',
  'issuer-unknown': 'no live provider row has this issuer',
  'key-unknown': 'the key set of the provider has no such key',
  'key-ambiguous': 'more than one key of the provider fits',
  'key-unfit': 'the key that the kid names is not for this alg, or not for verifying, or too weak',
  'signature-malformed': 'the signature is not as long as the alg and the key make it',
  'signature-wrong': 'the signature is not the one of the key over these bytes',
  'iss-mismatch': 'the iss is not the issuer of the provider',
  'aud-malformed': 'the aud is neither a string nor a list of strings',
  'aud-mismatch': 'the aud has none of the client ids, or one besides them',
  'azp-mismatch': 'the azp is not one of the client ids, or is missing beside several audiences',
  'exp-malformed': 'the exp is missing or not a finite number',
  'iat-malformed': 'the iat is missing or not a finite number',
  'nbf-malformed': 'the nbf is not a finite number',
  expired: 'the exp has passed',
  'not-yet-valid': 'the iat or nbf is in the future',
  'lifetime-too-long': 'it lives longer than a day, or ends before it begins',
  'nonce-malformed': 'the nonce is not a string',
  'nonce-mismatch': 'the nonce is missing or not the one that the client gave',
  'sub-malformed': 'the sub is not a non-empty string of at most 255 characters without control characters',
  'profile-malformed': 'one of email, email_verified, name, picture and hd has the wrong type',
} as const;

export type TokenReason = keyof typeof TOKEN_REASONS;

/** The error for a refused token. Its message is a sentence of the table above and is safe to log. */
export class InvalidToken extends Error {
  readonly reason: TokenReason;

  constructor(reason: TokenReason) {
    super(`The identity token is refused (${reason}): ${TOKEN_REASONS[reason]}`);
    this.name = 'InvalidToken';
    this.reason = reason;
  }
}
