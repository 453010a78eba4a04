// Which groups the generation that serves has, and the one that is about to. A group that workers import while they serve is
// noted here, whichever generation they are of.
import type { GroupLoad } from '../worker/messages.ts';
import type { Serving } from './status.ts';

export interface Roster {
  readonly current: Serving;
  /** A worker of this generation, which is not an older one, has imported a group in place. */
  note(generation: number, load: GroupLoad): void;
  /** A generation is being loaded; what it imports in place before it is announced is in no report. */
  expect(): void;
  /** A worker of the generation that is being loaded has imported more than it has reported. */
  isSurprised(): boolean;
  /** A generation with these groups is being put to work. */
  announce(groups: readonly GroupLoad[]): void;
  /** It serves; or not. */
  settle(number: number, isServing: boolean): void;
}

/** @param isPending whether some worker has not yet said how it fared with a new group */
export function createRoster(isPending: (group: string) => boolean): Roster {
  let current: Serving = { number: 0, groups: new Map(), since: undefined };
  let coming: Map<string, GroupLoad> | undefined;
  let isSurprised = false;

  return {
    get current() {
      return current;
    },
    note(generation, load) {
      // What the generation to come cannot import is no matter of the one that serves.
      if (load.ok || generation === current.number) add(current.groups, load);
      if (coming !== undefined) add(coming, load);
      else if (generation > current.number) isSurprised = true;
    },
    expect() {
      isSurprised = false;
    },
    isSurprised: () => isSurprised,
    announce(groups) {
      coming = new Map(groups.map((load) => [load.group, load]));
    },
    settle(number, isServing) {
      if (isServing && coming !== undefined) current = { number, groups: coming, since: new Date() };
      coming = undefined;
    },
  };

  /** One that has answered somewhere stays a group that serves; one that has not, and that some worker cannot import, is none. */
  function add(groups: Map<string, GroupLoad>, load: GroupLoad): void {
    if (groups.get(load.group)?.ok === true && (load.ok || !isPending(load.group))) return;
    groups.set(load.group, load);
  }
}
