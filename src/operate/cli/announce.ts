// Prints the routes of `npm run dev` on a terminal: all at the start, and those that each change has added or removed.
import { join } from 'node:path';
import { alignColumns, type Ink, shortPlace } from '../../base/ink.ts';
import { methodOf } from '../../base/route-name.ts';
import type { Settings } from '../../base/settings.ts';
import type { GroupLoad } from '../../live/load/group-load.ts';
import { routeTable } from '../../request/routes.ts';
import { type ListedRoute, listRoutes, verbsOf } from './routes.ts';

export type Announcer = ReturnType<typeof createAnnouncer>;

export interface AnnouncerOptions {
  readonly settings: Pick<Settings, 'controllersDir' | 'docs' | 'basePath' | 'mcp'>;
  readonly cwd: string;
  readonly ink: Ink;
  readonly write: (text: string) => void;
}

export function createAnnouncer({ settings, cwd, ink, write }: AnnouncerOptions) {
  const { controllersDir, docs, basePath } = settings;
  /** Key: the methods and the path, such as `GET,HEAD /api/user`. */
  let routes = new Map<string, ListedRoute>();
  let hasShownAll = false;

  function formatRoutes(shownRoutes: readonly ListedRoute[], formatVerbs: (verbs: string) => string): string[] {
    const rows = shownRoutes.map((route) => {
      return [verbsOf(route), route.path, route.operation, shortPlace(route.file as string, cwd)];
    });
    return alignColumns(rows).map(([verbs = '', path = '', operation = '', file = '']) => {
      return `  ${formatVerbs(verbs)}  ${ink.bold(path)}  ${operation}  ${ink.dim(file)}\n`;
    });
  }

  return {
    /** Called with all groups that serve from now on. Prints the added and removed routes, but not before `showAll`. */
    showChanges(loadedGroups: Iterable<GroupLoad>): void {
      const oldRoutes = routes;
      routes = new Map(routesOf(loadedGroups, settings).map((route) => [`${verbsOf(route)} ${route.path}`, route]));
      if (!hasShownAll) return;
      const addedRoutes = [...routes].filter(([key]) => !oldRoutes.has(key)).map(([, route]) => route);
      const removedRoutes = [...oldRoutes].filter(([key]) => !routes.has(key)).map(([, route]) => route);
      const addedLines = formatRoutes(addedRoutes, (verbs) => ink.green(`+ ${verbs}`));
      const removedLines = formatRoutes(removedRoutes, (verbs) => ink.red(`- ${verbs}`));
      write([...addedLines, ...removedLines].join(''));
    },
    showAll(url: string): void {
      hasShownAll = true;
      const lines = formatRoutes([...routes.values()], ink.green);
      const advice = `  ${ink.yellow('Nothing answers yet:')} npx gatefold new hello makes a controller in ${shortPlace(controllersDir, cwd)}\n`;
      const docsLine = docs === 'off' ? '' : `\n  ${ink.dim('Documents')}  ${url}${basePath}/docs\n`;
      write(`\n${lines.length === 0 ? advice : lines.join('')}${docsLine}\n`);
    },
  };
}

/** Lists the routes of groups. Leaves out `any /api/user/created`, because `POST /api/user` calls that operation. */
function routesOf(loadedGroups: Iterable<GroupLoad>, settings: AnnouncerOptions['settings']): ListedRoute[] {
  const { controllersDir, docs, basePath, mcp } = settings;
  const groups = Array.from(loadedGroups, (group) => ({
    ...group,
    path: join(controllersDir, group.file),
    // A file that does not load has no names of operations.
    operations: (group.operationNames ?? []).map((name) => ({ name })),
  }));
  return listRoutes(groups, routeTable(docs, basePath, mcp)).filter(
    ({ kind, methods, operation }) => kind === 'group' && !(methods === 'any' && methodOf(operation) !== undefined),
  );
}
