// Prints the routes of `npm run dev` on a terminal: all routes at the start, and after each change only the added and
// the removed ones. The supervisor passes the groups (a group is the operations of one controller).
import { join } from 'node:path';
import { alignColumns, type Ink, shortPlace } from '../base/ink.ts';
import { methodOf } from '../base/route-name.ts';
import type { GroupLoad } from '../groups/group-load.ts';
import { routeTable } from '../http/routes.ts';
import { type ListedRoute, listRoutes, verbsOf } from './routes.ts';

export interface Announcer {
  /** Called with all groups that serve from now on. After `announceService`, prints the added and removed routes. */
  updateGroups(loadedGroups: Iterable<GroupLoad>): void;
  /** Called when the service answers at the URL. Prints all routes. */
  announceService(url: string): void;
}

export interface AnnouncerOptions {
  readonly controllersDir: string;
  /** The folder that printed paths are relative to. */
  readonly cwd: string;
  /** The colours of the terminal. */
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

  function formatRoutes(shown: readonly ListedRoute[], formatVerbs: (verbs: string) => string): string[] {
    const rows = shown.map((route) => {
      const file = route.file === undefined ? '' : shortPlace(route.file, cwd);
      return [verbsOf(route), route.path, route.operation, file];
    });
    return alignColumns(rows).map(([verbs = '', path = '', operation = '', file = '']) => {
      return `  ${formatVerbs(verbs)}  ${ink.bold(path)}  ${operation}  ${ink.dim(file)}\n`;
    });
  }

  return {
    updateGroups(loadedGroups) {
      const oldRoutes = routes;
      const listed = routesOf(loadedGroups, controllersDir, basePath);
      routes = new Map(listed.map((route) => [`${verbsOf(route)} ${route.path}`, route]));
      if (!isAnnounced) return;
      const added = [...routes].filter(([key]) => !oldRoutes.has(key)).map(([, route]) => route);
      const removed = [...oldRoutes].filter(([key]) => !routes.has(key)).map(([, route]) => route);
      const addedLines = formatRoutes(added, (verbs) => ink.green(`+ ${verbs}`));
      const removedLines = formatRoutes(removed, (verbs) => ink.red(`- ${verbs}`));
      write([...addedLines, ...removedLines].join(''));
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

/** Lists the routes of groups. `POST /user` and `/user/created` call one operation: only the first is listed. */
function routesOf(loadedGroups: Iterable<GroupLoad>, controllersDir: string, basePath: string): ListedRoute[] {
  const groups = Array.from(loadedGroups, (load) => ({
    ...load,
    path: join(controllersDir, load.file),
    operations: (load.operationNames ?? []).map((name) => ({ name })),
    unexposed: [],
  }));
  return listRoutes(groups, routeTable('on', basePath)).filter(
    ({ kind, methods, operation }) => kind === 'group' && !(methods === 'any' && methodOf(operation) !== undefined),
  );
}
