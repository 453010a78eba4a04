// When a certificate is to be replaced, and when a failed attempt is made again. Plain functions of times (Unix
// milliseconds); nothing here holds a timer or asks anybody.

import type { CertificateFacts } from '../pair.ts';
import type { RenewalInfo } from './client.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Without the directory's advice: at two thirds of the lifetime, whatever that is. */
export function renewalTime({ notBefore, notAfter }: Pick<CertificateFacts, 'notBefore' | 'notAfter'>): number {
  return notBefore + ((notAfter - notBefore) * 2) / 3;
}

/**
 * A moment of the directory's window that is the same as long as the window is (RFC 9773, section 4.2: chosen at
 * random).
 *
 * @param share from 0 to 1, chosen at random once for a certificate
 */
export function adviceTime({ start, end }: RenewalInfo, share: number): number {
  return start + (end - start) * share;
}

/**
 * Milliseconds until renewal information is asked again: what the server says, within reason (RFC 9773, section 4.3.2).
 */
export function adviceInterval(retryAfter: number | undefined): number {
  return clamp(retryAfter ?? 6 * HOUR, MINUTE, DAY);
}

/**
 * Milliseconds before the end at which somebody should be told: 14 days, and less for a certificate that lives for
 * weeks or days alone, whose renewal is not even due by then.
 */
export function warningTime({ notBefore, notAfter }: Pick<CertificateFacts, 'notBefore' | 'notAfter'>): number {
  return Math.min(14 * DAY, (notAfter - notBefore) * 0.3);
}

/** Let's Encrypt counts five refused validations an hour for a name: the first hour has four attempts. */
const PAUSES: readonly number[] = [2 * MINUTE, 10 * MINUTE, 40 * MINUTE, 2 * HOUR, 6 * HOUR, 12 * HOUR];

/**
 * Milliseconds until the next attempt.
 *
 * @param failures in a row, 1 for the first
 * @param asked what the server said in Retry-After
 * @param share from 0 to 1: so that machines that failed together do not try together
 */
export function retryPause(failures: number, asked: number | undefined, share: number): number {
  const pause = PAUSES[Math.min(failures, PAUSES.length) - 1] ?? MINUTE;
  return Math.max(pause * (0.8 + 0.4 * share), clamp(asked ?? 0, 0, 7 * DAY));
}

function clamp(value: number, min: number, max: number): number {
  return Math.min(Math.max(value, min), max);
}
