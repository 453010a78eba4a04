// Checks the claims of an ID token (OpenID Connect Core 1.0 section 3.1.3.7), after its signature. Every claim's type
// is checked before it is compared: an `iss` that is a list has been accepted elsewhere (CVE-2025-30144). It knows
// neither keys nor HTTP.
import { crypto } from '../base/builtins.ts';
import { InvalidToken } from './invalid-token.ts';

/** Clocks of provider and server may differ by this much. */
export const CLOCK_SKEW_S = 60;
export const MAX_LIFETIME_S = 24 * 60 * 60;
const MAX_SUBJECT_LENGTH = 255;

/** Who signed in. The account is (issuer, subject); everything else may change hands and is for show. */
export interface VerifiedIdentity {
  /** As configured, also where the provider spells it in two ways: one person is one account. */
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
  /** `undefined`: the client gave none. */
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

/** Google alone signs under two spellings of its issuer, and says so in its verification guide. */
export function issuerSpellings(issuer: string): readonly string[] {
  return issuer === 'https://accounts.google.com' ? [issuer, 'accounts.google.com'] : [issuer];
}

function checkAudience({ aud, azp }: Readonly<Record<string, unknown>>, clientIds: readonly string[]): void {
  const audiences: unknown[] = Array.isArray(aud) ? aud : [aud];
  if (!audiences.every((audience) => typeof audience === 'string')) throw new InvalidToken('aud-malformed');
  // One audience that is not ours, and somebody else may hold this very token and play it to us.
  if (audiences.length === 0 || !audiences.every((audience) => clientIds.includes(audience)))
    throw new InvalidToken('aud-mismatch');
  if (azp === undefined && audiences.length === 1) return;
  if (typeof azp !== 'string' || !clientIds.includes(azp)) throw new InvalidToken('azp-mismatch');
}

function checkTimes({ exp, iat, nbf }: Readonly<Record<string, unknown>>, now: number): void {
  // JSON.parse makes Infinity of 1e999.
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

function checkNonce(claim: unknown, given: string | undefined): void {
  if (claim !== undefined && typeof claim !== 'string') throw new InvalidToken('nonce-malformed');
  if (given !== undefined && (claim === undefined || !isSameSecret(claim, given)))
    throw new InvalidToken('nonce-mismatch');
}

/** Constant time whatever the lengths: digests are compared, not texts (CVE-2022-31142). */
export function isSameSecret(left: string, right: string): boolean {
  const digest = (text: string) => crypto().createHash('sha256').update(text).digest();
  return crypto().timingSafeEqual(digest(left), digest(right));
}

/**
 * Well-formed and printable, because it becomes the key of an account: half a surrogate pair has no bytes of its own.
 */
function parseSubject(sub: unknown): string {
  if (typeof sub !== 'string' || sub === '' || sub.length > MAX_SUBJECT_LENGTH || /\p{Cc}|\p{Cs}/u.test(sub)) {
    throw new InvalidToken('sub-malformed');
  }
  return sub;
}

/** For show, and for the registration rules. Some providers send null for what they do not know. */
function parseProfile(claims: Readonly<Record<string, unknown>>): Omit<VerifiedIdentity, 'issuer' | 'subject'> {
  const profile: Record<string, string | boolean> = {};
  for (const [claim, field] of [
    ['email', 'email'],
    ['name', 'name'],
    ['picture', 'picture'],
    ['hd', 'hostedDomain'],
  ] as const) {
    const value = claims[claim] ?? undefined;
    if (value === undefined) continue;
    if (typeof value !== 'string') throw new InvalidToken('profile-malformed');
    profile[field] = value;
  }
  const verified = claims.email_verified ?? undefined;
  if (typeof verified === 'boolean') profile.emailVerified = verified;
  // Apple and Cognito write it as a text, against Core section 5.1: borne, and never taken for a yes.
  else if (verified !== undefined && verified !== 'true' && verified !== 'false')
    throw new InvalidToken('profile-malformed');
  // A page will put it into an <img>: `javascript:` and `data:` have no business there.
  if (profile.picture !== undefined && !/^https?:\/\//i.test(String(profile.picture))) delete profile.picture;
  return profile;
}
