// Reads the contract of a group (one controller): finds each operation of the loaded class in the source, and reads its
// annotations. A TypeScript file is refused when an operation is not in its source, because requests to that operation
// would be unchecked. `contractWithoutSource` has the exceptions. A level is the exported class or object, or one of
// its ancestors.
import { basename } from 'node:path';
import { applySettings, needsNoDataType } from './check/library.ts';
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
import { NO_PARAMS } from './types/look-up.ts';

/** A controller that the process has loaded. */
export interface GroupSource {
  readonly path: string;
  readonly group: string;
  /** `default`, or the name of the controller's class. */
  readonly exportName: string;
  /**
   * The `constructor.name` of each loaded level, from the exported class to its ancestors. An entry is undefined for an
   * object.
   */
  readonly classNames: readonly (string | undefined)[];
}

export interface GroupReader {
  /**
   * Whether the source marks a loaded method `private` or `protected`. `depth` is the level of the method: 0 is the
   * exported class or object itself.
   */
  isHidden(name: string, depth: number): boolean;
  /** @throws ContractError */
  contract(operations: readonly RunTimeOperation[]): GroupContract;
}

/** @throws ContractError */
export function readGroup(
  { path, group, exportName, classNames }: GroupSource,
  files: TypeFiles,
  sources: ImportedFiles,
): GroupReader {
  const evaluator = createEvaluator();
  const withPlace = createPlaceAdder(path);
  const module = withPlace(() => files.read(path));
  const levels: Levels = withPlace(() =>
    findLevels(exportName, { path, module, load: files.load, typeParams: NO_PARAMS }, evaluator),
  );
  const { list } = levels;
  /**
   * Whether the classes in the source are the classes that were loaded. They differ, for example, when a decorator has
   * put another class in front.
   */
  const isAligned = list.length <= classNames.length && list.every(({ className }, i) => className === classNames[i]);

  /**
   * Finds the nearest member with a name. When `isAligned` is true, the member must be on the same level as the loaded
   * method.
   */
  function find(name: string, depth: number): FoundMember | undefined {
    for (const [i, level] of list.slice(0, depth + 1).entries()) {
      const member = withPlace(() => findMember(level, name));
      // A member of a nearer level, such as a field, replaces the method at run time.
      if (member !== undefined) return i === depth || !isAligned ? member : undefined;
    }
    return undefined;
  }

  function contract(operations: readonly RunTimeOperation[]): GroupContract {
    const writer = createSchemaWriter();
    const bundle = createBundle(writer);
    const contracts = new Map<string, OperationContract>();
    for (const operation of operations) {
      const { name, settings } = operation;
      const method = find(name, operation.depth)?.method;
      const contract =
        method === undefined
          ? contractWithoutSource(operation)
          : withPlace(() => readOperation(operation, method, { evaluator, writer, files }));
      const schemas = [contract.data, contract.query, contract.path].filter((schema) => schema !== undefined);
      const ambiguity = findAmbiguity(schemas, writer.defs);
      if (ambiguity !== undefined) throw new ContractError(contract.at ?? path, `${name}: ${ambiguity}`);
      contracts.set(name, applySettings(contract, settings, bundle));
    }
    refuseUnloadedMethod(path, module.source, list, operations);
    for (const level of list) refuseUnreadTag(level);
    const summary = summaryOf(readDoc(list[0]?.doc).text);
    return { group, ...summary, operations: inSourceOrder(contracts, list), defs: writer.defs };
  }

  /**
   * Creates the contract of an operation that is not in the source. Nothing checks the requests of such an operation.
   * In a TypeScript file, such an operation is therefore allowed only when it needs no check, when the controller says
   * that it is unchecked, or when it comes from a package.
   *
   * @throws ContractError in the other cases, and when the method may be private or protected
   */
  function contractWithoutSource({ name, method, depth, settings }: RunTimeOperation): OperationContract {
    const place = `${path}:${lineOf(module.source, Math.max(module.source.search(new RegExp(`\\b${name.replace(/\W/g, '\\$&')}\\b`)), 0))}`;
    const refuse = (reason: string): never => {
      const key = JSON.stringify(name);
      throw new ContractError(
        place,
        `${name} ${reason}: write it as a method of the exported class or object, with a plain name, ` +
          `or write static operations = { ${key}: { body: schema } } or { ${key}: { unchecked: true } }`,
      );
    };
    const level = isAligned ? list[depth] : undefined;
    const mayBeReplaced = level !== undefined && hasUnreadName(level);
    if (mayBeMarkedHidden(name)) refuse('may be private or protected, and its class is not found in the source');
    if (mayBeReplaced && level.members.some(isMarkedHidden))
      refuse('may be private or protected, since a member beside it has a computed name');
    const isFromPackage = levels.isPackageBelow && isAligned && depth >= list.length;
    if (isFromPackage) return contractWithoutTypes(name, 'it comes from a package, whose source is not read');
    if (settings.unchecked === true) return contractWithoutTypes(name, 'static operations says so');
    if (needsNoDataType(name, settings)) return contractWithoutTypes(name);
    if (!path.endsWith('.ts'))
      return contractWithoutTypes(name, 'its source is not followed: it is made by code, or comes from a package');
    if (hasNoParameters(method)) return contractWithoutTypes(name);
    return refuse(
      `is an operation whose types are not found${mayBeReplaced ? ', since a spread or a computed name may replace it' : ''}`,
    );
  }

  function mayBeMarkedHidden(name: string): boolean {
    return [path, ...sources.imported()].some(
      (file) => file.endsWith('.ts') && mayMarkMethod(sources.textOf(file), name),
    );
  }

  return { isHidden: (name, depth) => find(name, depth)?.isHidden === true, contract };
}

/**
 * Whether the source can contain a method of this name that is marked `private` or `protected`. The result is true for
 * a marked method with a computed name, which can be any name, and for a source that cannot be parsed.
 */
function mayMarkMethod(source: string, name: string): boolean {
  if (!/\b(?:private|protected)\b/.test(source)) return false;
  try {
    const { list, partner } = tokenize(source);
    return list.some(({ kind, text }, index) => {
      if (kind !== Kind.name || (text !== 'private' && text !== 'protected')) return false;
      const startsName = (token: Token | undefined) =>
        token?.kind === Kind.name || token?.kind === Kind.string || /^[[*]$/.test(token?.text ?? '');
      // Skips further modifiers: `private static async *name(`.
      let i = index + 1;
      while (list[i]?.text !== '[' && startsName(list[i + 1])) i++;
      const isComputed = list[i]?.text === '[';
      const end = isComputed ? (partner[i] as number) : i;
      const key = list[isComputed ? i + 1 : i];
      const isLiteral = !isComputed || (end === i + 2 && (key?.kind === Kind.string || key?.kind === Kind.template));
      const afterName = /^[?!]$/.test(list[end + 1]?.text ?? '') ? end + 2 : end + 1;
      return /^[(<]$/.test(list[afterName]?.text ?? '') && (isLiteral ? key?.value === name : key?.text !== 'Symbol');
    });
  } catch (error) {
    if (error instanceof SourceError) return true;
    throw error;
  }
}

/**
 * Whether a function's text declares no parameters. The result is false for a bound or built-in function, because its
 * text does not show the parameters.
 */
function hasNoParameters(method: RunTimeOperation['method']): boolean {
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

/**
 * Refuses a controller whose source has a public method that is not an operation of the loaded class. In that case the
 * source or the class was misread.
 */
function refuseUnloadedMethod(
  path: string,
  source: string,
  [firstLevel]: readonly Level[],
  operations: readonly RunTimeOperation[],
): void {
  if (firstLevel?.scope.path !== path) return;
  const names = new Set([...operations.map(({ name }) => name), 'constructor']);
  const unloaded = firstLevel.members.find((member) => {
    const isPublic = !isMarkedHidden(member) && !member.modifiers.includes('static');
    const isMethod = member.kind === 'method' && member.hasBody && /^[a-z][A-Za-z0-9]*$/.test(member.name);
    return isMethod && isPublic && !names.has(member.name);
  });
  if (unloaded === undefined) return;
  throw new ContractError(
    `${path}:${lineOf(source, unloaded.at)}`,
    `${unloaded.name} was read as an operation, but the loaded class has none of that name`,
  );
}

/**
 * Refuses a constraint tag, such as `@minimum`, in the comment of a class. Constraints are read only from the comment
 * of a property or an alias.
 */
function refuseUnreadTag({ doc = '', scope: { path, module } }: Level): void {
  const message = findUnreadConstraint(doc, /\.[mc]?js$/.test(path));
  if (message !== undefined)
    throw new ContractError(`${path}:${lineOf(module.source, module.source.indexOf(doc))}`, message);
}

function inSourceOrder(
  contracts: ReadonlyMap<string, OperationContract>,
  levels: readonly Level[],
): ReadonlyMap<string, OperationContract> {
  const order = new Map(levels.flatMap(({ members }) => members.map(({ name }) => name)).map((name, i) => [name, i]));
  return new Map([...contracts].sort(([a], [b]) => (order.get(a) ?? Infinity) - (order.get(b) ?? Infinity) || 0));
}

/** Creates a function that runs `read`, and adds the place to the error of a file that cannot be parsed. */
function createPlaceAdder(controller: string): <T>(read: () => T) => T {
  return (read) => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof UnreadableFile)) throw error;
      const importer = error.path === controller ? '' : ` (imported by ${basename(controller)})`;
      throw new ContractError(
        `${error.path}:${lineOf(error.source, error.at)}`,
        `${error.message}${importer}: the types in this file cannot be read`,
      );
    }
  };
}

function contractWithoutTypes(name: string, uncheckedReason?: string): OperationContract {
  return { name, deprecated: false, dataIsOptional: false, uncheckedReason, results: [UNKNOWN_RESULT] };
}
