// `gatefold serve`: runs the server's entry in this process, and answers `--help`.
import { pathToFileURL } from 'node:url';
import { flagOf } from '../base/config.ts';
import { alignColumns } from '../base/ink.ts';
import { settingRows } from '../base/settings.ts';
import { entryPath } from '../own-files.ts';
import { type CommandIo, type ExitCode, print } from './command.ts';

export async function command(argv: readonly string[], io: CommandIo): Promise<ExitCode> {
  if (argv.includes('--help') || argv.includes('-h')) return print(io.stdout, `${help()}\n`, 0);
  // The entry reads its flags from `process.argv`, and passes them to the workers that it forks. The path is computed,
  // so that the build keeps the entry in its own file.
  process.argv.splice(2, process.argv.length, ...argv);
  await import(pathToFileURL(entryPath('server')).href);
  return process.exitCode === 1 ? 1 : 0;
}

function help(): string {
  const rows = settingRows({ cores: 1 }).map(({ name, fallback, about, key }) => [
    flagOf(name),
    name,
    key === 'workers' ? '' : fallback,
    about,
  ]);
  return [
    'Usage: gatefold serve [--SETTING VALUE]…',
    '',
    'Serve the controllers folder until a signal ends it. Each flag is also an environment variable; the flag wins.',
    '',
    ...alignColumns([['FLAG', 'VARIABLE', 'DEFAULT', ''], ...rows]).map((row) => `  ${row.join('  ')}`.trimEnd()),
  ].join('\n');
}
