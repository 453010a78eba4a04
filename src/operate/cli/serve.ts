// `gatefold serve` and `gatefold dev` run the server in this process.
import { pathToFileURL } from 'node:url';
import { flagOf } from '../../base/config.ts';
import { alignColumns } from '../../base/ink.ts';
import { settingRows } from '../../base/settings.ts';
import { entryPath } from '../../own-files.ts';
import { type CommandIo, type ExitCode, print } from './command.ts';

export async function command(argv: readonly string[], io: CommandIo, intro = HELP): Promise<ExitCode> {
  if (argv.includes('--help') || argv.includes('-h')) return print(io.stdout, `${help(intro)}\n`, 0);
  // server.ts reads its flags from `process.argv`, and passes them to the workers that it forks. The build would copy
  // server.ts into this file if its path were a literal.
  process.argv.splice(2, process.argv.length, ...argv);
  await import(pathToFileURL(entryPath('server')).href);
  // A server that cannot start sets the exit code to 1.
  return process.exitCode === 1 ? 1 : 0;
}

/** Serves for development. The variables are set here, because sh and Windows set them in different ways. */
export async function dev(argv: readonly string[], io: CommandIo): Promise<ExitCode> {
  process.env.NODE_ENV = 'development';
  return command(['--dev', ...argv], io, DEV_HELP);
}

const HELP = `Usage: gatefold serve [--SETTING VALUE]…

Serve the controllers folder until a signal ends it. Each flag is also an environment variable; the flag wins.`;

const DEV_HELP = `Usage: gatefold dev [--SETTING VALUE]…

Serve the controllers folder for development: one worker unless WORKERS or --workers says otherwise, and a 500
answer contains its cause. Variables that are not set come from .env.local, then from .env.
--inspect[=PORT] opens one port for a debugger, which stays the same over edits.
Each flag is also an environment variable; the flag wins.`;

function help(intro: string): string {
  const rows = settingRows({ cores: 1 }).map(({ name, fallback, about, key }) => {
    // The default number of workers depends on the machine.
    return [flagOf(name), name, key === 'workers' ? '' : fallback, about];
  });
  const table = alignColumns([['FLAG', 'VARIABLE', 'DEFAULT', ''], ...rows]);
  return [intro, '', ...table.map((row) => `  ${row.join('  ')}`.trimEnd())].join('\n');
}
