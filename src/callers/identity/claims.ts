// Checks the claims of an ID token (OpenID Connect Core 1.0 section 3.1.3.7) whose signature has been verified. The
// type of a claim is checked before its value, because another library accepted a list as `iss` (CVE-2025-30144).
import { crypto } from '../../base/builtins.ts';
import { InvalidToken } from './invalid-token.ts';

/** The tolerated difference in seconds between the clock of the provider and the clock of the server. */
export const CLOCK_SKEW_S = 60;
/** Maximum seconds from `iat` to `exp`. */
export const MAX_LIFETIME_S = 24 * 60 * 60;
const MAX_SUBJECT_LENGTH = 255;

/** The person who signs in, whom issuer and subject together identify. The other fields may change. */
export interface VerifiedIdentity {
  /** The issuer as the provider row spells it, also when the token spells it in another way. */
  readonly issuer: string;
  readonly subject: string;
  readonly email?: string;
  readonly emailVerified?: boolean;
  readonly name?: string;
  readonly picture?: string;
  /** Google's `hd`: the Workspace domain that the account belongs to. */
  readonly hostedDomain?: string;
}

export interface ClaimsExpectation {
  readonly issuer: string;
  readonly clientIds: readonly string[];
  /** The nonce that the client sent to its provider, if any. */
  readonly nonce: string | undefined;
  /** Unix time in seconds. */
  readonly now: number;
}

/** @throws InvalidToken with the reason */
export function checkClaims(claims: Readonly<Record<string, unknown>>, expected: ClaimsExpectation): VerifiedIdentity {
  if (typeof claims.iss !== 'string' || !issuerSpellings(expected.issuer).includes(claims.iss))
    throw new InvalidToken('iss-mismatch');
  checkAudience(claims, expected.clientIds);
  checkTimes(claims, expected.now);
  checkNonce(claims.nonce, expected.nonce);
  return { issuer: expected.issuer, subject: parseSubject(claims.sub), ...parseProfile(claims) };
}

/** Returns all spellings of an issuer. Only Google has two: its guide for verifying tokens names both. */
export function issuerSpellings(issuer: string): readonly string[] {
  return issuer === 'https://accounts.google.com' ? [issuer, 'accounts.google.com'] : [issuer];
}

function checkAudience({ aud, azp }: Readonly<Record<string, unknown>>, clientIds: readonly string[]): void {
  const audiences: unknown[] = Array.isArray(aud) ? aud : [aud];
  if (!audiences.every((audience) => typeof audience === 'string')) throw new InvalidToken('aud-malformed');
  // Each service in `aud` has the token. If one of them belonged to somebody else, it could sign in here as the user.
  if (audiences.length === 0 || !audiences.every((audience) => clientIds.includes(audience)))
    throw new InvalidToken('aud-mismatch');
  // The claim `azp` names the client that got the token. With several audiences, this claim is required.
  if (azp === undefined && audiences.length === 1) return;
  if (typeof azp !== 'string' || !clientIds.includes(azp)) throw new InvalidToken('azp-mismatch');
}

function checkTimes({ exp, iat, nbf }: Readonly<Record<string, unknown>>, now: number): void {
  // JSON.parse reads 1e999 as Infinity, which would never expire.
  if (!isFiniteNumber(exp)) throw new InvalidToken('exp-malformed');
  if (!isFiniteNumber(iat)) throw new InvalidToken('iat-malformed');
  if (nbf !== undefined && !isFiniteNumber(nbf)) throw new InvalidToken('nbf-malformed');
  if (now >= exp + CLOCK_SKEW_S) throw new InvalidToken('expired');
  if (iat > now + CLOCK_SKEW_S || (nbf !== undefined && nbf > now + CLOCK_SKEW_S))
    throw new InvalidToken('not-yet-valid');
  if (exp < iat || exp - iat > MAX_LIFETIME_S) throw new InvalidToken('lifetime-too-long');
}

function isFiniteNumber(value: unknown): value is number {
  return Number.isFinite(value);
}

function checkNonce(claim: unknown, sentNonce: string | undefined): void {
  if (claim !== undefined && typeof claim !== 'string') throw new InvalidToken('nonce-malformed');
  if (sentNonce !== undefined && (claim === undefined || !isSameSecret(claim, sentNonce)))
    throw new InvalidToken('nonce-mismatch');
}

/** Compares two texts in a time that does not depend on them or on their lengths (CVE-2022-31142). */
export function isSameSecret(left: string, right: string): boolean {
  const digest = (text: string) => crypto().createHash('sha256').update(text).digest();
  return crypto().timingSafeEqual(digest(left), digest(right));
}

/** The subject becomes the key of an account, so control characters and lone surrogates are refused. */
function parseSubject(sub: unknown): string {
  if (typeof sub !== 'string' || sub === '' || sub.length > MAX_SUBJECT_LENGTH || /\p{Cc}|\p{Cs}/u.test(sub))
    throw new InvalidToken('sub-malformed');
  return sub;
}

/** Claim of the token → field of VerifiedIdentity. */
const PROFILE_FIELDS = { email: 'email', name: 'name', picture: 'picture', hd: 'hostedDomain' };

/** A claim that is null counts as absent, because some providers send null. */
function parseProfile(claims: Readonly<Record<string, unknown>>): Omit<VerifiedIdentity, 'issuer' | 'subject'> {
  const profile: Record<string, string | boolean> = {};
  for (const [claim, field] of Object.entries(PROFILE_FIELDS)) {
    const value = claims[claim] ?? undefined;
    if (value === undefined) continue;
    if (typeof value !== 'string') throw new InvalidToken('profile-malformed');
    profile[field] = value;
  }
  const emailVerified = claims.email_verified ?? undefined;
  if (typeof emailVerified === 'boolean') profile.emailVerified = emailVerified;
  // Apple and Cognito send the text 'true' or 'false', although Core section 5.1 demands a boolean. The token is
  // accepted, but even with the text 'true', the address does not count as verified.
  else if (emailVerified !== undefined && emailVerified !== 'true' && emailVerified !== 'false')
    throw new InvalidToken('profile-malformed');
  // A page may use the picture in a link, where `javascript:` is code.
  if (profile.picture !== undefined && !/^https?:\/\//i.test(String(profile.picture))) delete profile.picture;
  return profile;
}
