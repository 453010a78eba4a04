// Which commands there are, and the first word of the line: a command, `--help` or `--version`. A command's file is
// imported only when it is called. What the words after it mean is not known here.
import { version } from '../own-files.ts';
import { type CommandIo, type ExitCode, print, printFailure, UsageError } from './command.ts';

type Run = (argv: readonly string[], io: CommandIo) => Promise<ExitCode>;

interface Entry {
  readonly name: string;
  readonly about: string;
  readonly load: () => Promise<Run>;
}

const COMMANDS: readonly Entry[] = [
  { name: 'serve', about: 'Serve the controllers folder', load: async () => (await import('./serve.ts')).run },
  { name: 'routes', about: 'List every URL that answers', load: async () => (await import('./routes.ts')).run },
  { name: 'explain', about: 'Say what answers a request, or why nothing does', load: async () => (await import('./explain.ts')).run },
  { name: 'doctor', about: 'Look for what is wrong with this installation', load: async () => (await import('./doctor.ts')).run },
  { name: 'new', about: 'Make a controller to edit', load: async () => (await import('./new.ts')).run },
  {
    name: 'credentials',
    about: 'Issue, list, rotate, revoke and check application credentials',
    load: async () => (await import('./credentials.ts')).runCredentials,
  },
];

/** @param argv the words after `gatefold` */
export async function runGatefold(argv: readonly string[], io: CommandIo): Promise<ExitCode> {
  const [name = '', ...words] = argv;
  try {
    if (name === '--help' || name === '-h' || name === 'help') return await print(io.stdout, `${help()}\n`, 0);
    if (name === '--version' || name === '-v') return await print(io.stdout, `${version()}\n`, 0);
    const command = COMMANDS.find((entry) => entry.name === name);
    if (command === undefined) {
      throw new UsageError(name === '' ? 'a command is missing' : `${JSON.stringify(name)} is none of its commands`);
    }
    const run = await command.load();
    return await run(words, io);
  } catch (error) {
    return printFailure('gatefold', error, io);
  }
}

function help(): string {
  const width = Math.max(...COMMANDS.map(({ name }) => name.length));
  return [
    'Usage: gatefold COMMAND [WORDS]',
    '',
    'A JSON API server: drop a controller file into a folder and it answers.',
    '',
    ...COMMANDS.map(({ name, about }) => `  ${name.padEnd(width)}  ${about}`),
    '',
    '  --help     Print this; gatefold COMMAND --help tells more',
    '  --version  Print the version',
  ].join('\n');
}
