// The supervisor's half of HTTPS: where the certificate comes from (TLS_CERT and TLS_KEY, or DOMAINS), what the workers
// are given to serve with, the key of their session tickets, and the warning before a certificate ends.
import { crypto } from '../base/builtins.ts';
import { describeFailure } from '../base/failure.ts';
import type { Log } from '../base/log.ts';
import type { Settings } from '../base/settings.ts';
import { createChallenges } from './acme/challenges.ts';
import { createAcmeClient } from './acme/client.ts';
import type { TryLock } from './acme/order-lock.ts';
import { warningTime } from './acme/renewal.ts';
import { createRenewals, type Renewals } from './acme/renewals.ts';
import { createSend } from './acme/request.ts';
import { createTlsFolder } from './acme/tls-folder.ts';
import type { CertificateFacts, CertificatePair } from './pair.ts';
import { createHttpPort } from './serve/http-port.ts';
import { createLivePair, type LivePair } from './serve/live-pair.ts';
import type { SecureChallenge, SecureState } from './serve/secure-state.ts';
import { TICKET_KEY_BYTES } from './serve/ticket-keys.ts';

export interface CertificateStatus {
  readonly names: readonly string[];
  readonly issuer: string;
  /** Unix milliseconds. */
  readonly notAfter: number;
  readonly reloads: number;
  /** Reloads and orders. */
  readonly failures: number;
  /** One line: why the files as they stand are not live, or why the last order failed. */
  readonly lastFailure: string | undefined;
}

export interface Certificates {
  /**
   * Resolves as soon as there is a certificate to serve with, however long that takes. PORT must be free until then.
   *
   * @throws Error one line, when what is set cannot serve
   */
  start(): Promise<void>;
  /** Workers hold the port from now on. @param onChange is called whenever they need something else to serve with */
  serving(port: number, onChange: () => void): void;
  /** What a worker needs. @throws Error before `start` has resolved */
  state(): SecureState;
  status(): CertificateStatus | undefined;
  /** An order that failed is made again now. */
  hurry(): void;
  close(): void;
}

export interface CertificatesOptions {
  readonly settings: Pick<
    Settings,
    'tlsCert' | 'tlsKey' | 'domains' | 'acmeDirectory' | 'acmeContact' | 'httpPort' | 'port' | 'host' | 'dataDir'
  >;
  readonly version: string;
  readonly log: Log;
  readonly tryLock: TryLock;
  /** PEM, for tests: trusted by the ACME client alone. */
  readonly ca?: string;
  /** Unix milliseconds. */
  readonly now?: () => number;
}

const TICK = 30_000;
const DAY = 86_400_000;
/** The one before opens its tickets for as long again, which is longer than any of them is good for. */
const TICKET_KEY_LIFETIME = DAY / 2;

export function createCertificates({
  settings,
  version,
  log,
  tryLock,
  ca,
  now = Date.now,
}: CertificatesOptions): Certificates {
  const { tlsCert, tlsKey, domains, dataDir, host } = settings;
  const isOrdered = domains.length > 0;
  const folder = createTlsFolder(dataDir);
  const timers: NodeJS.Timeout[] = [];
  let live: LivePair | undefined;
  let renewals: Renewals | undefined;
  let ticketKeys: readonly string[] = [newTicketKey()];
  let challenge: SecureChallenge | undefined;
  let onChange: (() => void) | undefined;
  let onFirst: (() => void) | undefined;
  let httpsPort = settings.port;
  let warnedAt = 0;
  const isServed = (host: string) => (isOrdered ? domains.includes(host) : live?.current()?.isFor(host) === true);
  const httpPort =
    settings.httpPort === undefined
      ? undefined
      : createHttpPort({ port: settings.httpPort, host, httpsPort: () => httpsPort, isServed });

  return {
    async start() {
      const [certPath, keyPath] = isOrdered
        ? [folder.certificatePath, folder.certificatePath]
        : [tlsCert ?? '', tlsKey ?? ''];
      live = createLivePair({ certPath, keyPath, mayComeLater: isOrdered, log, onPair });
      await listenHttp();
      if (isOrdered) renewals = startRenewals();
      timers.push(setInterval(tick, TICK), setInterval(renewTicketKey, TICKET_KEY_LIFETIME));
      if (live.current() === undefined) {
        const where =
          settings.httpPort === undefined
            ? `tls-alpn-01 on port ${settings.port}`
            : `http-01 on port ${settings.httpPort}`;
        log.warn('certificate-awaited', {
          domains,
          directory: settings.acmeDirectory,
          challenge: where,
          effect: 'nothing is served until there is one',
        });
      }
      const first = live.current() === undefined ? new Promise<void>((resolve) => (onFirst = resolve)) : undefined;
      tick();
      await first;
    },
    serving(port, changed) {
      httpsPort = port;
      onChange = changed;
    },
    state() {
      const pair = live?.current();
      if (pair === undefined) throw new Error('there is no certificate yet');
      return { cert: pair.cert, key: pair.key, ticketKeys, challenge };
    },
    status() {
      const facts = live?.current()?.facts;
      if (live === undefined || facts === undefined) return undefined;
      const { names, issuer, notAfter } = facts;
      const { reloads, reloadFailures, lastFailure = renewals?.lastFailure() } = live.status();
      return { names, issuer, notAfter, reloads, failures: reloadFailures + (renewals?.failures ?? 0), lastFailure };
    },
    hurry: () => renewals?.hurry(),
    close() {
      for (const timer of timers) clearInterval(timer);
      live?.close();
      httpPort?.close();
    },
  };

  async function listenHttp(): Promise<void> {
    await httpPort?.listen().catch((error: unknown) => {
      throw new Error(`HTTP_PORT: Cannot listen on port ${settings.httpPort}: ${describeFailure(error)}`);
    });
  }

  function startRenewals(): Renewals {
    const send = createSend({ userAgent: `gatefold/${version}`, ca });
    const { acmeDirectory: directory, acmeContact } = settings;
    const contact = acmeContact.map((address) => `mailto:${address}`);
    const client = createAcmeClient({ directory, contact, send, accountKey: (renew) => folder.accountKey(renew), now });
    const publish = (next: SecureChallenge | undefined) => {
      challenge = next;
      onChange?.();
    };
    const challenges = createChallenges({
      httpPort,
      port: settings.port,
      host,
      isServing: () => onChange !== undefined,
      publish,
    });
    return createRenewals({
      domains,
      directory,
      folder,
      client,
      challenges,
      tryLock,
      onStored: () => void live?.look(),
      log,
      now,
    });
  }

  function onPair(pair: CertificatePair): void {
    warnedAt = 0;
    warn(pair.facts);
    onChange?.();
    onFirst?.();
    onFirst = undefined;
  }

  function tick(): void {
    const facts = live?.current()?.facts;
    if (facts !== undefined) warn(facts);
    renewals?.tick();
  }

  /** Once a day: what ends soon, has ended, or is not valid yet by this machine's clock. */
  function warn({ names, notBefore, notAfter }: CertificateFacts): void {
    const left = notAfter - now();
    if (now() - warnedAt < DAY) return;
    if (now() < notBefore) {
      log.error('clock-wrong', {
        names,
        valid_from: new Date(notBefore).toISOString(),
        to_do: 'set the clock of this machine: the certificate is not valid yet',
      });
    } else if (left <= warningTime({ notBefore, notAfter })) {
      const facts = { names, expires: new Date(notAfter).toISOString(), days_left: Math.floor(left / DAY) };
      const to_do = isOrdered
        ? 'see certificate-order-failed, and docs/OPERATING.md'
        : 'put a renewed certificate into TLS_CERT and TLS_KEY';
      if (left <= 0) log.error('certificate-expired', { ...facts, to_do });
      else log.warn('certificate-expires-soon', { ...facts, to_do });
    } else return;
    warnedAt = now();
  }

  function renewTicketKey(): void {
    ticketKeys = [newTicketKey(), ...ticketKeys.slice(0, 1)];
    onChange?.();
  }
}

function newTicketKey(): string {
  return crypto().randomBytes(TICKET_KEY_BYTES).toString('base64');
}
