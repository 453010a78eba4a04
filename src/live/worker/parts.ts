// Builds the parts of a worker: the groups of the folder, the credentials table, the identity providers, and the app
// that serves them. This file knows nothing of the supervisor.
import type { LineSink } from '../../base/log.ts';
import type { CallerTable } from '../../callers/access/key-check.ts';
import { createCredentials, type SharedTable } from '../../callers/credentials/credentials.ts';
import { createIdentity } from '../../callers/identity/handler.ts';
import { createRateLimiter, type Spending } from '../../callers/rates/rate-limiter.ts';
import { createDocs } from '../../documents/docs-endpoints.ts';
import { readServiceInfo } from '../../documents/service-info.ts';
import type { LoadedService } from '../../groups/service-file.ts';
import { readDocsPage } from '../../own-files.ts';
import { type App, type AppParts, createApp } from '../../request/app.ts';
import type { LoadedFile } from '../load/module-loader.ts';
import { createGroups, type Groups } from '../load/registry.ts';
import type { Admissions } from './admissions.ts';

export interface WorkerPartsEvents {
  /** Decides whether groups whose files came after the load may answer. */
  readonly admissions: Pick<Admissions, 'request' | 'waiting'>;
  /** Called before the import of such a group. */
  readonly onImporting: (file: string) => void;
  /** Called for each file that is imported, by the load of the folder or by a call of an operation. */
  readonly onFile: (file: LoadedFile) => void;
  /** Called when callers with a rate limit have sent requests. Not needed when this process is the only worker. */
  readonly onSpent: (spendings: readonly Spending[]) => void;
}

type PartsOfApp = Pick<AppParts, 'settings' | 'log' | 'observer' | 'noteBegin' | 'maxDescriptor' | 'transport'>;

export interface WorkerPartsOptions extends Partial<WorkerPartsEvents>, PartsOfApp {
  /** Gets the log lines of requests; all others go to `log`. */
  readonly sink: LineSink;
  /** The connection to the store, the database that this machine shares with others; undefined without a store. */
  readonly shared?: SharedTable | undefined;
  /** Adds callers to those of the credentials table, for tests. */
  readonly withCallers?: (table: CallerTable) => CallerTable;
  /** Adds users to those that `authenticate` of the service file finds, for tests. */
  readonly withUsers?: (service: LoadedService) => LoadedService;
}

export type WorkerParts = Awaited<ReturnType<typeof createWorkerParts>>;

/** @throws Error with a message of one line, when a table exists and cannot be read */
export async function createWorkerParts(options: WorkerPartsOptions) {
  const { settings, log, sink, observer, transport, shared, noteBegin, maxDescriptor } = options;
  const { admissions, onImporting, onFile, onSpent } = options;
  const { withCallers = (table) => table, withUsers = (loadedService) => loadedService } = options;
  const { controllersDir, dataDir, basePath, sessionKey, logLevel, development } = settings;
  let service: LoadedService | undefined;
  const groups: Groups = createGroups({
    ...{ dir: controllersDir, log, admit: admissions?.request, onImporting, onFile },
    reportsOperations: development,
    loadTimeout: settings.loadTimeout,
    ...(development && { onMismatch: (mismatch) => log.warn('result-type-mismatched', mismatch) }),
    onService(state) {
      service = state.kind === 'loaded' ? withUsers(state.service) : undefined;
      app.useService(service === undefined ? state : { kind: 'loaded', service });
    },
  });
  const credentials = await createCredentials({ dataDir, sessionKey, log, shared });
  const identity = createIdentity({ dataDir, log, accounts: credentials });
  const allGroups = () => groups.all();
  const info = () => readServiceInfo(controllersDir);
  const docs = createDocs({
    ...{ access: settings.docs, groups: allGroups, info, basePath, readPage: readDocsPage },
    service: () => service,
  });
  // Only a service with the setting MCP loads files of operate/tools/.
  const tools =
    settings.mcp === 'off'
      ? undefined
      : (await import('../../operate/tools/messages.ts')).createToolServer({ groups: allGroups, info, basePath });
  const { publicDir, publicFallback } = settings;
  const files =
    publicDir === undefined
      ? undefined
      : (await import('../../request/files/public-files.ts')).createPublicFiles({
          ...{ dir: publicDir, fallback: publicFallback, controllersDir, dataDir, log },
        });
  const limiter = createRateLimiter({ report: onSpent, workers: settings.workers });
  const requestLog = logLevel === 'debug' || logLevel === 'info' ? sink : undefined;
  const app: App = createApp({
    ...{ settings, log, requestLog, groups, identity, docs, tools, files, observer, limiter, transport },
    ...{ noteBegin, maxDescriptor },
    waitingForGroups: admissions?.waiting,
    credentials: withCallers(credentials),
  });
  return {
    ...{ app, groups, credentials, identity, limiter },
    service: () => service,
    close(): void {
      credentials.close();
      identity.close();
    },
  };
}
