// The child process of inspection.ts: loads the controllers with the server's own loader, and does its job.
import { join } from 'node:path';
import { processChannels, provideChannels } from '../../base/channel-hub.ts';
import { FALLBACK, SERVICE } from '../../base/group-name.ts';
import { createLog } from '../../base/log.ts';
import { outlineAccess } from '../../callers/access/access.ts';
import { outlineOf } from '../../contract/outline.ts';
import { writeDeclarations } from '../../documents/declarations.ts';
import { createDocument } from '../../documents/openapi.ts';
import { readServiceInfo } from '../../documents/service-info.ts';
import type { Group } from '../../groups/operations.ts';
import { describeLoadError } from '../../live/load/load-error.ts';
import { createGroups, type ServiceState } from '../../live/load/registry.ts';
import { isOwnFile } from '../../own-files.ts';
import { lineOf } from './command.ts';
import type { Inspection, InspectionMessage, Job, LoadedGroup } from './inspection.ts';

const log = createLog({ level: 'silent', sink: { write() {} } });

export function runInspection(): void {
  /** Errors outside of any import, such as in a timer. Such an error ends neither this process nor a worker. */
  const strayErrors: Promise<{ reason: string; at?: string }>[] = [];
  process.on('uncaughtException', (error) => strayErrors.push(describeLoadError(error, '')));
  process.once('disconnect', () => process.exit(1));
  process.once('message', async (job: Job) => {
    try {
      const inspection = await inspect(job);
      const describedErrors = await Promise.all(strayErrors);
      const listedErrors = describedErrors.map(({ reason, at }) => ({ reason, ...authorsPlace(at) }));
      send({ kind: 'done', inspection: { ...inspection, strayErrors: listedErrors } }, endProcess);
    } catch (error) {
      send({ kind: 'failed', message: lineOf(error) }, endProcess);
    }
  });
  send({ kind: 'ready' });
}

async function inspect(job: Job): Promise<Omit<Inspection, 'strayErrors'>> {
  const { settings, skip, wantsDocument, wantsTypes, madeTypes } = job;
  const { controllersDir: dir, loadTimeout } = settings;
  provideChannels(async () => (await import('../../live/channels/hub.ts')).createLocalChannels());
  let serviceState = { kind: 'none' } as ServiceState;
  const onService = (state: ServiceState) => {
    serviceState = state;
  };
  // When the folder cannot be read, `loadAll` throws the error.
  const groups = createGroups({ dir, log, loadTimeout, onService, madeTypes });
  const outcomes = await groups.loadAll({ skip: new Map(skip), onLoading: (file) => send({ kind: 'loading', file }) });
  send({ kind: 'loaded' });
  const files = outcomes.map(({ at, ...rest }) => ({ ...rest, ...authorsPlace(at), path: join(dir, rest.file) }));
  const serviceFile = files.find(({ group }) => group === SERVICE);
  const service = serviceState.kind === 'loaded' ? serviceState.service : undefined;
  const loadedGroups = files
    .filter(({ group }) => group !== SERVICE)
    .map((file): LoadedGroup => {
      const group = file.ok ? (groups.find(file.group) as Group) : undefined;
      return { ...file, ...outlineGroup(group, service?.sendsDeclared) };
    });
  const fallback = groups.find(FALLBACK) as Group | undefined;
  if (fallback !== undefined && serviceFile !== undefined)
    loadedGroups.push({ ...serviceFile, group: FALLBACK, ...outlineGroup(fallback, service?.sendsDeclared) });
  return {
    groups: loadedGroups,
    service: serviceFile,
    channels: [...processChannels().names.keys()],
    document: wantsDocument && createDocument(await groups.all(), readServiceInfo(dir), settings.basePath, service),
    // The client adds `/api` to a URL without a path. So the URL of an empty base path ends with `/.`.
    declarations:
      wantsTypes && writeDeclarations(await groups.all(), `https://api.example.com${settings.basePath || '/.'}`),
  };
}

/** Drops a place in Gatefold's own files, and the query that a second import has added: `/srv/X.mjs?attempt=2:7`. */
function authorsPlace(at: string | undefined): { at?: string } {
  return at === undefined || isOwnFile(at) ? {} : { at: at.replace(/\?attempt=\d+/, '') };
}

function outlineGroup(
  group: Group | undefined,
  sendsDeclared: boolean | undefined,
): Pick<LoadedGroup, 'operations' | 'strict'> {
  const contract = group?.contract;
  return {
    operations: Array.from(group?.operations ?? [], ([name, { settings }]) => {
      const operation = contract?.operations.get(name);
      const outline = operation && outlineOf(operation, contract?.defs ?? {});
      const isTyped = operation?.results.some(({ returnedSchema }) => returnedSchema !== undefined) === true;
      const sendsAll = isTyped && sendsDeclared !== true && settings.results !== 'declared';
      return { name, contract: outline, access: outlineAccess(settings.access), sendsAll };
    }),
    // A group without routes can be strict only because of the service file.
    strict: group?.strictRoutes && (group.routes.length > 0 ? 'routes' : 'service'),
  };
}

/** @param onSent called also when the message cannot be sent */
function send(message: InspectionMessage, onSent = (): void => {}): void {
  process.send?.(message, undefined, {}, onSent);
}

/** Ends the process, which timers and sockets of controllers could keep running. */
const endProcess = () => process.exit(0);
