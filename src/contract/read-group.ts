// Looks up each operation of the loaded class in the source of its controller. When an operation is not found in the
// source of a TypeScript file, nothing would check its requests, so the file is refused. `contractWithoutSource` lists
// the exceptions. Level 0 is the exported class or object, and level 1 is its parent.
import { basename } from 'node:path';
import { needsNoDataType } from './check/library.ts';
import { findAmbiguity } from './check/union-safety.ts';
import type { GroupContract, OperationContract, Schema } from './contract.ts';
import { ContractError, placeOf } from './contract-error.ts';
import type { MadeTypes } from './made-types.ts';
import { applySchemas, type PartSchemas, schemaOfReference, schemasOfSettings } from './part-schemas.ts';
import { type OperationTools, type RunTimeOperation, readOperation } from './read-operation.ts';
import { NO_RESULT_TYPE, UNKNOWN_RESULT } from './results.ts';
import { createDefinitionMover } from './schema/bundle.ts';
import { createSchemaWriter } from './schema/schema.ts';
import type { ReadOperation } from './signature-parts.ts';
import { findUnreadConstraint } from './source/constraint-tags.ts';
import { readDoc, summaryOf } from './source/doc-comment.ts';
import { type ImportedFiles, isJavaScript, type SourceFiles } from './source/files.ts';
import { lineOf, SourceError, Unsupported } from './source/source-error.ts';
import { Kind, type Token, tokenize } from './source/tokens.ts';
import { findLevels, hasUnreadName, type Level } from './types/class-levels.ts';
import { createEvaluator } from './types/evaluate.ts';
import { findMember } from './types/follow.ts';
import { isMarkedHidden, NO_TYPE_PARAMS } from './types/look-up.ts';

export interface LoadedController {
  readonly path: string;
  /** `default`, or the name of the controller's class. */
  readonly exportName: string;
  /** The `constructor.name` of each loaded level, from level 0 on; undefined for an object without a class. */
  readonly classNames: readonly (string | undefined)[];
}

export interface ReadContract {
  readonly contract: GroupContract;
  readonly schemas: ReadonlyMap<string, PartSchemas>;
}

/** @throws ContractError when the file, or a file of an ancestor, cannot be parsed */
export function readGroup(
  { path, exportName, classNames }: LoadedController,
  files: SourceFiles,
  importedFiles: ImportedFiles,
  made: MadeTypes,
) {
  const evaluator = createEvaluator(made);
  const withPlace = createPlaceAdder(path, files);
  const module = withPlace(() => files.read(path));
  const { levels, hasPackageAncestor } = withPlace(() =>
    findLevels(exportName, { path, module, load: files.load, typeParams: NO_TYPE_PARAMS }, evaluator),
  );
  /** Whether the classes in the source have the names of the loaded ones. A decorator can have replaced a class. */
  const hasSameClasses =
    levels.length <= classNames.length && levels.every(({ className }, i) => className === classNames[i]);

  function findLoadedMember(name: string, depth: number) {
    for (const [i, level] of levels.slice(0, depth + 1).entries()) {
      const member = withPlace(() => findMember(level, name));
      // In a subclass, a field can have the name of the ancestor's method. The field is found first, but the loaded
      // method does not come from it.
      if (member !== undefined) return i === depth || !hasSameClasses ? member : undefined;
    }
    return undefined;
  }

  function readContract(operations: readonly RunTimeOperation[]): ReadContract {
    const writer = createSchemaWriter();
    const moveDefinitions = createDefinitionMover(writer);
    const contracts = new Map<string, OperationContract>();
    const schemas = new Map<string, PartSchemas>();
    const readSchema: OperationTools['readSchema'] = (reference) =>
      schemaOfReference(reference, importedFiles.exportsOf(reference.path));
    for (const operation of operations) {
      const { name, settings } = operation;
      const method = findLoadedMember(name, operation.depth)?.method;
      const { contract, inferred }: ReadOperation =
        method === undefined
          ? { contract: contractWithoutSource(operation), inferred: {} }
          : withPlace(() => readOperation(operation, method, { evaluator, writer, files, readSchema }));
      const at = contract.at ?? path;
      const all = { ...schemasOfSettings(name, settings, at), ...inferred };
      const applied = applySchemas(contract, settings, all, moveDefinitions, writer.defs);
      const { data, query } = applied;
      const isChecked = (part: PartSchemas['body']) => part === undefined || 'json' in part;
      const checked = [isChecked(all.body) && data, isChecked(all.query) && query, applied.path, contract.headers];
      const ambiguity = findAmbiguity(
        checked.filter((schema) => typeof schema === 'object'),
        writer.defs,
      );
      if (ambiguity !== undefined) throw new ContractError(at, `${name}: ${ambiguity}`);
      refuseUncapturedPath(operation, applied.path, at);
      contracts.set(name, applied);
      schemas.set(name, all);
    }
    refuseUnloadedMethod(path, levels[0], operations);
    for (const level of levels) refuseUnreadTag(level);
    const summary = summaryOf(readDoc(levels[0]?.doc).text);
    const contract = { ...summary, operations: inSourceOrder(contracts, levels), defs: writer.defs };
    return { contract, schemas };
  }

  /**
   * Creates the contract of an operation that is not found in the source. A TypeScript file may have such an operation
   * only in these cases:
   * - The schema of a library (such as zod) checks its data.
   * - `static operations` declares it `unchecked`.
   * - It comes from a package.
   *
   * @throws ContractError in all other cases, and in any file when the method may be private or protected
   */
  function contractWithoutSource({ name, depth, settings }: RunTimeOperation): OperationContract {
    // The place of the first word in the source that is the name. The operation is probably near this place.
    const nameOffset = module.source.search(new RegExp(`\\b${name.replace(/\W/g, '\\$&')}\\b`));
    const place = `${path}:${lineOf(module.source, nameOffset)}`;
    const refuse = (reason: string): never => {
      const key = JSON.stringify(name);
      const form = levels.length === 0 ? 'export a class or an object' : 'write it as a method with a plain name';
      const cure = `${form}, declared in this file or imported by name from the file that declares it`;
      const exception = `static operations = { ${key}: { body: schema } } or { ${key}: { unchecked: true } }`;
      throw new ContractError(place, `${name} ${reason}: ${cure}; or write ${exception}`, 'UNREAD_OPERATION');
    };
    const level = hasSameClasses ? levels[depth] : undefined;
    const mayBeReplaced = level !== undefined && hasUnreadName(level);
    if (mayBeMarkedHidden(name)) refuse('may be private or protected, and its class is not found in the source');
    if (mayBeReplaced && level.members.some(isMarkedHidden))
      refuse('may be private or protected, since a member beside it has a computed name');
    const isFromPackage = hasPackageAncestor && hasSameClasses && depth >= levels.length;
    if (isFromPackage) return contractWithoutTypes(name, 'it comes from a package, whose source is not read');
    if (settings.unchecked === true) return contractWithoutTypes(name, 'static operations says so');
    if (needsNoDataType(name, settings)) return contractWithoutTypes(name);
    if (!path.endsWith('.ts'))
      return contractWithoutTypes(name, 'its source is not followed: it is made by code, or comes from a package');
    return refuse(
      `is an operation whose types are not found${mayBeReplaced ? ', since a spread or a computed name may replace it' : ''}`,
    );
  }

  /** Whether an imported file may have a private or protected method of this name. Such a method is no operation. */
  function mayBeMarkedHidden(name: string): boolean {
    return [path, ...importedFiles.imported()].some(
      (file) => file.endsWith('.ts') && mayMarkMethod(importedFiles.textOf(file), name),
    );
  }

  return {
    /** Whether the source marks a loaded method `private` or `protected`. @param depth the method's level */
    isHidden: (name: string, depth: number) => findLoadedMember(name, depth)?.isHidden === true,
    readContract,
  };
}

/**
 * Whether a source may have a `private` or `protected` method of this name. The result is also true for such a method
 * with a computed name (`private [KEY]()`), and for a source that cannot be parsed.
 */
function mayMarkMethod(source: string, name: string): boolean {
  if (!/\b(?:private|protected)\b/.test(source)) return false;
  try {
    const { tokens, partner } = tokenize(source);
    return tokens.some(({ kind, text }, index) => {
      if (kind !== Kind.name || (text !== 'private' && text !== 'protected')) return false;
      const startsName = (token: Token | undefined) =>
        token?.kind === Kind.name || token?.kind === Kind.string || /^[[*]$/.test(token?.text ?? '');
      // Skips the modifiers before the name: `private static async *name(`.
      let i = index + 1;
      while (tokens[i]?.text !== '[' && startsName(tokens[i + 1])) i++;
      const isComputed = tokens[i]?.text === '[';
      const end = isComputed ? (partner[i] as number) : i;
      const key = tokens[isComputed ? i + 1 : i];
      const isPlainName = !isComputed || (end === i + 2 && (key?.kind === Kind.string || key?.kind === Kind.template));
      const afterName = /^[?!]$/.test(tokens[end + 1]?.text ?? '') ? end + 2 : end + 1;
      return (
        /^[(<]$/.test(tokens[afterName]?.text ?? '') && (isPlainName ? key?.value === name : key?.text !== 'Symbol')
      );
    });
  } catch (error) {
    if (error instanceof SourceError) return true;
    throw error;
  }
}

/** Refuses a misread source: it has a public method that the loaded class lacks. */
function refuseUnloadedMethod(path: string, level: Level | undefined, operations: readonly RunTimeOperation[]): void {
  if (level?.scope.path !== path) return;
  const names = new Set([...operations.map(({ name }) => name), ...Object.getOwnPropertyNames(Object.prototype)]);
  const unloaded = level.members.find((member) => {
    const isPublic = !isMarkedHidden(member) && !member.modifiers.includes('static');
    const isMethod = member.kind === 'method' && member.hasBody && /^[a-z][A-Za-z0-9]*$/.test(member.name);
    return isMethod && isPublic && !names.has(member.name);
  });
  if (unloaded === undefined) return;
  throw new ContractError(
    `${path}:${lineOf(level.scope.module.source, unloaded.at)}`,
    `${unloaded.name} was read as an operation, but the loaded class has none of that name`,
    'UNREAD_OPERATION',
  );
}

/** Refuses a constraint tag, such as `@minimum`, on a class. Only properties and type aliases can have constraints. */
function refuseUnreadTag({ doc = '', scope: { path, module } }: Level): void {
  const message = findUnreadConstraint(doc, isJavaScript(path));
  const line = lineOf(module.source, module.source.indexOf(doc));
  if (message !== undefined) throw new ContractError(`${path}:${line}`, message, 'TAG_WITHOUT_EFFECT');
}

function inSourceOrder(contracts: GroupContract['operations'], levels: readonly Level[]): GroupContract['operations'] {
  const namesInOrder = levels.flatMap(({ members }) => members.map(({ name }) => name));
  const positions = new Map(namesInOrder.map((name, i) => [name, i]));
  const positionOf = (name: string) => positions.get(name) ?? namesInOrder.length;
  return new Map([...contracts].sort(([a], [b]) => positionOf(a) - positionOf(b)));
}

/** Returns a function that turns the errors of `read` into a ContractError. */
function createPlaceAdder(controller: string, files: SourceFiles): <T>(read: () => T) => T {
  return (read) => {
    try {
      return read();
    } catch (error) {
      if (error instanceof Unsupported)
        throw new ContractError(
          placeOf(error.path, error.at, files),
          `${error.message}; ${error.cure}`,
          error.code,
          error.wanted,
        );
      if (!(error instanceof SourceError)) throw error;
      const importer = error.path === controller ? '' : ` (imported by ${basename(controller)})`;
      throw new ContractError(
        `${error.path}:${lineOf(error.source, error.at)}`,
        `${error.message}${importer}: the types in this file cannot be read`,
        'SYNTAX_ERROR',
      );
    }
  };
}

function refuseUncapturedPath(operation: RunTimeOperation, path: Schema | undefined, place: string): void {
  const { name, pathNames, settings } = operation;
  const declared = Object.keys(path?.properties ?? {});
  if (settings.path !== undefined && pathNames === undefined) declared.push('path');
  const uncaptured = declared.find((field) => !pathNames?.includes(field));
  if (uncaptured === undefined) return;
  const reason = pathNames === undefined ? 'it has no route, so its path is empty' : `its route has no {${uncaptured}}`;
  throw new ContractError(place, `${name}: ${reason}`, 'INVALID_ROUTE');
}

function contractWithoutTypes(name: string, uncheckedReason?: string): OperationContract {
  const unknown = { results: [UNKNOWN_RESULT], undocumentedReason: NO_RESULT_TYPE };
  return { name, isDeprecated: false, dataIsOptional: false, uncheckedReason, ...unknown };
}
