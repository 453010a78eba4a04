// The supervisor's process from settings to exit code: checks the folder, starts the supervisor, prints the line with
// the address, and obeys signals. supervisor.ts does all that concerns generations and workers.
import { accessSync, constants, readdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isatty } from 'node:tty';
import { describeError, type Log } from '../base/log.ts';
import type { Settings } from '../base/settings.ts';
import { modeOf } from '../base/system.ts';
import type { GroupLoad } from '../groups/group-load.ts';
import { createHints } from '../groups/hints.ts';
import { listControllers, WRITABLE_BY_EVERYONE } from '../groups/naming.ts';
import type { CertificateStatus, Certificates } from '../https/certificates.ts';
import { createLedger, type Ledger } from '../limits/ledger.ts';
import type { Spending } from '../limits/rate-limiter.ts';
import { packagePath } from '../own-files.ts';
import type { SharedStore, StoreStatus } from '../store/link.ts';
import { createFolderWatch } from './folder/watch.ts';
import { createGenerationFile } from './generation-file.ts';
import { listGroups } from './group-table.ts';
import { watchLaunchers } from './launcher.ts';
import type { SupervisorStatus } from './status.ts';
import { createSupervisor, type Supervisor } from './supervisor.ts';
import { createPool } from './workers/pool.ts';
import { describeListenError, hostAndPort, openPort, StartError } from './workers/port.ts';
import type { EarlyWorker } from './workers/prefork.ts';
import type { WorkerProcess } from './workers/worker-handle.ts';
import type { WorkerOutput } from './workers/worker-output.ts';

type ServiceState = SupervisorStatus & {
  readonly certificate: CertificateStatus | undefined;
  readonly store: StoreStatus | undefined;
};

/** The operations port: serves health and metrics. */
export interface Operations {
  /** @throws Error of the system when the port cannot be bound */
  open(supervisor: () => ServiceState | undefined): Promise<void>;
  /** A worker has reported its counters. */
  addReport(pid: number, metrics: unknown): void;
  /** The service stops. */
  setStopping(): void;
}

export interface ServeOptions {
  readonly settings: Settings;
  /** The first workers, which boot already. */
  readonly early: readonly EarlyWorker[];
  readonly log: Log;
  /** Writes every log line that waits; the process ends next. */
  readonly flush: () => void;
  /** Relays what workers write. Undefined: they write to the same streams as this process. */
  readonly output?: WorkerOutput | undefined;
  /** The operations port; undefined: OPS_PORT is off. */
  readonly operations?: Operations | undefined;
  /** The certificate that is live; undefined: plain HTTP. */
  readonly certificates?: Certificates | undefined;
  /** The store that machines share; undefined: the files of the data folder. */
  readonly store?: SharedStore | undefined;
  /** Lists the routes on the terminal; undefined: nobody watches it. */
  readonly announcer?: Announcer | undefined;
  /** Called once the first generation serves. */
  readonly onServing?: (supervisor: Supervisor) => void;
}

/** Lists in the terminal which routes answer, and what was added or removed. */
export interface Announcer {
  readonly updateGroups: (loads: Iterable<GroupLoad>) => void;
  /** Called once, when the service accepts connections at this address. */
  readonly announceService: (url: string) => void;
}

/** Serves until a signal ends the process. */
export async function serve(options: ServeOptions): Promise<void> {
  const { settings, early, log, flush, output, operations, certificates, store, announcer, onServing } = options;
  const { controllersDir, dataDir } = settings;
  const generationFile = createGenerationFile({ dataDir, folder: controllersDir, runtime: packagePath(), log });
  let supervisor: Supervisor | undefined;
  let isServing = false;
  /** When the first signal to stop came. */
  let stoppingSince: number | undefined;

  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  const isOnTerminal = isatty(2);
  process.on('SIGHUP', (signal) => {
    // The terminal was closed. A service that continued would hold the port, and nobody would see it.
    if (isOnTerminal && !isatty(2)) return stop(signal);
    certificates?.retryNow();
    supervisor?.renew();
  });
  void watchLaunchers((pid) => {
    if (isStopping()) return;
    log.info('launcher-exited', { launcher: pid });
    stop('SIGTERM');
  });
  // A mistake in this process, or a reader of its output that is gone, must not end the workers.
  process.on('uncaughtException', (error) => log.error('supervisor-exception', describeError(error)));
  process.stdout.on('error', () => {});

  try {
    checkFolder(settings.controllersDir, log);
    await openOperations();
    await awaitTable();
    await awaitCertificate();
    if (isStopping()) return;
    const port = await openPort(settings.port, settings.host);
    if (isStopping()) return;
    const { workers, host, drainTimeout, controllersDir: dir } = settings;
    const acceptFor = operations === undefined ? SOCKET_CLOSE_TIME : BALANCER_TIME;
    const onMetrics = (worker: { pid: number | undefined }, metrics: unknown) =>
      operations?.addReport(worker.pid ?? 0, metrics);
    const ledger = await createRates();
    const hints = createHints(dir, log, settings.mcp !== 'off');
    const onSpent = (worker: WorkerProcess, spendings: readonly Spending[]) =>
      worker.send({ kind: 'balances', balances: ledger.spend(spendings) });
    supervisor = createSupervisor({
      ...{
        workers,
        dir,
        port,
        drainTimeout,
        acceptFor,
        log,
        onMetrics,
        onSpent,
        secureState: certificates?.state,
        onGroups(loads) {
          const groups = [...loads];
          announcer?.updateGroups(groups);
          hints.report(groups);
        },
        onResult: (result) => supervisor && generationFile.addResult(result, supervisor.status()),
        onWorkers: () => !isStopping() && supervisor && generationFile.update(supervisor.status()),
      },
      createPool: (events) => createPool({ early, drainTimeout, events }),
      createWatch: (onChange) => createFolderWatch({ dir, log, onChange }),
    });
    certificates?.handOverPort(port.number, supervisor.secure);
    await supervisor.start();
    isServing = true;
    if (isStopping()) return;
    const scheme = certificates === undefined ? 'http' : 'https';
    const url = `${scheme}://${hostAndPort(settings.domains[0] ?? host, port.number)}`;
    process.stdout.write(`gatefold listening on ${url}\n`);
    announcer?.announceService(url);
    announceDocs(settings, log);
    onServing?.(supervisor);
  } catch (error) {
    // The workers serve, so this error does not end the service.
    if (isServing) return log.error('supervisor-exception', describeError(error));
    store?.close();
    supervisor?.kill();
    // A worker that outlives this process would log that, after the one line of the error.
    await killEarlyWorkers();
    await output?.drained();
    const isKnown = error instanceof StartError;
    generationFile.stop(String(error instanceof Error ? error.message : error));
    if (!isKnown) log.error('supervisor-exception', describeError(error));
    flush();
    process.stderr.write(`gatefold: ${isKnown ? error.message : `Cannot start: ${String(error)}`}\n`, () =>
      process.exit(1),
    );
  }

  function isStopping(): boolean {
    return stoppingSince !== undefined;
  }

  async function killEarlyWorkers(): Promise<void> {
    await Promise.all(early.map((worker) => worker.kill()));
  }

  /** Opens the operations port before any worker starts, so that health checks see a start that is slow or fails. */
  async function openOperations(): Promise<void> {
    const { opsPort, opsHost } = settings;
    if (opsPort === undefined) return;
    await operations
      ?.open(() => {
        const status = supervisor?.status();
        return status && { ...status, certificate: certificates?.status(), store: store?.status() };
      })
      .catch((error: NodeJS.ErrnoException) => {
        throw new StartError(`OPS_PORT: ${describeListenError(opsPort, opsHost, error.code ?? String(error))}`);
      });
  }

  async function createRates(): Promise<Pick<Ledger, 'spend'>> {
    if (store === undefined) return createLedger();
    const { createSharedLedger } = await import('../limits/shared-rates.ts');
    return createSharedLedger(store);
  }

  /** Waits for the table of the store, if there is no replica: a worker with an empty table would refuse all keys. */
  async function awaitTable(): Promise<void> {
    await store?.start().catch((error: Error) => {
      throw new StartError(error.message);
    });
  }

  /** Waits for the certificate before the port is bound: to get the first one may need a listener on it. */
  async function awaitCertificate(): Promise<void> {
    await certificates?.start().catch((error: Error) => {
      throw new StartError(error.message);
    });
  }

  function stop(signal: NodeJS.Signals): void {
    if (stoppingSince !== undefined) {
      // `timeout`, npm and terminals may deliver one signal twice: to the process, and to its group.
      if (performance.now() - stoppingSince < SAME_SIGNAL_TIME) return;
      supervisor?.kill();
      log.warn('stop-forced', { signal });
      flush();
      process.exit(1);
    }
    stoppingSince = performance.now();
    operations?.setStopping();
    log.info('stopping', { signal });
    void (supervisor?.stop() ?? killEarlyWorkers()).then(async () => {
      store?.close();
      generationFile.stop();
      await output?.drained();
      log.info('stopped', {});
      flush();
      process.exit(0);
    });
  }
}

/** Logs that the documentation is served, which no controller asks for, and the setting that turns it off. */
function announceDocs({ docs, controllersDir, basePath }: Settings, log: Log): void {
  if (docs === 'off') return;
  const access = docs === 'on' ? 'anyone' : 'application';
  log.info('docs-served', { document: `${basePath}/openapi.json`, page: `${basePath}/docs`, access, setting: 'DOCS' });
  if (!listGroups(controllersDir).has('Docs')) return;
  log.warn('group-shadowed', {
    group: 'Docs',
    path: `${basePath}/docs`,
    effect: 'GET shows the page and not the group; DOCS=off gives it back',
  });
}

/** Milliseconds between two deliveries of one signal. */
const SAME_SIGNAL_TIME = 25;
/** Milliseconds in which every process that does not accept closes its copy of the listening socket. */
const SOCKET_CLOSE_TIME = 100;
/** Milliseconds in which a balancer sees that /readyz is 503 and uses other servers; deploy/haproxy.cfg takes 700. */
const BALANCER_TIME = 1000;

/** @throws StartError when the folder cannot serve at all */
function checkFolder(dir: string, log: Log): void {
  try {
    readdirSync(dir);
    accessSync(dir, constants.X_OK);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new StartError(
      `Cannot read the controllers folder ${dir}: ${FOLDER_REASONS[code] ?? 'the system refuses'} (${code})`,
    );
  }
  // A user who can write to these paths runs code as the user of the service.
  const folder = realpathSync(dir);
  const files = Array.from(listControllers(folder).values(), (file) => join(folder, file));
  for (const path of new Set([folder, ...files.map((file) => dirname(file)), ...files])) {
    if ((modeOf(statSync(path)) & WRITABLE_BY_EVERYONE) !== 0) {
      log.warn('writable-by-everyone', { path, effect: 'every user of this machine can change what the service runs' });
    }
  }
}

const FOLDER_REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such folder; npx gatefold new hello makes it, with a controller',
  ENOTDIR: 'it is not a folder',
  EACCES: 'this user may not read it',
};
