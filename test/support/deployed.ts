// A project folder, and the folder on a machine to which the project is deployed, with its service running.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { withTimeLimit } from '../../src/base/time.ts';
import type { GenerationRecord } from '../../src/live/supervisor/generation-file.ts';
import { freePorts } from './ports.ts';
import { reap } from './reaper.ts';
import { deploy, killGroup, PATIENCE, type Ran, type SshMachine, startSshMachine } from './ssh-machine.ts';

/** Waits for a condition. @throws Error when it stays false for a long time */
export async function until(what: string, isTrue: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = performance.now() + PATIENCE; ; await sleep(20)) {
    if (await isTrue()) return;
    if (performance.now() > end) throw new Error(`it does not come: ${what}`);
  }
}

export function makeProject(folder: string, files: Readonly<Record<string, string>>): string {
  writeFiles(folder, { 'package.json': '{"name":"shop","type":"module"}', ...files });
  return folder;
}

export function writeFiles(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

/** The files of a controller whose `index` returns `{ value, pid }`. The value is in a file beside the controller. */
export function valueFiles(value: string | number): Record<string, string> {
  return {
    'controllers/TestController.js':
      "import { value } from '../lib/value.js';\nexport default class { index() { return { value, pid: process.pid }; } }\n",
    'lib/value.js': `export const value = ${JSON.stringify(value)};\n`,
    'lib/unchanged.js': '// always the same\n',
  };
}

export interface Deployed {
  readonly machine: SshMachine;
  readonly project: string;
  /** The deployed folder on the machine. */
  readonly dir: string;
  readonly port: number;
  /** Deploys to the folder on a machine, given the machine's name. */
  deploy(...words: string[]): Promise<Ran>;
  /** Returns the name of the release to which the link `current` points. */
  current(): string;
  releases(): string[];
  record(): GenerationRecord;
}

export interface DeployedOptions {
  readonly files?: Readonly<Record<string, string>>;
  /** The folder on the machine. Default: a new one. */
  readonly dir?: string;
  /** The arguments of the first deployment, after its host. */
  readonly words?: readonly string[];
  /** The folder of a project that is there already, in the place of `files`. */
  readonly project?: string;
  /** Returns the text of the machine's file `env`, which is there before the first deployment. */
  readonly env?: (port: number) => string;
}

/** Sets up a folder, deploys the first release to it, and starts the service there. */
export async function startDeployed(
  test: Pick<TestContext, 'after'>,
  options: DeployedOptions = {},
): Promise<Deployed> {
  const machine = await startSshMachine(test);
  const dir = options.dir ?? join(machine.folder, "srv/a shop's $HOME");
  const project = options.project ?? makeProject(join(machine.folder, 'project'), options.files ?? valueFiles(0));
  const [port = 0] = await freePorts(1);
  if (options.env !== undefined) writeFiles(dir, { env: options.env(port) });
  const run = (...words: string[]) => deploy(machine, project, [`vm1:${dir}`, ...words]);
  const first = await run('--setup', ...(options.words ?? []));
  if (first.code !== 0) throw new Error(`the first deployment failed: ${JSON.stringify(first)}`);
  appendFileSync(join(dir, 'env'), `PORT=${port}\nHOST=127.0.0.1\nWORKERS=2\nLOG_LEVEL=warn\n`);
  startService(machine, dir);
  const deployed: Deployed = {
    machine,
    project,
    dir,
    port,
    deploy: run,
    current: () => basename(readlinkSync(join(dir, 'current'))),
    releases: () => readdirSync(join(dir, 'releases')).sort(),
    record: () => JSON.parse(readFileSync(join(dir, 'data/generation.json'), 'utf8')),
  };
  await until('the first release serves', () => {
    try {
      return deployed.record().serving === join(realpathSync(dir), 'releases', deployed.current(), 'controllers');
    } catch {
      return false;
    }
  });
  return deployed;
}

/** Runs `DIR/run` and starts it again when it ends, as a service manager does. */
function startService(machine: SshMachine, dir: string): void {
  const { NODE_TEST_CONTEXT, NODE_OPTIONS, ...env } = process.env;
  const script = 'while [ ! -e "$0/stopped" ]; do "$0/run" & echo $! >"$0/service.pid"; wait; done';
  const manager = spawn('sh', ['-c', script, dir], { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  reap(manager);
  manager.stdout.resume();
  let log = '';
  manager.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const exited = once(manager, 'close');
  machine.beforeEnd(async () => {
    if (process.env.SHOW_LOG !== undefined) console.error(log);
    writeFileSync(join(dir, 'stopped'), '');
    process.kill(Number(readFileSync(join(dir, 'service.pid'), 'utf8')), 'SIGTERM');
    await withTimeLimit(exited, PATIENCE, () => {
      killGroup(manager);
      return new Error(`the service has not ended within ${PATIENCE / 1000} s of SIGTERM\n${log}`);
    });
  });
}

/** The script `DIR/restart` for the service that `startDeployed` starts. */
export const RESTART = '#!/bin/sh\nkill "$(cat "$(dirname "$0")/service.pid")"\n';
