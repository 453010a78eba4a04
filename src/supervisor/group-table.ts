// Which groups the generation that serves has, and the one that is about to; and what was loaded, held against what
// serves. It decides nothing. A group that workers import while they serve is noted here, whichever generation they are
// of.

import type { LoadedFile } from '../groups/module-loader.ts';
import { listControllers } from '../groups/naming.ts';
import type { GroupLoad } from '../groups/registry.ts';

/** By group name, those that did not load included. */
export type Groups = ReadonlyMap<string, GroupLoad>;

/** The generation that serves. */
export interface Serving {
  /** 0: none. */
  readonly number: number;
  readonly groups: Groups;
  readonly since: Date | undefined;
}

export interface GroupTable {
  readonly current: Serving;
  /** A worker of this generation, which is not an older one, has imported a group in place. */
  note(generation: number, load: GroupLoad): void;
  /** A generation is being loaded; what its workers import in place before it is announced is in no report. */
  begin(): void;
  /** They have done so: their reports do not tell all. */
  hasMissedOne(): boolean;
  /** A generation with these groups is being put to work. */
  announce(groups: readonly GroupLoad[]): void;
  /** It serves; or not. */
  conclude(number: number, isServing: boolean): void;
}

/** @param isPending whether some worker has not yet said how it fared with a new group */
export function createGroupTable(isPending: (group: string) => boolean): GroupTable {
  let serving = new Map<string, GroupLoad>();
  let current: Serving = { number: 0, groups: serving, since: undefined };
  let coming: Map<string, GroupLoad> | undefined;
  let hasMissedOne = false;

  return {
    get current() {
      return current;
    },
    note(generation, load) {
      // What the generation to come cannot import is no matter of the one that serves.
      if (load.ok || generation === current.number) add(serving, load);
      if (coming !== undefined) add(coming, load);
      else if (generation > current.number) hasMissedOne = true;
    },
    begin() {
      hasMissedOne = false;
    },
    hasMissedOne: () => hasMissedOne,
    announce(groups) {
      coming = new Map(groups.map((load) => [load.group, load]));
    },
    conclude(number, isServing) {
      if (isServing && coming !== undefined) {
        serving = coming;
        current = { number, groups: serving, since: new Date() };
      }
      coming = undefined;
    },
  };

  /**
   * One that has answered somewhere stays a group that serves; one that has not, and that some worker cannot import, is
   * none.
   */
  function add(groups: Map<string, GroupLoad>, load: GroupLoad): void {
    if (groups.get(load.group)?.ok === true && (load.ok || !isPending(load.group))) return;
    groups.set(load.group, load);
  }
}

/** Groups that serve, and did not load. */
export function lossesOf(serving: Groups, loaded: readonly GroupLoad[]): GroupLoad[] {
  return loaded.filter(({ ok, group }) => !ok && serving.get(group)?.ok === true);
}

/** A group that did not load does, and none is lost. */
export function isGain(serving: Groups, loaded: readonly GroupLoad[]): boolean {
  return (
    lossesOf(serving, loaded).length === 0 && loaded.some(({ ok, group }) => ok && serving.get(group)?.ok === false)
  );
}

/** Groups that serve, and were not seen by those who loaded the folder. */
export function unseenOf(serving: Groups, loaded: readonly GroupLoad[]): GroupLoad[] {
  const seen = new Set(loaded.map(({ group }) => group));
  return Array.from(serving.values()).filter(({ group, ok }) => ok && !seen.has(group));
}

/** Whether one of these groups is in the folder all the same: it came while that was being loaded. */
export function isThereNow(unseen: readonly GroupLoad[], dir: string): boolean {
  if (unseen.length === 0) return false;
  const listing = listGroups(dir);
  return unseen.some(({ group }) => listing.has(group));
}

/**
 * How a worker that is to take the place of another compares with those that serve: only an equal may.
 *
 * @param agrees whether the files that it read are those that serve
 */
export function compareReplacement(
  serving: Groups,
  { groups, files }: { readonly groups: readonly GroupLoad[]; readonly files: readonly LoadedFile[] },
  agrees: (files: readonly LoadedFile[]) => boolean,
): { readonly verdict: 'equal' | 'lossy' | 'other code' | 'incomplete'; readonly lacking: readonly GroupLoad[] } {
  const lost = lossesOf(serving, groups);
  if (lost.length > 0) return { verdict: 'lossy', lacking: lost };
  if (!agrees(files)) return { verdict: 'other code', lacking: [] };
  const unseen = unseenOf(serving, groups);
  return { verdict: unseen.length === 0 ? 'equal' : 'incomplete', lacking: unseen };
}

/** Group name → file name. */
export function listGroups(dir: string): ReadonlyMap<string, string> {
  try {
    return listControllers(dir);
  } catch {
    // The folder is away; that no group is left is judged by who asked.
    return new Map();
  }
}
