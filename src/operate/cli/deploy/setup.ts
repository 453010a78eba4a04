// `gatefold deploy --setup` makes what a service needs before its first release. Existing files, edited or not, stay.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { errorCode } from '../../../base/failure.ts';
import { writeNewFile } from '../../../base/whole-file.ts';
import { readOwnFile } from '../../../own-files.ts';
import type { Order } from './order.ts';
import { CHECK_ENV, runProgram } from './serving.ts';
import { quote } from './ssh.ts';

/** The units in this folder are made by administrators, and override the units of packages. */
const UNIT_FOLDER = '/etc/systemd/system';
const PACKAGE_UNIT_FOLDERS = ['/usr/lib/systemd/system', '/lib/systemd/system', '/usr/local/lib/systemd/system'];

/** Makes what is missing in the folder of the project. Returns notes for people. @throws Error of one line */
export function setUp({ dir, name, controllers, hasPage }: Order): string[] {
  makeIfMissing(() => mkdirSync(join(dir, 'data'), { mode: 0o700 }));
  const files: NewFile[] = [
    [join(dir, 'env'), hasPage ? ENV_TEXT + PAGE_SETTINGS : ENV_TEXT, 0o640],
    [join(dir, 'run'), serviceScript('server', dir, controllers, process.execPath), 0o755],
  ];
  const hasSystemd = process.getuid?.() === 0 && existsSync('/run/systemd/system');
  if (hasSystemd) {
    refuseTakenName(dir, name);
    // A `run` that is there names its own Node.
    if (!existsSync(join(dir, 'run')) && isBelowHome(process.execPath) && !isBelowHome(dir))
      throw new Error(
        `The service could not run ${process.execPath}, because systemd closes the folders of users to it: install Node for all users (nodejs.org/en/download)`,
      );
    const unit = unitOf(readOwnFile('deploy/gatefold.service'), dir, name);
    files.push(
      [join(dir, 'restart'), `#!/bin/sh\nexec systemctl restart ${quote(`${name}.service`)}\n`, 0o755],
      [join(UNIT_FOLDER, `${name}.service`), unit, 0o644],
      [join(UNIT_FOLDER, `${name}.socket`), socketOf(readOwnFile('deploy/gatefold.socket'), name), 0o644],
    );
  }
  // Gatefold imports tsx, which Node looks for in `runtime/node_modules`. This link leads to the tsx of the project.
  makeIfMissing(() => symlinkSync('../current/node_modules', join(dir, 'runtime/node_modules')));
  return [
    ...makeFiles(files),
    ...(hasSystemd ? enableUnit(dir, name) : [`Have ${join(dir, 'run')} started with the machine`]),
  ];
}

/**
 * Makes `DIR/gatefold`, which runs a command of Gatefold as the service would. Without it, a command in a login shell
 * would lack STORE, and change this machine's copy of the table. Returns notes for people.
 */
export function makeCommand({ dir, controllers }: Pick<Order, 'dir' | 'controllers'>): string[] {
  return makeFiles([[join(dir, 'gatefold'), serviceScript('cli', dir, controllers, process.execPath), 0o755]]);
}

type NewFile = readonly [path: string, text: string, mode: number];

/** Makes the files that do not exist. Returns notes for people. */
function makeFiles(files: readonly NewFile[]): string[] {
  const madeFiles = files.filter(([path, text, mode]) =>
    makeIfMissing(() => {
      writeNewFile(path, text, mode);
      // The umask of the user may have removed some permissions from the mode.
      chmodSync(path, mode);
    }),
  );
  return madeFiles.map(([path]) => `Made ${path}`);
}

const ENV_TEXT = `# Settings of the service and of "npm run predeploy", one a line, as a shell reads them: PORT=3000
# Quote a value with a space, & or $: RATE_LIMIT='100/s burst 500'
# This file may have secrets. Only its owner and its group can read it.
`;
/** The working folder of the service has `current`, so each release brings its own page. */
const PAGE_SETTINGS = 'PUBLIC_DIR=current/web/dist\nPUBLIC_FALLBACK=index.html\n';

/** The text of `DIR/run` (the program `server`) and of `DIR/gatefold` (the program `cli`). */
export function serviceScript(program: keyof typeof ABOUT, dir: string, controllers: string, node: string): string {
  const command = `${quote(node)} runtime/current/dist/${program}.js "$@"`;
  return `#!/bin/sh
# ${ABOUT[program]}
cd ${quote(dir)} || exit 1
set -a
[ ! -f ./env ] || . ./env
${CHECK_ENV}: "\${NODE_ENV:=production}" "\${READY:=all}"
CONTROLLERS_DIR=\${CONTROLLERS_DIR:-"$PWD"/current/${quote(controllers)}}
DATA_DIR=\${DATA_DIR:-"$PWD"/data}
${program === 'cli' ? asOwnerOfData(command) : ''}exec ${command}
`;
}

const ABOUT = {
  server: 'Starts the service in the foreground, with the settings in ./env.',
  cli: 'Runs a command of Gatefold with the settings of the service, such as: gatefold credentials list',
};

/** Files that root makes in the data folder would be closed to the service. So its owner runs a command of root. */
function asOwnerOfData(command: string): string {
  return `owner=$(stat -c %U "$DATA_DIR" 2>/dev/null)
if [ "$(id -u)" = 0 ] && [ "\${owner:-root}" != root ] && id "$owner" >/dev/null 2>&1; then
  exec runuser -u "$owner" -- ${command}
fi
`;
}

/** Adapts deploy/gatefold.service, the systemd unit for a checkout in /opt, to the folder of a deployed project. */
export function unitOf(unit: string, dir: string, name: string): string {
  // In a command, systemd reads `$$` as `$`.
  return unit
    .replace(/^(?:#.*\n)+/, `# ${name} under systemd. Made by gatefold deploy --setup.\n`)
    .replace(/^Description=.*$/m, () => `Description=${name}`)
    .replaceAll('gatefold.socket', () => `${name}.socket`)
    .replaceAll(/^(User|Group)=.*$/gm, (_, key) => `${key}=${userOf(name)}`)
    .replace(/^WorkingDirectory=.*\n/m, '')
    .replaceAll(
      /^(?:#.*\n)*(?:Environment=(?:CONTROLLERS_DIR|DATA_DIR)|EnvironmentFile|StateDirectory(?:Mode)?)=.*\n/gm,
      '',
    )
    .replace(/^ExecStart=.*$/m, () => `ExecStart=/bin/sh ${inQuotes(`${dir}/run`).replaceAll('$', '$$$$')}`)
    .replace(/^ReadOnlyPaths=.*$/m, () => `ReadOnlyPaths=${inQuotes(dir)}\nReadWritePaths=${inQuotes(`${dir}/data`)}`)
    .replace(/^ProtectHome=yes$/m, isBelowHome(dir) ? 'ProtectHome=read-only' : 'ProtectHome=yes');
}

/** Returns whether systemd hides a path from a unit with ProtectHome=yes. */
function isBelowHome(path: string): boolean {
  return /^\/(?:home|root|run\/user)(?:\/|$)/.test(path);
}

export function socketOf(unit: string, name: string): string {
  return unit
    .replace(/^(?:#.*\n)+/, `# The socket of ${name}. Made by gatefold deploy --setup.\n`)
    .replace('the Gatefold JSON API server', () => name);
}

/** Quotes an argument in a systemd unit. The path of a program could not have quotes. */
function inQuotes(path: string): string {
  return `"${escapePath(path)}"`;
}

function escapePath(path: string): string {
  return path.replaceAll(/[\\"]/g, '\\$&').replaceAll('%', '%%');
}

/** Returns the name of the user of a service, in a form that every system accepts. */
export function userOf(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]/g, '-')
    .replace(/^[^a-z_]/, '_$&')
    .slice(0, 31);
}

/** @throws Error when a unit or a user of this name exists for another folder */
function refuseTakenName(dir: string, name: string): void {
  const file = `${name}.service`;
  const unit = join(UNIT_FOLDER, file);
  const isUnitFree = existsSync(unit)
    ? readFileSync(unit, 'utf8').includes(`${escapePath(dir)}/`)
    : !PACKAGE_UNIT_FOLDERS.some((folder) => existsSync(join(folder, file)));
  // The fields of a line are: name, password, user id, group id, comment, home folder, shell.
  const home = spawnSync('getent', ['passwd', userOf(name)], { encoding: 'utf8' }).stdout?.split(':')[5];
  if (isUnitFree && (home === undefined || home === dir)) return;
  throw new Error(
    `The unit ${file} or the user ${userOf(name)} is there already, and not for ${dir}: give package.json another name`,
  );
}

/** Makes the user of the service, who owns the data folder, and has systemd start the service at each boot. */
function enableUnit(dir: string, name: string): string[] {
  const user = userOf(name);
  if (spawnSync('id', ['-u', user]).status !== 0)
    runProgram('useradd', ['--system', '--user-group', '--home-dir', dir, '--shell', '/usr/sbin/nologin', user]);
  runProgram('chown', [`${user}:`, join(dir, 'data')]);
  runProgram('chgrp', [user, join(dir, 'env')]);
  runProgram('systemctl', ['daemon-reload']);
  runProgram('systemctl', ['enable', '--quiet', `${name}.service`, `${name}.socket`]);
  return [`The unit ${name}.service starts the service as user ${user}: journalctl -u ${name}`];
}

/** @returns false when what `create` makes already exists */
function makeIfMissing(create: () => void): boolean {
  try {
    create();
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  }
}
