// What a worker is made of: the folder's groups, the credentials table, the identity providers, and the app over them.

import type { LineSink, Log } from '../base/log.ts';
import type { Settings } from '../base/settings.ts';
import { type Credentials, createCredentials } from '../credentials/credentials.ts';
import { createDocs } from '../docs/handlers.ts';
import { readServiceInfo } from '../docs/service-info.ts';
import type { LoadedFile } from '../groups/module-loader.ts';
import { createGroups, type GroupLoad, type Groups } from '../groups/registry.ts';
import type { RequestObserver } from '../http/answer/response.ts';
import { type App, createApp } from '../http/app.ts';
import type { CallerTable } from '../http/caller.ts';
import type { Transport } from '../http/server.ts';
import { createIdentity } from '../identity/handler.ts';
import { createRateLimiter, type RateLimiter, type Spending } from '../limits/rate-limiter.ts';
import { readDocsPage } from '../own-files.ts';

export interface WorkerPartsOptions {
  readonly settings: Settings;
  readonly log: Log;
  /** Where the lines of the requests go. */
  readonly sink: LineSink;
  readonly observer?: RequestObserver | undefined;
  /** Default: HTTP without TLS. */
  readonly transport?: Transport | undefined;
  /** A brand-new group is about to be imported in place. */
  readonly onImporting?: (file: string) => void;
  /** A brand-new group was imported in place; with every file imported so far. It answers once this has settled. */
  readonly onImported?: (load: GroupLoad, files: LoadedFile[]) => void | Promise<void>;
  /** A file has joined what was imported. */
  readonly onFile?: (file: LoadedFile) => void;
  /** Callers with a rate limit have called; undefined: this process is alone. */
  readonly onSpent?: (spendings: readonly Spending[]) => void;
  /** Puts callers beside those of the table: for tests. */
  readonly withCallers?: (table: CallerTable) => CallerTable;
}

export interface WorkerParts {
  readonly app: App;
  readonly groups: Groups;
  readonly credentials: Credentials;
  readonly identity: ReturnType<typeof createIdentity>;
  readonly limiter: RateLimiter;
  /** Stops what watches the tables. */
  close(): void;
}

/** @throws Error one line, when a table is there and cannot be read */
export async function createWorkerParts({
  settings,
  log,
  sink,
  observer,
  transport,
  onImporting,
  onImported,
  onFile,
  onSpent,
  withCallers = (table) => table,
}: WorkerPartsOptions): Promise<WorkerParts> {
  const { dataDir, sessionKey, logLevel } = settings;
  const groups: Groups = createGroups({
    dir: settings.controllersDir,
    log,
    onImporting,
    onFile,
    tellOperations: settings.development,
    ...(settings.development ? { onResult: (facts) => log.warn('result-differs', facts) } : {}),
    onImported: (load) => onImported?.(load, groups.closure()),
  });
  const credentials = await createCredentials({ dataDir, sessionKey, log });
  const identity = createIdentity({ dataDir, log, accounts: credentials });
  const docs = createDocs({
    access: settings.docs,
    groups: () => groups.all(),
    info: () => readServiceInfo(settings.controllersDir),
    readPage: readDocsPage,
  });
  const limiter = createRateLimiter({ report: onSpent, workers: settings.workers });
  const requestLog = logLevel === 'debug' || logLevel === 'info' ? sink : undefined;
  return {
    app: createApp({
      settings,
      log,
      requestLog,
      groups,
      credentials: withCallers(credentials),
      identity,
      docs,
      observer,
      limiter,
      transport,
    }),
    groups,
    credentials,
    identity,
    limiter,
    close() {
      credentials.close();
      identity.close();
    },
  };
}
