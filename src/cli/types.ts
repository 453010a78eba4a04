// `gatefold types` writes the types of all operations into a file for a front end, or checks that such a file is up to
// date. docs/declarations.ts makes the text.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { describeFailure, errorCode } from '../base/failure.ts';
import { makeFolder } from '../base/make-folder.ts';
import { type Answer, type Call, type Command, Refused, UsageError } from './command.ts';
import { inspectFolder } from './inspection.ts';
import { brokenPlace } from './routes.ts';

export const command: Command = {
  name: 'types',
  usage: '[--out FILE] [--check]',
  about: 'Write the types of all operations for a front end: createClient<Api>() needs no source of the service',
  flags: {
    'out FILE': 'The file to write; default: standard output',
    check: 'Write nothing, and exit with 1 when FILE is out of date',
  },
  reads: ['controllersDir', 'dataDir', 'basePath'],
  run,
};

async function run({ settings, io, options: { out }, flags }: Call): Promise<Answer> {
  const isCheckOnly = flags.has('check');
  if (isCheckOnly && out === undefined) throw new UsageError('--check needs --out FILE');
  const { declarations, groups } = await inspectFolder(settings, io, { wantsTypes: true });
  const broken = groups.find(({ ok }) => !ok);
  if (broken !== undefined) throw new Refused(`${brokenPlace(broken, io.cwd)} does not load: ${broken.error}`);
  if (declarations === undefined) throw new Refused('Cannot write the types: the controllers folder was not loaded');
  const { text, untypedOperations } = declarations;
  if (out === undefined)
    return { json: { text, unknown: untypedOperations }, text: text.trimEnd(), complaints: untypedOperations };
  const path = resolve(io.cwd, out);
  const isCurrent = readOrEmpty(path) === text;
  if (isCheckOnly && !isCurrent) throw new Refused(`${out} is out of date. Run: gatefold types --out ${out}`);
  if (!isCurrent) writeFile(path, text);
  return {
    json: { file: path, changed: !isCurrent, unknown: untypedOperations },
    text: isCurrent ? `${out} is current` : `Wrote ${out}`,
    complaints: untypedOperations,
  };
}

function readOrEmpty(path: string): string {
  try {
    // On Windows, git may have checked the file out with other line ends.
    return readFileSync(path, 'utf8').replaceAll('\r\n', '\n');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return '';
    throw new Refused(`Cannot read ${path}: ${describeFailure(error)}`);
  }
}

function writeFile(path: string, text: string): void {
  try {
    makeFolder(dirname(path));
    writeFileSync(path, text);
  } catch (error) {
    throw new Refused(`Cannot write ${path}: ${describeFailure(error)}`);
  }
}
