// Caches the contract of a group as one text, with everything that it was read from: the loaded class, the texts of
// files, and where each import led. A cached contract is valid while all of these are unchanged. The caller provides
// the place of the texts.
import type { GroupContract, OperationContract } from './contract.ts';
import { type GroupReader, type GroupSource, readGroup } from './read-group.ts';
import type { RunTimeOperation } from './read-operation.ts';
import { IS_DATE, IS_FILE } from './schema/schema.ts';
import type { ImportedFiles, TypeFiles } from './source/files.ts';
import type { Module } from './source/syntax.ts';

/** The cached contracts of a folder, as texts. */
export interface ContractCache {
  /** A cryptographic hash, so that no two sources have the same. */
  digest(text: string): string;
  /** @param path the real path of a controller */
  find(path: string): string | undefined;
  add(path: string, text: string): void;
}

/** Where an import led. Null: to no file. */
type LookUp = readonly [from: string, specifier: string, found: string | null];

interface CachedContract {
  /** The group, the export that was read, and the names of its classes. */
  readonly identity: string;
  readonly reads: readonly (readonly [file: string, digest: string])[];
  readonly lookUps: readonly LookUp[];
  /** `0 find`, the level of a class above the controller and a method → whether the source makes it `private`. */
  readonly hidden: Readonly<Record<string, boolean>>;
  /** A text that identifies the loaded operations which the contract describes. */
  readonly operationsKey: string;
  readonly contract: unknown;
}

/** Reads a group, or reuses its cached contract. */
export interface CachingReader extends GroupReader {
  /** Whether `contract` returned a cached contract, whose schemas have compiled before. */
  wasCached(): boolean;
  /** Adds the contract that was read to the cache. The caller has compiled its schemas. */
  cache(): void;
}

export function createCachingReader(
  source: GroupSource,
  files: TypeFiles,
  importedFiles: ImportedFiles,
  cache: ContractCache,
): CachingReader {
  const { path, group, exportName, classNames } = source;
  const identity = JSON.stringify([group, exportName, classNames.map((name) => name ?? null)]);
  const recalled = recall(cache.find(path), identity, files, cache);
  const record = { identity, hidden: {} as Record<string, boolean>, operationsKey: '', contract: {} };
  const recorder = createRecorder(files, importedFiles);
  let isCached = false;
  let reader = recalled === undefined ? startReading() : undefined;

  function startReading(): GroupReader {
    Object.assign(record.hidden, recalled?.hidden);
    return readGroup(source, recorder.files, recorder.importedFiles);
  }

  return {
    isHidden(name, depth) {
      const key = `${depth} ${name}`;
      const known = reader === undefined ? recalled?.hidden[key] : undefined;
      if (known !== undefined) return known;
      reader ??= startReading();
      const isHidden = reader.isHidden(name, depth);
      record.hidden[key] = isHidden;
      return isHidden;
    },
    contract(operations) {
      const operationsKey = describeOperations(operations);
      isCached = reader === undefined && operationsKey !== undefined && recalled?.operationsKey === operationsKey;
      if (isCached) return decodeContract(recalled?.contract as EncodedContract);
      reader ??= startReading();
      const contract = reader.contract(operations);
      if (operationsKey === undefined) recorder.fail();
      Object.assign(record, { operationsKey, contract });
      return contract;
    },
    wasCached: () => isCached,
    cache() {
      const recorded = recorder.result(cache.digest);
      const text = recorded && encode({ ...record, ...recorded });
      if (text !== undefined) cache.add(path, text);
    },
  };
}

/**
 * Records which files are read, and where imports lead. The recorder fails when the contract depends on anything else:
 * then the contract is not cached.
 */
function createRecorder(files: TypeFiles, importedFiles: ImportedFiles) {
  const modules = new Map<string, Module>();
  const lookUps = new Map<string, LookUp>();
  let hasFailed = false;
  const fail = () => {
    hasFailed = true;
  };

  /**
   * Reads, and fails if reading throws or if `record` returns false: the same file was read before, with another text.
   */
  function readAndRecord<T>(read: () => T, record: (result: T) => boolean): T {
    let isRecorded = false;
    try {
      const result = read();
      isRecorded = record(result);
      return result;
    } finally {
      if (!isRecorded) fail();
    }
  }

  const read: TypeFiles['read'] = (file) =>
    readAndRecord(
      () => files.read(file),
      (module) => getOrSet(modules, file, module).source === module.source,
    );
  const load: TypeFiles['load'] = (from, specifier) => {
    const found = readAndRecord(
      () => files.locate(from, specifier),
      (found) => getOrSet(lookUps, `${from}\n${specifier}`, [from, specifier, found ?? null])[2] === (found ?? null),
    );
    return found === undefined || found === 'package' ? found : { path: found, module: read(found) };
  };
  // The list of all imported files is not recorded, so a contract that depends on it is not cached.
  const imported = () => {
    fail();
    return importedFiles.imported();
  };
  return {
    files: { ...files, read, load },
    importedFiles: { ...importedFiles, imported },
    fail,
    result(digest: ContractCache['digest']): Pick<CachedContract, 'reads' | 'lookUps'> | undefined {
      const reads = Array.from(modules, ([file, { source }]): [string, string] => [file, digest(source)]);
      return hasFailed ? undefined : { reads, lookUps: [...lookUps.values()] };
    },
  };
}

/** Sets the value of a key that has none. Returns the value of the key. */
function getOrSet<T>(map: Map<string, T>, key: string, value: T): T {
  const first = map.get(key) ?? value;
  map.set(key, first);
  return first;
}

/** Returns the cached contract if everything that it was read from is unchanged. */
function recall(
  text: string | undefined,
  identity: string,
  files: TypeFiles,
  cache: ContractCache,
): CachedContract | undefined {
  if (text === undefined) return undefined;
  try {
    const cached = decode(text);
    const isSame =
      cached.identity === identity &&
      cached.reads.every(([file, digest]) => cache.digest(files.textOf(file)) === digest) &&
      cached.lookUps.every(([from, specifier, found]) => (files.locate(from, specifier) ?? null) === found);
    return isSame ? cached : undefined;
  } catch {
    // A file that cannot be read now. Reading the group reports it.
    return undefined;
  }
}

/**
 * Writes what the contract takes from loaded code. Returns undefined for a schema of a validation library: it is a
 * function, which cannot be compared as a text.
 */
function describeOperations(operations: readonly RunTimeOperation[]): string | undefined {
  const hasLibrarySchema = operations.some(({ given: { body, query, result } }) =>
    [body === 'stream' ? undefined : body, query, result].some((schema) => schema !== undefined),
  );
  return hasLibrarySchema
    ? undefined
    : JSON.stringify(
        operations.map(({ name, depth, pathNames, given: { unchecked, body, status, summary } }) => [
          ...[name, depth, pathNames, unchecked === true, body === 'stream'],
          ...[status, summary],
        ]),
      );
}

interface EncodedContract extends Omit<GroupContract, 'operations'> {
  readonly operations: readonly OperationContract[];
}

/** JSON has no symbols, so these keys replace them. No keyword has such a name. */
const MARKS = new Map([
  ['\0date', IS_DATE],
  ['\0file', IS_FILE],
]);

/** Writes a record as JSON. Returns undefined where JSON cannot express the contract. */
function encode(record: CachedContract): string | undefined {
  const { operations, ...contract } = record.contract as GroupContract;
  let isExact = true;
  const text = JSON.stringify(
    { ...record, contract: { ...contract, operations: [...operations.values()] } },
    (_, value: unknown) => {
      if (typeof value === 'number' && (!Number.isFinite(value) || Object.is(value, -0))) isExact = false;
      if (typeof value === 'bigint' || typeof value === 'function' || typeof value === 'symbol') isExact = false;
      if (typeof value !== 'object' || value === null) return typeof value === 'bigint' ? null : value;
      const marks = [...MARKS].filter(([, symbol]) => Object.hasOwn(value, symbol));
      return marks.length === 0 ? value : { ...value, ...Object.fromEntries(marks.map(([mark]) => [mark, true])) };
    },
  );
  return isExact ? text : undefined;
}

function decode(text: string): CachedContract {
  const hasMark = text.includes('\\u0000');
  return JSON.parse(text, hasMark ? (_, value: unknown) => withSymbols(value) : undefined) as CachedContract;
}

function withSymbols(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  for (const [mark, symbol] of MARKS) {
    if (!Object.hasOwn(value, mark)) continue;
    const { [mark]: _, ...rest } = value as Record<string, unknown>;
    return { ...rest, [symbol]: true };
  }
  return value;
}

/** Restores the fields whose value is undefined, which JSON drops. */
function decodeContract({ operations, defs, ...contract }: EncodedContract): GroupContract {
  const absent = {
    ...{ summary: undefined, description: undefined, data: undefined, query: undefined, path: undefined },
    ...{ user: undefined, unchecked: undefined, undocumented: undefined, at: undefined },
  };
  const decoded = operations.map((operation): [string, OperationContract] => {
    const results = operation.results.map((result) => ({ ...result, schema: result.schema }));
    return [operation.name, { ...absent, ...operation, results }];
  });
  return {
    ...{ ...contract, summary: contract.summary, description: contract.description },
    operations: new Map(decoded),
    defs: Object.assign(Object.create(null), defs),
  };
}
