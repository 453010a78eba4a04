// Prints the routes of `npm run dev` on a terminal: all routes at the start, and after each change only the added and
// the removed ones. The supervisor passes the groups (a group is the operations of one controller). The URLs are the
// same as in the list of `gatefold routes`.
import { join } from 'node:path';
import { alignColumns, type Ink, shortPlace } from '../base/ink.ts';
import { methodOf } from '../base/route-name.ts';
import type { GroupLoad } from '../groups/group-load.ts';
import { routesWith } from '../http/routes.ts';
import { type ListedRoute, listRoutes, verbsOf } from './routes.ts';

export interface Announcer {
  /**
   * Called with the groups that serve from now on, and their operations. Once `announceService` was called, prints the
   * routes that were added or removed.
   */
  updateGroups(loadedGroups: Iterable<GroupLoad>): void;
  /** Called when the service answers at the URL. Prints all routes. */
  announceService(url: string): void;
}

export interface AnnouncerOptions {
  /** The folder that contains the controllers. */
  readonly controllersDir: string;
  readonly cwd: string;
  readonly ink: Ink;
  /** Prints whole lines, with their line feeds. */
  readonly write: (text: string) => void;
  /** Whether the service serves its documentation at `/docs`. */
  readonly hasDocs: boolean;
  readonly basePath: string;
}

export function createAnnouncer({ controllersDir, cwd, ink, write, hasDocs, basePath }: AnnouncerOptions): Announcer {
  let routes = new Map<string, ListedRoute>();
  let isAnnounced = false;

  function formatRoutes(shown: readonly ListedRoute[], mark: (verbs: string) => string): string[] {
    const rows = alignColumns(
      shown.map((route) => [
        verbsOf(route),
        route.path,
        route.operation,
        route.file === undefined ? '' : shortPlace(route.file, cwd),
      ]),
    );
    return rows.map(
      ([verbs = '', path = '', operation = '', file = '']) =>
        `  ${mark(verbs)}  ${ink.bold(path)}  ${operation}  ${ink.dim(file)}\n`,
    );
  }

  return {
    updateGroups(loadedGroups) {
      const newRoutes = new Map(
        routesOf(loadedGroups, controllersDir, basePath).map((route) => [`${verbsOf(route)} ${route.path}`, route]),
      );
      const added = [...newRoutes].filter(([key]) => !routes.has(key)).map(([, route]) => route);
      const removed = [...routes].filter(([key]) => !newRoutes.has(key)).map(([, route]) => route);
      routes = newRoutes;
      if (!isAnnounced) return;
      const lines = [
        ...formatRoutes(added, (verbs) => ink.green(`+ ${verbs}`)),
        ...formatRoutes(removed, (verbs) => ink.red(`- ${verbs}`)),
      ];
      write(lines.join(''));
    },
    announceService(url) {
      isAnnounced = true;
      const list = formatRoutes([...routes.values()], ink.green);
      const advice = `  ${ink.yellow('Nothing answers yet:')} npx gatefold new hello makes a controller in ${shortPlace(controllersDir, cwd)}\n`;
      const docs = hasDocs ? `\n  ${ink.dim('Documents')}  ${url}${basePath}/docs\n` : '';
      write(`\n${list.length === 0 ? advice : list.join('')}${docs}\n`);
    },
  };
}

/**
 * Lists the routes of groups. An operation such as `created` answers `POST /user` and also `/user/created`. Only the
 * route with the verb is listed.
 */
function routesOf(loadedGroups: Iterable<GroupLoad>, controllersDir: string, basePath: string): ListedRoute[] {
  const groups = Array.from(loadedGroups, (load) => ({
    ...load,
    path: join(controllersDir, load.file),
    operations: (load.operationNames ?? []).map((name) => ({ name })),
    unexposed: [],
  }));
  return listRoutes(groups, routesWith('on', basePath)).filter(
    ({ kind, methods, operation }) => kind === 'group' && !(methods === 'any' && methodOf(operation) !== undefined),
  );
}
