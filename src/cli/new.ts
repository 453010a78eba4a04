// `gatefold new GROUP`: writes a controller to start from. It creates one new file, or none.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeFailure, errorCode } from '../base/failure.ts';
import { plain, shortPlace } from '../base/ink.ts';
import { makeFolder } from '../base/make-folder.ts';
import { pageOf } from '../base/page-name.ts';
import { typescriptSupport } from '../groups/module-loader.ts';
import { groupNameOf, listControllers, parseFileName } from '../groups/naming.ts';
import { readPackageType, whatToDo, whyCommonJs } from '../groups/package-type.ts';
import { routesWith } from '../http/routes.ts';
import { type Answer, type Call, type Command, Refused, UsageError } from './command.ts';
import { findShadowed, listRoutes } from './routes.ts';

export const command: Command = {
  name: 'new',
  usage: 'GROUP',
  about: 'Make a controller to edit: gatefold new user makes UserController.ts, which answers /api/user',
  help: [],
  options: {},
  operands: ['GROUP'],
  run,
};

async function run({
  operands: [page = ''],
  settings: { controllersDir: dir, docs, basePath },
  io,
}: Call): Promise<Answer> {
  const group = parseGroup(page);
  const name = `${group}Controller.ts`;
  const path = join(dir, name);
  try {
    // Whoever sets out has no folder yet.
    makeFolder(dir);
    const twin = listControllers(dir).get(group);
    if (twin !== undefined) throw new Refused(`Cannot make ${path}: ${twin} serves that group already`);
    writeFileSync(path, sourceOf(group, basePath), { flag: 'wx' });
  } catch (error) {
    if (error instanceof Refused) throw error;
    const reason = errorCode(error) === 'EEXIST' ? 'there is one already' : describeFailure(error);
    throw new Refused(`Cannot make ${path}: ${reason}`);
  }
  const operations = ['GET', 'POST', 'GET {id}'].map((operation) => ({ name: operation }));
  const made = { group, file: name, path, ok: true, operations, unexposed: [] };
  const rows = routesWith(docs, basePath);
  const routes = listRoutes([made], rows);
  const shadowed = findShadowed([made], rows).map(
    ({ verb, path: url, row }) => `  ${verb} ${url}  is taken by the explicit route to ${row.target}`,
  );
  const urls = routes.filter(({ kind, methods }) => kind === 'group' && methods !== 'any');
  const lines = urls.map(({ methods, path: url, operation }) => `  ${String(methods)} ${url}  ${operation}`);
  const hint =
    typescriptSupport() === 'none'
      ? ['This Node cannot load it as it is: run Node 22.18 or later, or install tsx beside gatefold.']
      : [];
  const found = readPackageType(path);
  // tsx takes no notice of it.
  if (found?.type === 'commonjs' && typescriptSupport() !== 'tsx')
    hint.push(`It will not load, because ${whyCommonJs(found)}: ${whatToDo(found)}.`);
  return {
    json: {
      group,
      file: path,
      routes: urls.map(({ methods, path: url, operation }) => ({ methods, path: url, operation })),
    },
    text: [`Made ${plain(shortPlace(path, io.cwd))}`, ...lines, ...shadowed, ...hint].join('\n'),
  };
}

function parseGroup(page: string): string {
  const group = groupNameOf(page);
  if (group === undefined || parseFileName(`${group}Controller.ts`)?.group !== group) {
    throw new UsageError(`${JSON.stringify(page)} cannot name a group: a letter, then letters, digits, _ and -`);
  }
  const shorter = /^(.+)Controller$/.exec(group)?.[1];
  if (shorter !== undefined) throw new UsageError(`${page} is the name of a class: the group is ${pageOf(shorter)}`);
  return group;
}

function sourceOf(group: string, basePath: string): string {
  const page = pageOf(group);
  // A class name takes no dash.
  const className = `${group.replaceAll('-', '_')}Controller`;
  return `// The handler group at ${basePath}/${page}. Private methods are no operations.
import type { ControllerParams } from 'gatefold';

export default class ${className} {
  /** GET ${basePath}/${page} */
  'GET'(data: unknown, params: ControllerParams) {
    return { status: 'success', message: 'The group ${page} answers', query: params.query, data };
  }

  /** POST ${basePath}/${page} */
  'POST'(data: unknown) {
    return { status: 'success', message: 'Created', data };
  }

  /** GET ${basePath}/${page}/7 */
  'GET {id}'(_: unknown, { path }: ControllerParams) {
    return { status: 'success', message: 'One of the group ${page}', id: path.id };
  }
}
`;
}
