// The commands of `gatefold`, and its flag `--version`.
import { version } from '../../own-files.ts';
import { type CommandIo, type ExitCode, type ListedCommand, print, runListedCommand } from './command.ts';

const dev = () => import('./serve.ts').then((serve) => ({ command: serve.dev }));

const COMMANDS: readonly ListedCommand[] = [
  row('dev', 'Serve the controllers folder for development', dev),
  row('serve', 'Serve the controllers folder', () => import('./serve.ts')),
  row('routes', 'List every URL that answers', () => import('./routes.ts')),
  row('openapi', 'Print the OpenAPI document', () => import('./openapi.ts')),
  row('tasks', 'List the tasks of the service file', () => import('./tasks.ts')),
  row('types', 'Write the types of all operations for a front end', () => import('./types.ts')),
  row('contracts', 'Write the types that only TypeScript understands', () => import('./contracts.ts')),
  row('doctor', 'Find what is wrong with this installation', () => import('./doctor.ts')),
  row('init', 'Make a project of your own', () => import('./init.ts')),
  row('new', 'Make a controller to edit', () => import('./new.ts')),
  row('deploy', 'Bring this project to machines, by ssh', () => import('./deploy/deploy.ts')),
  row('credentials', 'Issue, list, rotate, revoke and check application credentials', () => import('./credentials.ts')),
  row('store', 'Prepare, show, fill and copy the store that several machines share', () => import('./store.ts')),
];

function row(name: string, about: string, load: ListedCommand['load']): ListedCommand {
  return { name, about, load };
}

const ABOUT = 'A JSON API server: drop a controller file into a folder and it answers; --version prints the version';

export async function runGatefold(argv: readonly string[], io: CommandIo): Promise<ExitCode> {
  if (argv[0] === '--version' || argv[0] === '-v') return print(io.stdout, `${version()}\n`, 0);
  return runListedCommand('gatefold', ABOUT, COMMANDS, argv, io);
}
