// Watches the files of variables in `gatefold dev`. A change is a restart of the service, because settings and modules
// read the environment once.
import cluster from 'node:cluster';
import { unwatchFile, watchFile } from 'node:fs';
import { parseSettings } from '../../base/config.ts';
import { envFilePaths, withEnvFiles } from '../../base/env-files.ts';
import { errorMessage } from '../../base/failure.ts';
import type { Log } from '../../base/log.ts';
import type { DevRecord } from './generation-file.ts';

export interface Dev {
  readonly record: DevRecord;
  /** @param onChange called when the files have other variables @returns a function that ends the watch */
  readonly watch: (onChange: () => void) => () => void;
  /** Starts the service in this process again. */
  readonly restart: () => Promise<void>;
}

export interface EnvWatchOptions {
  readonly envFile: string;
  readonly argv: readonly string[];
  /** The environment without the variables of the files. */
  readonly env: NodeJS.ProcessEnv;
  readonly log: Log;
}

/** Milliseconds between two looks at a file. */
const INTERVAL = 300;

export function watchEnvFiles({ envFile, argv, env, log }: EnvWatchOptions, onChange: () => void): () => void {
  const paths = envFilePaths(envFile);
  let lastVariables = JSON.stringify(withEnvFiles(env, envFile));
  const look = () => {
    try {
      const variables = withEnvFiles(env, envFile);
      parseSettings(variables, argv, { cores: 1 });
      if (JSON.stringify(variables) === lastVariables) return;
      lastVariables = JSON.stringify(variables);
      log.info('env-file-changed', { effect: 'the service starts again' });
      onChange();
    } catch (error) {
      log.error('env-file-refused', { error: errorMessage(error), effect: 'the service keeps its variables' });
    }
  };
  for (const path of paths) watchFile(path, { interval: INTERVAL, persistent: false }, look);
  return () => {
    for (const path of paths) unwatchFile(path, look);
  };
}

/** Removes the listeners of a service that has stopped, so that this process can start it again. */
export function forgetService(): void {
  for (const event of ['SIGTERM', 'SIGINT', 'SIGHUP', 'uncaughtException']) process.removeAllListeners(event);
  process.stdout.removeAllListeners('error');
  cluster.removeAllListeners('fork');
}
