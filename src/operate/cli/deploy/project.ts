// Plans which files of the project a deployment sends, and refuses a project that would not work on another machine.
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, normalize, relative, sep } from 'node:path';
import { attempt, describeFailure, errorCode } from '../../../base/failure.ts';
import { realPathOf } from '../../../base/fingerprint.ts';
import { foldersAbove, nearestManifest } from '../../../base/manifest.ts';
import type { Settings } from '../../../base/settings.ts';
import { readSource, readSourceOrEmpty } from '../../../base/source-file.ts';
import type { Fields } from '../../../base/values.ts';
import { CommandError } from '../command.ts';
import { listOrRefuse } from '../inspection.ts';
import { IGNORE_FILE, type Ignores, readIgnoreFile } from './ignore-file.ts';
import { quote } from './ssh.ts';

export type Project = ReturnType<typeof planProject>;

/** The script in package.json that builds the page, before its files are sent. */
export const BUILD_SCRIPT = 'build:web';
/** The file that a deployment adds to each release: a ReleaseNote (folders.ts) as JSON. */
export const RELEASE_NOTE = '.gatefold-release.json';
/** Files and folders, at any depth, that no release needs. They are not reported as left out. */
const SKIPPED_NAMES = new Set(['.git', '.hg', '.svn', 'node_modules', RELEASE_NOTE, '.DS_Store', IGNORE_FILE]);
/** Folders of keys, credentials and certificates beside a package.json. They are not reported as left out. */
const SECRET_FOLDERS = ['data', 'tls'];
/** Files that may have passwords or private keys. A program such as `secrets.ts` is none of them. */
const SECRET_FILE = new RegExp(
  [
    /^\.env|\.env$/,
    /^\.(?:netrc|pgpass|git-credentials|htpasswd)$/,
    /^(?:secrets?|credentials?)\.(?!(?:.*\.)?(?:[cm]?[jt]sx?|html?|css|svg|png|md|map)$)/,
    /\.(?:pem|key|p12|pfx|jks|keystore|ppk)$/,
    /^id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?$/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'i',
);
/** A line of `.npmrc` with a token, a password or a key that is not `${NAME}`, or with a URL that has a password. */
const NPM_SECRET =
  /^[^#;=\n]*(?:_auth|_authToken|_password|\bkey)["' \t]*=[ \t]*(?!["']?\$\{[^}]+\}["']?\s*$)\S|:\/\/[^/\s]*@/im;
const NPM_LOCK_FILES = ['npm-shrinkwrap.json', 'package-lock.json'];

export function planProject(
  root: string,
  { controllersDir, dataDir, tlsCert, tlsKey }: Pick<Settings, 'controllersDir' | 'dataDir' | 'tlsCert' | 'tlsKey'>,
) {
  const manifest = readJson(join(root, 'package.json'));
  if (manifest === undefined)
    throw new CommandError(`Cannot deploy ${root}: it has no package.json. Run: npx gatefold init`);
  const controllers = relative(root, controllersDir);
  if (isOutside(controllers) || controllers === '')
    throw new CommandError(`Cannot deploy ${controllersDir}: the controllers folder is not inside of ${root}`);
  // In a workspace, the service may be a member of it, with a data folder of its own.
  const member = dirname(nearestManifest(dirname(controllersDir))?.path ?? join(root, 'package.json'));
  const secretPaths = new Set(SECRET_FOLDERS.flatMap((name) => [name, relative(root, join(member, name))]));
  // A setting can name a secret through a link.
  for (const path of [dataDir, tlsCert, tlsKey])
    if (path !== undefined) secretPaths.add(relative(root, path)).add(relative(realPathOf(root), realPathOf(path)));
  const plan: Plan = { files: [], leftOut: [], closedFolders: [], bytes: 0 };
  const ignores = readIgnoreFile(root);
  collect(root, '', (path, isFolder) => secretPaths.has(normalize(path)) || ignores(path, isFolder), plan);
  checkPackages(root, manifest, controllersDir);
  return {
    root,
    /** The name in package.json, which is also the name of the systemd unit. */
    name: nameOf(manifest),
    /** The controllers folder, relative to the root, with slashes. */
    controllers: withSlashes(controllers),
    hasTypeScript: [...listOrRefuse(controllersDir).values()].some((file) => file.endsWith('.ts')),
    hasPage: typeof Object(manifest.scripts)[BUILD_SCRIPT] === 'string',
    ...plan,
  };
}

interface Plan {
  /** The files and symbolic links to send, as paths relative to the root, with slashes. */
  files: string[];
  /** Files that are not sent, although the service might need them, such as `.env`. A remedy can follow the name. */
  leftOut: string[];
  /** The outermost folders that not everybody can read, relative to the root. The mode of a file travels with it. */
  closedFolders: string[];
  /** The sum of the sizes of all files to send, in bytes. Links do not count. */
  bytes: number;
}

/** Adds the files below a folder to the plan. @param folder relative to the root; empty for the root itself */
function collect(root: string, folder: string, isSkipped: Ignores, plan: Plan): void {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = join(folder, entry.name);
    const fullPath = join(root, path);
    if (SKIPPED_NAMES.has(entry.name) || isSkipped(withSlashes(path), entry.isDirectory())) continue;
    if (SECRET_FILE.test(entry.name)) plan.leftOut.push(withSlashes(path));
    else if (entry.name === '.npmrc' && NPM_SECRET.test(readSourceOrEmpty(fullPath)))
      plan.leftOut.push(
        `${withSlashes(path)} (has a token or a password: keep it in ~/.npmrc, here and on the machine)`,
      );
    // Node reads a byte that is not UTF-8 as this character, and then finds no such file.
    else if (/[\p{Cc}\uFFFD]/u.test(entry.name))
      throw new CommandError(`Cannot deploy ${fullPath}: its name has a control character or is not UTF-8. Rename it`);
    else if (entry.isDirectory()) {
      if (isClosed(fullPath) && !isBelow(path, plan.closedFolders.at(-1))) plan.closedFolders.push(withSlashes(path));
      collect(root, path, isSkipped, plan);
    } else if (entry.isSymbolicLink())
      (isUsableLink(root, fullPath) ? plan.files : plan.leftOut).push(withSlashes(path));
    else if (entry.isFile()) {
      plan.files.push(withSlashes(path));
      plan.bytes += lstatSync(fullPath).size;
    } else plan.leftOut.push(withSlashes(path));
  }
}

/** Returns whether some user cannot read the files of a folder. Windows has no such modes. */
function isClosed(folder: string): boolean {
  return process.platform !== 'win32' && (lstatSync(folder).mode & 0o005) !== 0o005;
}

function isBelow(path: string, folder: string | undefined): boolean {
  return folder !== undefined && withSlashes(path).startsWith(`${folder}/`);
}

/**
 * Returns false for a link to nothing, such as the lock of an editor.
 *
 * @throws CommandError when the link would lead to something else on another machine
 */
function isUsableLink(root: string, path: string): boolean {
  const realPath = attempt(() => realpathSync(path), undefined);
  if (realPath === undefined) return false;
  const target = readlinkSync(path);
  const realRoot = realpathSync(root);
  // `../shop/lib` leaves the project and comes back. On the machine, the folder of the project has another name.
  const steps = join(relative(realRoot, realpathSync(dirname(path))), target);
  if (isAbsolute(target) || isOutside(steps) || isOutside(relative(realRoot, realPath)))
    throw new CommandError(
      `Cannot deploy ${path}: it is a link to ${target}. A link must be relative and lead into the project`,
    );
  return true;
}

/** @throws CommandError when `npm ci` would not install the packages of the project on another machine */
function checkPackages(root: string, manifest: Fields, controllersDir: string): void {
  const lock = NPM_LOCK_FILES.map((name) => readJson(join(root, name))).find((fields) => fields !== undefined);
  if (lock === undefined) {
    const needed = Object.keys(Object(manifest.dependencies)).filter((name) => name !== 'gatefold');
    if (needed.length === 0) return;
    // In a workspace, npm keeps one lock file at its top.
    const top = [...foldersAbove(root)].find((folder) => npmLockOf(folder) !== undefined);
    const cure =
      top === undefined
        ? 'Run: npm install'
        : `The lock file is in ${top}: deploy from there, with CONTROLLERS_DIR=${quote(withSlashes(relative(top, controllersDir)))}`;
    throw new CommandError(
      `Cannot deploy without package-lock.json: the project depends on ${needed.join(', ')}, and npm ci installs only what a lock file names. ${cure}`,
    );
  }
  for (const [place, fields] of Object.entries<Fields>(Object(lock.packages))) {
    const resolved = String(Object(fields).resolved ?? '').replace(/^file:/, '');
    // A path that begins with `../`, `/` or a drive such as `C:\`. A URL and a path into the project do not match.
    const isOutsidePath = /^(?:\.\.(?:\/|$)|\/|[a-z]:[\\/])/i.test(resolved);
    // A link to a checkout of Gatefold is not needed on the machine, because the deployment copies Gatefold itself.
    const isCheckout = place === 'node_modules/gatefold' && Object(fields).link === true;
    if (isCheckout || !isOutsidePath) continue;
    const name = place.replace(/^.*node_modules\//, '');
    throw new CommandError(
      `Cannot deploy: package ${name} comes from ${resolved}, outside of the project. Pack it into the project: npm install ./$(npm pack --silent ${resolved})`,
    );
  }
}

/** @returns undefined when there is no such file. @throws CommandError when the file is not JSON or cannot be read */
export function readJson(path: string): Fields | undefined {
  try {
    return Object(JSON.parse(readSource(path)));
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    const reason = error instanceof SyntaxError ? 'it is not JSON' : describeFailure(error);
    throw new CommandError(`Cannot read ${path}: ${reason}`);
  }
}

/** Returns the name in package.json without its scope. @throws CommandError when there is no usable name */
function nameOf({ name }: Fields): string {
  const nameWithoutScope = basename(String(name ?? ''));
  if (/^[a-z0-9][a-z0-9._-]*$/i.test(nameWithoutScope)) return nameWithoutScope;
  throw new CommandError('Cannot deploy: package.json has no name');
}

/** Returns whether a path leads out of its start. @param path the result of `relative` of node:path */
function isOutside(path: string): boolean {
  return path === '..' || path.startsWith(`..${sep}`) || isAbsolute(path);
}

export function withSlashes(path: string): string {
  return path.split(sep).join('/');
}

export function npmLockOf(root: string): string | undefined {
  const path = NPM_LOCK_FILES.map((name) => join(root, name)).find((path) => existsSync(path));
  return path === undefined ? undefined : readFileSync(path, 'utf8');
}

/** Returns an object in package.json, such as `scripts`; an empty object when it is missing. */
export function manifestField(root: string, field: string): Fields {
  return Object(readJson(join(root, 'package.json'))?.[field]);
}
