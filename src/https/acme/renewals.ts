// DOMAINS: sees to it that DATA_DIR/tls holds a certificate for exactly these names that is young enough. It decides
// when one is ordered, and orders it; whatever goes wrong, the last one serves on. Who serves it, it does not know.
import type { Log } from '../../base/log.ts';
import { type CertificateFacts, readPair } from '../pair.ts';
import { adviceFor } from './advice.ts';
import { createCertificateRequest, createKeyPair } from './certificate-writer.ts';
import type { Challenges } from './challenges.ts';
import type { AcmeClient } from './client.ts';
import type { TryLock } from './order-lock.ts';
import { adviceInterval, adviceTime, renewalTime, retryPause } from './renewal.ts';
import { AcmeError } from './request.ts';
import type { TlsFolder } from './tls-folder.ts';

export interface Renewals {
  /** To be called every now and then: does what is due. */
  tick(): void;
  /** A failed attempt is made again now, and not only when its pause is over. */
  hurry(): void;
  readonly failures: number;
  /** One line; undefined after a success. */
  lastFailure(): string | undefined;
}

export interface RenewalsOptions {
  readonly domains: readonly string[];
  readonly directory: string;
  readonly folder: TlsFolder;
  readonly client: AcmeClient;
  readonly challenges: Challenges;
  readonly tryLock: TryLock;
  /** A new one is in the folder. */
  readonly onStored: () => void;
  readonly log: Log;
  /** Unix milliseconds. */
  readonly now?: () => number;
  /** Milliseconds that pass however the clock is set. */
  readonly clock?: () => number;
  readonly random?: () => number;
}

/** Milliseconds until it is looked again whether another process has ordered. */
const OTHERS_TURN = 15_000;
/** Milliseconds: a clock that is this wrong makes certificates look expired, or not valid yet. */
const MOST_SKEW = 5 * 60_000;
/** After these the other kind of challenge may do better. */
const CHALLENGE_FAILED: ReadonlySet<string> = new Set([
  'connection',
  'tls',
  'unauthorized',
  'incorrectResponse',
  'noChallenge',
  'serverInternal',
]);

interface Stored {
  readonly directory: string | undefined;
  readonly facts: CertificateFacts;
}

export function createRenewals(options: RenewalsOptions): Renewals {
  const { domains, directory, folder, client, challenges, tryLock, onStored, log } = options;
  const { now = Date.now, clock = () => performance.now(), random = Math.random } = options;
  let busy = false;
  let failures = 0;
  let inARow = 0;
  let lastFailure: string | undefined;
  let notBefore = 0;
  let types = challenges.types;
  /** What the directory advises for the certificate of this fingerprint. */
  let advice: { fingerprint: string; share: number; renewAt: number | undefined; askAgain: number } | undefined;

  return {
    tick,
    hurry() {
      notBefore = 0;
      tick();
    },
    get failures() {
      return failures;
    },
    lastFailure: () => lastFailure,
  };

  function tick(): void {
    if (busy || clock() < notBefore) return;
    busy = true;
    act()
      .catch(fail)
      .finally(() => {
        busy = false;
      });
  }

  async function act(): Promise<void> {
    const reason = await whyDue(readStored());
    if (reason === undefined) return;
    folder.checkWritable();
    const release = await tryLock(`${folder.path}/order.lock`);
    if (release === undefined) {
      notBefore = clock() + OTHERS_TURN;
      return log.debug('certificate-ordered-elsewhere', { domains });
    }
    try {
      // Whoever had the lock until now may have done it.
      const stored = readStored();
      if ((await whyDue(stored)) === undefined) return onStored();
      await order(reason, stored);
    } finally {
      await release();
    }
  }

  async function order(reason: string, stored: Stored | undefined): Promise<void> {
    const [challengeType = 'http-01'] = types;
    log.info('certificate-ordered', { domains, directory, challenge: challengeType, reason });
    const keys = createKeyPair();
    const replaces = stored?.directory === directory ? stored.facts.renewalId : undefined;
    const chain = await client.order({
      domains,
      challengeType,
      present: challenges.present,
      request: createCertificateRequest(domains, keys),
      replaces,
    });
    tellOfSkew();
    const key = keys.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
    const { facts } = readPair(chain, key);
    folder.writeCertificate(directory, chain, key);
    inARow = 0;
    lastFailure = undefined;
    log.info('certificate-obtained', {
      domains,
      issuer: facts.issuer,
      expires: new Date(facts.notAfter).toISOString(),
    });
    onStored();
  }

  function readStored(): Stored | undefined {
    const stored = folder.readCertificate();
    if (stored === undefined) return undefined;
    try {
      return { directory: stored.directory, facts: readPair(stored.text, stored.text).facts };
    } catch {
      // Damaged: as good as none.
      return undefined;
    }
  }

  /** Undefined: nothing is to be done yet. */
  async function whyDue(stored: Stored | undefined): Promise<string | undefined> {
    if (stored === undefined) return 'there is none';
    const { facts } = stored;
    if (facts.names.length !== domains.length || !domains.every((domain) => facts.names.includes(domain)))
      return 'DOMAINS has changed';
    if (stored.directory !== undefined && stored.directory !== directory) return 'ACME_DIRECTORY has changed';
    if (now() >= renewalTime(facts)) return 'two thirds of its lifetime are over';
    return (await advisedTime(facts)) <= now() ? 'the directory advises it' : undefined;
  }

  /**
   * Renewal information, asked as seldom as it may be: a certificate that is about to be revoked is renewed in time by
   * it.
   */
  async function advisedTime({ fingerprint, renewalId }: CertificateFacts): Promise<number> {
    if (renewalId === undefined) return Number.POSITIVE_INFINITY;
    if (advice?.fingerprint !== fingerprint) advice = { fingerprint, share: random(), renewAt: undefined, askAgain: 0 };
    if (clock() >= advice.askAgain) {
      try {
        const information = await client.renewalInfo(renewalId);
        tellOfSkew();
        advice.renewAt = information === undefined ? undefined : adviceTime(information, advice.share);
        advice.askAgain = clock() + adviceInterval(information?.retryAfter);
      } catch (error) {
        // Its age decides then. An old answer is kept.
        advice.askAgain = clock() + adviceInterval(error instanceof AcmeError ? error.retryAfter : undefined);
        log.debug('renewal-information-failed', { error: (error as Error).message });
      }
    }
    return advice.renewAt ?? Number.POSITIVE_INFINITY;
  }

  function fail(error: unknown): void {
    failures++;
    inARow++;
    lastFailure = error instanceof Error ? error.message : String(error);
    const type = error instanceof AcmeError ? error.type : undefined;
    const pause = retryPause(inARow, error instanceof AcmeError ? error.retryAfter : undefined, random());
    notBefore = clock() + pause;
    const [challenge] = types;
    if (type !== undefined && CHALLENGE_FAILED.has(type)) types = [...types.slice(1), ...types.slice(0, 1)];
    log.error('certificate-order-failed', {
      domains,
      directory,
      challenge,
      error: lastFailure,
      ...(type === undefined ? {} : { type }),
      to_do: adviceFor(error),
      next_attempt: new Date(now() + pause).toISOString(),
    });
    tellOfSkew();
  }

  function tellOfSkew(): void {
    const skew = client.clockSkew();
    if (Math.abs(skew) < MOST_SKEW) return;
    const seconds = Math.round(skew / 1000);
    log.error('clock-wrong', {
      seconds,
      by: directory,
      to_do: `set the clock of this machine: it is ${seconds > 0 ? 'slow' : 'fast'}`,
    });
  }
}
