// What the source says about a group: each operation of run time is found where it is declared, and its annotations are
// its contract. One that is not found refuses the file, unless nothing of a request can reach it unseen.
import { basename } from 'node:path';
import { isDataGiven, withGivenSchemas } from './check/library.ts';
import { findAmbiguity } from './check/union-safety.ts';
import type { GroupContract, OperationContract } from './contract.ts';
import { ContractError } from './contract-error.ts';
import { type RunTimeOperation, readOperation } from './read-operation.ts';
import { UNKNOWN_RESULT } from './results.ts';
import { createBundle } from './schema/bundle.ts';
import { createSchemaWriter } from './schema/schema.ts';
import { findUnreadConstraint } from './source/constraint-tags.ts';
import { readDoc, summaryOf } from './source/doc-comment.ts';
import { type ImportedFiles, type TypeFiles, UnreadableFile } from './source/files.ts';
import { lineOf, SourceError } from './source/source-error.ts';
import { Kind, type Token, tokenize } from './source/tokens.ts';
import {
  type FoundMember,
  findLevels,
  findMember,
  hasUnreadName,
  isMarkedHidden,
  type Level,
  type Levels,
} from './types/class-levels.ts';
import { createEvaluator } from './types/evaluate.ts';

/** A controller as the process has loaded it. */
export interface GroupSource {
  readonly path: string;
  readonly group: string;
  /** `default`, or the name of the controller's class. */
  readonly exportName: string;
  /** The `constructor.name` of each level, nearest first; undefined for an object. */
  readonly classNames: readonly (string | undefined)[];
}

export interface ReadSource {
  /** Whether the source marks a method of run time `private` or `protected`. */
  isHidden(name: string, depth: number): boolean;
  /** @throws ContractError */
  contract(operations: readonly RunTimeOperation[]): GroupContract;
}

/** @throws ContractError */
export function readGroup(
  { path, group, exportName, classNames }: GroupSource,
  files: TypeFiles,
  sources: ImportedFiles,
): ReadSource {
  const evaluator = createEvaluator(files.load);
  const atPlace = readingAt(path);
  const module = atPlace(() => files.read(path));
  const levels: Levels = atPlace(() => findLevels(exportName, { path, module, typeParams: new Map() }, evaluator));
  const { list } = levels;
  const isAligned = list.length <= classNames.length && list.every(({ className }, i) => className === classNames[i]);

  /**
   * The nearest member of that name, which is no farther than that of run time: a decorator may have put another class
   * in front. Where the classes are those of run time, the member is where run time has it.
   */
  function find(name: string, depth: number): FoundMember | undefined {
    for (const [i, level] of list.slice(0, depth + 1).entries()) {
      const member = atPlace(() => findMember(level, name, evaluator));
      // A field of a nearer class replaces the method.
      if (member !== undefined) return i === depth || !isAligned ? member : undefined;
    }
    return undefined;
  }

  function contract(operations: readonly RunTimeOperation[]): GroupContract {
    const writer = createSchemaWriter();
    const bundle = createBundle(writer);
    const contracts = new Map<string, OperationContract>();
    for (const operation of operations) {
      const { name, given } = operation;
      const method = find(name, operation.depth)?.method;
      const one =
        method === undefined
          ? unfound(operation)
          : atPlace(() => readOperation(operation, method, { evaluator, writer, files }));
      const schemas = [one.data, one.query, one.path].filter((schema) => schema !== undefined);
      const ambiguous = findAmbiguity(schemas, writer.defs);
      if (ambiguous !== undefined) throw new ContractError(one.at ?? path, `${name}: ${ambiguous}`);
      contracts.set(name, withGivenSchemas(one, given, bundle));
    }
    refuseWhatIsNotThere(path, module.source, list, operations);
    for (const level of list) refuseIdleTag(level);
    const summary = summaryOf(readDoc(list[0]?.doc).text);
    return { group, ...summary, operations: inSourceOrder(contracts, list), defs: writer.defs };
  }

  /**
   * An operation without a source: nothing checks it, and the commands name it; in TypeScript only where that was
   * meant.
   */
  function unfound({ name, method, depth, given }: RunTimeOperation): OperationContract {
    const place = `${path}:${lineOf(module.source, Math.max(module.source.search(new RegExp(`\\b${name.replace(/\W/g, '\\$&')}\\b`)), 0))}`;
    const refuse = (what: string): never => {
      const key = JSON.stringify(name);
      throw new ContractError(
        place,
        `${name} ${what}: write it as a method of the exported class or object, with a plain name, ` +
          `or say static operations = { ${key}: { body: schema } } or { ${key}: { unchecked: true } }`,
      );
    };
    const level = isAligned ? list[depth] : undefined;
    const isReplaced = level !== undefined && hasUnreadName(level, evaluator);
    if (isMarkedAnywhere(name)) refuse('may be private or protected, and its class is not found in the source');
    if (isReplaced && level.members.some(isMarkedHidden))
      refuse('may be private or protected, since a member beside it has a computed name');
    const isOfPackage = levels.isPackageBelow && isAligned && depth >= list.length;
    if (isOfPackage) return unread(name, 'it comes from a package, whose source is not read');
    if (given.unchecked === true) return unread(name, 'static operations says so');
    if (isDataGiven(name, given)) return unread(name, undefined);
    if (!path.endsWith('.ts'))
      return unread(name, 'its source is not followed: it is made by code, or comes from a package');
    if (takesNothing(method)) return unread(name, undefined);
    return refuse(
      `is an operation whose types are not found${isReplaced ? ', since a spread or a computed name may replace it' : ''}`,
    );
  }

  function isMarkedAnywhere(name: string): boolean {
    return [path, ...sources.imported()].some((file) => file.endsWith('.ts') && marks(sources.textOf(file), name));
  }

  return { isHidden: (name, depth) => find(name, depth)?.isHidden === true, contract };
}

/** Whether some class of the source marks a method of that name, or one whose name is computed. */
function marks(source: string, name: string): boolean {
  if (!/\b(?:private|protected)\b/.test(source)) return false;
  try {
    const { list, partner } = tokenize(source);
    return list.some(({ kind, text }, at) => {
      if (kind !== Kind.name || (text !== 'private' && text !== 'protected')) return false;
      const startsName = (token: Token | undefined) =>
        token?.kind === Kind.name || token?.kind === Kind.string || /^[[*]$/.test(token?.text ?? '');
      let i = at + 1;
      while (list[i]?.text !== '[' && startsName(list[i + 1])) i++;
      const isComputed = list[i]?.text === '[';
      const end = isComputed ? (partner[i] as number) : i;
      const key = list[isComputed ? i + 1 : i];
      const isText = !isComputed || (end === i + 2 && (key?.kind === Kind.string || key?.kind === Kind.template));
      const behind = /^[?!]$/.test(list[end + 1]?.text ?? '') ? end + 2 : end + 1;
      return /^[(<]$/.test(list[behind]?.text ?? '') && (isText ? key?.value === name : key?.text !== 'Symbol');
    });
  } catch (error) {
    if (error instanceof SourceError) return true;
    throw error;
  }
}

/** By its text at run time; a function that is bound or built in does not show what it takes. */
function takesNothing(method: RunTimeOperation['method']): boolean {
  const text = Function.prototype.toString.call(method);
  if (/\[native code\]|\barguments\b/.test(text)) return false;
  try {
    const { list, partner } = tokenize(text);
    let i = 0;
    while (i < list.length && !/^(?:\(|=>)$/.test(list[i]?.text ?? '')) i = Math.max(partner[i] as number, i) + 1;
    return list[i]?.kind === Kind.punctuation && list[i]?.text === '(' && partner[i] === i + 1;
  } catch (error) {
    if (error instanceof SourceError) return false;
    throw error;
  }
}

/** A method that was read and that run time lacks was misread, or taken away. */
function refuseWhatIsNotThere(
  path: string,
  source: string,
  [own]: readonly Level[],
  operations: readonly RunTimeOperation[],
): void {
  const names = new Set(operations.map(({ name }) => name));
  for (const { kind, name, hasBody, modifiers, at } of own?.members ?? []) {
    const isPublic = !modifiers.some((word) => word === 'static' || word === 'private' || word === 'protected');
    if (
      kind !== 'method' ||
      !hasBody ||
      !isPublic ||
      !/^[a-z][A-Za-z0-9]*$/.test(name) ||
      name === 'constructor' ||
      names.has(name)
    )
      continue;
    if (own?.scope.path !== path) continue;
    throw new ContractError(
      `${path}:${lineOf(source, at)}`,
      `${name} was read as an operation, but the loaded class has none of that name`,
    );
  }
}

/** Constraints belong to a property or an alias. */
function refuseIdleTag({ doc = '', scope: { path, module } }: Level): void {
  const idle = findUnreadConstraint(doc, /\.[mc]?js$/.test(path));
  if (idle !== undefined) throw new ContractError(`${path}:${lineOf(module.source, module.source.indexOf(doc))}`, idle);
}

function inSourceOrder(
  contracts: ReadonlyMap<string, OperationContract>,
  levels: readonly Level[],
): ReadonlyMap<string, OperationContract> {
  const order = new Map(levels.flatMap(({ members }) => members.map(({ name }) => name)).map((name, i) => [name, i]));
  return new Map([...contracts].sort(([a], [b]) => (order.get(a) ?? Infinity) - (order.get(b) ?? Infinity) || 0));
}

/** Runs work and gives an error of the syntax its place. */
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

function unread(name: string, unchecked: string | undefined): OperationContract {
  return {
    name,
    summary: undefined,
    description: undefined,
    deprecated: false,
    data: undefined,
    optional: false,
    query: undefined,
    path: undefined,
    unchecked,
    results: [UNKNOWN_RESULT],
    undocumented: undefined,
    at: undefined,
  };
}
