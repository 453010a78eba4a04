// The process that inspection.ts forks. It loads the folder with the server's own loader, lists every operation, and
// answers one question about a request if the job has one. Then it ends.
import { join } from 'node:path';
import { createLog } from '../base/log.ts';
import { outlineOf } from '../contract/outline.ts';
import { writeDeclarations } from '../docs/declarations.ts';
import { createDocument } from '../docs/openapi.ts';
import { readServiceInfo } from '../docs/service-info.ts';
import { describeLoadError } from '../groups/load-error.ts';
import type { Group } from '../groups/operations.ts';
import { createGroups } from '../groups/registry.ts';
import { createIdentity } from '../identity/handler.ts';
import { isOwnFile } from '../own-files.ts';
import { askApp } from './ask-app.ts';
import type { FromInspection, Inspection, Job, LoadedGroup } from './inspection.ts';

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
      end({
        kind: 'done',
        inspection: { ...inspection, faults: thrown.map(({ reason, at }) => ({ reason, ...authorsPlace(at) })) },
      });
    } catch (error) {
      end({ kind: 'failed', message: error instanceof Error ? error.message : String(error) });
    }
  });
  send({ kind: 'ready' });
}

async function inspect({
  settings,
  skip,
  loadTimeout,
  question,
  wantsDocument,
  wantsTypes,
}: Job): Promise<Omit<Inspection, 'faults'>> {
  const dir = settings.controllersDir;
  const groups = createGroups({ dir, log, loadTimeout });
  const loads = await groups.loadAll({ skip: new Map(skip), onLoading: (file) => send({ kind: 'loading', file }) });
  send({ kind: 'loaded' });
  const listed = loads.map((load): LoadedGroup => {
    const { at, ...withoutPlace } = load;
    const group = load.ok ? (groups.find(load.group) as Group) : undefined;
    return { ...withoutPlace, ...authorsPlace(at), path: join(dir, load.file), ...methodsOf(group) };
  });
  return {
    groups: listed,
    providers: countProviders(settings.dataDir),
    verdict: question && (await askApp(question, { settings, groups })),
    document: wantsDocument && createDocument(await groups.all(), readServiceInfo(dir), settings.basePath),
    declarations:
      wantsTypes && writeDeclarations(await groups.all(), `https://api.example.com${settings.basePath || '/.'}`),
  };
}

/** Returns the place of a mistake, without the query of a retried import. Places in Gatefold's code are hidden. */
function authorsPlace(at: string | undefined): { at?: string } {
  return at === undefined || isOwnFile(at) ? {} : { at: at.replace(/\?attempt=\d+/, '') };
}

function methodsOf(group: Group | undefined): Pick<LoadedGroup, 'operations' | 'unexposed'> {
  const contract = group?.contract;
  return {
    operations: Array.from(group?.operations.keys() ?? [], (name) => {
      const operation = contract?.operations.get(name);
      return { name, contract: operation && outlineOf(operation, contract?.defs ?? {}) };
    }),
    unexposed: (group?.unexposed ?? []).map(({ name, reason }) => ({ name, reason })),
  };
}

/** Counts the identity providers. Undefined: their file cannot be read, which the doctor reports. */
function countProviders(dataDir: string): number | undefined {
  const accounts = { issueSession: refuse, findByOwner: refuse, register: refuse };
  try {
    const identity = createIdentity({ dataDir, log, accounts });
    identity.close();
    return identity.status().providers.length;
  } catch {
    return undefined;
  }
}

function refuse(): never {
  throw new Error('An inspection has no accounts');
}

function send(message: FromInspection): void {
  process.send?.(message, undefined, {}, () => {});
}

/** Sends the last message and exits. Without the exit, timers and sockets of controllers would keep the process. */
function end(message: FromInspection): void {
  process.send?.(message, undefined, {}, () => process.exit(0));
}
