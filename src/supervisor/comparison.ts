// What was loaded, held against what serves: which groups would be lost, gained or missing. It decides nothing.

import type { GroupLoad } from '../worker/messages.ts';
import { list } from './generation.ts';

/** By group name, those that did not load included. */
export type Groups = ReadonlyMap<string, GroupLoad>;

/** Groups that serve, and did not load. */
export function lossesOf(serving: Groups, loaded: readonly GroupLoad[]): GroupLoad[] {
  return loaded.filter(({ ok, group }) => !ok && serving.get(group)?.ok === true);
}

/** A group that did not load does, and none is lost. */
export function isGain(serving: Groups, loaded: readonly GroupLoad[]): boolean {
  return lossesOf(serving, loaded).length === 0 && loaded.some(({ ok, group }) => ok && serving.get(group)?.ok === false);
}

/** Groups that serve, and were not seen by those who loaded the folder. */
export function unseenOf(serving: Groups, loaded: readonly GroupLoad[]): GroupLoad[] {
  const seen = new Set(loaded.map(({ group }) => group));
  return Array.from(serving.values()).filter(({ group, ok }) => ok && !seen.has(group));
}

/** Whether one of these groups is in the folder all the same: it came while that was being loaded. */
export function isThereNow(unseen: readonly GroupLoad[], dir: string): boolean {
  if (unseen.length === 0) return false;
  const listing = list(dir);
  return unseen.some(({ group }) => listing.has(group));
}
