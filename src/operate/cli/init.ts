// `gatefold init [FOLDER]` creates a project from examples/smallest, with the name of its folder. Existing files are
// never changed.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { describeFailure } from '../../base/failure.ts';
import { plain } from '../../base/ink.ts';
import { makeFolder } from '../../base/make-folder.ts';
import { listControllers } from '../../live/load/naming.ts';
import { typescriptSupport } from '../../live/load/typescript.ts';
import { packagePath, version } from '../../own-files.ts';
import { type Answer, type Command, type CommandCall, CommandError } from './command.ts';
import { readJson, withSlashes } from './deploy/project.ts';
import { quote } from './deploy/ssh.ts';

export const command: Command = {
  name: 'init',
  usage: '[FOLDER]',
  about: 'Make a project: a package.json, a typed controller, its test; existing files are kept',
  flags: { docker: 'Also make a Dockerfile', systemd: 'Also make a systemd unit for /opt/NAME' },
  operands: ['[FOLDER]'],
  run,
};

interface Manifest {
  readonly name: string;
  readonly type: string;
  readonly scripts: Record<string, string>;
  readonly dependencies: Record<string, string>;
  readonly devDependencies: Record<string, string>;
  readonly engines: Record<string, string>;
}

const EXAMPLE = 'examples/smallest';
const COPIED_FILES = ['tsconfig.json', '.vscode/launch.json', 'AGENTS.md'];
/** Files for a project without controllers. Other projects do not get these files, because they would be served. */
const STARTER_FILES = ['controllers/HelloController.ts', 'controllers/service.ts', 'test/hello.test.ts'];

async function run({ operands: [operand = '.'], switches, io }: CommandCall): Promise<Answer> {
  const folder = resolve(io.cwd, operand);
  const name = nameOf(folder);
  const specifier = ownSpecifier(folder);
  const manifest = manifestOf(name, specifier);
  // `docker build` reads only the folder of the project. So a gatefold from another folder is packed into the project.
  const sourceToPack =
    switches.has('docker') && specifier.startsWith('file:') ? specifier.slice('file:'.length) : undefined;
  const copiedFiles = [...COPIED_FILES, ...(hasControllers(folder) ? [] : STARTER_FILES)];
  const files: [path: string, text: string][] = [
    ['package.json', `${JSON.stringify(manifest, null, 2)}\n`],
    ['.gitignore', 'node_modules/\n# Credentials, session keys and certificates.\ndata/\ntls/\n'],
    ...copiedFiles.map((path): [string, string] => [path, readPackageFile(`${EXAMPLE}/${path}`)]),
    ['README.md', readPackageFile(`${EXAMPLE}/README.md`).replace('# smallest', `# ${name}`)],
    ...(switches.has('docker') ? dockerFiles(sourceToPack !== undefined) : []),
    ...(switches.has('systemd')
      ? ([
          [`${name}.service`, unitOf(name)],
          [`${name}.socket`, readPackageFile('deploy/gatefold.socket').replaceAll('gatefold.s', `${name}.s`)],
        ] as [string, string][])
      : []),
  ];
  const madeFiles: string[] = [];
  const keptFiles: string[] = [];
  for (const [path, text] of files) (makeFile(join(folder, path), text) ? madeFiles : keptFiles).push(path);
  const missing = keptFiles.includes('package.json') ? missingFields(join(folder, 'package.json'), manifest) : [];
  const commands = [
    ...(folder === io.cwd ? [] : [`cd ${quote(operand)}`]),
    ...(missing.length === 0 ? [] : [`npm pkg set ${missing.map(quote).join(' ')}`]),
    sourceToPack === undefined ? 'npm install' : `npm install ./$(npm pack --silent ${quote(sourceToPack)})`,
    'npm run dev',
  ];
  const lines = [
    ...madeFiles.map((path) => `Made ${join(operand, path)}`),
    ...keptFiles.map((path) => `Kept ${join(operand, path)}`),
    '',
    missing.length === 0 ? 'Next:' : 'Next (the line with npm pkg set adds what your package.json lacks):',
    ...commands.map((line) => `  ${line}`),
  ];
  const json = { folder, made: madeFiles, left: keptFiles, next: commands };
  return { json, text: lines.map(plain).join('\n') };
}

/** Makes the name of a package from the name of a folder, with only the characters that npm allows. */
function nameOf(folder: string): string {
  const name = basename(folder)
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replace(/^[._-]+|-+$/g, '');
  return name === '' ? 'api' : name;
}

function manifestOf(name: string, specifier: string): Manifest {
  const manifest: Manifest = { ...JSON.parse(readPackageFile(`${EXAMPLE}/package.json`)), name };
  manifest.dependencies.gatefold = specifier;
  if (typescriptSupport() !== 'node') {
    // This Node does not run TypeScript by itself, so the project gets tsx.
    const { devDependencies } = JSON.parse(readPackageFile('package.json')) as Manifest;
    manifest.dependencies.tsx = devDependencies.tsx as string;
    manifest.scripts.test = 'node --import tsx --test test/*.test.ts';
    manifest.engines.node = '>=20';
  }
  return manifest;
}

/**
 * Returns the npm specifier with which the new project installs the gatefold that is running now:
 * - `file:../gatefold` for a checkout
 * - `file:/tmp/gatefold-0.1.0.tgz` for a gatefold that was installed from a tarball
 * - `^0.1.0` for a gatefold from the registry
 */
function ownSpecifier(folder: string): string {
  const ownFolder = packagePath();
  const parentFolder = dirname(ownFolder);
  // The specifier has slashes, also on Windows, because the project may be installed on another system.
  const fileSpecifier = (path: string) => `file:${withSlashes(path)}`;
  if (basename(parentFolder) !== 'node_modules') return fileSpecifier(relative(folder, ownFolder) || '.');
  try {
    const { packages } = JSON.parse(readFileSync(join(parentFolder, '.package-lock.json'), 'utf8'));
    const { resolved } = packages['node_modules/gatefold'] as { resolved?: string };
    if (resolved?.startsWith('file:'))
      return fileSpecifier(resolve(parentFolder, '..', resolved.slice('file:'.length)));
  } catch {
    // Another tool than npm has installed gatefold.
  }
  return `^${version()}`;
}

function hasControllers(folder: string): boolean {
  try {
    return listControllers(join(folder, 'controllers')).size > 0;
  } catch {
    return false;
  }
}

function makeFile(path: string, text: string): boolean {
  try {
    makeFolder(dirname(path));
    writeFileSync(path, text, { flag: 'wx' });
    return true;
  } catch (error) {
    if (existsSync(path)) return false;
    throw new CommandError(`Cannot make ${path}: ${describeFailure(error)}`);
  }
}

/** Returns the operands of `npm pkg set` that add what an existing package.json lacks. */
function missingFields(path: string, wanted: Manifest): string[] {
  const existing = readJson(path) ?? {};
  const { type, scripts, dependencies, devDependencies } = wanted;
  const isInstalled = (name: string) =>
    name in Object(existing.dependencies) || name in Object(existing.devDependencies);
  const missingPackages = (field: string, versions: Record<string, string>) =>
    Object.entries(versions).flatMap(([name, version]) => (isInstalled(name) ? [] : [`${field}.${name}=${version}`]));
  return [
    ...(existing.type === type ? [] : [`type=${type}`]),
    ...Object.entries(scripts).flatMap(([name, text]) =>
      isUnsetScript(Object(existing.scripts)[name]) ? [`scripts.${name}=${text}`] : [],
    ),
    ...missingPackages('dependencies', dependencies),
    ...missingPackages('devDependencies', devDependencies),
  ];
}

/** Returns whether a script is missing, or is the test script of `npm init`, which always fails. */
function isUnsetScript(script: unknown): boolean {
  return script === undefined || String(script).includes('no test specified');
}

function readPackageFile(path: string): string {
  return readFileSync(join(packagePath(), path), 'utf8');
}

const dockerFiles = (isPacked: boolean): [path: string, text: string][] => [
  [
    'Dockerfile',
    `FROM node:24-bookworm-slim
WORKDIR /app
COPY package.json package-lock.json ${isPacked ? 'gatefold-*.tgz ' : ''}./
RUN npm ci --omit=dev
# The whole project, without the files that .dockerignore names.
COPY . .
# The tables of credentials are mounted at /app/data. They are never part of an image.
RUN mkdir -p data && chown 1000:1000 data
ENV NODE_ENV=production
USER 1000:1000
EXPOSE 3000
# Node is process 1. It drains on SIGTERM. For controllers that start programs, run the image with --init.
CMD ["node_modules/.bin/gatefold", "serve"]
`,
  ],
  ['.dockerignore', 'node_modules\n.git\n.env*\ndata\ntls\ntest\n'],
];

/** Adapts deploy/gatefold.service, the systemd unit of a checkout, to a project in /opt. */
function unitOf(name: string): string {
  return readPackageFile('deploy/gatefold.service')
    .replaceAll('/opt/gatefold/dist/', `/opt/${name}/node_modules/gatefold/dist/`)
    .replaceAll('/opt/gatefold', `/opt/${name}`)
    .replaceAll('/var/lib/gatefold', `/var/lib/${name}`)
    .replaceAll('/etc/gatefold/gatefold.env', `/etc/${name}.env`)
    .replaceAll('deploy/gatefold.service', `${name}.service`)
    .replaceAll('gatefold.socket', `${name}.socket`)
    .replaceAll('enable --now gatefold', `enable --now ${name}`)
    .replace('the checkout, built, in', 'the project in')
    .replace('npm ci && npm run build && npm ci --omit=dev', 'npm ci --omit=dev')
    .replace(/^# Gatefold under systemd/m, `# ${name} under systemd`)
    .replace(/^Description=.*$/m, `Description=${name}`)
    .replace(/^StateDirectory=gatefold$/m, `StateDirectory=${name}`);
}
