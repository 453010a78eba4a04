// Reads the source of controllers: which methods it hides, and what types it gives to operations. This is the door of the
// parser, which a worker loads with the first controller that needs it.
import { findLevels, type Level } from './class-levels.ts';
import type { GroupContract } from './contract.ts';
import { ContractError } from './contract-error.ts';
import { createEvaluator } from './evaluate.ts';
import { isDataGiven, isQueryData } from './given.ts';
import { everyMarkedName, type FileMarks, hiddenIn, marksOf } from './hidden-members.ts';
import type { HiddenNames } from './marks.ts';
import { type GroupSource, readGroup } from './read-group.ts';
import { createRequestCheck, type RequestCheck } from './request-check.ts';
import { createResultCheck, type ResultCheck } from './result-check.ts';
import { lineOf, SourceError } from './source-error.ts';
import { createTypeFiles, UnreadableFile } from './type-files.ts';

export interface RunTimeLevel {
  /** `constructor.name`; undefined for an object. */
  readonly className: string | undefined;
}

export interface Reader {
  /**
   * What each level hides, nearest first.
   * @param others files that the controller may have imported, for a class that is not found by following the source
   * @throws ContractError
   */
  hidden(path: string, group: string, levels: readonly RunTimeLevel[], others: () => readonly string[]): readonly HiddenNames[];
  /** @throws ContractError */
  contract(source: GroupSource): ReadContract;
}

export interface ReadContract {
  readonly contract: GroupContract;
  /** By operation; none for one that has nothing to check. */
  readonly checks: ReadonlyMap<string, RequestCheck>;
  /** Of its results, for development; undefined: its type says nothing. */
  readonly resultCheckOf: (operation: string) => ResultCheck | undefined;
}

export function createReader(remember: (path: string) => void): Reader {
  const files = createTypeFiles(remember);

  function hidden(path: string, group: string, levels: readonly RunTimeLevel[], others: () => readonly string[]): readonly HiddenNames[] {
    const known = levelsOf(path, group);
    const isUnderstood =
      known.length === levels.length && known.every((level, i) => level.className === levels[i]?.className && !level.isOpenEnded);
    if (isUnderstood) return known.map((level) => atPlace(level.scope.path, () => hiddenIn(level)));
    const marks = [...new Set([path, ...others()])].filter((file) => file.endsWith('.ts')).map(marksIn);
    const stray = new Set(marks.flatMap((one) => [...one.stray]));
    return levels.map(({ className }) => {
      const classes = marks
        .map((one) => (className === undefined ? undefined : one.byClass.get(className)))
        .filter((names) => names !== undefined);
      // A class that stands nowhere in sight: whatever is marked anywhere may be its.
      const everywhere = classes.length > 0 ? classes : marks.flatMap((one) => [...one.byClass.values()]);
      return new Set([...stray, ...everywhere.flatMap((names) => [...names])]);
    });
  }

  function levelsOf(path: string, group: string): Level[] {
    try {
      return findLevels(path, group, createEvaluator(files.load), files.read(path));
    } catch (error) {
      // The safe side is taken for what cannot be read.
      if (error instanceof UnreadableFile) return [];
      throw error;
    }
  }

  function marksIn(path: string): FileMarks {
    try {
      return atPlace(path, () => marksOf(files.read(path)));
    } catch (error) {
      if (error instanceof UnreadableFile) return everyMarkedName(error.source);
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { byClass: new Map(), stray: new Set() };
      throw error;
    }
  }

  function atPlace<T>(path: string, work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (error instanceof SourceError) throw new ContractError(`${path}:${lineOf(files.read(path).source, error.at)}`, error.message);
      throw error;
    }
  }

  function read(source: GroupSource): ReadContract {
    const contract = readGroup(source, files);
    const checks = new Map<string, RequestCheck>();
    for (const { name, given } of source.operations) {
      const { data, query, path } = contract.operations.get(name) ?? {};
      const body = given.body === 'stream' ? undefined : given.body;
      // What a library's schema says is checked by the library; its JSON Schema is for the document.
      const isGiven = body !== undefined || given.query !== undefined;
      const check = createRequestCheck({
        data: isDataGiven(name, given) ? undefined : data,
        query: given.query === undefined ? query : undefined,
        path,
        defs: contract.defs,
        given: isGiven ? { body, query: given.query, isQueryData: isQueryData(name, given) } : {},
      });
      if (check !== undefined) checks.set(name, check);
    }
    const resultCheckOf = (name: string) => {
      const operation = contract.operations.get(name);
      const isGiven = source.operations.some((one) => one.name === name && one.given.result !== undefined);
      return operation === undefined || isGiven ? undefined : createResultCheck(operation, contract.defs);
    };
    return { contract, checks, resultCheckOf };
  }

  return { hidden, contract: read };
}
