// `gatefold routes`: every URL that answers, with the file and line of its operation, explicit rows first.
import { type Answer, type Call, type Command, type CommandIo, type ExitCode, runCommand } from './command.ts';
import { alignColumns, shortPlace } from './ink.ts';
import { inspectFolder, type LoadedGroup } from './inspection.ts';
import { type ListedRoute, listRoutes } from './route-list.ts';

const ROUTES: Command = {
  name: 'routes',
  usage: '',
  about: 'List every URL that answers, with file and line of its operation, explicit rows first',
  help: [],
  options: {},
  operands: [],
  run: answer,
};

export function run(argv: readonly string[], io: CommandIo): Promise<ExitCode> {
  return runCommand(ROUTES, argv, io);
}

async function answer({ settings, io, ink }: Call): Promise<Answer> {
  const inspection = await inspectFolder(settings, io);
  const routes = listRoutes(inspection);
  const broken = inspection.groups.filter(({ ok }) => !ok);
  const rows = alignColumns(routes.map((route) => [verbsOf(route), route.path, route.operation, placeOf(route, io.cwd)]));
  const table = rows.map(([verbs = '', path = '', operation = '', place = ''], i) => {
    const paint = routes[i]?.kind === 'explicit' ? ink.yellow : ink.green;
    return [paint(verbs), ink.bold(path), operation, ink.dim(place)].join('  ').trimEnd();
  });
  return {
    json: {
      routes,
      not_loadable: broken.map(({ group, path, error, at }) => ({ group, file: path, error, ...(at === undefined ? {} : { at }) })),
    },
    text: table.join('\n'),
    exitCode: broken.length === 0 ? 0 : 1,
    complaints: broken.map((group) => `${brokenPlace(group, io.cwd)} does not load: ${group.error}`),
  };
}

function verbsOf({ methods, except, needsAuthorization }: ListedRoute): string {
  if (methods !== 'any') return methods.join(',') + (needsAuthorization ? ' (authorized)' : '');
  return except === undefined ? 'any' : `any but ${except.join(',')}`;
}

function placeOf({ file, line }: ListedRoute, cwd: string): string {
  return file === undefined ? '' : `${shortPlace(file, cwd)}${line === undefined ? '' : `:${line}`}`;
}

/** `file:line` of the mistake where it is known, else the file. */
export function brokenPlace({ at, path }: LoadedGroup, cwd: string): string {
  return shortPlace(at ?? path, cwd);
}
