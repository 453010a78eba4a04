// Computes when a certificate is renewed and a failed order repeated. Times are Unix milliseconds.
import type { CertificateFacts } from '../pair.ts';
import type { RenewalInfo } from './client.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Returns when to renew without the directory's advice: after two thirds of the lifetime. */
export function renewalTime({ notBefore, notAfter }: Pick<CertificateFacts, 'notBefore' | 'notAfter'>): number {
  return notBefore + ((notAfter - notBefore) * 2) / 3;
}

/** @param share from 0 (the start of the period) to 1 (its end), random, as RFC 9773, section 4.2, requires */
export function adviceTime({ start, end }: RenewalInfo, share: number): number {
  return start + (end - start) * share;
}

/** Returns the milliseconds until the next request for advice (RFC 9773, section 4.3.2). */
export function adviceInterval(retryAfter: number | undefined): number {
  return clamp(retryAfter ?? 6 * HOUR, MINUTE, DAY);
}

/**
 * Returns how many milliseconds before expiry a warning is logged: 14 days, or three tenths of the lifetime if that is
 * less. With 14 days alone, a certificate that lives only for weeks would get a warning before its renewal is due.
 */
export function warningPeriod({ notBefore, notAfter }: Pick<CertificateFacts, 'notBefore' | 'notAfter'>): number {
  return Math.min(14 * DAY, (notAfter - notBefore) * 0.3);
}

/**
 * The pauses after the first, second and later failures, in milliseconds. Let's Encrypt refuses a name after five
 * failed validations an hour. So there are only four attempts in the first hour.
 */
const PAUSES: readonly number[] = [2 * MINUTE, 10 * MINUTE, 40 * MINUTE, 2 * HOUR, 6 * HOUR, 12 * HOUR];

/**
 * Returns the milliseconds until the next attempt.
 *
 * @param failures the number of failures in a row, 1 for the first
 * @param share from 0 to 1, random, so that machines that failed together do not retry together
 */
export function retryPause(failures: number, retryAfter: number | undefined, share: number): number {
  const pause = PAUSES[Math.min(failures, PAUSES.length) - 1] as number;
  return Math.max(pause * (0.8 + 0.4 * share), clamp(retryAfter ?? 0, 0, 7 * DAY));
}

function clamp(value: number, min: number, max: number): number {
  return Math.min(Math.max(value, min), max);
}
