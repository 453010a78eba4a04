// Keeps the contract of a group as one text, together with everything that it was read from: the loaded class, the
// texts of files, and where each import led. The contract is used again while all of these are the same. This file does
// not know where the texts are kept.
import type { GroupContract, OperationContract } from './contract.ts';
import { type GroupReader, type GroupSource, readGroup } from './read-group.ts';
import type { RunTimeOperation } from './read-operation.ts';
import { IS_DATE, IS_FILE } from './schema/schema.ts';
import type { ImportedFiles, TypeFiles } from './source/files.ts';
import type { Module } from './source/syntax.ts';

/** The kept texts of a folder. */
export interface KeptGroups {
  /** A cryptographic hash, so that no two sources have the same. */
  digest(text: string): string;
  /** @param path the real path of a controller */
  find(path: string): string | undefined;
  keep(path: string, text: string): void;
}

type LookUp = readonly [from: string, specifier: string, found: string | null];

interface KeptGroup {
  /** The group, the export that was read, and the names of its classes. */
  readonly identity: string;
  readonly reads: readonly (readonly [file: string, digest: string])[];
  readonly lookUps: readonly LookUp[];
  /** The depth in the chain of classes and the name of a method → whether the source declares it `private`. */
  readonly hidden: Readonly<Record<string, boolean>>;
  /** The loaded operations that the contract describes. */
  readonly operations: string;
  readonly contract: unknown;
}

/** Reads a group, or takes over what was kept of it. */
export interface KeepingReader extends GroupReader {
  /** Whether `contract` returned a kept contract, whose schemas have compiled before. */
  wasKept(): boolean;
  /** Keeps the contract that was read. The caller has compiled its schemas. */
  keep(): void;
}

export function readOrRecall(
  source: GroupSource,
  files: TypeFiles,
  sources: ImportedFiles,
  store: KeptGroups,
): KeepingReader {
  const { path, group, exportName, classNames } = source;
  const identity = JSON.stringify([group, exportName, classNames.map((name) => name ?? null)]);
  const recalled = recall(store.find(path), identity, files, store);
  const record = { identity, hidden: {} as Record<string, boolean>, operations: '', contract: {} };
  const recorder = createRecorder(files, sources);
  let isKept = false;
  let reader = recalled === undefined ? startReading() : undefined;

  function startReading(): GroupReader {
    Object.assign(record.hidden, recalled?.hidden);
    return readGroup(source, recorder.files, recorder.sources);
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
      const described = describeOperations(operations);
      isKept = reader === undefined && described !== undefined && recalled?.operations === described;
      if (isKept) return decodeContract(recalled?.contract as EncodedContract);
      reader ??= startReading();
      const contract = reader.contract(operations);
      if (described === undefined) recorder.fail();
      Object.assign(record, { operations: described, contract });
      return contract;
    },
    wasKept: () => isKept,
    keep() {
      const read = recorder.result(store.digest);
      const text = read && encode({ ...record, ...read });
      if (text !== undefined) store.keep(path, text);
    },
  };
}

/** Records which files are read, and where imports lead. The record fails when the contract needs more than that. */
function createRecorder(files: TypeFiles, sources: ImportedFiles) {
  const modules = new Map<string, Module>();
  const lookUps = new Map<string, LookUp>();
  let hasFailed = false;
  const fail = () => {
    hasFailed = true;
  };

  /** Makes the record fail for a file that cannot be read, and for one that changes while the group is read. */
  function orFail<T>(read: () => T, isSame: (result: T) => boolean): T {
    let isRecorded = false;
    try {
      const result = read();
      isRecorded = isSame(result);
      return result;
    } finally {
      if (!isRecorded) fail();
    }
  }

  const read: TypeFiles['read'] = (file) =>
    orFail(
      () => files.read(file),
      (module) => remembered(modules, file, module).source === module.source,
    );
  const load: TypeFiles['load'] = (from, specifier) => {
    const found = orFail(
      () => files.locate(from, specifier),
      (found) => remembered(lookUps, `${from}\n${specifier}`, [from, specifier, found ?? null])[2] === (found ?? null),
    );
    return found === undefined || found === 'package' ? found : { path: found, module: read(found) };
  };
  // A reader that looks through all imported files reads more than the record has.
  const imported = () => {
    fail();
    return sources.imported();
  };
  return {
    files: { ...files, read, load },
    sources: { ...sources, imported },
    fail,
    result(digest: KeptGroups['digest']): Pick<KeptGroup, 'reads' | 'lookUps'> | undefined {
      const reads = Array.from(modules, ([file, { source }]): [string, string] => [file, digest(source)]);
      return hasFailed ? undefined : { reads, lookUps: [...lookUps.values()] };
    },
  };
}

/** Adds the value under a key that has none, and returns the value that it has. */
function remembered<T>(map: Map<string, T>, key: string, value: T): T {
  const known = map.get(key) ?? value;
  map.set(key, known);
  return known;
}

/** Returns what was kept if everything that it was read from is the same. */
function recall(
  text: string | undefined,
  identity: string,
  files: TypeFiles,
  store: KeptGroups,
): KeptGroup | undefined {
  if (text === undefined) return undefined;
  try {
    const kept = decode(text);
    const isSame =
      kept.identity === identity &&
      kept.reads.every(([file, digest]) => store.digest(files.textOf(file)) === digest) &&
      kept.lookUps.every(([from, specifier, found]) => (files.locate(from, specifier) ?? null) === found);
    return isSame ? kept : undefined;
  } catch {
    // A file that cannot be read now. Reading the group reports it.
    return undefined;
  }
}

/** Writes what the contract takes from code. Undefined: a schema of a library is a function, which has no text. */
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

/** Writes a record as JSON. Undefined: JSON cannot express the contract. */
function encode(record: KeptGroup): string | undefined {
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

function decode(text: string): KeptGroup {
  const hasMark = text.includes('\\u0000');
  return JSON.parse(text, hasMark ? (_, value: unknown) => withSymbols(value) : undefined) as KeptGroup;
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

/** Adds the fields whose value is undefined. JSON leaves them out. */
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
