// The providers' key sets in memory: fetched when first needed, kept as long as their Cache-Control says, fetched again
// for an unknown kid, served stale while a provider is away. A client that sends made-up kids causes neither fetches
// nor lost keys.
import { describeError, type Log } from '../base/log.ts';
import { isKeyAddress } from './addresses.ts';
import { type Fetch, fetchJson } from './fetch-json.ts';
import type { KeySource } from './id-token.ts';
import { parseKeySet, selectKey, type UnusableKey, type VerificationKey, type WantedKey } from './keys.ts';
import type { Provider } from './provider-rows.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** Milliseconds, all of them. */
export const KEY_TIMES = {
  fresh: 10 * MINUTE,
  minFresh: 5 * MINUTE,
  maxFresh: 24 * HOUR,
  /** After they have gone stale, and only while newer ones are unavailable. */
  stale: 24 * HOUR,
  /** Between two fetches for an unknown kid, and after a failure. */
  coolDown: 30_000,
  /** How long a discovered `jwks_uri` is believed. */
  discovery: 24 * HOUR,
} as const;

/** Before anything was fetched: the monotonic clock may begin at 0. */
const NEVER = Number.NEGATIVE_INFINITY;

/** A provider's keys are unavailable and none are kept: not the client's fault. */
export class KeysUnavailable extends Error {}

interface KeySet {
  keys: readonly (VerificationKey | UnusableKey)[] | undefined;
  freshUntil: number;
  /** No fetch for an unknown kid before this. */
  nextKidFetch: number;
  /** No fetch at all before this: the last one failed. */
  nextAttempt: number;
  discovered: { readonly uri: string; readonly until: number } | undefined;
  /** The fetch that is under way: one at a time. Never rejects. */
  pending: Promise<void> | undefined;
}

export interface KeySetsOptions {
  readonly log: Log;
  readonly fetch?: Fetch;
  /**
   * Monotonic milliseconds: a wall clock that is set back would hold a rotated key out, or an old one in, for as long.
   */
  readonly clock?: () => number;
}

export interface KeySets extends KeySource {
  /** Since the start: requests made to providers, and refreshes that brought no keys. */
  readonly counters: { readonly fetches: number; readonly failures: number };
  /** Drops the keys of providers that are configured no more. */
  retain(providers: readonly Provider[]): void;
}

export function createKeySets({
  log,
  fetch = (url, init) => globalThis.fetch(url, init),
  clock: now = () => performance.now(),
}: KeySetsOptions): KeySets {
  const sets = new Map<string, KeySet>();
  const counters = { fetches: 0, failures: 0 };
  return { find, counters, retain };

  async function find(provider: Provider, wanted: WantedKey): Promise<VerificationKey | undefined> {
    const set = keySetOf(provider);
    const isDue = now() >= set.freshUntil;
    if (isDue) await refresh(provider, set);
    const key = selectKey(usableKeys(provider, set), wanted);
    if (key !== undefined) return key;
    // A rotation, or a made-up kid: one question a cool-down can tell, and the fetch just made was that question.
    if (set.pending === undefined) {
      const mayAsk = !isDue && now() >= set.nextKidFetch;
      if (mayAsk || isDue) set.nextKidFetch = now() + KEY_TIMES.coolDown;
      if (!mayAsk) return undefined;
    }
    await refresh(provider, set);
    return selectKey(usableKeys(provider, set), wanted);
  }

  function keySetOf(provider: Provider): KeySet {
    const id = identify(provider);
    let set = sets.get(id);
    if (set === undefined) {
      set = {
        keys: undefined,
        freshUntil: NEVER,
        nextKidFetch: NEVER,
        nextAttempt: NEVER,
        discovered: undefined,
        pending: undefined,
      };
      sets.set(id, set);
    }
    return set;
  }

  function usableKeys(provider: Provider, set: KeySet): readonly (VerificationKey | UnusableKey)[] {
    if (set.keys === undefined || now() >= set.freshUntil + KEY_TIMES.stale) {
      throw new KeysUnavailable(`Cannot verify tokens of ${provider.name}: its keys are temporarily unavailable`);
    }
    return set.keys;
  }

  /** Settles when a fetch has ended, well or badly; at once while a failure cools down. */
  async function refresh(provider: Provider, set: KeySet): Promise<void> {
    if (set.pending === undefined) {
      if (now() < set.nextAttempt) return;
      set.pending = load(provider, set).finally(() => {
        set.pending = undefined;
      });
    }
    await set.pending;
  }

  async function load(provider: Provider, set: KeySet): Promise<void> {
    try {
      const uri = provider.jwksUri ?? (await discover(provider, set));
      const { value, maxAge } = await get(uri);
      const keys = parseKeySet(value);
      for (const key of keys)
        if ('unusable' in key) log.debug('identity-key-unusable', { provider: provider.name, reason: key.unusable });
      // Kept keys are worth more than a set with none, which is what half a deployment looks like.
      if (!keys.some((key) => 'key' in key)) throw new Error('the key set has no usable key');
      set.keys = keys;
      set.freshUntil = now() + freshFor(maxAge);
      log.debug('identity-keys-loaded', { provider: provider.name, keys: keys.length });
    } catch (error) {
      counters.failures++;
      set.nextAttempt = now() + KEY_TIMES.coolDown;
      set.discovered = undefined; // The address may be what has changed.
      const { stack: _, ...facts } = describeError(error);
      log.warn('identity-keys-unavailable', {
        provider: provider.name,
        ...facts,
        serving_kept_keys: set.keys !== undefined,
      });
    }
  }

  /** OpenID Connect Discovery 1.0 section 4: a document that names another issuer is not this provider's. */
  async function discover(provider: Provider, set: KeySet): Promise<string> {
    if (set.discovered !== undefined && now() < set.discovered.until) return set.discovered.uri;
    const { value } = await get(`${provider.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
    const document =
      typeof value === 'object' && value !== null ? (value as { issuer?: unknown; jwks_uri?: unknown }) : {};
    if (document.issuer !== provider.issuer) throw new Error('the discovery document names another issuer');
    const uri = document.jwks_uri;
    if (!isKeyAddress(uri, provider.issuer))
      throw new Error('the jwks_uri of the discovery document is not an https address');
    set.discovered = { uri, until: now() + KEY_TIMES.discovery };
    return uri;
  }

  function get(url: string) {
    counters.fetches++;
    return fetchJson(fetch, url);
  }

  function retain(providers: readonly Provider[]): void {
    const live = new Set(providers.map(identify));
    for (const id of sets.keys()) if (!live.has(id)) sets.delete(id);
  }
}

/** A row that is edited to other keys starts with none. */
function identify({ issuer, jwksUri }: Provider): string {
  return JSON.stringify([issuer, jwksUri]);
}

function freshFor(maxAge: number | undefined): number {
  if (maxAge === undefined) return KEY_TIMES.fresh;
  return Math.min(Math.max(maxAge * 1000, KEY_TIMES.minFresh), KEY_TIMES.maxFresh);
}
