// `gatefold dev`: serves like `gatefold serve`, for development. It sets the environment of the service instead of a
// shell, because shells set variables in different ways.
import { type CommandIo, type ExitCode, print } from './command.ts';
import { command as serve } from './serve.ts';

const HELP = [
  'Usage: gatefold dev [--SETTING VALUE]…',
  '',
  'Serve the controllers folder for development: one worker, and a 500 answer that contains its cause.',
  'The flags are those of gatefold serve.',
];

export async function command(argv: readonly string[], io: CommandIo): Promise<ExitCode> {
  if (argv.includes('--help') || argv.includes('-h')) return print(io.stdout, `${HELP.join('\n')}\n`, 0);
  process.env.NODE_ENV = 'development';
  process.env.WORKERS ||= '1';
  return serve(argv, io);
}
