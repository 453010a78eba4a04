// Keeps the key sets of providers in memory. A set is fetched when it is first needed, when its Cache-Control lifetime
// is over (its keys are stale), and when a token names an unknown key id (`kid`). While a provider does not answer,
// stale keys are used for a day. Anybody can make up kids, so they cause a fetch at most once in 30 s a provider.

import { describeError, type Log } from '../../base/log.ts';
import { isObject } from '../../base/values.ts';
import { isKeyAddress } from './addresses.ts';
import { type Fetch, fetchJson } from './fetch-json.ts';
import { type ProviderKey, parseKeySet, selectKey, type VerificationKey, type WantedKey } from './provider-keys.ts';
import type { Provider } from './provider-rows.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** All times are milliseconds. */
export const KEY_TIMES = {
  /** The lifetime of keys without a Cache-Control header. */
  fresh: 10 * MINUTE,
  /** A shorter lifetime in a Cache-Control header is raised to this one. */
  minFresh: 5 * MINUTE,
  /** A longer lifetime in a Cache-Control header is reduced to this one. */
  maxFresh: 24 * HOUR,
  /** How long stale keys are used when the provider sends no newer ones. */
  stale: 24 * HOUR,
  /** The pause between two fetches for an unknown kid, and after a failed fetch. */
  coolDown: 30_000,
  /** How long a discovered `jwks_uri` is used. */
  discovery: 24 * HOUR,
} as const;

/** A time in the past. A monotonic clock begins near 0, so 0 would not be in its past. */
const LONG_AGO = Number.NEGATIVE_INFINITY;

/** A provider's keys cannot be fetched, and none are in memory. The client did nothing wrong. */
export class KeysUnavailable extends Error {}

interface KeySet {
  keys: readonly ProviderKey[] | undefined;
  freshUntil: number;
  nextKidFetch: number;
  nextAttempt: number;
  /** The `jwks_uri` in the provider's discovery document, and the time until which this address is used. */
  discovered?: { readonly uri: string; readonly until: number } | undefined;
  /** The running fetch of this set. Never rejects. */
  pendingFetch?: Promise<void> | undefined;
}

export interface KeySetsOptions {
  readonly log: Log;
  readonly fetch?: Fetch;
  /** A monotonic clock in milliseconds. If a wall clock were set back, keys would be used for too long. */
  readonly clock?: () => number;
}

export type KeySets = ReturnType<typeof createKeySets>;

export function createKeySets(options: KeySetsOptions) {
  const { log, fetch = (url, init) => globalThis.fetch(url, init), clock: now = () => performance.now() } = options;
  const sets = new Map<string, KeySet>();
  /** The numbers of requests to providers, and of refreshes that failed, since the start. */
  const counters = { fetches: 0, failures: 0 };
  return { find, counters, retain };

  /** Returns the key that a token names; undefined when the provider lacks it, even after a refresh. */
  async function find(provider: Provider, wanted: WantedKey): Promise<VerificationKey | undefined> {
    const set = getKeySet(provider);
    const isStale = now() >= set.freshUntil;
    if (isStale) await refresh(provider, set);
    const key = selectKey(usableKeys(provider, set), wanted);
    if (key !== undefined) return key;
    // Either the provider has a new key, or the kid is made up. A new fetch shows which, but the set may just have been
    // fetched above. If a fetch is running for another request, `refresh` waits for that fetch.
    if (set.pendingFetch === undefined) {
      const mayFetch = !isStale && now() >= Math.max(set.nextKidFetch, set.nextAttempt);
      if (mayFetch || isStale) set.nextKidFetch = now() + KEY_TIMES.coolDown;
      if (!mayFetch) return undefined;
    }
    await refresh(provider, set);
    return selectKey(usableKeys(provider, set), wanted);
  }

  function getKeySet(provider: Provider): KeySet {
    const id = cacheKey(provider);
    const newSet: KeySet = { keys: undefined, freshUntil: LONG_AGO, nextKidFetch: LONG_AGO, nextAttempt: LONG_AGO };
    const set = sets.get(id) ?? newSet;
    sets.set(id, set);
    return set;
  }

  /** Returns the keys, unless they are too old. @throws KeysUnavailable */
  function usableKeys(provider: Provider, set: KeySet): readonly ProviderKey[] {
    if (set.keys === undefined || now() >= set.freshUntil + KEY_TIMES.stale)
      throw new KeysUnavailable(`Cannot verify tokens of ${provider.name}: its keys are temporarily unavailable`);
    return set.keys;
  }

  /** Fetches the keys, or waits for the running fetch. Does nothing in the pause after a failed fetch. */
  async function refresh(provider: Provider, set: KeySet): Promise<void> {
    if (set.pendingFetch === undefined) {
      if (now() < set.nextAttempt) return;
      set.pendingFetch = fetchKeys(provider, set).finally(() => {
        set.pendingFetch = undefined;
      });
    }
    await set.pendingFetch;
  }

  async function fetchKeys(provider: Provider, set: KeySet): Promise<void> {
    try {
      const uri = provider.jwksUri ?? (await discover(provider, set));
      const { value, maxAge } = await fetchDocument(uri);
      const keys = parseKeySet(value);
      for (const key of keys)
        if ('whyUnusable' in key)
          log.debug('identity-key-unusable', { provider: provider.name, reason: key.whyUnusable });
      // A provider may send an empty set during its deployment. The error keeps the old keys in memory.
      if (!keys.some((key) => 'key' in key)) throw new Error('the key set has no usable key');
      set.keys = keys;
      set.freshUntil = now() + freshTime(maxAge);
      log.debug('identity-keys-loaded', { provider: provider.name, keys: keys.length });
    } catch (error) {
      counters.failures++;
      set.nextAttempt = now() + KEY_TIMES.coolDown;
      set.discovered = undefined; // The address may have changed.
      const { stack: _, ...facts } = describeError(error);
      const keptKeys = { serving_kept_keys: set.keys !== undefined };
      log.warn('identity-keys-unavailable', { provider: provider.name, ...facts, ...keptKeys });
    }
  }

  /** Reads the `jwks_uri` from the provider's discovery document (OpenID Connect Discovery 1.0 section 4). */
  async function discover(provider: Provider, set: KeySet): Promise<string> {
    if (set.discovered !== undefined && now() < set.discovered.until) return set.discovered.uri;
    const { value } = await fetchDocument(`${provider.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
    const { issuer, jwks_uri: uri } = isObject(value) ? value : {};
    if (issuer !== provider.issuer) throw new Error('the discovery document names another issuer');
    if (!isKeyAddress(uri, provider.issuer))
      throw new Error('the jwks_uri of the discovery document is not an https address');
    set.discovered = { uri, until: now() + KEY_TIMES.discovery };
    return uri;
  }

  function fetchDocument(url: string) {
    counters.fetches++;
    return fetchJson(fetch, url);
  }

  function retain(providers: readonly Provider[]): void {
    const keptIds = new Set(providers.map(cacheKey));
    for (const id of sets.keys()) if (!keptIds.has(id)) sets.delete(id);
  }
}

/** Returns the key of a set in the Map. The `jwks_uri` is part of the key, so a new address gets a new set. */
function cacheKey({ issuer, jwksUri }: Provider): string {
  return JSON.stringify([issuer, jwksUri]);
}

/** Returns for how many milliseconds keys are fresh. @param maxAge seconds */
function freshTime(maxAge: number | undefined): number {
  if (maxAge === undefined) return KEY_TIMES.fresh;
  return Math.min(Math.max(maxAge * 1000, KEY_TIMES.minFresh), KEY_TIMES.maxFresh);
}
