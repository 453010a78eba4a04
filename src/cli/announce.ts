// What `npm run dev` says on a terminal: the list of what answers when it begins to serve, and at every change what
// came and went. The groups are told by the supervisor, the URLs are those of `gatefold routes`.
import { join } from 'node:path';
import { alignColumns, type Ink, shortPlace } from '../base/ink.ts';
import { methodOf } from '../base/route-name.ts';
import type { GroupLoad } from '../groups/registry.ts';
import { type ListedRoute, listRoutes, verbsOf } from './routes.ts';

export interface Announcer {
  /** The groups that serve from now on, with the operations of each. */
  groups(loads: Iterable<GroupLoad>): void;
  /** Requests are answered at this URL. */
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
}

export function createAnnouncer({ dir, cwd, ink, write, hasDocs }: AnnouncerOptions): Announcer {
  let known = new Map<string, ListedRoute>();
  let isOpen = false;

  function show(routes: readonly ListedRoute[], mark: (verbs: string) => string): string[] {
    const rows = alignColumns(
      routes.map((route) => [
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
      const now = new Map(routesOf(loads, dir).map((route) => [`${verbsOf(route)} ${route.path}`, route]));
      const came = [...now].filter(([key]) => !known.has(key)).map(([, route]) => route);
      const went = [...known].filter(([key]) => !now.has(key)).map(([, route]) => route);
      known = now;
      if (isOpen)
        write(
          [...show(came, (verbs) => ink.green(`+ ${verbs}`)), ...show(went, (verbs) => ink.red(`- ${verbs}`))].join(''),
        );
    },
    opened(url) {
      isOpen = true;
      const list = show([...known.values()], ink.green);
      const none = `  ${ink.yellow('Nothing answers yet:')} npx gatefold new hello makes a controller in ${shortPlace(dir, cwd)}\n`;
      const docs = hasDocs ? `\n  ${ink.dim('Documents')}  ${url}/api/docs\n` : '';
      write(`\n${list.length === 0 ? none : list.join('')}${docs}\n`);
    },
  };
}

/** What a group answers; a verb's operation is not listed once more by its name. */
function routesOf(loads: Iterable<GroupLoad>, dir: string): ListedRoute[] {
  const groups = Array.from(loads, (load) => ({
    ...load,
    path: join(dir, load.file),
    operations: (load.operationNames ?? []).map((name) => ({ name })),
    unexposed: [],
  }));
  return listRoutes(groups).filter(
    ({ kind, methods, operation }) => kind === 'group' && !(methods === 'any' && methodOf(operation) !== undefined),
  );
}
