// Watches the files of variables in `gatefold dev`. A change is a restart, because all code reads the environment once.
import { unwatchFile, watchFile } from 'node:fs';
import { parseSettings } from '../../base/config.ts';
import { envFilePaths, withEnvFiles } from '../../base/env-files.ts';
import { errorMessage } from '../../base/failure.ts';
import type { Log } from '../../base/log.ts';
import type { DevRecord } from './generation-file.ts';
import type { Service } from './step-parts.ts';

export interface Dev {
  readonly record: DevRecord;
  /** @param onChange called when the files have other variables @returns a function that ends the watch */
  readonly watch: (onChange: () => void) => () => void;
  /** Starts the service in this process again. */
  readonly restart: () => Promise<void>;
  readonly makeTypes: NonNullable<Service['makeTypes']>;
}

/** Milliseconds between two looks at a file. */
const INTERVAL = 300;

/** @param env the environment without the variables of the files */
export function createEnvWatch(
  envFile: string,
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
  log: Log,
): Dev['watch'] {
  const paths = envFilePaths(envFile);
  let variables = withEnvFiles(env, envFile);
  return (onChange) => {
    const look = () => {
      try {
        const next = withEnvFiles(env, envFile);
        parseSettings(next, argv, { cores: 1 });
        if (JSON.stringify(next) === JSON.stringify(variables)) return;
        variables = next;
        log.info('env-file-changed', { effect: 'the service starts again' });
        onChange();
      } catch (error) {
        log.error('env-file-refused', { error: errorMessage(error), effect: 'the service keeps its variables' });
      }
    };
    for (const path of paths) watchFile(path, { interval: INTERVAL, persistent: false }, look);
    return () => paths.map((path) => unwatchFile(path, look));
  };
}
