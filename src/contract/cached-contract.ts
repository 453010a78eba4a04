// Caches the contract of a controller (the types of its operations, see contract.ts) as one text. The text begins with
// a cache entry, which lists everything that the contract was read from: the loaded class, digests of the source files,
// and the file to which each import led. A cached contract is valid while all of these are unchanged. Most groups of a
// large folder get no request for a long time, so a cached contract is decoded when it is first used.
import { factsOf, type GroupContract, type OperationContract, type OperationFacts } from './contract.ts';
import { type GroupReader, type LoadedController, readGroup } from './read-group.ts';
import type { RunTimeOperation } from './read-operation.ts';
import { IS_DATE, IS_FILE } from './schema/schema.ts';
import type { ImportedFiles, SourceFiles } from './source/files.ts';
import type { Module } from './source/syntax.ts';
import type { ImportUse } from './types/look-up.ts';

/** The cached contracts of a folder, as texts. groups/contract-cache.ts implements this interface. */
export interface ContractCache {
  /** Returns a cryptographic hash, so that two different texts never have the same digest. */
  digest(text: string): string;
  /** @param path the path of the controller file, with symbolic links resolved */
  find(path: string): string | undefined;
  add(path: string, text: string): void;
}

/** An import and the file to which it led: a path, `package` for a module that is not read, or null for no file. */
type LookUp = readonly [importer: string, specifier: string, use: ImportUse, target: string | null];

/** Everything that a load needs, apart from the contract itself. */
interface CacheEntry {
  /** The group, the export that was read, and the names of its classes. */
  readonly identity: string;
  readonly reads: readonly (readonly [file: string, digest: string])[];
  readonly lookUps: readonly LookUp[];
  /**
   * The answers of `isHidden`: whether the source marks a loaded method `private` or `protected`. A key has the level
   * of the class (0 is the controller, 1 is its parent) and the method's name: `0 find`.
   */
  readonly hiddenByMethod: Readonly<Record<string, boolean>>;
  /** The text of `describeOperations`. */
  readonly operationsKey: string;
  readonly facts: readonly (readonly [operation: string, facts: OperationFacts])[];
}

interface EntryWithContract extends CacheEntry {
  readonly contractText: string;
}

/** Reads a group, or reuses its cached contract. */
export interface CachingReader extends GroupReader {
  /** Returns the facts of the operations by name, if `readContract` has returned a cached contract; else undefined. */
  cachedFacts(): ReadonlyMap<string, OperationFacts> | undefined;
  /** Adds the contract to the cache. The caller must have compiled the contract's schemas before. */
  addToCache(): void;
}

export function createCachingReader(
  controller: LoadedController,
  files: SourceFiles,
  importedFiles: ImportedFiles,
  cache: ContractCache,
): CachingReader {
  const { path, group, exportName, classNames } = controller;
  const identity = JSON.stringify([group, exportName, classNames]);
  const cachedEntry = readValidEntry(cache.find(path), identity, files, cache);
  const hiddenByMethod: Record<string, boolean> = {};
  const recorder = createRecorder(files, importedFiles);
  let isCached = false;
  /** The contract that `reader` has read, if the cache may store it. */
  let cacheable: { readonly operationsKey: string; readonly contract: GroupContract } | undefined;
  /** Undefined as long as the cached entry has all answers. */
  let reader = cachedEntry === undefined ? startReading() : undefined;

  function startReading(): GroupReader {
    Object.assign(hiddenByMethod, cachedEntry?.hiddenByMethod);
    return readGroup(controller, recorder.files, recorder.importedFiles);
  }

  return {
    isHidden(name, depth) {
      const key = `${depth} ${name}`;
      const cachedAnswer = reader === undefined ? cachedEntry?.hiddenByMethod[key] : undefined;
      if (cachedAnswer !== undefined) return cachedAnswer;
      reader ??= startReading();
      const isHidden = reader.isHidden(name, depth);
      hiddenByMethod[key] = isHidden;
      return isHidden;
    },
    readContract(operations) {
      const operationsKey = describeOperations(operations);
      if (reader === undefined && operationsKey !== undefined && cachedEntry?.operationsKey === operationsKey) {
        isCached = true;
        return decodeLater(group, cachedEntry.contractText);
      }
      reader ??= startReading();
      const contract = reader.readContract(operations);
      cacheable = operationsKey === undefined ? undefined : { operationsKey, contract };
      return contract;
    },
    cachedFacts: () => (isCached ? new Map(cachedEntry?.facts) : undefined),
    addToCache() {
      const recorded = recorder.result(cache.digest);
      if (recorded === undefined || cacheable === undefined) return;
      const { operationsKey, contract } = cacheable;
      const facts = Array.from(contract.operations, ([name, operation]) => [name, factsOf(operation)] as const);
      const text = encode({ identity, hiddenByMethod, operationsKey, facts, ...recorded }, contract);
      if (text !== undefined) cache.add(path, text);
    },
  };
}

/** Records which files are read, and where imports lead. A contract that depends on other facts is not cached. */
function createRecorder(files: SourceFiles, importedFiles: ImportedFiles) {
  const modules = new Map<string, Module>();
  const lookUps = new Map<string, LookUp>();
  let isComplete = true;

  /**
   * Calls `read`, and passes its result to `record`. `record` returns false when an earlier read of the same file or
   * import had another result. The contract is then not cached. An error of `read` has the same effect.
   */
  function readAndRecord<T>(read: () => T, record: (result: T) => boolean): T {
    let isRecorded = false;
    try {
      const result = read();
      isRecorded = record(result);
      return result;
    } finally {
      isComplete &&= isRecorded;
    }
  }

  const read: SourceFiles['read'] = (file) =>
    readAndRecord(
      () => files.read(file),
      (module) => getOrSet(modules, file, module).source === module.source,
    );
  const load: SourceFiles['load'] = (from, specifier, use) => {
    const key = `${from}\n${specifier}\n${use}`;
    const target = readAndRecord(
      () => files.locate(from, specifier, use),
      (path) => getOrSet(lookUps, key, [from, specifier, use, path ?? null])[3] === (path ?? null),
    );
    return target === undefined || target === 'package' ? target : { path: target, module: read(target) };
  };
  const imported = () => {
    // A cache entry does not have the list of all imported files.
    isComplete = false;
    return importedFiles.imported();
  };
  return {
    files: { ...files, read, load },
    importedFiles: { ...importedFiles, imported },
    /** Returns undefined when the contract must not be cached. */
    result(digest: ContractCache['digest']): Pick<CacheEntry, 'reads' | 'lookUps'> | undefined {
      const reads = Array.from(modules, ([file, { source }]): [string, string] => [file, digest(source)]);
      return isComplete ? { reads, lookUps: [...lookUps.values()] } : undefined;
    },
  };
}

function getOrSet<T>(map: Map<string, T>, key: string, value: T): T {
  const first = map.get(key) ?? value;
  map.set(key, first);
  return first;
}

/** Returns undefined for a contract whose class, source files or imports have changed since it was cached. */
function readValidEntry(
  text: string | undefined,
  identity: string,
  files: SourceFiles,
  cache: ContractCache,
): EntryWithContract | undefined {
  if (text === undefined) return undefined;
  try {
    const entry = decode(text);
    const isValid =
      entry.identity === identity &&
      entry.reads.every(([file, digest]) => cache.digest(files.textOf(file)) === digest) &&
      entry.lookUps.every(
        ([importer, specifier, use, target]) => (files.locate(importer, specifier, use) ?? null) === target,
      );
    return isValid ? entry : undefined;
  } catch {
    // The text is damaged, or a file can no longer be read. The caller then reads the controller again, and reports the
    // error of this read.
    return undefined;
  }
}

/**
 * Writes the facts of the loaded operations that a contract depends on as one text. Returns undefined when an operation
 * has the schema of a library (such as zod), because the functions of a schema cannot be compared as texts.
 */
function describeOperations(operations: readonly RunTimeOperation[]): string | undefined {
  const hasLibrarySchema = operations.some(({ settings: { body, query, result } }) =>
    [body === 'stream' ? undefined : body, query, result].some((schema) => schema !== undefined),
  );
  if (hasLibrarySchema) return undefined;
  const described = operations.map(({ name, depth, pathNames, settings: { unchecked, body, status, summary } }) => {
    return { name, depth, pathNames, unchecked, body, status, summary };
  });
  return JSON.stringify(described);
}

interface EncodedContract extends Omit<GroupContract, 'operations'> {
  readonly operations: readonly OperationContract[];
}

/** The keys that replace symbols in the cached text. No keyword of JSON Schema begins with `\0`. */
const SYMBOL_KEYS = new Map([
  ['\0date', IS_DATE],
  ['\0file', IS_FILE],
]);

/** Separates the entry from the contract in the cached text. `JSON.stringify` escapes this character. */
const SEPARATOR = '\t';

/** Returns undefined when JSON cannot express a value of the contract, such as Infinity. */
function encode(entry: CacheEntry, { operations, ...contract }: GroupContract): string | undefined {
  let isExact = true;
  const text = JSON.stringify({ ...contract, operations: [...operations.values()] }, (_, value: unknown) => {
    if (typeof value === 'number' && !Number.isFinite(value)) isExact = false;
    if (typeof value !== 'object' || value === null) return value;
    const symbols = [...SYMBOL_KEYS].filter(([, symbol]) => Object.hasOwn(value, symbol));
    return symbols.length === 0 ? value : { ...value, ...Object.fromEntries(symbols.map(([key]) => [key, true])) };
  });
  return isExact ? JSON.stringify(entry) + SEPARATOR + text : undefined;
}

/** @throws SyntaxError */
function decode(text: string): EntryWithContract {
  const end = text.indexOf(SEPARATOR);
  return { ...(JSON.parse(text.slice(0, end)) as CacheEntry), contractText: text.slice(end + 1) };
}

/** Returns a contract whose fields are decoded when the first of them is read. */
function decodeLater(group: string, text: string): GroupContract {
  let contract: GroupContract | undefined;
  const decoded = (): GroupContract => {
    contract ??= decodeContract(text);
    return contract;
  };
  return {
    group,
    get summary() {
      return decoded().summary;
    },
    get description() {
      return decoded().description;
    },
    get operations() {
      return decoded().operations;
    },
    get defs() {
      return decoded().defs;
    },
  };
}

function decodeContract(text: string): GroupContract {
  // A reviver makes parsing slow, so it is used only for a text with one of SYMBOL_KEYS.
  const revive = text.includes('\\u0000') ? (_: string, value: unknown) => withSymbols(value) : undefined;
  const { operations, defs, ...contract }: EncodedContract = JSON.parse(text, revive);
  return {
    ...contract,
    operations: new Map(operations.map((operation) => [operation.name, operation])),
    defs: Object.assign(Object.create(null), defs),
  };
}

/** Replaces a key of SYMBOL_KEYS by its symbol. */
function withSymbols(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  for (const [key, symbol] of SYMBOL_KEYS) {
    if (!Object.hasOwn(value, key)) continue;
    const { [key]: _, ...rest } = value as Record<string, unknown>;
    return { ...rest, [symbol]: true };
  }
  return value;
}
