// The groups of one process, by their name in URLs: `order` for `Order`. A loaded group is found in a Map. For another
// name, the folder is examined (one `stat` when the folder has not changed), and a new file is imported. A loaded file
// is never imported again: for a changed file, the supervisor starts new workers.
import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { attempt, errorMessage } from '../../base/failure.ts';
import { FALLBACK, groupNameOf, isRoot, ROOT, SERVICE, urlNameOf } from '../../base/group-name.ts';
import type { Log } from '../../base/log.ts';
import type { Fields } from '../../base/values.ts';
import type { Reader } from '../../contract/reader.ts';
import { type ContractOptions, withContract } from '../../groups/group-contract.ts';
import { createMountGroup } from '../../groups/mount.ts';
import { createGroup, type Group, instantiate } from '../../groups/operations.ts';
import { createService, type LoadedService, refuseProperty } from '../../groups/service-file.ts';
import { applyRules, applyService } from '../../groups/service-rules.ts';
import { checkTools, toolsOf } from '../../groups/tools.ts';
import { closeService, disposeOf } from './disposal.ts';
import { createFileLoader, type FileLoaderOptions } from './file-loader.ts';
import type { FileSelection, GroupLoad } from './group-load.ts';
import { describeGroup } from './hints.ts';
import { createListing } from './listing.ts';
import { parseFileName, refuseTwin } from './naming.ts';
import { createNewGroups, errorOf, type GroupOutcome, type NewGroupsOptions, notLoadable } from './new-groups.ts';
import { createStraySearch, type Stray } from './stray-service.ts';

/** By default, the files of the folder are loaded. */
export interface LoadAllOptions extends Omit<FileSelection, 'files'>, Partial<Pick<FileSelection, 'files'>> {
  readonly onLoading: (file: string) => void;
}

export type ServiceState =
  | { readonly kind: 'none' }
  | { readonly kind: 'loaded'; readonly service: LoadedService }
  /** The file exists but does not load. Its rules are unknown, so no request may be answered. */
  | { readonly kind: 'broken'; readonly cause?: Error };

export interface Location {
  readonly groupInUrl: string;
  readonly slugs: readonly string[];
}

export type Groups = ReturnType<typeof createGroups>;

export interface GroupsOptions
  extends Pick<NewGroupsOptions, 'admit' | 'onImporting'>,
    Pick<ContractOptions, 'onMismatch'>,
    Pick<FileLoaderOptions, 'madeTypes' | 'onFile'>,
    Partial<Pick<FileLoaderOptions, 'loadTimeout'>> {
  readonly dir: string;
  readonly log: Log;
  /** Called once by `loadAll`, after the service file and before the first controller. */
  readonly onService?: ((state: ServiceState) => void) | undefined;
  /** Whether `GroupLoad.operationNames` is set. Default: no. */
  readonly reportsOperations?: boolean;
}

const SERVICE_IS_GONE =
  'the service has had a service file, and it is gone: put it back; to serve without rules, write defineService({}) into it once, or start with --without-service-file';

export function createGroups(options: GroupsOptions) {
  const { dir, log, loadTimeout = 10_000, onFile, onMismatch, reportsOperations = false, madeTypes } = options;
  const { admit, onImporting, onService } = options;
  const files = createFileLoader({ dir, loadTimeout, onFile, madeTypes });
  /** The groups by their names in URLs. Each group has two entries: `order` and `Order`. */
  const groupsByUrl = new Map<string, Group>();
  const groupByTool = new Map<string, string>();
  let serviceState: ServiceState = { kind: 'none' };
  const listing = createListing(dir, log);
  const newGroups = createNewGroups({
    ...{ dir, log, admit, onImporting, brokenReason: files.brokenReason, loadOne, publish, findStray },
    fileOf: (group) => (isServed(group) ? listing().get(group) : undefined),
    published: (group) => groupsByUrl.get(group),
  });
  const searchStray = createStraySearch(dir);
  let ownsCors = false;
  let importedByService: ReadonlySet<string> = new Set();
  const loadedService = () => (serviceState.kind === 'loaded' ? serviceState.service : undefined);
  const hasFolders = () => loadedService()?.folders === true;
  /** Whether a listed group can serve. In a subfolder, a group serves only if the service file has `folders: true`. */
  const isServed = (group: string) => group !== SERVICE && (hasFolders() || group === ROOT || !group.includes('/'));

  /**
   * Finds the group of a path that `groupInUrl` alone does not name. In a folder, `v2` with the slugs `order` and `7`
   * is the group `v2/order` with the slug `7`. A root group gets all segments as its slugs. Returns undefined when the
   * first segment names a group, and when there is neither a folder of this name, a root group nor a fallback.
   *
   * @param segments the decoded segments of the path, of which those from `depth` on come after the base path
   */
  function locate({ groupInUrl, slugs }: Location, segments: readonly string[], depth: number): Location | undefined {
    if (groupsByUrl.has(groupInUrl)) return undefined;
    const path = segments.slice(depth);
    // A segment with a slash, such as `v2%2Forder`, names no folder: a rule of a proxy about `/api/v2/` does not match.
    const folder = hasFolders() && path[0] === groupInUrl ? `${groupInUrl}/` : undefined;
    const inFolder = { groupInUrl: `${folder}${slugs[0] ?? ''}`, slugs: slugs.slice(1) };
    if (folder !== undefined) {
      if (isListed(inFolder.groupInUrl)) return inFolder;
      if (isListed(folder)) return { groupInUrl: folder, slugs };
    }
    if (isListed(groupInUrl)) return undefined;
    for (const rest of [ROOT, FALLBACK]) if (isListed(rest)) return { groupInUrl: rest, slugs: path };
    const isFolder = folder !== undefined && Array.from(listing().keys()).some((group) => group.startsWith(folder));
    return isFolder && slugs.length > 0 ? inFolder : undefined;
  }

  /** Whether the folder has a file for a group, also one that does not load. */
  function isListed(urlName: string): boolean {
    const group = groupNameOf(urlName);
    return groupsByUrl.has(urlName) || (group !== undefined && isServed(group) && listing().has(group));
  }

  /** Returns a promise only when a new file has to be imported. @throws HttpError GROUP_NOT_LOADABLE */
  const find = (groupInUrl: string) => groupsByUrl.get(groupInUrl) ?? findNew(groupInUrl);

  function findNew(groupInUrl: string): Group | undefined | Promise<Group | undefined> {
    const group = groupNameOf(groupInUrl);
    if (group === undefined || !isServed(group)) return undefined;
    const file = listing().get(group);
    if (file === undefined) return undefined;
    const reason = files.brokenReason(file);
    if (reason !== undefined) throw notLoadable(file, reason);
    return newGroups.find(group);
  }

  async function loadOne(group: string, file: string): Promise<GroupOutcome> {
    /** The controller is created once for each import, even if its contract is read again (part-schemas.ts). */
    let instance: { readonly module: object; readonly exported: ReturnType<typeof instantiate> } | undefined;
    const { load, loaded } = await files.load(group, file, (module, reader, path) => {
      refuseTwin(group, listing(), (name) => groupsByUrl.has(name));
      if (instance?.module !== module)
        instance = { module, exported: instantiate(group.slice(group.lastIndexOf('/') + 1), module) };
      const { exported } = instance;
      const mount = createMountGroup(group, exported.exported, path, exported.moduleExports);
      if (mount !== undefined) return applyRules(mount, serviceState, path);
      const classNames = exported.levels.map(({ className }) => className);
      const source = reader.openController({ path, exportName: exported.exportName, classNames });
      const contractOptions = { sendsDeclared: loadedService()?.sendsDeclared === true, onMismatch };
      const bare = createGroup(group, exported, source.isHidden, isRoot(group));
      const created = withContract(bare, source, contractOptions);
      checkTools(created, groupByTool, path);
      return applyRules(created, serviceState, path);
    });
    if (loaded === undefined) return { load };
    return { load: { ...load, ...describeGroup(loaded, reportsOperations) }, loaded };
  }

  function publish(group: Group): void {
    for (const tool of toolsOf(group).keys()) groupByTool.set(tool, group.name);
    ownsCors ||= Array.from(group.operations.values()).some(({ mount }) => mount?.ownsCors === true);
    groupsByUrl.set(group.name, group);
    groupsByUrl.set(urlNameOf(group.name), group);
  }

  async function loadService(file: string): Promise<GroupLoad> {
    let fallback: Group | undefined;
    const { load, loaded } = await files.load<LoadedService>(SERVICE, file, async (module, reader, path) => {
      const service = await readService(path, module, reader);
      const mount = createMountGroup(FALLBACK, service.fallback, path);
      fallback = mount && applyService(mount, service, path);
      return service;
    });
    if (loaded === undefined) return load;
    if (fallback !== undefined) publish(fallback);
    serviceState = { kind: 'loaded', service: loaded };
    importedByService = new Set(files.closure().map(({ path }) => path));
    return { ...load, ...factsOfService(loaded) };
  }

  /** Loads one group after the other. When a load ends the process, the last call of `onLoading` names the file. */
  async function loadAll({ skip, onLoading, ...order }: LoadAllOptions): Promise<GroupLoad[]> {
    files.setPatience(order.patience ?? 1);
    const loads: GroupLoad[] = [];
    const names = [...(order.files ?? listing().values())];
    const load = async (group: string, file: string): Promise<GroupLoad> => {
      const reason = skip.get(file);
      if (reason !== undefined) {
        files.skip(file, reason);
        return { group, file, ok: false, code: 'LOAD_CRASHED', error: reason };
      }
      onLoading(file);
      if (group === SERVICE) return loadService(file);
      const { load: outcome, loaded } = await loadOne(group, file);
      if (loaded !== undefined) publish(loaded);
      return outcome;
    };
    const isService = (file: string) => parseFileName(file)?.group === SERVICE;
    const serviceFile = names.find((file) => isService(file) && !isGone(join(dir, file)));
    if (serviceFile !== undefined || order.needsService) serviceState = { kind: 'broken' };
    if (serviceFile !== undefined) loads.push(await load(SERVICE, serviceFile));
    else if (order.needsService) loads.push(refuseService('service.ts', SERVICE_IS_GONE));
    // The imports of a service file that does not load are unknown.
    const stray = serviceFile !== undefined && serviceState.kind === 'broken' ? undefined : await findStray();
    if (stray !== undefined) {
      serviceState = { kind: 'broken' };
      loads.splice(0, loads.length, refuseService(stray.file, stray.reason));
    }
    if (serviceState.kind === 'broken') serviceState = { kind: 'broken', cause: errorOf(loads[0] as GroupLoad) };
    onService?.(serviceState);
    for (const file of names) {
      const group = parseFileName(file)?.group;
      if (group === undefined || !isServed(group)) continue;
      const outcome = await load(group, file);
      if (outcome.ok || !isGone(join(dir, file))) loads.push(outcome);
    }
    await files.release();
    return loads;
  }

  /** Only files that the service file imports may use `defineService`, too. */
  function findStray(): Promise<Stray | undefined> {
    const served = Array.from(listing()).filter(([group]) => group === SERVICE || isServed(group));
    return searchStray(new Map(served), importedByService);
  }

  /** Returns every group of the folder that loads, sorted by name. New files are imported first. */
  async function all(): Promise<readonly Group[]> {
    const names = [...listing().keys()].filter(isServed).sort();
    const results = await Promise.allSettled(names.map(async (name) => find(name)));
    return results.flatMap((result) =>
      result.status === 'fulfilled' && result.value !== undefined ? [result.value] : [],
    );
  }

  return {
    find,
    locate,
    /** Whether a mount answers OPTIONS itself. */
    ownsCors: () => ownsCors,
    loadAll,
    importNew: newGroups.importNew,
    publishNew: newGroups.publishNew,
    all,
    /** Prevents the import of a file until it changes. For a file whose import has ended another process. */
    skip: files.skip,
    /** Disposes of the controllers, waits for `stopped`, and runs `close` of the service file. Never rejects. */
    async dispose(stopped?: Promise<void>): Promise<void> {
      await Promise.all([disposeOf(new Set(groupsByUrl.values()), log), stopped]);
      if (serviceState.kind === 'loaded' && serviceState.service.close !== undefined)
        await closeService(serviceState.service.close, log);
    },
    closure: files.closure,
  };
}

function refuseService(file: string, error: string): GroupLoad {
  return { group: SERVICE, file, ok: false, code: 'INVALID_SERVICE_FILE', error };
}

/** A file that cannot be examined does not count as gone, so that its load fails and gives the reason. */
function isGone(path: string): boolean {
  return attempt(() => lstatSync(path, { throwIfNoEntry: false }) === undefined, false);
}

/** Reads the rules and the tasks, whose code is loaded only for them. @throws ContractError with a line */
async function readService(path: string, module: Fields, reader: Reader): Promise<LoadedService> {
  const service = createService(path, module, () => reader.readErrorBody(path));
  if (service.background === undefined) return service;
  const { readTasks } = await import('../tasks/task.ts');
  try {
    return Object.freeze({ ...service, tasks: readTasks(service.background) });
  } catch (error) {
    throw refuseProperty(path, `background: ${errorMessage(error)}`, errorMessage(error).split(':', 1)[0]);
  }
}

function factsOfService({ folders, isEmpty, start, tasks }: LoadedService): Partial<GroupLoad> {
  const facts = Array.from(tasks?.values() ?? [], ({ name, plan, catchUp }) => ({ name, plan, catchUp }));
  return { folders, isEmpty, ...(start && { hasStart: true }), ...(tasks && { tasks: facts }) };
}
