// Sets up what every process of the service needs (supervisor, worker, store-host): the settings and the log.
import { availableParallelism } from 'node:os';
import { isatty } from 'node:tty';
import { parseSettings, SettingsError, secretFlags } from './config.ts';
import { createInk, type Ink } from './ink.ts';
import { createLog } from './log.ts';
import { createLogWriter, type LogWriter } from './log-writer.ts';
import { createPrettyWriter } from './pretty.ts';
import type { Settings } from './settings.ts';

export type ProcessBasics = NonNullable<ReturnType<typeof readProcessBasics>>;

/**
 * Reads the settings and opens the log. When a setting is invalid, prints the reason on standard error, sets the exit
 * code, and returns undefined. `ink` has the colours of a log for people. It is undefined when the log is JSON.
 */
export function readProcessBasics() {
  let settings: Settings;
  try {
    settings = parseSettings(process.env, process.argv.slice(2), { cores: availableParallelism() });
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    process.stderr.write(`gatefold: ${error.message}\n`);
    process.exitCode = 1;
    return undefined;
  }
  // On Linux and BSD, the title replaces the command line that `ps` shows. So `ps` no longer shows a secret flag.
  if (secretFlags(process.argv).length > 0) process.title = 'gatefold';
  const { writer: sink, ink } = openLog(settings);
  return { settings, ink, log: createLog({ level: settings.logLevel, sink }), sink };
}

function openLog({ logFormat }: Settings): { writer: LogWriter; ink: Ink | undefined } {
  const writer = createLogWriter(2);
  const isTTY = isatty(2);
  if (logFormat === 'json' || (logFormat === 'auto' && !isTTY)) return { writer, ink: undefined };
  const ink = createInk({ isTTY, env: process.env });
  const columns = () => (isTTY ? process.stderr.columns : undefined);
  return { writer: createPrettyWriter(writer, { ink, cwd: process.cwd(), columns }), ink };
}
