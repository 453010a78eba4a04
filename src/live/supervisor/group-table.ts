// The groups of the generation that serves, and their comparisons with the groups that a load found.
import { readdirSync } from 'node:fs';
import { attempt } from '../../base/failure.ts';
import { SERVICE } from '../../base/group-name.ts';
import type { GroupLoad } from '../load/group-load.ts';
import { allowsFolders, listControllers } from '../load/naming.ts';

/** The outcome of loading each group, by the name of the group. Groups that did not load are included. */
export type Groups = ReadonlyMap<string, GroupLoad>;

export interface ServingGeneration {
  /** The number of the generation, or 0 when no generation serves yet. */
  readonly generation: number;
  readonly groups: Map<string, GroupLoad>;
  readonly since: Date | undefined;
}

export class GroupTable {
  current: ServingGeneration = { generation: 0, groups: new Map(), since: undefined };
  /** The number of the newest generation whose load has begun. */
  newest = 0;
  /** Whether a generation has served in which every group had loaded. */
  wasComplete = false;
  readonly #served = new Set<string>();

  /** Returns the groups that have served, and do not any more because their files do not load. */
  lost(): GroupLoad[] {
    return [...this.current.groups.values()].filter(({ ok, group }) => !ok && this.#served.has(group));
  }

  /** Adds a new group of the generation that serves. A group that has answered keeps its good outcome. */
  addGroup(load: GroupLoad): void {
    const { groups } = this.current;
    if (groups.get(load.group)?.ok === true) return;
    groups.set(load.group, load);
    if (load.ok) this.#served.add(load.group);
  }

  /** Records that the newest generation serves these groups from now on. */
  replace(loads: readonly GroupLoad[]): void {
    for (const { ok, group } of loads) if (ok) this.#served.add(group);
    this.wasComplete ||= loads.every(({ ok }) => ok);
    const groups = new Map(loads.map((load) => [load.group, load]));
    this.current = { generation: this.newest, groups, since: new Date() };
  }
}

/** Returns the failed loads of groups that serve. */
export function findLostGroups(serving: Groups, loads: readonly GroupLoad[]): GroupLoad[] {
  return loads.filter(({ ok, group }) => !ok && serving.get(group)?.ok === true);
}

/**
 * Whether a group that had failed has loaded, and no group that serves has failed. A new group counts only where no
 * group serves: a balancer then sends no request, so nothing else would load the new file.
 */
export function hasMoreGroups(serving: Groups, loads: readonly GroupLoad[]): boolean {
  const isAnyServing = Array.from(serving.values()).some(({ ok, group }) => ok && group !== SERVICE);
  const isMore = ({ ok, group }: GroupLoad) =>
    ok && serving.get(group)?.ok !== true && (serving.has(group) || !isAnyServing);
  return findLostGroups(serving, loads).length === 0 && loads.some(isMore);
}

/** Returns the groups that serve and are not in `loads`, because the folder did not have them at that load. */
export function findUnseenGroups(serving: Groups, loads: readonly GroupLoad[]): GroupLoad[] {
  const loadedNames = new Set(loads.map(({ group }) => group));
  return Array.from(serving.values()).filter(({ group, ok }) => ok && !loadedNames.has(group));
}

/** @param loads the groups that one worker has loaded; its service file says whether subfolders hold groups */
export function isAnyInFolder(groups: readonly GroupLoad[], dir: string, loads: readonly GroupLoad[]): boolean {
  if (groups.length === 0) return false;
  const listing = listGroups(dir, allowsFolders(loads) ? undefined : []);
  return groups.some(({ group }) => listing.has(group));
}

export type Difference =
  /** A group that serves did not load. */
  | 'group-lost'
  /** A file has changed since the workers that serve imported it, so the replacement has imported other code. */
  | 'other-code'
  /** The workers that serve have a group that the replacement has not found: one that came or went meanwhile. */
  | 'group-missed';

/**
 * Compares the groups that a replacement has loaded with those that serve. `difference` is undefined when they are
 * equal. `groups` has the groups that the replacement lacks.
 *
 * @param isSameCode whether the replacement has read the files that serve, and they are still in the folder
 */
export function compareWithServing(
  serving: Groups,
  groups: readonly GroupLoad[],
  isSameCode: boolean,
): { readonly difference: Difference | undefined; readonly groups: readonly GroupLoad[] } {
  // A broken service file would answer every request with an error, also where no service file serves.
  const brokenService = groups.filter(({ ok, group }) => !ok && group === SERVICE && serving.get(group)?.ok !== false);
  const lostGroups = brokenService.length > 0 ? brokenService : findLostGroups(serving, groups);
  if (lostGroups.length > 0) return { difference: 'group-lost', groups: lostGroups };
  if (!isSameCode) return { difference: 'other-code', groups: [] };
  const unseenGroups = findUnseenGroups(serving, groups);
  return { difference: unseenGroups.length === 0 ? undefined : 'group-missed', groups: unseenGroups };
}

export function isReadable(dir: string): boolean {
  return attempt(() => readdirSync(dir), undefined) !== undefined;
}

/** Like `listControllers`, but returns an empty map if the folder cannot be read. */
export function listGroups(dir: string, folders?: readonly string[]): ReadonlyMap<string, string> {
  return attempt(() => listControllers(dir, folders), new Map<string, string>());
}
