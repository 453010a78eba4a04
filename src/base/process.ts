// What every process of the service begins with, supervisor or worker: its settings, and a log that is written to the end.
import { availableParallelism } from 'node:os';
import { parseSettings, type Settings, SettingsError } from './config.ts';
import { createLog, type Log } from './log.ts';
import { createLogWriter, type LogWriter } from './log-writer.ts';

export interface ProcessBasics {
  readonly settings: Settings;
  readonly log: Log;
  /** What the log writes to. */
  readonly sink: LogWriter;
  /** Has every line on its way; the process ends next. */
  readonly flush: () => void;
}

/** Undefined when a setting makes no sense: the one line that says so is written, and the exit code set. */
export function readProcessBasics(): ProcessBasics | undefined {
  const settings = readSettings();
  if (settings === undefined) return undefined;
  const sink = createLogWriter(2);
  return { settings, log: createLog({ level: settings.logLevel, sink }), sink, flush: () => sink.close() };
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
