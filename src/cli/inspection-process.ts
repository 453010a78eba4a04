// The process that inspection.ts forks. The process loads the controllers with the server's own loader, and lists every
// operation. If the job has a question about a request, the process also answers the question. Then the process ends.
import { join } from 'node:path';
import { createLog } from '../base/log.ts';
import { SERVICE } from '../base/page-name.ts';
import { outlineOf } from '../contract/outline.ts';
import { writeDeclarations } from '../docs/declarations.ts';
import { createDocument } from '../docs/openapi.ts';
import { readServiceInfo } from '../docs/service-info.ts';
import { prepareLoad } from '../groups/file-loader.ts';
import { describeLoadError } from '../groups/load-error.ts';
import type { Group } from '../groups/operations.ts';
import { createGroups, type ServiceState } from '../groups/registry.ts';
import type { LoadedService } from '../groups/service-file.ts';
import { createIdentity } from '../identity/handler.ts';
import { isOwnFile } from '../own-files.ts';
import { outlineAccess } from '../service/access.ts';
import { askApp } from './ask-app.ts';
import type { InspectedService, Inspection, InspectionMessage, Job, LoadedGroup } from './inspection.ts';

const log = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });

export function runInspection(): void {
  const faults: Promise<{ reason: string; at?: string }>[] = [];
  // As in a worker, an error outside of a request does not end the process.
  process.on('uncaughtException', (error) => faults.push(describeLoadError(error, '')));
  process.once('disconnect', () => process.exit(1));
  process.once('message', async (job: Job) => {
    try {
      const inspection = await inspect(job);
      const thrown = await Promise.all(faults);
      sendLast({
        kind: 'done',
        inspection: { ...inspection, faults: thrown.map(({ reason, at }) => ({ reason, ...authorsPlace(at) })) },
      });
    } catch (error) {
      sendLast({ kind: 'failed', message: error instanceof Error ? error.message : String(error) });
    }
  });
  send({ kind: 'ready' });
}

async function inspect(job: Job): Promise<Omit<Inspection, 'faults'>> {
  const { settings, skip, loadTimeout, question, wantsDocument, wantsTypes } = job;
  const dir = settings.controllersDir;
  const states: ServiceState[] = [];
  // The load itself reports a folder that cannot be read.
  const prepared = await prepareLoad(dir).catch(() => undefined);
  const groups = createGroups({ dir, log, loadTimeout, prepared, onService: (state) => states.push(state) });
  const loads = await groups.loadAll({ skip: new Map(skip), onLoading: (file) => send({ kind: 'loading', file }) });
  send({ kind: 'loaded' });
  const loadsWithPaths = loads.map((load) => {
    const { at, ...withoutPlace } = load;
    return { ...withoutPlace, ...authorsPlace(at), path: join(dir, load.file) };
  });
  const serviceLoad = loadsWithPaths.find(({ group }) => group === SERVICE);
  const loadedGroups = loadsWithPaths
    .filter(({ group }) => group !== SERVICE)
    .map((load): LoadedGroup => {
      return { ...load, ...outlineGroup(load.ok ? (groups.find(load.group) as Group) : undefined) };
    });
  const [state = { kind: 'none' } as const] = states;
  const service = state.kind === 'loaded' ? state.service : undefined;
  return {
    groups: loadedGroups,
    service: serviceLoad && { ...serviceLoad, ...(service && outlineService(service)) },
    providers: countProviders(settings.dataDir),
    verdict: question && (await askApp(question, { settings, groups, serviceState: state })),
    document: wantsDocument && createDocument(await groups.all(), readServiceInfo(dir), settings.basePath, service),
    declarations:
      wantsTypes && writeDeclarations(await groups.all(), `https://api.example.com${settings.basePath || '/.'}`),
  };
}

function outlineService(service: LoadedService): Pick<InspectedService, 'properties' | 'lacksSchemes'> {
  const { strict, folders, authenticate, formatError, cors, keyHeader, headers, refusesUnchecked, close } = service;
  const schemes = Object.keys(service.securitySchemes);
  const access = outlineAccess(service.access);
  const facts: readonly (readonly [isSet: boolean, text: string])[] = [
    [strict, 'strict'],
    [folders, 'folders'],
    [authenticate !== undefined, 'authenticate'],
    [access !== undefined, `access: ${access}`],
    [formatError !== undefined, 'formatError'],
    [cors !== undefined, cors?.credentials ? 'cors with credentials' : 'cors'],
    [schemes.length > 0, `securitySchemes: ${schemes.join(', ')}`],
    [keyHeader !== undefined, `keyHeader: ${keyHeader}`],
    [headers.length > 0, 'headers'],
    [refusesUnchecked, "unchecked: 'refuse'"],
    [close !== undefined, 'close'],
  ];
  return {
    properties: facts.flatMap(([isSet, text]) => (isSet ? [text] : [])),
    lacksSchemes: authenticate !== undefined && schemes.length === 0,
  };
}

/** Returns a place in the author's code. A second import has added a query to the path: `/srv/X.mjs?attempt=2:7`. */
function authorsPlace(at: string | undefined): { at?: string } {
  return at === undefined || isOwnFile(at) ? {} : { at: at.replace(/\?attempt=\d+/, '') };
}

function outlineGroup(group: Group | undefined): Pick<LoadedGroup, 'operations' | 'unexposed' | 'strict'> {
  const contract = group?.contract;
  return {
    operations: Array.from(group?.operations ?? [], ([name, { settings }]) => {
      const operation = contract?.operations.get(name);
      const outline = operation && outlineOf(operation, contract?.defs ?? {});
      return { name, contract: outline, access: outlineAccess(settings.access) };
    }),
    strict: group?.strictRoutes && (group.routes.length > 0 ? 'routes' : 'service'),
    unexposed: (group?.unexposed ?? []).map(({ name, reason }) => ({ name, reason })),
  };
}

/** Counts the identity providers. Returns undefined when their file cannot be read, which the doctor reports. */
function countProviders(dataDir: string): number | undefined {
  const accounts = { issueSession: throwUnused, findByOwner: throwUnused, register: throwUnused };
  try {
    const identity = createIdentity({ dataDir, log, accounts });
    identity.close();
    return identity.status().providers.length;
  } catch {
    return undefined;
  }
}

function throwUnused(): never {
  throw new Error('An inspection has no accounts');
}

function send(message: InspectionMessage): void {
  process.send?.(message, undefined, {}, () => {});
}

/** Sends the last message and exits, because timers and sockets of controllers would keep the process running. */
function sendLast(message: InspectionMessage): void {
  process.send?.(message, undefined, {}, () => process.exit(0));
}
