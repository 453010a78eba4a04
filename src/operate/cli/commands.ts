// The commands of `gatefold`, and its flag `--version`.
import { version } from '../../own-files.ts';
import { type CommandIo, type ExitCode, type ListedCommand, print, runListedCommand } from './command.ts';

const COMMANDS: readonly ListedCommand[] = [
  {
    name: 'dev',
    about: 'Serve the controllers folder for development',
    load: () => import('./serve.ts').then(({ dev }) => ({ command: dev })),
  },
  { name: 'serve', about: 'Serve the controllers folder', load: () => import('./serve.ts') },
  { name: 'routes', about: 'List every URL that answers', load: () => import('./routes.ts') },
  { name: 'openapi', about: 'Print the OpenAPI document', load: () => import('./openapi.ts') },
  { name: 'tasks', about: 'List the tasks of the service file', load: () => import('./tasks.ts') },
  { name: 'types', about: 'Write the types of all operations for a front end', load: () => import('./types.ts') },
  {
    name: 'contracts',
    about: 'Write the types that only TypeScript understands',
    load: () => import('./contracts.ts'),
  },
  { name: 'doctor', about: 'Find what is wrong with this installation', load: () => import('./doctor.ts') },
  { name: 'init', about: 'Make a project of your own', load: () => import('./init.ts') },
  { name: 'new', about: 'Make a controller to edit', load: () => import('./new.ts') },
  { name: 'deploy', about: 'Bring this project to machines, by ssh', load: () => import('./deploy/deploy.ts') },
  {
    name: 'credentials',
    about: 'Issue, list, rotate, revoke and check application credentials',
    load: () => import('./credentials.ts'),
  },
  {
    name: 'store',
    about: 'Prepare, show, fill and copy the store that several machines share',
    load: () => import('./store.ts'),
  },
];

const ABOUT = 'A JSON API server: drop a controller file into a folder and it answers; --version prints the version';

export async function runGatefold(argv: readonly string[], io: CommandIo): Promise<ExitCode> {
  if (argv[0] === '--version' || argv[0] === '-v') return print(io.stdout, `${version()}\n`, 0);
  return runListedCommand('gatefold', ABOUT, COMMANDS, argv, io);
}
