// Decides which file of variables a command reads, so that it has the settings of the server beside it:
// 1. The one that ENV_FILE or --env-file names. Node ends before a command runs if --env-file names no file, so the
//    words `dev` and `off` work in ENV_FILE alone.
// 2. Else those of the server that runs in this folder, or has run here last. `gatefold dev` leaves its ENV_FILE in
//    `generation.json`, and `gatefold serve` replaces that record. So a command beside `serve` reads no file.
// 3. No server has run here: no file. A command that changes keys is refused if `dev` would have other keys.
import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import { join } from 'node:path';
import { readSettings, settingsOf } from '../../base/config.ts';
import { DEV, envFilePaths, withEnvFiles } from '../../base/env-files.ts';
import { attempt } from '../../base/failure.ts';
import { fingerprint, statOf } from '../../base/fingerprint.ts';
import { isSurelyAlive } from '../../base/folder-lock.ts';
import type { Settings } from '../../base/settings.ts';
import { isAlive } from '../../base/system.ts';
import type { GenerationRecord } from '../../live/supervisor/generation-file.ts';
import type { CommandIo } from './command.ts';

/** The settings that decide which keys a server has. */
const KEY_SETTINGS = ['STORE', 'STORE_KEY', 'DATA_DIR', 'SESSION_KEY'];

/** @throws Error with a line that says what to set */
export function commandEnvironment(
  { env, cwd }: Pick<CommandIo, 'env' | 'cwd'>,
  flags: Readonly<Record<string, unknown>>,
  reads: readonly (keyof Settings)[] | undefined,
): CommandIo['env'] {
  const written = (flags['env-file'] as string | undefined) ?? env.ENV_FILE;
  if (written) return withEnvFiles(env, written, cwd);
  const devEnv = withEnvFiles(env, DEV, cwd);
  const dataDirs = [devEnv, env].map(
    (variables) => settingsOf(readSettings(variables, flags, { cores: 1, cwd })).dataDir,
  );
  const servers = [...new Set(dataDirs)].flatMap((dataDir) => readServer(dataDir) ?? []);
  const running = servers.filter(({ isRunning }) => isRunning);
  const changesKeys = reads === undefined || reads.includes('store');
  const hasChanged = running.some(
    ({ dev }) =>
      dev?.folder === cwd && dev.fingerprints.join() !== envFilePaths(dev.envFile, cwd).map(fingerprint).join(),
  );
  if (reads?.includes('store') && hasChanged)
    throw new Error('.env has changed since gatefold dev began: start gatefold dev again');
  // `serve` leaves no record in a data folder that is missing. So a record in another data folder is not the last one.
  const isLastKnown = dataDirs[0] === dataDirs[1] || !changesKeys;
  const besides = running.length > 0 || !isLastKnown ? running : servers;
  const envFiles = new Set(besides.map(({ dev }) => (dev?.folder === cwd ? dev.envFile : 'off')));
  const differing = KEY_SETTINGS.filter((name) => devEnv[name] !== env[name]);
  if (changesKeys && differing.length > 0 && envFiles.size !== 1)
    throw new Error(
      `.env sets ${differing.join(', ')}, which gatefold dev reads and gatefold serve does not: set ENV_FILE to dev or to off`,
    );
  return withEnvFiles(env, envFiles.has(DEV) ? DEV : ([...envFiles][0] ?? 'off'), cwd);
}

/** @returns undefined when no server has used this data folder */
function readServer(dataDir: string): (GenerationRecord & { readonly isRunning: boolean }) | undefined {
  const path = join(dataDir, 'generation.json');
  const record: GenerationRecord | undefined = attempt(() => JSON.parse(readFileSync(path, 'utf8')), undefined);
  // Since the start of the machine, another process may have the process id. Or the clock was set forward.
  const isOld = (statOf(path)?.mtimeMs ?? 0) < Date.now() - uptime() * 1000;
  const isRecent = !isOld || isSurelyAlive(record?.process);
  return record && { ...record, isRunning: isRecent && record.state !== 'stopped' && isAlive(record.pid) };
}
