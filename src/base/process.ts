// What every process of the service begins with, supervisor or worker: its settings, and a log that is written to the
// end.
import { availableParallelism } from 'node:os';
import { isatty } from 'node:tty';
import { parseSettings, SettingsError, secretFlags } from './config.ts';
import { createInk, type Ink } from './ink.ts';
import { createLog, type Log } from './log.ts';
import { createLogWriter, type LogWriter } from './log-writer.ts';
import { createPrettyWriter } from './pretty.ts';
import type { Settings } from './settings.ts';

export interface ProcessBasics {
  readonly settings: Settings;
  readonly log: Log;
  /** What the log writes to. */
  readonly sink: LogWriter;
  /** What the log is painted with, when it is for people. */
  readonly ink: Ink | undefined;
  /** Has every line on its way; the process ends next. */
  readonly flush: () => void;
}

/** Undefined when a setting makes no sense: the one line that says so is written, and the exit code set. */
export function readProcessBasics(): ProcessBasics | undefined {
  const settings = readSettings();
  if (settings === undefined) return undefined;
  // On Linux and BSD a title takes the place of the command line: what `ps` shows is no secret from here on.
  if (secretFlags(process.argv).length > 0) process.title = 'gatefold';
  const { writer: sink, ink } = openLog(settings);
  return { settings, ink, log: createLog({ level: settings.logLevel, sink }), sink, flush: () => sink.close() };
}

/** On a terminal it is for people, elsewhere for machines. */
function openLog({ logFormat }: Settings): { writer: LogWriter; ink: Ink | undefined } {
  const writer = createLogWriter(2);
  const isTTY = isatty(2);
  if (logFormat === 'json' || (logFormat === 'auto' && !isTTY)) return { writer, ink: undefined };
  const ink = createInk({ isTTY, env: process.env });
  return {
    writer: createPrettyWriter(writer, {
      ink,
      cwd: process.cwd(),
      columns: () => (isTTY ? process.stderr.columns : undefined),
    }),
    ink,
  };
}

function readSettings(): Settings | undefined {
  try {
    return parseSettings(process.env, process.argv.slice(2), { cores: availableParallelism() });
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    process.stderr.write(`gatefold: ${error.message}\n`);
    process.exitCode = 1;
    return undefined;
  }
}
