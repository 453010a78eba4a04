// Keeps a certificate for exactly the names of DOMAINS in DATA_DIR/tls: decides when a new one is due, and orders it.
// After a failed order the last certificate stays in use. The directory's "advice" is that of RFC 9773.
import { attempt, errorMessage } from '../../../base/failure.ts';
import type { Log } from '../../../base/log.ts';
import { type CertificateFacts, readPair } from '../pair.ts';
import { adviceFor } from './advice.ts';
import { createCertificateRequest, createKeyPair } from './certificate-writer.ts';
import type { Challenges } from './challenges.ts';
import type { AcmeClient } from './client.ts';
import type { TryLock } from './order-lock.ts';
import { adviceInterval, adviceTime, renewalTime, retryPause } from './renewal-times.ts';
import { AcmeError } from './request.ts';
import type { TlsFolder } from './tls-folder.ts';

export type Renewals = ReturnType<typeof createRenewals>;

export interface RenewalsOptions {
  readonly domains: readonly string[];
  readonly directory: string;
  readonly folder: TlsFolder;
  readonly client: AcmeClient;
  readonly challenges: Challenges;
  readonly tryLock: TryLock;
  readonly onStored: () => void;
  readonly log: Log;
  readonly now?: () => number;
  readonly clock?: () => number;
  readonly random?: () => number;
}

/** Milliseconds until the next try when another process holds the lock. That process orders the same certificate. */
const LOCKED_PAUSE = 15_000;
/** Milliseconds. With a larger difference to the directory's clock, certificates look expired, or not valid yet. */
const MAX_SKEW = 5 * 60_000;
/** ACME error types after which the next attempt uses the other kind of challenge. */
const CHALLENGE_FAILED: ReadonlySet<string> = new Set(
  'connection tls unauthorized incorrectResponse noChallenge noPort serverInternal'.split(' '),
);

interface StoredFacts {
  readonly directoryUrl: string | undefined;
  readonly facts: CertificateFacts;
}

export function createRenewals(options: RenewalsOptions) {
  const { domains, directory, folder, client, challenges, tryLock, onStored, log } = options;
  const { now = Date.now, clock = () => performance.now(), random = Math.random } = options;
  let isBusy = false;
  let failures = 0;
  let failuresInARow = 0;
  let lastFailure: string | undefined;
  /** The time of `clock` before which no order begins. */
  let nextAttempt = 0;
  /** The kinds of challenges. The next order uses the first one. */
  let challengeTypes = challenges.types;
  /**
   * The directory's advice for the certificate with this fingerprint: a period of time. `share` is the chosen point in
   * the period, from 0 to 1. `renewAt` is that point in Unix milliseconds, and `askAgainAt` is a time of `clock`.
   */
  let advice: { fingerprint: string; share: number; renewAt: number | undefined; askAgainAt: number } | undefined;

  return {
    checkDue,
    retryNow(): void {
      nextAttempt = 0;
      checkDue();
    },
    get failures(): number {
      return failures;
    },
    /** One line that says why the last order failed; undefined after a success. */
    lastFailure: () => lastFailure,
  };

  function checkDue(): void {
    if (isBusy || clock() < nextAttempt) return;
    isBusy = true;
    orderIfDue()
      .catch(recordFailure)
      .finally(() => {
        isBusy = false;
      });
  }

  async function orderIfDue(): Promise<void> {
    const reason = await findReason(readStored());
    if (reason === undefined) return;
    folder.checkWritable();
    const release = await tryLock(`${folder.path}/order.lock`);
    if (release === undefined) {
      nextAttempt = clock() + LOCKED_PAUSE;
      return log.debug('certificate-ordered-elsewhere', { domains });
    }
    try {
      // Another process may have stored a new certificate before this one got the lock.
      const stored = readStored();
      if ((await findReason(stored)) === undefined) return onStored();
      await order(reason, stored);
    } finally {
      await release();
    }
  }

  async function order(reason: string, stored: StoredFacts | undefined): Promise<void> {
    const [challengeType = 'http-01'] = challengeTypes;
    log.info('certificate-ordered', { domains, directory, challenge: challengeType, reason });
    const keys = createKeyPair();
    const replaces = stored?.directoryUrl === directory ? stored.facts.renewalId : undefined;
    const chain = await client.order({
      ...{ domains, challengeType, replaces, present: challenges.present },
      request: createCertificateRequest(domains, keys),
    });
    checkClock();
    const key = keys.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
    const { facts } = readPair(chain, key);
    folder.writeCertificate(directory, chain, key);
    const expires = new Date(facts.notAfter).toISOString();
    log.info('certificate-obtained', { domains, issuer: facts.issuer, expires });
    onStored();
    // Without a pause, each check would order again, until the limits of the directory refuse every order.
    const nextReason = await findReason({ directoryUrl: directory, facts });
    if (nextReason !== undefined)
      throw new AcmeError(`the new certificate is due again at once: ${nextReason}`, { type: 'dueAgain' });
    failuresInARow = 0;
    lastFailure = undefined;
  }

  function readStored(): StoredFacts | undefined {
    const stored = folder.readCertificate();
    if (stored === undefined) return undefined;
    const { directoryUrl, text } = stored;
    // A new certificate replaces a file without a valid one.
    return attempt(() => ({ directoryUrl, facts: readPair(text, text).facts }), undefined);
  }

  async function findReason(stored: StoredFacts | undefined): Promise<string | undefined> {
    if (stored === undefined) return 'there is no certificate yet';
    const { facts } = stored;
    if (facts.names.length !== domains.length || !domains.every((domain) => facts.names.includes(domain)))
      return 'DOMAINS has changed';
    if (stored.directoryUrl !== undefined && stored.directoryUrl !== directory) return 'ACME_DIRECTORY has changed';
    if (now() >= renewalTime(facts)) return 'two thirds of its lifetime are over';
    return (await advisedTime(facts)) <= now() ? 'the directory advises it' : undefined;
  }

  /** Returns Unix milliseconds, or `Infinity` without advice. Before a revocation, a directory advises an early one. */
  async function advisedTime({ fingerprint, renewalId }: CertificateFacts): Promise<number> {
    if (renewalId === undefined) return Number.POSITIVE_INFINITY;
    if (advice?.fingerprint !== fingerprint)
      advice = { fingerprint, share: random(), renewAt: undefined, askAgainAt: 0 };
    if (clock() >= advice.askAgainAt) {
      try {
        const information = await client.renewalInfo(renewalId);
        checkClock();
        advice.renewAt = information === undefined ? undefined : adviceTime(information, advice.share);
        advice.askAgainAt = clock() + adviceInterval(information?.retryAfter);
      } catch (error) {
        // The last advice stays valid. Without any advice, the certificate's age decides (`renewalTime`).
        advice.askAgainAt = clock() + adviceInterval(error instanceof AcmeError ? error.retryAfter : undefined);
        log.debug('renewal-information-failed', { error: (error as Error).message });
      }
    }
    return advice.renewAt ?? Number.POSITIVE_INFINITY;
  }

  function recordFailure(error: unknown): void {
    failures++;
    failuresInARow++;
    lastFailure = errorMessage(error);
    const type = error instanceof AcmeError ? error.type : undefined;
    const pause = retryPause(failuresInARow, error instanceof AcmeError ? error.retryAfter : undefined, random());
    nextAttempt = clock() + pause;
    const [challenge] = challengeTypes;
    if (type !== undefined && CHALLENGE_FAILED.has(type))
      challengeTypes = [...challengeTypes.slice(1), ...challengeTypes.slice(0, 1)];
    log.error('certificate-order-failed', {
      ...{ domains, directory, challenge, error: lastFailure },
      ...(type === undefined ? {} : { type }),
      to_do: adviceFor(error),
      next_attempt: new Date(now() + pause).toISOString(),
    });
    checkClock();
  }

  function checkClock(): void {
    const skew = client.clockSkew();
    if (Math.abs(skew) < MAX_SKEW) return;
    const seconds = Math.round(skew / 1000);
    const to_do = `set the clock of this machine: it is ${seconds > 0 ? 'slow' : 'fast'}`;
    log.error('clock-wrong', { seconds, by: directory, to_do });
  }
}
