// `gatefold new GROUP` creates a controller to edit. The command never changes an existing file.
import { existsSync, lstatSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describeFailure, errorCode } from '../../base/failure.ts';
import { groupNameOf, isRoot, SERVICE, urlNameOf } from '../../base/group-name.ts';
import { plain, shortPlace } from '../../base/ink.ts';
import { makeFolder } from '../../base/make-folder.ts';
import { readSourceOrEmpty } from '../../base/source-file.ts';
import { writeNewFile } from '../../base/whole-file.ts';
import { findTwin, listControllers, listFolders, parseFileName } from '../../live/load/naming.ts';
import { routeTable } from '../../request/routes.ts';
import { type Answer, type Command, type CommandCall, CommandError, UsageError } from './command.ts';
import { listRoutes } from './routes.ts';

export const command: Command = {
  name: 'new',
  about: 'Make a controller to edit: gatefold new user makes UserController.ts, which answers /api/user',
  operands: ['GROUP'],
  run,
};

async function run({ operands: [operand = ''], settings, io }: CommandCall): Promise<Answer> {
  const { controllersDir: dir, docs, basePath, mcp } = settings;
  const group = parseGroup(operand);
  const fileName = `${group}Controller.ts`;
  const path = join(dir, fileName);
  try {
    makeFolder(dir);
    const conflict = findConflict(group, dir);
    if (conflict !== undefined) throw new CommandError(`Cannot make ${path}: ${conflict}`);
    makeFolder(dirname(path));
    writeNewFile(path, sourceOf(group, basePath, serviceMentions('results', dir)), 0o666, false);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(`Cannot make ${path}: ${reasonOf(error, path)}`);
  }
  const operations = ['GET', 'POST', 'GET {id}'].map((operation) => ({ name: operation }));
  const controller = { group, file: fileName, path, ok: true, operations };
  const groupRoutes = listRoutes([controller], routeTable(docs, basePath, mcp))
    .filter(({ kind }) => kind === 'group')
    .map(({ methods, path: url, operation }) => ({ methods, path: url, operation }));
  const lines = groupRoutes.map(({ methods, path: url, operation }) => `  ${String(methods)} ${url}  ${operation}`);
  if (group.includes('/') && !serviceMentions('folders', dir))
    lines.push('It serves once the service file says so: export default defineService({ folders: true })');
  return {
    json: { group, file: path, routes: groupRoutes },
    text: [`Made ${plain(shortPlace(path, io.cwd))}`, ...lines].join('\n'),
  };
}

function parseGroup(operand: string): string {
  const group = groupNameOf(operand);
  if (group === undefined || isRoot(group) || parseFileName(`${group}Controller.ts`)?.group !== group)
    throw new UsageError(
      `${JSON.stringify(operand)} cannot name a group: a letter, then letters, digits, _ and -; a folder before it, as in v2/order, is in lower case`,
    );
  // The user may have given the name of a class, such as `UserController`.
  const groupOfClass = /^(.+)Controller$/.exec(group)?.[1];
  if (groupOfClass !== undefined)
    throw new UsageError(`${operand} is the name of a class: the group is ${urlNameOf(groupOfClass)}`);
  return group;
}

/** Returns why a file cannot be made. EEXIST can also mean that a file has the name of the folder. */
function reasonOf(error: unknown, path: string): string {
  if (errorCode(error) !== 'EEXIST') return describeFailure(error);
  return existsSync(path) ? 'the file already exists' : 'a part of the path is not a folder';
}

/** Returns why the new file would conflict with another controller; undefined when it would not. */
function findConflict(group: string, dir: string): string | undefined {
  const folder = group.includes('/') ? group.slice(0, group.indexOf('/')) : undefined;
  if (folder !== undefined && lstatSync(join(dir, folder), { throwIfNoEntry: false })?.isSymbolicLink())
    return `${folder} is a link, and the controllers in a linked folder do not serve`;
  const listing = listControllers(dir, listFolders(dir));
  const fileOfGroup = listing.get(group);
  if (fileOfGroup !== undefined) return `${fileOfGroup} already serves that group`;
  // The group `v2` and the folder `v2/` would both have the URLs below `/api/v2`.
  const fileOfFolder = folder && listing.get(groupNameOf(folder) ?? '');
  if (fileOfFolder) return `${fileOfFolder} serves the URLs of that folder`;
  const groupWithSameIds = findTwin(group, listing, () => true);
  return groupWithSameIds && `the operations of ${groupWithSameIds} have the same ids in the document`;
}

/** Returns whether the text of the service file has a word. The command runs no code of the project. */
function serviceMentions(word: string, dir: string): boolean {
  const file = listControllers(dir, []).get(SERVICE);
  return file !== undefined && readSourceOrEmpty(join(dir, file)).split(/\W+/).includes(word);
}

/** The names that the new file imports. The type in the file must have another name. */
const IMPORTED_NAMES = new Set(['ControllerParams', 'HttpError', 'Int', 'Reply']);

/** @param isLimited whether the service file has the setting `results`, so that the controller needs none */
function sourceOf(group: string, basePath: string, isLimited: boolean): string {
  const url = `${basePath}/${urlNameOf(group)}`;
  // The group `v2/Big-order` gets the class `Big_orderController`, because a class cannot have a slash or a dash.
  const className = group.slice(group.indexOf('/') + 1).replaceAll('-', '_');
  const type = IMPORTED_NAMES.has(className) ? `${className}Item` : className;
  return `// ${url}
import { type ControllerParams, HttpError, type Int, Reply } from 'gatefold';

interface New${type} {
  /** @minLength 1 */
  name: string;
}

interface ${type} extends New${type} {
  id: Int;
}

export default class ${className}Controller {
${isLimited ? '' : "  // A field that the type of a result does not declare is not sent.\n  static operations = { '*': { results: 'declared' } } as const;\n\n"}  /** GET ${url}?name=Ada */
  'GET'({ name }: { name?: string }): ${type}[] {
    return name === undefined ? [] : [{ id: 7, name }];
  }

  /** POST ${url} */
  'POST'({ name }: New${type}): Reply<201, ${type}> {
    return new Reply(201, { id: 7, name }, { Location: '${url}/7' });
  }

  /** GET ${url}/7 */
  'GET {id}'(_: undefined, { path: { id } }: ControllerParams<{ path: { id: Int } }>): ${type} {
    if (id !== 7) throw new HttpError(404, 'NOT_FOUND', 'There is none with this id');
    return { id, name: 'Ada' };
  }
}
`;
}
