// Handler groups of one process: page → group. A hit is a Map look-up; a miss looks at the folder (one `stat` when it
// has not changed) and imports a file it has not seen before. Files it has loaded it never looks at again: new code for
// an old file is a new generation of workers, and that is the supervisor's business.
import { realpathSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { refusal } from '../base/errors.ts';
import { fingerprint } from '../base/fingerprint.ts';
import { describeError, type Log } from '../base/log.ts';
import { groupNameOf, pageOf } from '../base/page-name.ts';
import { withTimeLimit } from '../base/time.ts';
import type { Reader } from '../contract/reader.ts';
import { closeService, disposeOf } from './disposal.ts';
import { type ResultObserver, withContract } from './group-contract.ts';
import { hintsOf } from './hints.ts';
import { describeLoadError } from './load-error.ts';
import { createModuleLoader, type LoadedFile } from './module-loader.ts';
import { folderConflict, listControllers, listFolders, parseFileName, SERVICE } from './naming.ts';
import { createGroup, type Group, instantiate } from './operations.ts';
import { HungLoad, isTransient, isUnsettled } from './passing-failures.ts';
import { createService, type LoadedService } from './service-file.ts';
import { refuseUserWithoutService, underService } from './service-rules.ts';
import { SourceChanged } from './source-texts.ts';

/** How one controller file fared. */
export interface GroupLoad {
  readonly group: string;
  /** The file's name in the folder. */
  readonly file: string;
  readonly ok: boolean;
  /** One line: why not. */
  readonly error?: string;
  /** `file:line` of the mistake, where it is known. */
  readonly at?: string;
  /** Column of that line, from 1. */
  readonly column?: number | undefined;
  /** What it answers, where somebody wants to be told. */
  readonly operationNames?: readonly string[];
  /** Methods that look like operations and are none, each with what to do: `find_all: rename it to findAll`. */
  readonly hints?: readonly string[];
  /** Operations whose types are not read since their source is not followed: `created: its source is not followed`. */
  readonly unchecked?: readonly string[];
  /** It did not finish within its time. */
  readonly hung?: boolean;
}

export interface LoadAllOptions {
  /** File names; default: what the folder lists now. One that is gone by then is passed over. */
  readonly files?: readonly string[];
  /** File name → reason, of files that must not be touched: they hung or ended an earlier process. */
  readonly skip: ReadonlyMap<string, string>;
  readonly onLoading: (file: string) => void;
}

/** What the folder says about the service as a whole. */
export type ServiceState =
  | { readonly kind: 'none' }
  | { readonly kind: 'loaded'; readonly service: LoadedService }
  /** The file is there and does not load: no request may be answered as if it said nothing. */
  | { readonly kind: 'broken' };

export interface Location {
  readonly page: string;
  readonly slugs: readonly string[];
}

export interface Groups {
  /**
   * The group that serves `page`, undefined when there is none; a promise only for a file not seen before.
   * @throws HttpError GROUP_NOT_LOADABLE
   */
  find(page: string): Group | undefined | Promise<Group | undefined>;
  /**
   * Returns the page and the slugs of a path whose first segment is a folder of controllers: `v2` and `order`, `7`
   * become `v2/order` and `7`. Returns undefined for any other path, and where a group has the name of the folder.
   */
  locate(page: string, slugs: readonly string[]): Location | undefined;
  /** Loads every group, one after the other, so that a file that ends the process is known by name. */
  loadAll(options: LoadAllOptions): Promise<GroupLoad[]>;
  /** This file must not be touched until it changes: it ended another process. */
  skip(file: string, reason: string): void;
  /** Every group of the folder that loads, by name; one that has come since is imported first. */
  all(): Promise<readonly Group[]>;
  /** Lets the controllers close what they hold; the process ends next. Never rejects. */
  dispose(): Promise<void>;
  /** Names of the groups that serve at the moment. */
  names(): string[];
  /** Every file imported so far and every file looked for in vain. */
  closure(): LoadedFile[];
}

export interface GroupsOptions {
  readonly dir: string;
  readonly log: Log;
  /** Milliseconds one file may take to load: a top-level `await` may never settle. */
  readonly loadTimeout?: number;
  /** A group is about to be imported in place. */
  readonly onImporting?: ((file: string) => void) | undefined;
  /** A file has joined the closure, also long after the load. */
  readonly onFile?: ((file: LoadedFile) => void) | undefined;
  /** A group was imported in place, on its first request, which is held until this has settled. */
  readonly onImported?: (load: GroupLoad) => void | Promise<void>;
  /** Called once by `loadAll`, before it loads the first controller. */
  readonly onService?: ((state: ServiceState) => void) | undefined;
  /** Told of results that are not what their types say; without it no result is looked at. */
  readonly onResult?: ResultObserver | undefined;
  /** What is told of a group that has loaded has its operations. */
  readonly tellOperations?: boolean;
  /** Whether folders in the controllers folder hold groups, too. */
  readonly folders?: boolean;
}

interface Broken {
  readonly reason: string;
  /** Of the file when it failed; a different one is a new chance. */
  readonly fingerprint: string;
}

/** File systems keep time in steps; a listing taken this soon after a change may miss the next one. */
const RACY_MS = 100;
const ATTEMPTS = 10;
/** A controller whose source has changed under its import is loaded again this often at once. */
const RELOADS = 3;

export function createGroups({
  dir,
  log,
  loadTimeout = 10_000,
  onImporting,
  onFile,
  onImported,
  onService,
  onResult,
  tellOperations = false,
  folders: hasFolders = false,
}: GroupsOptions): Groups {
  const loader = createModuleLoader({ onFile });
  let reader: Promise<Reader> | undefined;
  /** The parser is loaded with the first controller. */
  const loadReader = () =>
    (reader ??= import('../contract/reader.ts').then(({ createReader }) => createReader(loader)));
  /** By page, so with the first letter in either case. */
  const pages = new Map<string, Group>();
  const broken = new Map<string, Broken>();
  let state: ServiceState = { kind: 'none' };
  /** Real path → how often it was imported. */
  const attempts = new Map<string, number>();
  const pending = new Map<string, Promise<Group | undefined>>();
  let listing: ReadonlyMap<string, string> = new Map();
  let folders: readonly string[] = [];
  /** The states of the controllers folder and of the folders in it. */
  let states: readonly (Stats | undefined)[] = [];
  let changedAt = 0;
  /**
   * Looked at in this turn of the event loop: every request that is served in it had arrived when it began, so what its
   * client had done before was done by then. A flood of unknown names costs one look at the folder a turn.
   */
  let isFresh = false;

  function refresh(): void {
    if (isFresh) return;
    isFresh = true;
    setImmediate(() => {
      isFresh = false;
    });
    const before = states;
    states = [dir, ...folders.map((name) => join(dir, name))].map(statFolder);
    if (!states.every((state, i) => isSameFolder(before[i], state))) changedAt = performance.now();
    else if (performance.now() - changedAt > RACY_MS) return;
    try {
      // The state of a folder that has just come is read the next time, and is then a change.
      folders = hasFolders ? listFolders(dir) : [];
      listing = listControllers(dir, folders);
    } catch (error) {
      // The folder is away or unreadable: what is loaded goes on serving, and a new name is a group that does not
      // exist.
      log.debug('folder-unreadable', describeError(error));
      listing = new Map();
    }
  }

  function locate(page: string, slugs: readonly string[]): Location | undefined {
    if (!hasFolders || slugs.length === 0 || pages.has(page)) return undefined;
    const location = { page: `${page}/${slugs[0]}`, slugs: slugs.slice(1) };
    if (pages.has(location.page)) return location;
    refresh();
    return isFolder(page) && !listing.has(groupNameOf(page) ?? '') ? location : undefined;
  }

  function isFolder(page: string): boolean {
    return Array.from(listing.keys()).some((group) => group.startsWith(`${page}/`));
  }

  const find: Groups['find'] = (page) => pages.get(page) ?? miss(page);

  function miss(page: string): Group | undefined | Promise<Group | undefined> {
    const group = groupNameOf(page);
    if (group === undefined) return undefined;
    refresh();
    const file = listing.get(group);
    if (file === undefined) return undefined;
    const failed = broken.get(file);
    if (failed !== undefined && failed.fingerprint === fingerprint(join(dir, file)))
      throw notLoadable(file, failed.reason);
    const running = pending.get(group) ?? importInPlace(group, file).finally(() => pending.delete(group));
    pending.set(group, running);
    return running;
  }

  async function importInPlace(group: string, file: string): Promise<Group | undefined> {
    for (let attempt = 1; ; attempt++) {
      const before = fingerprint(join(dir, file));
      if (before === 'absent') return undefined;
      onImporting?.(file);
      const { load, loaded } = await loadOne(group, file);
      if (load.ok || attempt === ATTEMPTS || !(await isUnsettled(join(dir, file), before))) {
        await onImported?.(load);
        if (loaded !== undefined) {
          if (hasFolders && isFolder(pageOf(group)))
            log.warn('folder-refused', {
              folder: pageOf(group),
              effect: `${file} serves its URLs: rename one of the two`,
            });
          return publish(loaded);
        }
        log.error('group-not-loadable', { ...load });
        throw notLoadable(file, load.error ?? '');
      }
    }
  }

  async function loadOne(group: string, file: string): Promise<{ load: GroupLoad; loaded?: Group }> {
    const { load, loaded } = await attempted(group, file, (real) => importGroup(group, real));
    if (loaded === undefined) return { load };
    const told = tellOperations ? { operationNames: [...loaded.operations.keys()] } : {};
    return { load: { ...load, ...told, ...hintsOf(loaded) }, loaded };
  }

  async function attempted<T>(
    group: string,
    file: string,
    importReal: (real: string) => Promise<T>,
  ): Promise<{ load: GroupLoad; loaded?: T }> {
    const path = join(dir, file);
    const before = fingerprint(path);
    let real = path;
    try {
      real = realpathSync(path);
      const loaded = await importReal(real);
      broken.delete(file);
      return { load: { group, file, ok: true }, loaded };
    } catch (error) {
      const { reason, dueTo, ...place } = await describeLoadError(error, real);
      if (dueTo !== undefined) loader.remember(dueTo);
      // Out of descriptors or memory says nothing about the file, so nothing is remembered against it.
      if (!isTransient(error)) broken.set(file, { reason, fingerprint: before });
      const hung = error instanceof HungLoad;
      return { load: { group, file, ok: false, error: reason, ...place, ...(hung ? { hung } : {}) } };
    }
  }

  async function importGroup(group: string, path: string): Promise<Group> {
    const conflict = folderConflict(group, listing);
    if (conflict !== undefined) throw new Error(conflict);
    return importFile(path, (module, reader) => {
      const exported = instantiate(group.slice(group.lastIndexOf('/') + 1), module);
      const classNames = exported.levels.map(({ className }) => className);
      const source = reader.group({ path, group, exportName: exported.exportName, classNames });
      const loaded = withContract(createGroup(group, exported, source.isHidden), source, onResult);
      if (state.kind === 'loaded') return underService(loaded, state.service, path);
      // Beside a broken service file nothing is answered anyway.
      if (state.kind === 'none') refuseUserWithoutService(loaded, path);
      return loaded;
    });
  }

  /** Imports a file and reads its source, again while the file changes under the import. */
  async function importFile<T>(
    path: string,
    read: (module: Readonly<Record<string, unknown>>, reader: Reader) => T,
  ): Promise<T> {
    for (let tries = 1; ; tries++) {
      const attempt = attempts.get(path) ?? 0;
      attempts.set(path, attempt + 1);
      const module = await withTimeLimit(loader.load(path, attempt), loadTimeout, () => new HungLoad(loadTimeout));
      const reader = await loadReader();
      try {
        return read(module, reader);
      } catch (error) {
        if (!(error instanceof SourceChanged) || tries === RELOADS) throw error;
      }
    }
  }

  /** From here on it answers. */
  function publish(group: Group): Group {
    pages.set(group.name, group);
    pages.set(pageOf(group.name), group);
    return group;
  }

  async function loadService(file: string): Promise<GroupLoad> {
    state = { kind: 'broken' };
    const { load, loaded } = await attempted(SERVICE, file, (real) =>
      importFile(real, (module, reader) => createService(real, module, () => reader.errorBody(real))),
    );
    if (loaded !== undefined) state = { kind: 'loaded', service: loaded };
    return load;
  }

  async function loadAll({ files, skip, onLoading }: LoadAllOptions): Promise<GroupLoad[]> {
    const loads: GroupLoad[] = [];
    refresh();
    const names = [...(files ?? listing.values())];
    const isService = (file: string) => parseFileName(file)?.group === SERVICE;
    const service = names.find((file) => isService(file) && !isGone(join(dir, file)));
    if (service !== undefined) {
      const reason = skip.get(service);
      onLoading(service);
      if (reason === undefined) loads.push(await loadService(service));
      else {
        state = { kind: 'broken' };
        skipFile(service, reason);
        loads.push({ group: SERVICE, file: service, ok: false, error: reason });
      }
    }
    onService?.(state);
    for (const file of names.filter((name) => !isService(name))) {
      const group = parseFileName(file)?.group;
      const isServed = group !== undefined && (hasFolders || !group.includes('/'));
      if (!isServed || isGone(join(dir, file))) continue;
      const reason = skip.get(file);
      if (reason !== undefined) {
        skipFile(file, reason);
        loads.push({ group, file, ok: false, error: reason });
        continue;
      }
      onLoading(file);
      const { load, loaded } = await loadOne(group, file);
      if (loaded !== undefined) publish(loaded);
      loads.push(load);
    }
    return loads;
  }

  function skipFile(file: string, reason: string): void {
    broken.set(file, { reason, fingerprint: fingerprint(join(dir, file)) });
  }

  async function all(): Promise<readonly Group[]> {
    refresh();
    const names = [...listing.keys()].filter((name) => name !== SERVICE).sort();
    const found = await Promise.allSettled(names.map(async (name) => find(name)));
    return found.flatMap((one) => (one.status === 'fulfilled' && one.value !== undefined ? [one.value] : []));
  }

  return {
    find,
    locate,
    loadAll,
    all,
    skip: skipFile,
    async dispose() {
      await disposeOf(new Set(pages.values()), log);
      if (state.kind === 'loaded') await closeService(state.service.close, log);
    },
    names: () => [...new Set(Array.from(pages.values(), (group) => group.name))].sort(),
    closure: () => loader.closure(),
  };
}

function statFolder(dir: string): Stats | undefined {
  try {
    return statSync(dir, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Not when it cannot be looked at: that is a file that does not load. */
function isGone(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) === undefined;
  } catch {
    return false;
  }
}

/** Number by number: the text of a fingerprint would cost a flood of 404s more than the stat itself. */
function isSameFolder(a: Stats | undefined, b: Stats | undefined): boolean {
  if (a === undefined || b === undefined) return false;
  return a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs && a.ino === b.ino && a.dev === b.dev;
}

function notLoadable(file: string, reason: string): Error {
  return refusal('GROUP_NOT_LOADABLE', undefined, { cause: new Error(`${file}: ${reason}`) });
}
