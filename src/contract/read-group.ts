// What the source says about a group: its operations, each found where it is declared, and compared with what run time has. A
// difference is an error, never an operation without a check.
import { basename } from 'node:path';
import { createBundle } from './bundle.ts';
import { findLevels, findMethod, type Level } from './class-levels.ts';
import type { GroupContract, OperationContract } from './contract.ts';
import { ContractError } from './contract-error.ts';
import { readDoc, summaryOf } from './doc-comment.ts';
import { createEvaluator } from './evaluate.ts';
import { withGiven } from './given.ts';
import { type HiddenTypes, hiddenTypes } from './hidden-types.ts';
import { type RunTimeOperation, readOperation } from './read-operation.ts';
import { UNKNOWN_RESULT } from './results.ts';
import { createSchemaWriter } from './schema.ts';
import { lineOf } from './source-error.ts';
import { type SourceText, sourceText } from './source-text.ts';
import { type TypeFiles, UnreadableFile } from './type-files.ts';
import { findAmbiguity } from './union-safety.ts';

export interface GroupSource {
  readonly path: string;
  readonly group: string;
  readonly operations: readonly RunTimeOperation[];
  /** `constructor.name` of each level, as run time has them; undefined for an object. */
  readonly classNames: readonly (string | undefined)[];
  /** What it imports: an operation may come from there in a way that is not followed. */
  readonly others: () => readonly SourceText[];
}

/** @throws ContractError */
export function readGroup({ path, group, operations, classNames, others }: GroupSource, files: TypeFiles): GroupContract {
  const evaluator = createEvaluator(files.load);
  const writer = createSchemaWriter();
  const bundle = createBundle(writer);
  const read = readingAt(path);
  const module = read(() => files.read(path));
  const inSource = read(() => findLevels(path, group, evaluator, module));
  // Another class than the one that was loaded says nothing about it.
  const levels = inSource.every(({ className }, i) => i < classNames.length && className === classNames[i]) ? inSource : [];
  const own = sourceText(path, module.source, module.tokens);
  const sight = () => [own, ...others()];
  const found = new Map<string, OperationContract>();
  for (const operation of operations) {
    const method = read(() => findMethod(levels, operation.name, evaluator));
    const types = hiddenTypes({ ...operation, found: method, levels, sight });
    if (types !== undefined) throw unreadable(operation.name, own, types);
    const one = method === undefined ? notFound(operation.name) : readOperation(operation, method, { evaluator, writer, files });
    const ambiguous = findAmbiguity(
      [one.data, one.query, one.path].filter((schema) => schema !== undefined),
      writer.defs,
    );
    if (ambiguous !== undefined) throw new ContractError(one.at ?? path, `${operation.name}: ${ambiguous}`);
    found.set(operation.name, withGiven(one, operation.given, bundle));
  }
  refuseWhatIsNotThere(path, module.source, levels, operations);
  return { group, ...summaryOf(readDoc(levels[0]?.doc).text), operations: inSourceOrder(found, levels), defs: writer.defs };
}

// What run time sees against what was read

function unreadable(name: string, own: SourceText, { file, at }: HiddenTypes): ContractError {
  const line = lineOf(file.source, at);
  const here = own.tokens.list.find(({ value }) => value === name)?.at ?? 0;
  const [place, where] = file.path === own.path ? [line, ''] : [lineOf(own.source, here), ` (see ${basename(file.path)}:${line})`];
  return new ContractError(
    `${own.path}:${place}`,
    `${name} is an operation whose types cannot be read${where}: write it as a method of the exported class or object, or without annotations`,
  );
}

/** A method that was read, and that run time does not have, was misread. */
function refuseWhatIsNotThere(path: string, source: string, [own]: readonly Level[], operations: readonly RunTimeOperation[]): void {
  const names = new Set(operations.map(({ name }) => name));
  for (const { kind, name, body, modifiers, at } of own?.members ?? []) {
    const isPublic = !modifiers.some((word) => word === 'static' || word === 'private' || word === 'protected');
    if (kind !== 'method' || !body || !isPublic || !/^[a-z][A-Za-z0-9]*$/.test(name) || name === 'constructor' || names.has(name)) continue;
    if (own?.scope.path !== path) continue;
    throw new ContractError(
      `${path}:${lineOf(source, at)}`,
      `${name} was read as an operation, but the loaded class has none of that name`,
    );
  }
}

function inSourceOrder(found: ReadonlyMap<string, OperationContract>, levels: readonly Level[]): ReadonlyMap<string, OperationContract> {
  const order = new Map(levels.flatMap(({ members }) => members.map(({ name }) => name)).map((name, i) => [name, i]));
  return new Map([...found].sort(([a], [b]) => (order.get(a) ?? Infinity) - (order.get(b) ?? Infinity) || 0));
}

// Places

/** Errors of the syntax, with their place. */
function readingAt(controller: string): <T>(work: () => T) => T {
  return (work) => {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof UnreadableFile)) throw error;
      const where = error.path === controller ? '' : ` (imported by ${basename(controller)})`;
      throw new ContractError(
        `${error.path}:${lineOf(error.source, error.at)}`,
        `${error.message}${where}: the types in this file cannot be read`,
      );
    }
  };
}

function notFound(name: string): OperationContract {
  return {
    ...UNDESCRIBED,
    name,
    unchecked: 'its source is not followed: it is made by code, or comes from a package',
    at: undefined,
  };
}

const UNDESCRIBED = {
  summary: undefined,
  description: undefined,
  deprecated: false,
  data: undefined,
  query: undefined,
  path: undefined,
  results: [UNKNOWN_RESULT],
  undocumented: undefined,
} as const;
