// `gatefold contracts` asks the TypeScript of the project for the types that the reader refuses, and writes them into
// `contracts.gen.ts` beside the controllers. Serving needs that file alone. The controllers are inspected again until
// no new type is wanted, because a load stops at the first type that it refuses.
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { statOf } from '../../base/fingerprint.ts';
import { sortedBy } from '../../base/sorted-by.ts';
import { readSourceOrEmpty } from '../../base/source-file.ts';
import { writeWholeFile } from '../../base/whole-file.ts';
import * as madeTypes from '../../contract/made-types.ts';
import type { WantedType } from '../../contract/source/source-error.ts';
import { type Answer, type Command, type CommandCall, CommandError } from './command.ts';
import { brokenFiles, inspectFolder, listOrRefuse } from './inspection.ts';
import { printType, READ_NAMES, Unprintable } from './type-printer.ts';
import { findLoss, isWritable, openTypeProject, type TypeProject } from './type-project.ts';
import { readOrEmpty } from './types.ts';

export const command: Command = {
  name: 'contracts',
  about:
    'Write the types that only TypeScript understands, such as Insertable<UserTable>, as plain types beside the controllers',
  flags: { check: `Write nothing, and exit with 1 when ${madeTypes.MADE_TYPES_FILE} is out of date` },
  reads: ['controllersDir', 'dataDir'],
  run: (call) => run(call),
};

interface MadeType {
  readonly name: string;
  readonly helpers: readonly string[];
  /** The declarations of the type and its helpers. */
  readonly text: string;
  readonly sources: readonly madeTypes.Source[];
}

/** Maximum number of runs while packages are being installed. */
const MAX_RUNS = 3;

async function run(call: CommandCall, runs = 1): Promise<Answer> {
  const { settings, io, switches } = call;
  const begunAt = Date.now();
  listOrRefuse(settings.controllersDir);
  const folder = realpathSync.native(settings.controllersDir);
  const file = join(folder, madeTypes.MADE_TYPES_FILE);
  const made = new Map<string, MadeType>();
  const refused = new Map<string, string>();
  const notes: string[] = [];
  let broken: string[] = [];
  const draftFolder = mkdtempSync(join(tmpdir(), 'gatefold-contracts-'));
  const draft = join(draftFolder, madeTypes.MADE_TYPES_FILE);
  let project: TypeProject | undefined;
  try {
    for (;;) {
      writeFileSync(draft, render(made));
      const inspection = await inspectFolder(settings, io, { madeTypes: draft });
      const loads = brokenFiles(inspection);
      const isNew = (type: WantedType) => !made.has(keyOf(type)) && !refused.has(keyOf(type));
      const wanted = loads
        .flatMap(({ wanted: type }) => type ?? [])
        .filter((type) => isWritable(type) && type.path !== draft && isNew(type));
      // A file that fails for another reason can need types, too.
      broken = loads
        .filter(({ wanted: type }) => type === undefined || !refused.has(keyOf(type)))
        // This command has just run, so the advice to run it would not help.
        .map(({ file, error }) => `${file} does not load: ${error?.replace(', or run gatefold contracts', '')}`);
      if (wanted.length === 0) break;
      project?.close();
      project = await openTypeProject(folder, wanted);
      for (const type of wanted) make(type, project);
    }
  } finally {
    project?.close();
    rmSync(draftFolder, { recursive: true, force: true });
  }
  if (runs < MAX_RUNS && [...made.values()].some(({ sources }) => sources.some(isNewer))) return run(call, runs + 1);
  const text = render(made);
  const isCurrent = readOrEmpty(file) === text;
  if (switches.has('check') && !isCurrent)
    throw new CommandError(`${madeTypes.MADE_TYPES_FILE} is out of date. Run: gatefold contracts`);
  if (text === '') rmSync(file, { force: true });
  else if (!isCurrent) writeWholeFile(file, text, { mode: 0o644, isDurable: false });
  const json = {
    file,
    changed: !isCurrent,
    types: [...made.values()].map(({ name }) => name),
    refused: [...refused.values()],
  };
  const count = made.size === 1 ? '1 type' : `${made.size} types`;
  const answer = isCurrent
    ? `${madeTypes.MADE_TYPES_FILE} is current: ${count}`
    : `Wrote ${madeTypes.MADE_TYPES_FILE}: ${count}`;
  const warnings = [...refused.values(), ...broken, ...new Set(notes)];
  return {
    json,
    text: made.size + broken.length === 0 && isCurrent ? 'No type needs TypeScript' : answer,
    warnings,
    exitCode: refused.size + broken.length === 0 ? 0 : 1,
  };

  /** The version of a package is read after its types, so it can be another one. */
  function isNewer([kind, name]: madeTypes.Source): boolean {
    if (kind === 'file') return false;
    const path = kind === 'config' ? join(folder, name) : (madeTypes.findPackage(folder, name)?.home ?? folder);
    return [path, join(path, 'package.json')].some((file) => (statOf(file)?.ctimeMs ?? 0) >= begunAt);
  }

  function keyOf(wanted: WantedType): string {
    return madeTypes.placeKey(folder, wanted.path, wanted, readSourceOrEmpty(wanted.path));
  }

  function make(wanted: WantedType, types: TypeProject): void {
    const key = keyOf(wanted);
    const node = types.nodeAt(wanted);
    const place = key.replace(/@.*$/, '');
    const written = node?.getText().replace(/\s+/g, ' ').slice(0, 80);
    const packages = new Set<string>();
    const loss = node && findLoss(node, types, packages);
    if (node === undefined || loss !== undefined) {
      refused.set(
        key,
        `${place}: ${written ?? 'the type'} ${node === undefined ? 'is not in the project of TypeScript' : `would lose ${loss}: write the type out, or infer it from the schema`}`,
      );
      return;
    }
    try {
      const names = new Set([
        ...READ_NAMES,
        ...Array.from(made.values(), (type) => [type.name, ...type.helpers]).flat(),
      ]);
      const base = node.getText().replace(/\W+/g, '_').replace(/^_|_$/g, '').slice(0, 50) || 'Type';
      let name = /^\d/.test(base) ? `T${base}` : base;
      for (let i = 2; names.has(name); i++) name = `${base}${i}`;
      const printed = printType(types.checker.getTypeAtLocation(node), name, types);
      const declarations = [...printed.helpers, [name, printed.text] as const];
      const text = declarations.map(([helper, body]) => `export type ${helper} = ${body};\n`).join('\n');
      const helpers = [...printed.helpers.keys()];
      if (helpers.some((helper) => names.has(helper))) throw new Unprintable('two types would have one name');
      made.set(key, { name, helpers, text, sources: types.sourcesOf(wanted.path, packages) });
      notes.push(...printed.notes.map((note) => `${place}: ${note}`));
    } catch (error) {
      if (!(error instanceof Unprintable)) throw error;
      refused.set(key, `${place}: ${written}: ${error.message}`);
    }
  }
}

/** Writes the file sorted, so that only what has changed differs. Returns an empty text for no type. */
function render(made: ReadonlyMap<string, MadeType>): string {
  if (made.size === 0) return '';
  const sources = new Map(
    [...made.values()].flatMap((type) => type.sources).map((source) => [source.join('\n'), source]),
  );
  const sorted = sortedBy(sources, ([key]) => key);
  const indexes = new Map(sorted.map(([key], i) => [key, i]));
  const entries = sortedBy(made, ([key]) => key).map(([key, { name, sources }]): [string, [string, number[]]] => [
    key,
    [name, sources.map((source) => indexes.get(source.join('\n')) as number).sort((a, b) => a - b)],
  ]);
  const types = sortedBy(made.values(), ({ name }) => name).map(({ text }) => text);
  const head = '// Written by `gatefold contracts` with TypeScript. Do not edit it: run the command again.\n';
  const text = `${[head, ...types].join('\n')}\n`;
  const content = { entries: Object.fromEntries(entries), sources: sorted.map(([, source]) => source) };
  const index: madeTypes.MadeIndex = { digest: madeTypes.indexDigestOf(text, content), ...content };
  return `${text}/*gatefold ${JSON.stringify(index)}*/\n`;
}
