// `gatefold new GROUP`: creates a controller to edit. It never changes an existing file.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeFailure, errorCode } from '../base/failure.ts';
import { plain, shortPlace } from '../base/ink.ts';
import { makeFolder } from '../base/make-folder.ts';
import { groupNameOf, pageOf } from '../base/page-name.ts';
import { typescriptSupport } from '../groups/module-loader.ts';
import { listControllers, parseFileName } from '../groups/naming.ts';
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
  settings: { controllersDir: dir, docs, basePath, mcp },
  io,
}: Call): Promise<Answer> {
  const group = parseGroup(page);
  const name = `${group}Controller.ts`;
  const path = join(dir, name);
  try {
    // The folder does not exist on first use.
    makeFolder(dir);
    const twin = listControllers(dir).get(group);
    if (twin !== undefined) throw new Refused(`Cannot make ${path}: ${twin} already serves that group`);
    writeFileSync(path, sourceOf(group, basePath), { flag: 'wx' });
  } catch (error) {
    if (error instanceof Refused) throw error;
    const reason = errorCode(error) === 'EEXIST' ? 'the file already exists' : describeFailure(error);
    throw new Refused(`Cannot make ${path}: ${reason}`);
  }
  const operations = ['GET', 'POST', 'GET {id}'].map((operation) => ({ name: operation }));
  const controller = { group, file: name, path, ok: true, operations, unexposed: [] };
  const rows = routesWith(docs, basePath, mcp);
  const routes = listRoutes([controller], rows);
  const shadowed = findShadowed([controller], rows).map(
    ({ verb, path: url, row }) => `  ${verb} ${url}  is taken by the explicit route to ${row.target}`,
  );
  const urls = routes.filter(({ kind, methods }) => kind === 'group' && methods !== 'any');
  const lines = urls.map(({ methods, path: url, operation }) => `  ${String(methods)} ${url}  ${operation}`);
  const hints =
    typescriptSupport() === 'none'
      ? ['This Node cannot load it as it is: run Node 22.18 or later, or install tsx beside gatefold.']
      : [];
  const packageType = readPackageType(path);
  // tsx ignores the package type.
  if (packageType?.type === 'commonjs' && typescriptSupport() !== 'tsx')
    hints.push(`It will not load, because ${whyCommonJs(packageType)}: ${whatToDo(packageType)}.`);
  return {
    json: {
      group,
      file: path,
      routes: urls.map(({ methods, path: url, operation }) => ({ methods, path: url, operation })),
    },
    text: [`Made ${plain(shortPlace(path, io.cwd))}`, ...lines, ...shadowed, ...hints].join('\n'),
  };
}

function parseGroup(page: string): string {
  const group = groupNameOf(page);
  if (group === undefined || group.includes('/') || parseFileName(`${group}Controller.ts`)?.group !== group) {
    throw new UsageError(`${JSON.stringify(page)} cannot name a group: a letter, then letters, digits, _ and -`);
  }
  const shorter = /^(.+)Controller$/.exec(group)?.[1];
  if (shorter !== undefined) throw new UsageError(`${page} is the name of a class: the group is ${pageOf(shorter)}`);
  return group;
}

/** Names that the source of a new controller has already. */
const TAKEN = new Set(['ControllerParams', 'HttpError', 'Int', 'Reply']);

function sourceOf(group: string, basePath: string): string {
  const page = pageOf(group);
  const url = `${basePath}/${page}`;
  // The name of a class must not have a dash.
  const word = group.replaceAll('-', '_');
  const type = TAKEN.has(word) ? `${word}Item` : word;
  return `// ${url}
import { type ControllerParams, HttpError, type Int, Reply } from 'gatefold';

interface New${type} {
  /** @minLength 1 */
  name: string;
}

interface ${type} extends New${type} {
  id: Int;
}

export default class ${word}Controller {
  /** GET ${url}?name=Ada */
  'GET'({ name }: { name?: string }): ${type}[] {
    return name === undefined ? [] : [{ id: 7, name }];
  }

  /** POST ${url} */
  'POST'({ name }: New${type}): Reply<201, ${type}> {
    return new Reply(201, { id: 7, name }, { Location: '${url}/7' });
  }

  /** GET ${url}/7 */
  'GET {id}'(_: unknown, { path: { id } }: ControllerParams<{ path: { id: Int } }>): ${type} {
    if (id !== 7) throw new HttpError(404, 'NOT_FOUND', 'There is none with this id');
    return { id, name: 'Ada' };
  }
}
`;
}
