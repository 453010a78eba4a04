// The supervisor's half of HTTPS: certificates from files or by ACME, the keys of session tickets, which change twice a
// day, and the warning before an expiry. The workers (serve/tls-server.ts) get all of it as one `SecureState`.
import { crypto } from '../../base/builtins.ts';
import { describeFailure } from '../../base/failure.ts';
import type { Log } from '../../base/log.ts';
import type { Settings } from '../../base/settings.ts';
import { createChallenges } from './acme/challenges.ts';
import { createAcmeClient } from './acme/client.ts';
import { createTryLock } from './acme/order-lock.ts';
import { warningPeriod } from './acme/renewal-times.ts';
import { createRenewals, type Renewals } from './acme/renewals.ts';
import { createSend } from './acme/request.ts';
import { createTlsFolder } from './acme/tls-folder.ts';
import { createHttpPort } from './http-port.ts';
import { createLivePair, type LivePair } from './live-pair.ts';
import type { CertificateFacts, CertificatePair } from './pair.ts';
import type { SecureChallenge, SecureState } from './serve/secure-state.ts';
import { TICKET_KEY_BYTES } from './serve/ticket-keys.ts';

export type Certificates = ReturnType<typeof createCertificates>;
export type CertificateStatus = NonNullable<ReturnType<Certificates['status']>>;

export interface CertificatesOptions {
  readonly settings: Pick<
    Settings,
    | 'tlsCert'
    | 'tlsKey'
    | 'domains'
    | 'acmeDirectory'
    | 'acmeContact'
    | 'httpPort'
    | 'port'
    | 'host'
    | 'publicOrigin'
    | 'dataDir'
  >;
  readonly version: string;
  readonly log: Log;
  /** The descriptor of a socket that systemd has opened for HTTP_PORT. */
  readonly httpPortFd?: number | undefined;
  /** The only root certificate that the ACME client trusts, in PEM form. Only tests set `ca`. */
  readonly ca?: string;
  readonly now?: () => number;
}

const DUE_CHECK_INTERVAL_MS = 30_000;
const DAY = 86_400_000;
/** Milliseconds for which a key encrypts new tickets. Then the key only decrypts, for as long; tickets live an hour. */
const TICKET_KEY_LIFETIME = DAY / 2;

export function createCertificates(options: CertificatesOptions) {
  const { settings, version, log, httpPortFd, ca, now = Date.now } = options;
  const { tlsCert, tlsKey, domains, dataDir, host } = settings;
  const usesAcme = domains.length > 0;
  const folder = createTlsFolder(dataDir);
  const timers: NodeJS.Timeout[] = [];
  let livePair: LivePair | undefined;
  let renewals: Renewals | undefined;
  let ticketKeys: readonly string[] = [newTicketKey()];
  /** The answer to the challenge that the directory, the ACME server, checks at the moment. */
  let challenge: SecureChallenge | undefined;
  let onChange: (() => void) | undefined;
  /** Resolves the promise of `start`; undefined when nobody waits for the first certificate. */
  let resolveFirstPair: (() => void) | undefined;
  let httpsPort = settings.port;
  /** The time of the last warning about the current certificate, in Unix milliseconds. */
  let warnedAt = Number.NEGATIVE_INFINITY;
  const isServed = (name: string) => (usesAcme ? domains.includes(name) : livePair?.current()?.isFor(name) === true);
  const httpPort =
    settings.httpPort === undefined
      ? undefined
      : createHttpPort({ port: settings.httpPort, host, fd: httpPortFd, httpsPort: publicPort, isServed });

  return {
    /**
     * Resolves when there is a certificate, after any time. Until then, nothing may use PORT: a challenge needs it.
     *
     * @throws Error with a message of one line, when TLS_CERT or TLS_KEY cannot be used, or HTTP_PORT is taken
     */
    async start(): Promise<void> {
      const [certPath, keyPath] = usesAcme
        ? [folder.certificatePath, folder.certificatePath]
        : [tlsCert ?? '', tlsKey ?? ''];
      livePair = createLivePair({ certPath, keyPath, mayComeLater: usesAcme, log, onPair });
      await httpPort?.listen().catch((error: unknown) => {
        throw new Error(`HTTP_PORT: Cannot listen on port ${settings.httpPort}: ${describeFailure(error)}`);
      });
      if (usesAcme) renewals = startRenewals();
      timers.push(setInterval(checkDue, DUE_CHECK_INTERVAL_MS), setInterval(renewTicketKey, TICKET_KEY_LIFETIME));
      if (livePair.current() === undefined) {
        const { port, acmeDirectory: directory } = settings;
        const method = httpPort === undefined ? `tls-alpn-01 on port ${port}` : `http-01 on port ${settings.httpPort}`;
        const effect = 'no request is served until there is a certificate';
        log.warn('certificate-awaited', { domains, directory, challenge: method, effect });
      }
      const firstPair =
        livePair.current() === undefined ? new Promise<void>((resolve) => (resolveFirstPair = resolve)) : undefined;
      checkDue();
      await firstPair;
    },
    /** Called when PORT is bound, before any worker loads. `listener` is called when `state` returns something new. */
    handOverPort(port: number, listener: () => void): void {
      httpsPort = port;
      onChange = listener;
    },
    /** Returns the state for a worker. @throws Error before `start` has resolved */
    state(): SecureState {
      const pair = livePair?.current();
      if (pair === undefined) throw new Error('there is no certificate yet');
      return { cert: pair.cert, key: pair.key, ticketKeys, challenge };
    },
    /** In the result, `lastFailure` is one line: why the current files are not in use, or why the last order failed. */
    status() {
      const facts = livePair?.current()?.facts;
      if (livePair === undefined || facts === undefined) return undefined;
      const { names, issuer, notAfter } = facts;
      const { reloads, reloadFailures, lastFailure = renewals?.lastFailure() } = livePair.status();
      return { names, issuer, notAfter, reloads, failures: reloadFailures + (renewals?.failures ?? 0), lastFailure };
    },
    /** Repeats a failed order now, without waiting for the end of its pause. */
    retryNow: () => renewals?.retryNow(),
    close(): void {
      for (const timer of timers) clearInterval(timer);
      livePair?.close();
      httpPort?.close();
    },
  };

  /** A router or a container can map another port to PORT. Then PUBLIC_ORIGIN has the port that clients need. */
  function publicPort(host: string): number {
    const urls = settings.publicOrigin.map((origin) => new URL(origin));
    const url = urls.find(({ protocol, hostname }) => protocol === 'https:' && hostname === host);
    return url === undefined ? httpsPort : Number(url.port || 443);
  }

  function startRenewals(): Renewals {
    const send = createSend({ userAgent: `gatefold/${version}`, ca });
    const { acmeDirectory: directory, acmeContact } = settings;
    const contact = acmeContact.map((address) => `mailto:${address}`);
    const client = createAcmeClient({ directory, contact, send, accountKey: folder.accountKey, now });
    const publish = (next: SecureChallenge | undefined) => {
      challenge = next;
      onChange?.();
    };
    const isHandedOver = () => onChange !== undefined;
    const challenges = createChallenges({ httpPort, port: settings.port, host, isHandedOver, publish });
    const onStored = () => void livePair?.look();
    const tryLock = createTryLock();
    return createRenewals({ domains, directory, folder, client, challenges, tryLock, onStored, log, now });
  }

  function onPair(pair: CertificatePair): void {
    warnedAt = Number.NEGATIVE_INFINITY;
    warnOfExpiry(pair.facts);
    onChange?.();
    resolveFirstPair?.();
    resolveFirstPair = undefined;
  }

  function checkDue(): void {
    const facts = livePair?.current()?.facts;
    if (facts !== undefined) warnOfExpiry(facts);
    renewals?.checkDue();
  }

  /** Logs, at most once a day, that a certificate expires soon, has expired, or is not valid yet by this clock. */
  function warnOfExpiry({ names, notBefore, notAfter }: CertificateFacts): void {
    const timeLeft = notAfter - now();
    if (Math.abs(now() - warnedAt) < DAY) return;
    if (now() < notBefore) {
      const to_do = 'set the clock of this machine: the certificate is not valid yet';
      log.error('clock-wrong', { names, valid_from: new Date(notBefore).toISOString(), to_do });
    } else if (timeLeft <= warningPeriod({ notBefore, notAfter })) {
      const facts = { names, expires: new Date(notAfter).toISOString(), days_left: Math.floor(timeLeft / DAY) };
      const to_do = usesAcme
        ? 'see certificate-order-failed, and docs/OPERATING.md'
        : 'put a renewed certificate into TLS_CERT and TLS_KEY';
      if (timeLeft <= 0) log.error('certificate-expired', { ...facts, to_do });
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
