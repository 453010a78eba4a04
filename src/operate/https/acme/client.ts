// Gets a certificate by the ACME protocol (RFC 8555): directory, nonces, account, order, challenges, finalization,
// download. Also reads renewal information (RFC 9773). renewals.ts decides when to order.
import type { KeyObject } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseRetryAfter } from '../../../base/time.ts';
import { type Fields, parseObject } from '../../../base/values.ts';
import { createKeyAuthorization, signMessage } from './jws.ts';
import { AcmeError, type AcmeResponse, readError, readProblem, type Send } from './request.ts';

export type ChallengeType = 'http-01' | 'tls-alpn-01';

export interface Challenge {
  readonly type: ChallengeType;
  readonly domain: string;
  readonly token: string;
  readonly keyAuthorization: string;
}

/** Publishes the answer to a challenge. The returned function withdraws the answer. */
export type PresentChallenge = (challenge: Challenge) => Promise<() => void>;

export interface CertificateOrder {
  readonly domains: readonly string[];
  readonly challengeType: ChallengeType;
  readonly present: PresentChallenge;
  readonly request: Buffer;
  /** The renewal id of the old certificate that the new one replaces. */
  readonly replaces?: string | undefined;
}

export interface RenewalInfo {
  /** The server advises to renew between `start` and `end`, both in Unix milliseconds. */
  readonly start: number;
  readonly end: number;
  /** Milliseconds until the next request for advice, when the server asks for a certain time. */
  readonly retryAfter: number | undefined;
}

export type AcmeClient = ReturnType<typeof createAcmeClient>;

export interface AcmeClientOptions {
  readonly directory: string;
  readonly contact: readonly string[];
  /** Returns the account's key. With `mustRenew`, creates a new key, because the directory has closed the account. */
  readonly accountKey: (mustRenew: boolean) => KeyObject | Promise<KeyObject>;
  readonly send: Send;
  readonly now?: () => number;
  /** Milliseconds between two looks at an order. The server can ask for at most ten times as long. */
  readonly pollInterval?: number;
}

/** Maximum attempts for one message. A server of several machines can refuse many good nonces (used once) in a row. */
const NONCE_ATTEMPTS = 40;
const POLL_INTERVAL = 1000;
/** Maximum milliseconds to wait until a challenge is checked, or until the certificate is issued. */
const MAX_WAIT = 180_000;

interface Account {
  readonly key: KeyObject;
  readonly kid: string | undefined;
}

export function createAcmeClient(options: AcmeClientOptions) {
  const { send, accountKey, now = Date.now, pollInterval = POLL_INTERVAL } = options;
  let directory: Fields | undefined;
  let nonce: string | undefined;
  let account: Account | undefined;
  let skew = 0;

  return {
    /** Orders a certificate. @returns the certificate and its chain, in PEM form. @throws AcmeError */
    async order(order: CertificateOrder): Promise<string> {
      // Since the last order, the directory may have changed its addresses or closed the account.
      directory = account = nonce = undefined;
      try {
        account = await openAccount(false);
      } catch (error) {
        // The directory no longer accepts the account or its key.
        const isClosed = error instanceof AcmeError && /^(?:unauthorized|accountDoesNotExist)$/.test(error.type ?? '');
        if (!isClosed) throw error;
        account = await openAccount(true);
      }
      return completeOrder(order);
    },
    /** Reads when to renew a certificate; undefined when the directory does not say. @throws AcmeError */
    async renewalInfo(renewalId: string): Promise<RenewalInfo | undefined> {
      directory = undefined;
      const baseUrl = (await readDirectory()).renewalInfo;
      if (typeof baseUrl !== 'string') return undefined;
      const url = `${baseUrl.replace(/\/$/, '')}/${renewalId}`;
      const response = await send({ method: 'GET', url });
      if (response.status !== 200) throw readError(response, url);
      const period = (parseObject(response.text)?.suggestedWindow ?? {}) as Fields;
      const start = Date.parse(String(period.start));
      const end = Date.parse(String(period.end));
      if (!(start <= end))
        throw new AcmeError('the directory sent renewal information that is not in the form of RFC 9773');
      return { start, end, retryAfter: parseRetryAfter(response.headers['retry-after'], now()) };
    },
    /** Milliseconds by which the clock of the directory was ahead of the clock here, at its last answer. */
    clockSkew: () => skew,
  };

  async function completeOrder(certificateOrder: CertificateOrder): Promise<string> {
    const identifiers = certificateOrder.domains.map((value) => ({ type: 'dns', value }));
    const newOrderUrl = await findAddress('newOrder');
    const replaces = typeof directory?.renewalInfo === 'string' ? certificateOrder.replaces : undefined;
    const fields = replaces === undefined ? { identifiers } : { identifiers, replaces };
    const response = await post(newOrderUrl, fields).catch((error: unknown) => {
      // The server refuses `replaces` when it did not issue the old certificate, or when the old one has been replaced
      // already. In both cases the order is sent again without `replaces`.
      if (replaces === undefined || !(error instanceof AcmeError) || !REPLACES_REFUSED.has(error.type ?? ''))
        throw error;
      return post(newOrderUrl, { identifiers });
    });
    const orderUrl = readLocation(response);
    let order = parseFields(response);
    for (const url of selectStrings(order.authorizations)) await authorize(url, certificateOrder);
    // An order stays `pending` for a moment after its last authorization, before it is `ready`.
    order = await waitWhile(['pending'], orderUrl);
    if (order.status === 'ready') {
      parseFields(await post(readAddress(order, 'finalize'), { csr: certificateOrder.request.toString('base64url') }));
      order = await waitWhile(['pending', 'ready', 'processing'], orderUrl);
    }
    if (order.status !== 'valid') throw readRefusal(order, `the order is ${String(order.status)}`);
    return (await post(readAddress(order, 'certificate'), '', 'application/pem-certificate-chain')).text;
  }

  /** Answers the challenge for one domain of an order. @param url the address of the domain's authorization */
  async function authorize(url: string, { challengeType: type, present }: CertificateOrder): Promise<void> {
    const authorization = parseFields(await post(url, ''));
    if (authorization.status === 'valid') return;
    const domain = String((authorization.identifier as Fields | undefined)?.value);
    const challenge = challengesOf(authorization).find((candidate) => candidate.type === type);
    // The token becomes part of a path, so any character but those of RFC 8555, section 8.1, is refused.
    if (challenge === undefined || !/^[A-Za-z0-9_-]{1,256}$/.test(String(challenge.token))) {
      throw new AcmeError(`the directory offers no ${type} challenge for ${domain}`, { type: 'noChallenge' });
    }
    const token = String(challenge.token);
    const { key } = account as Account;
    const withdraw = await present({ type, domain, token, keyAuthorization: createKeyAuthorization(token, key) });
    try {
      await post(readAddress(challenge, 'url'), {});
      const outcome = await waitWhile(['pending'], url);
      if (outcome.status === 'valid') return;
      const failedObject = challengesOf(outcome).find(({ error }) => error !== undefined) ?? outcome;
      throw readRefusal(failedObject, `the authorization is ${String(outcome.status)}`, domain);
    } finally {
      withdraw();
    }
  }

  /** Polls an order or an authorization while it is in one of these states. Returns it in its next state. */
  async function waitWhile(states: readonly string[], url: string): Promise<Fields> {
    const startedAt = performance.now();
    for (;;) {
      const response = await post(url, '');
      const object = parseFields(response);
      if (!states.includes(String(object.status))) return object;
      if (performance.now() - startedAt > MAX_WAIT)
        throw new AcmeError(`the directory still reports ${String(object.status)} after ${MAX_WAIT / 1000} s`);
      const interval = parseRetryAfter(response.headers['retry-after'], now()) ?? pollInterval;
      await sleep(Math.min(interval, 10 * pollInterval));
    }
  }

  /** Creates the account. When the key already has an account, the directory returns that account. */
  async function openAccount(mustRenew: boolean): Promise<Account> {
    const key = await accountKey(mustRenew);
    const { contact } = options;
    const fields = { termsOfServiceAgreed: true, ...(contact.length > 0 ? { contact } : {}) };
    const response = await post(await findAddress('newAccount'), fields, undefined, { key, kid: undefined });
    const { status, contact: currentContact } = parseFields(response);
    if (status !== 'valid') throw new AcmeError(`the account is ${String(status)}`, { type: 'unauthorized' });
    const kid = readLocation(response);
    // An account that already existed keeps its old contacts until they are updated (RFC 8555, section 7.3.2).
    if (response.status === 200 && selectStrings(currentContact).join() !== contact.join())
      await post(kid, { contact }, undefined, { key, kid });
    return { key, kid };
  }

  /** Sends a message. @param payload '' for a request that only reads @param accept the type of the answer */
  async function post(url: string, payload: object | '', accept?: string, signer = account): Promise<AcmeResponse> {
    const { key, kid } = signer as Account;
    for (let attempt = 1; ; attempt++) {
      const body = signMessage(payload, { url, kid, nonce: await takeNonce() }, key);
      const response = await send({ method: 'POST', url, body, ...(accept === undefined ? {} : { accept }) });
      recordHeaders(response);
      if (response.status >= 200 && response.status < 300) return response;
      const error = readError(response, url);
      if (error.type !== 'badNonce' || attempt >= NONCE_ATTEMPTS) throw error;
    }
  }

  /** Takes the nonce of the last answer, or requests a new one. A nonce is valid for one message only. */
  async function takeNonce(): Promise<string> {
    if (nonce === undefined) {
      const url = await findAddress('newNonce');
      const response = await send({ method: 'HEAD', url });
      if (response.status >= 400) throw readError(response, url);
      recordHeaders(response);
    }
    const unusedNonce = nonce;
    nonce = undefined;
    if (unusedNonce === undefined) throw new AcmeError('the directory sent no nonce');
    return unusedNonce;
  }

  function recordHeaders({ headers }: AcmeResponse): void {
    const next = headers['replay-nonce'];
    nonce = typeof next === 'string' && /^[A-Za-z0-9_-]+$/.test(next) ? next : undefined;
    const date = Date.parse(headers.date ?? '');
    if (Number.isFinite(date)) skew = date - now();
  }

  async function readDirectory(): Promise<Fields> {
    if (directory !== undefined) return directory;
    const response = await send({ method: 'GET', url: options.directory });
    recordHeaders(response);
    if (response.status !== 200) throw readError(response, options.directory);
    directory = parseFields(response);
    return directory;
  }

  async function findAddress(resource: string): Promise<string> {
    return readAddress(await readDirectory(), resource);
  }
}

/** The types of errors with which a server can refuse the field `replaces` of an order. */
const REPLACES_REFUSED: ReadonlySet<string> = new Set(
  'alreadyReplaced malformed notFound conflict unauthorized'.split(' '),
);

/** Returns the error of an order, an authorization or a challenge that failed. `domain` is put before its message. */
function readRefusal(object: Fields, fallbackMessage: string, domain?: string): AcmeError {
  const error = readProblem(object.error as Fields | undefined) ?? new AcmeError(fallbackMessage);
  return domain === undefined ? error : new AcmeError(`${domain}: ${error.message}`, error);
}

function parseFields({ text }: AcmeResponse): Fields {
  const object = parseObject(text);
  if (object === undefined) throw new AcmeError('the answer of the directory is not a JSON object');
  return object;
}

function readAddress(object: Fields, name: string): string {
  const value = object[name];
  if (typeof value !== 'string' || !value.startsWith('https://'))
    throw new AcmeError(`the answer of the directory has no https address in "${name}"`);
  return value;
}

function readLocation({ headers }: AcmeResponse): string {
  if (headers.location === undefined) throw new AcmeError('the answer of the directory has no Location header');
  return headers.location;
}

function challengesOf({ challenges }: Fields): readonly Fields[] {
  return Array.isArray(challenges) ? challenges : [];
}

function selectStrings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}
