// Prints the routes of `npm run dev` on a terminal: all of them at the start, and at each change those that were added
// or removed. The supervisor passes the groups, and the URLs are those of `gatefold routes`.
import { join } from 'node:path';
import { alignColumns, type Ink, shortPlace } from '../base/ink.ts';
import { methodOf } from '../base/route-name.ts';
import type { GroupLoad } from '../groups/registry.ts';
import { routesWith } from '../http/routes.ts';
import { type ListedRoute, listRoutes, verbsOf } from './routes.ts';

export interface Announcer {
  /** Takes the groups that serve from now on, with the operations of each. */
  groups(loads: Iterable<GroupLoad>): void;
  /** Takes the URL of the service, which answers from now on. */
  opened(url: string): void;
}

export interface AnnouncerOptions {
  readonly dir: string;
  readonly cwd: string;
  readonly ink: Ink;
  /** Takes a text with its line feed. */
  readonly write: (text: string) => void;
  /** The page of documents is served. */
  readonly hasDocs: boolean;
  readonly basePath: string;
}

export function createAnnouncer({ dir, cwd, ink, write, hasDocs, basePath }: AnnouncerOptions): Announcer {
  let routes = new Map<string, ListedRoute>();
  let isOpen = false;

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
    groups(loads) {
      const next = new Map(routesOf(loads, dir, basePath).map((route) => [`${verbsOf(route)} ${route.path}`, route]));
      const added = [...next].filter(([key]) => !routes.has(key)).map(([, route]) => route);
      const removed = [...routes].filter(([key]) => !next.has(key)).map(([, route]) => route);
      routes = next;
      if (!isOpen) return;
      const lines = [
        ...formatRoutes(added, (verbs) => ink.green(`+ ${verbs}`)),
        ...formatRoutes(removed, (verbs) => ink.red(`- ${verbs}`)),
      ];
      write(lines.join(''));
    },
    opened(url) {
      isOpen = true;
      const list = formatRoutes([...routes.values()], ink.green);
      const advice = `  ${ink.yellow('Nothing answers yet:')} npx gatefold new hello makes a controller in ${shortPlace(dir, cwd)}\n`;
      const docs = hasDocs ? `\n  ${ink.dim('Documents')}  ${url}${basePath}/docs\n` : '';
      write(`\n${list.length === 0 ? advice : list.join('')}${docs}\n`);
    },
  };
}

/** Lists the routes of groups. An operation that a verb chooses is not listed a second time under its name. */
function routesOf(loads: Iterable<GroupLoad>, dir: string, basePath: string): ListedRoute[] {
  const groups = Array.from(loads, (load) => ({
    ...load,
    path: join(dir, load.file),
    operations: (load.operationNames ?? []).map((name) => ({ name })),
    unexposed: [],
  }));
  return listRoutes(groups, routesWith('on', basePath)).filter(
    ({ kind, methods, operation }) => kind === 'group' && !(methods === 'any' && methodOf(operation) !== undefined),
  );
}
