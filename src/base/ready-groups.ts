// Decides whether enough groups load for a service that is ready. /readyz and the start ask it.
import type { Settings } from './settings.ts';

interface LoadedGroups {
  readonly notLoadable: readonly unknown[];
  readonly groups: {
    readonly loaded: number;
    /** The groups that have served, and do not load any more. */
    readonly lost: readonly unknown[];
    /** Whether all groups have loaded at some time. */
    readonly wasComplete: boolean;
  };
}

/**
 * Returns whether so many groups do not load that the service is not ready. With READY=all, a start needs every group,
 * and a service that was complete needs the groups that have served. So one bad new file never stops a whole fleet.
 */
export function lacksGroups({ notLoadable, groups }: LoadedGroups, ready: Settings['ready']): boolean {
  if (notLoadable.length === 0) return false;
  if (groups.loaded === 0) return true;
  return ready === 'all' && (groups.wasComplete ? groups.lost.length > 0 : true);
}
