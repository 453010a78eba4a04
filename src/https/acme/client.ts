// The ACME protocol (RFC 8555) from an account's key to a certificate: directory, nonces, account, order, challenges,
// finalize, download; and renewal information (RFC 9773). It keeps no files and decides nothing about when.
import type { KeyObject } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { keyAuthorizationOf, signMessage } from './jws.ts';
import {
  AcmeError,
  type AcmeResponse,
  errorOf,
  parseObject,
  parseRetryAfter,
  problemError,
  type Send,
} from './request.ts';

export type ChallengeType = 'http-01' | 'tls-alpn-01';

export interface Challenge {
  readonly type: ChallengeType;
  readonly domain: string;
  readonly token: string;
  readonly keyAuthorization: string;
}

/** Shows the world a challenge's answer; what it returns takes the answer away again. */
export type PresentChallenge = (challenge: Challenge) => Promise<() => void>;

export interface CertificateOrder {
  readonly domains: readonly string[];
  readonly challengeType: ChallengeType;
  readonly present: PresentChallenge;
  /** DER. */
  readonly request: Buffer;
  /** The renewal id of the certificate that this one is to replace. */
  readonly replaces?: string | undefined;
}

export interface RenewalInfo {
  /** Unix milliseconds: renew at some moment in here. */
  readonly start: number;
  readonly end: number;
  /** Milliseconds until it should be asked again. */
  readonly retryAfter: number | undefined;
}

export interface AcmeClient {
  /** @returns the chain, PEM. @throws AcmeError */
  order(order: CertificateOrder): Promise<string>;
  /** Undefined where the directory has none. @throws AcmeError */
  renewalInfo(renewalId: string): Promise<RenewalInfo | undefined>;
  /** Milliseconds that the directory's clock was ahead of ours at its last answer. */
  clockSkew(): number;
}

export interface AcmeClientOptions {
  readonly directory: string;
  /** `mailto:` addresses. */
  readonly contact: readonly string[];
  /** The account's; a new one after the directory has closed the account. */
  readonly accountKey: (renew: boolean) => KeyObject | Promise<KeyObject>;
  readonly send: Send;
  readonly now?: () => number;
  /** Milliseconds between two looks at something that is being worked on, unless the server says otherwise. */
  readonly pollInterval?: number;
}

type Fields = Readonly<Record<string, unknown>>;

/** A server may refuse many good nonces in a row when several machines answer for it. */
const NONCE_ATTEMPTS = 40;
const POLL_INTERVAL = 1000;
const LONGEST_POLL = 15_000;
/** What a validation or a signature may take. */
const PATIENCE = 180_000;

export function createAcmeClient(options: AcmeClientOptions): AcmeClient {
  const { send, accountKey, now = Date.now, pollInterval = POLL_INTERVAL } = options;
  let directory: Fields | undefined;
  let nonce: string | undefined;
  let account: { readonly key: KeyObject; readonly kid: string } | undefined;
  let skew = 0;

  return {
    async order(order) {
      // It may have moved its addresses, or forgotten the account, since the last time.
      directory = account = nonce = undefined;
      try {
        account = await openAccount(false);
      } catch (error) {
        if (!isClosedAccount(error)) throw error;
        account = await openAccount(true);
      }
      return run(order);
    },
    async renewalInfo(renewalId) {
      directory = undefined;
      const base = (await readDirectory()).renewalInfo;
      if (typeof base !== 'string') return undefined;
      const url = `${base.replace(/\/$/, '')}/${renewalId}`;
      const response = await send({ method: 'GET', url });
      if (response.status !== 200) throw errorOf(response, url);
      const window = (parseObject(response.text)?.suggestedWindow ?? {}) as Fields;
      const start = Date.parse(String(window.start));
      const end = Date.parse(String(window.end));
      if (!(start <= end)) throw new AcmeError('its renewal information is not what RFC 9773 says');
      return { start, end, retryAfter: parseRetryAfter(response.headers['retry-after'], now()) };
    },
    clockSkew: () => skew,
  };

  async function run({ domains, challengeType, present, request, replaces }: CertificateOrder): Promise<string> {
    const identifiers = domains.map((value) => ({ type: 'dns', value }));
    const created = await post(
      await addressOf('newOrder'),
      replaces !== undefined && typeof directory?.renewalInfo === 'string'
        ? { identifiers, replaces }
        : { identifiers },
    ).catch((error: unknown) => {
      // The certificate that was to be replaced is not the server's, or has been replaced already.
      if (replaces === undefined || !(error instanceof AcmeError) || !REPLACES_REFUSED.has(error.type ?? ''))
        throw error;
      return addressOf('newOrder').then((url) => post(url, { identifiers }));
    });
    const orderUrl = locationOf(created);
    let order = objectOf(created);
    for (const url of stringsOf(order.authorizations)) await authorize(url, challengeType, present);
    order = await settled(orderUrl, ['pending']);
    if (order.status === 'ready') {
      objectOf(await post(addressIn(order, 'finalize'), { csr: request.toString('base64url') }));
      order = await settled(orderUrl, ['pending', 'ready', 'processing']);
    }
    if (order.status !== 'valid') throw refusedBy(order, `the order is ${String(order.status)}`);
    return (await post(addressIn(order, 'certificate'), '', 'application/pem-certificate-chain')).text;
  }

  async function authorize(url: string, type: ChallengeType, present: PresentChallenge): Promise<void> {
    const authorization = objectOf(await post(url, ''));
    if (authorization.status === 'valid') return;
    const domain = String((authorization.identifier as Fields | undefined)?.value);
    const challenges = (Array.isArray(authorization.challenges) ? authorization.challenges : []) as Fields[];
    const challenge = challenges.find((candidate) => candidate.type === type);
    // Whoever chooses the token must not choose a path or a header by it (RFC 8555, section 8.1).
    if (challenge === undefined || !/^[A-Za-z0-9_-]{1,256}$/.test(String(challenge.token))) {
      throw new AcmeError(`it offers no ${type} challenge for ${domain}`, { type: 'noChallenge' });
    }
    const token = String(challenge.token);
    const { key } = account as { key: KeyObject };
    const withdraw = await present({ type, domain, token, keyAuthorization: keyAuthorizationOf(token, key) });
    try {
      await post(addressIn(challenge, 'url'), {});
      const outcome = await settled(url, ['pending']);
      if (outcome.status === 'valid') return;
      const tried = (Array.isArray(outcome.challenges) ? outcome.challenges : []) as Fields[];
      throw refusedBy(
        tried.find((candidate) => candidate.error !== undefined) ?? outcome,
        `the authorization is ${String(outcome.status)}`,
        domain,
      );
    } finally {
      withdraw();
    }
  }

  /** An object once it has none of these states any more. */
  async function settled(url: string, states: readonly string[]): Promise<Fields> {
    const begun = performance.now();
    for (;;) {
      const response = await post(url, '');
      const object = objectOf(response);
      // An order stays `pending` for a moment after its last authorization; one that waits for us is `ready`.
      if (!states.includes(String(object.status))) return object;
      if (performance.now() - begun > PATIENCE)
        throw new AcmeError(`it is still ${String(object.status)} after ${PATIENCE / 1000} s`);
      await sleep(
        Math.min(
          parseRetryAfter(response.headers['retry-after'], now()) ?? pollInterval,
          LONGEST_POLL,
          10 * pollInterval,
        ),
      );
    }
  }

  /** With a key that the directory knows it answers with that account, and makes none. */
  async function openAccount(renew: boolean): Promise<{ key: KeyObject; kid: string }> {
    const key = await accountKey(renew);
    const { contact } = options;
    const terms = { termsOfServiceAgreed: true, ...(contact.length > 0 ? { contact } : {}) };
    const response = await postAs(key, undefined, await addressOf('newAccount'), terms);
    const opened = objectOf(response);
    const { status } = opened;
    if (status !== 'valid') throw new AcmeError(`the account is ${String(status)}`, { type: 'unauthorized' });
    const kid = locationOf(response);
    // One that was there before has the addresses that it was made with (RFC 8555, section 7.3.2).
    if (response.status === 200 && stringsOf(opened.contact).join() !== contact.join())
      await postAs(key, kid, kid, { contact });
    return { key, kid };
  }

  function post(url: string, payload: object | '', accept?: string): Promise<AcmeResponse> {
    const { key, kid } = account as { key: KeyObject; kid: string };
    return postAs(key, kid, url, payload, accept);
  }

  async function postAs(
    key: KeyObject,
    kid: string | undefined,
    url: string,
    payload: object | '',
    accept?: string,
  ): Promise<AcmeResponse> {
    for (let attempt = 1; ; attempt++) {
      const body = signMessage(payload, { url, kid, nonce: await takeNonce() }, key);
      const response = await send({ method: 'POST', url, body, ...(accept === undefined ? {} : { accept }) });
      noteHeaders(response);
      if (response.status >= 200 && response.status < 300) return response;
      const error = errorOf(response, url);
      if (error.type !== 'badNonce' || attempt >= NONCE_ATTEMPTS) throw error;
    }
  }

  /** Each is good for one message; every answer brings the next. */
  async function takeNonce(): Promise<string> {
    if (nonce === undefined) {
      const url = await addressOf('newNonce');
      const response = await send({ method: 'HEAD', url });
      if (response.status >= 400) throw errorOf(response, url);
      noteHeaders(response);
    }
    const taken = nonce;
    nonce = undefined;
    if (taken === undefined) throw new AcmeError('it gives no nonce');
    return taken;
  }

  function noteHeaders({ headers }: AcmeResponse): void {
    const next = headers['replay-nonce'];
    nonce = typeof next === 'string' && /^[A-Za-z0-9_-]+$/.test(next) ? next : undefined;
    const date = Date.parse(headers.date ?? '');
    if (Number.isFinite(date)) skew = date - now();
  }

  async function readDirectory(): Promise<Fields> {
    if (directory !== undefined) return directory;
    const response = await send({ method: 'GET', url: options.directory });
    noteHeaders(response);
    if (response.status !== 200) throw errorOf(response, options.directory);
    directory = objectOf(response);
    return directory;
  }

  async function addressOf(resource: string): Promise<string> {
    return addressIn(await readDirectory(), resource);
  }
}

const REPLACES_REFUSED: ReadonlySet<string> = new Set([
  'alreadyReplaced',
  'malformed',
  'notFound',
  'conflict',
  'unauthorized',
]);

/** Closed by the directory, or under another key: what is left is a new account. */
function isClosedAccount(error: unknown): boolean {
  return error instanceof AcmeError && (error.type === 'unauthorized' || error.type === 'accountDoesNotExist');
}

function refusedBy(object: Fields, otherwise: string, domain?: string): AcmeError {
  const error = problemError(object.error as Fields | undefined) ?? new AcmeError(otherwise);
  return domain === undefined ? error : new AcmeError(`${domain}: ${error.message}`, error);
}

function objectOf({ text }: AcmeResponse): Fields {
  const object = parseObject(text);
  if (object === undefined) throw new AcmeError('its answer is no JSON object');
  return object;
}

function addressIn(object: Fields, name: string): string {
  const value = object[name];
  if (typeof value !== 'string' || !value.startsWith('https://'))
    throw new AcmeError(`its answer has no address of ${name}`);
  return value;
}

function locationOf({ headers }: AcmeResponse): string {
  if (headers.location === undefined) throw new AcmeError('its answer has no Location');
  return headers.location;
}

function stringsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}
