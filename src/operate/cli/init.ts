// `gatefold init [FOLDER]` creates a project from examples/smallest. Existing files are never changed.
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { attempt, describeFailure } from '../../base/failure.ts';
import { plain } from '../../base/ink.ts';
import { makeFolder } from '../../base/make-folder.ts';
import type { Fields } from '../../base/values.ts';
import { writeNewFile } from '../../base/whole-file.ts';
import { listControllers } from '../../live/load/naming.ts';
import { typescriptSupport } from '../../live/load/typescript.ts';
import { packagePath, readOwnFile, version } from '../../own-files.ts';
import { type Answer, type Command, type CommandCall, CommandError } from './command.ts';
import { BUILD_SCRIPT, readJson, withSlashes } from './deploy/project.ts';
import { quote } from './deploy/ssh.ts';

export const command: Command = {
  name: 'init',
  about: 'Make a project: a package.json, a typed controller, its test; existing files are kept',
  flags: {
    web: 'Also make a front end in web/: a page with a typed client, built by Vite, served from the same origin',
    docker: 'Also make a Dockerfile',
    systemd: 'Also make a systemd unit for /opt/NAME',
  },
  operands: ['[FOLDER]'],
  run,
};

interface Manifest extends Record<'scripts' | 'dependencies' | 'devDependencies' | 'engines', Record<string, string>> {
  readonly type: string;
}

const EXAMPLE = 'examples/smallest';
const COPIED_FILES = ['tsconfig.json', '.vscode/launch.json', 'AGENTS.md'];
/** Files for a project without controllers. Other projects do not get these files, because they would be served. */
const STARTER_FILES = ['controllers/HelloController.ts', 'controllers/service.ts', 'test/hello.test.ts'];
const WEB_FILES = ['index.html', 'tsconfig.json', 'vite.config.ts', 'src/style.css'].map((path) => `web/${path}`);
const WEB_MAIN = 'web/src/main.ts';
type NewFile = [path: string, text: string];

/** For a project whose controllers this command does not know. */
const BARE_MAIN = `// Name your controllers: { order: typeof OrderController }, with an \`import type\` of each.
import { createClient } from 'gatefold/client';

export const api = createClient<object>('');
`;
const VITE = '^8.3.8';
const WEB_SCRIPTS = {
  start: 'gatefold serve --public-dir web/dist --public-fallback index.html',
  typecheck: 'tsc --noEmit && tsc --noEmit -p web',
  'dev:web': 'vite web',
  [BUILD_SCRIPT]: 'vite build web',
};

async function run({ operands: [operand = '.'], switches, io }: CommandCall): Promise<Answer> {
  const folder = resolve(io.cwd, operand);
  // A package.json that cannot be read ends the command before it has made a file.
  const existing = readJson(join(folder, 'package.json'));
  const name = nameOf(folder);
  const specifier = ownSpecifier(folder);
  const hasWeb = switches.has('web');
  const manifest = manifestOf(name, specifier, hasWeb);
  // `docker build` reads only the folder of the project. So a gatefold from another folder is packed into the project.
  const sourceToPack =
    switches.has('docker') && specifier.startsWith('file:') ? specifier.slice('file:'.length) : undefined;
  const isNew = attempt(() => listControllers(join(folder, 'controllers')).size === 0, true);
  const webFiles = isNew ? [...WEB_FILES, WEB_MAIN] : WEB_FILES;
  const copiedFiles = [...COPIED_FILES, ...(isNew ? STARTER_FILES : []), ...(hasWeb ? webFiles : [])];
  const files: NewFile[] = [
    ['package.json', `${JSON.stringify(manifest, null, 2)}\n`],
    [
      '.gitignore',
      `node_modules/\n${hasWeb ? 'web/dist/\n' : ''}# Credentials, session keys, certificates and passwords.\ndata/\ntls/\n.env\n.env.local\n`,
    ],
    ...copiedFiles.map((path): NewFile => [path, readOwnFile(`${EXAMPLE}/${path}`)]),
    ...(hasWeb && !isNew ? [[WEB_MAIN, BARE_MAIN] as NewFile] : []),
    ['README.md', readmeOf(name, hasWeb)],
    ...(switches.has('docker') ? dockerFiles(sourceToPack !== undefined, hasWeb) : []),
    ...(switches.has('systemd') ? systemdFiles(name, hasWeb) : []),
  ];
  const madeFiles: string[] = [];
  const keptFiles: string[] = [];
  for (const [path, text] of files) (makeFile(join(folder, path), text) ? madeFiles : keptFiles).push(path);
  const missing = existing === undefined ? [] : missingFields(existing, manifest);
  const commands = [
    ...(folder === io.cwd ? [] : [`cd ${quote(operand)}`]),
    ...(missing.length === 0 ? [] : [`npm pkg set ${missing.map(quote).join(' ')}`]),
    sourceToPack === undefined ? 'npm install' : `npm install ./$(npm pack --silent ${quote(sourceToPack)})`,
    'npm run dev',
    ...(hasWeb ? ['npm run dev:web    # in a second terminal'] : []),
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

function manifestOf(name: string, specifier: string, hasWeb: boolean): Manifest {
  const manifest: Manifest = { ...JSON.parse(readOwnFile(`${EXAMPLE}/package.json`)), name };
  manifest.dependencies.gatefold = specifier;
  if (hasWeb) {
    Object.assign(manifest.scripts, WEB_SCRIPTS);
    manifest.devDependencies.vite = VITE;
  }
  if (typescriptSupport() !== 'node') {
    // This Node does not run TypeScript by itself, so the project gets tsx.
    const { devDependencies } = JSON.parse(readOwnFile('package.json')) as Manifest;
    manifest.dependencies.tsx = devDependencies.tsx as string;
    manifest.scripts.test = 'node --import tsx --test test/*.test.ts';
    manifest.engines.node = '>=20';
  }
  return manifest;
}

/** Returns the npm specifier of this gatefold: a checkout, `file:/tmp/gatefold-0.1.0.tgz`, or `^0.1.0`. */
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

function makeFile(path: string, text: string): boolean {
  try {
    makeFolder(dirname(path));
    writeNewFile(path, text, 0o666, false);
    return true;
  } catch (error) {
    if (existsSync(path)) return false;
    throw new CommandError(`Cannot make ${path}: ${describeFailure(error)}`);
  }
}

/** Returns the operands of `npm pkg set` that add what an existing package.json lacks. */
function missingFields(existing: Fields, wanted: Manifest): string[] {
  const { type, scripts, dependencies, devDependencies } = wanted;
  const isInstalled = (name: string) =>
    name in Object(existing.dependencies) || name in Object(existing.devDependencies);
  const missingPackages = (field: string, versions: Record<string, string>) =>
    Object.entries(versions).flatMap(([name, version]) => (isInstalled(name) ? [] : [`${field}.${name}=${version}`]));
  return [
    ...(existing.type === type ? [] : [`type=${type}`]),
    ...Object.entries(scripts).flatMap(([name, text]) =>
      isLesserScript(Object(existing.scripts)[name], text) ? [`scripts.${name}=${text}`] : [],
    ),
    ...missingPackages('dependencies', dependencies),
    ...missingPackages('devDependencies', devDependencies),
  ];
}

/** Whether a script is missing, or fails always (`npm init`), or is the beginning of `text`: that without a page. */
function isLesserScript(script: unknown, text: string): boolean {
  return script === undefined || /no test specified/.test(String(script)) || text.startsWith(`${script} `);
}

function readmeOf(name: string, hasWeb: boolean): string {
  const text = readOwnFile(`${EXAMPLE}/README.md`).replace('# smallest', `# ${name}`);
  if (!hasWeb) return text;
  return `${text}
The page is in \`web/\`: \`npm run dev:web\` beside \`npm run dev\` shows it at http://localhost:5173, and passes \`/api\` on.
\`npm run build:web && npm start\` serves both at http://localhost:3000. \`gatefold deploy\` builds the page first.
`;
}

const dockerFiles = (isPacked: boolean, hasWeb: boolean): NewFile[] => [
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
${hasWeb ? '# The page, which `npm run build:web` makes before the image is built.\nENV PUBLIC_DIR=web/dist PUBLIC_FALLBACK=index.html\n' : ''}USER 1000:1000
EXPOSE 3000
# Node is process 1. It drains on SIGTERM. For controllers that start programs, run the image with --init.
CMD ["node_modules/.bin/gatefold", "serve"]
`,
  ],
  ['.dockerignore', 'node_modules\n.git\n.env*\ndata\ntls\ntest\n'],
];

/** Adapts the systemd unit of a checkout, and its socket, to a project in /opt. */
function systemdFiles(name: string, hasWeb: boolean): NewFile[] {
  const page = `Environment=PUBLIC_DIR=/opt/${name}/web/dist PUBLIC_FALLBACK=index.html`;
  const renameFiles = (text: string) => text.replaceAll(/(?:deploy\/)?gatefold\.s/g, `${name}.s`);
  const unit = renameFiles(readOwnFile('deploy/gatefold.service'))
    .replace(/^Environment=READY=all$/m, (line) => (hasWeb ? `${line}\n${page}` : line))
    .replaceAll('/opt/gatefold/dist/', `/opt/${name}/node_modules/gatefold/dist/`)
    .replaceAll(/(\/opt\/|\/var\/lib\/|enable --now |StateDirectory=)gatefold/g, `$1${name}`)
    .replaceAll('/etc/gatefold/gatefold.env', `/etc/${name}.env`)
    .replace('the checkout, built, in', 'the project in')
    .replace('npm ci && npm run build && npm ci --omit=dev', 'npm ci --omit=dev')
    .replace(/^# Gatefold under systemd/m, `# ${name} under systemd`)
    .replace(/^Description=.*$/m, `Description=${name}`);
  return [
    [`${name}.service`, unit],
    [`${name}.socket`, renameFiles(readOwnFile('deploy/gatefold.socket'))],
  ];
}
