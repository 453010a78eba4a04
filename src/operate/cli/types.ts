// `gatefold types` writes the types of all operations into a file for a front end, or checks that such a file is up to
// date. src/documents/declarations.ts makes the text of the file.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { explainFailure, unlessMissing } from '../../base/failure.ts';
import { makeFolder } from '../../base/make-folder.ts';
import type { Declarations } from '../../documents/declarations.ts';
import { type Answer, type Command, type CommandCall, CommandError, UsageError } from './command.ts';
import { brokenFiles, inspectFolder } from './inspection.ts';
import { brokenPlace } from './routes.ts';

export const command: Command = {
  name: 'types',
  about: 'Write the types of all operations for a front end: createClient<Api>() needs no source of the service',
  flags: {
    'out FILE': 'The file to write; default: standard output',
    check: 'Write nothing, and exit with 1 when FILE is out of date',
  },
  reads: ['controllersDir', 'dataDir', 'basePath'],
  run,
};

async function run({ settings, io, flagValues: { out }, switches }: CommandCall): Promise<Answer> {
  const isCheckOnly = switches.has('check');
  if (isCheckOnly && out === undefined) throw new UsageError('--check needs --out FILE');
  const inspection = await inspectFolder(settings, io, { wantsTypes: true });
  // Without the service file, the controllers in subfolders would be missing in the types.
  const [broken] = brokenFiles(inspection);
  if (broken !== undefined) throw new CommandError(`${brokenPlace(broken, io.cwd)} does not load: ${broken.error}`);
  const { text, untypedOperations } = inspection.declarations as Declarations;
  if (out === undefined)
    return { json: { text, unknown: untypedOperations }, text: text.trimEnd(), warnings: untypedOperations };
  const path = resolve(io.cwd, out);
  const isCurrent = readOrEmpty(path) === text;
  if (isCheckOnly && !isCurrent) throw new CommandError(`${out} is out of date. Run: gatefold types --out ${out}`);
  if (!isCurrent)
    explainFailure(`Cannot write ${path}`, () => {
      makeFolder(dirname(path));
      writeFileSync(path, text);
    });
  const json = { file: path, changed: !isCurrent, unknown: untypedOperations };
  return { json, text: isCurrent ? `${out} is current` : `Wrote ${out}`, warnings: untypedOperations };
}

export function readOrEmpty(path: string): string {
  const text = explainFailure(`Cannot read ${path}`, () => unlessMissing(() => readFileSync(path, 'utf8'), ''));
  // On Windows, git may have changed the line ends of a file that is up to date.
  return text.replaceAll('\r\n', '\n');
}
