// Runs the supervisor's process: checks the folder, starts the supervisor, prints the line with the address, handles
// signals, and sets the exit code. supervisor.ts manages the generations and the workers.
import { accessSync, constants, readdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isatty } from 'node:tty';
import { describeError, type Log } from '../base/log.ts';
import type { Settings } from '../base/settings.ts';
import { trustedMode } from '../base/system.ts';
import type { Announcer } from '../cli/announce.ts';
import { createHints } from '../groups/hints.ts';
import { listControllers, WRITABLE_BY_EVERYONE } from '../groups/naming.ts';
import type { Certificates } from '../https/certificates.ts';
import { createLedger, type Ledger } from '../limits/ledger.ts';
import type { Spending } from '../limits/rate-limiter.ts';
import type { OperationsServer } from '../ops/server.ts';
import { packagePath } from '../own-files.ts';
import type { SharedStore } from '../store/link.ts';
import { createFolderWatch } from './folder/watch.ts';
import { createGenerationFile } from './generation-file.ts';
import { listGroups } from './group-table.ts';
import { watchLaunchers } from './launcher.ts';
import { createSupervisor, type Supervisor } from './supervisor.ts';
import { createPool } from './workers/pool.ts';
import { describeListenError, hostAndPort, openPort, StartError } from './workers/port.ts';
import type { EarlyWorker } from './workers/prefork.ts';
import type { WorkerHandle } from './workers/worker-handle.ts';
import type { WorkerOutput } from './workers/worker-output.ts';

export interface ServeOptions {
  readonly settings: Settings;
  /** The first workers, whose processes are already booting. */
  readonly early: readonly EarlyWorker[];
  readonly log: Log;
  /** Writes every buffered log line. Called just before the process ends. */
  readonly flush: () => void;
  /** Relays the output of the workers. `output` is undefined when they write to the same streams as this process. */
  readonly output?: WorkerOutput | undefined;
  /** The operations port. `operations` is undefined when OPS_PORT is off. */
  readonly operations?: OperationsServer | undefined;
  /** The certificate that is in use. `certificates` is undefined for HTTP without TLS. */
  readonly certificates?: Certificates | undefined;
  /** The store that several machines share. `store` is undefined when the files of the data folder are used. */
  readonly store?: SharedStore | undefined;
  /** Lists the routes on the terminal. `announcer` is undefined when nobody watches a terminal. */
  readonly announcer?: Announcer | undefined;
  /** Called once the first generation serves. */
  readonly onServing?: (supervisor: Supervisor) => void;
}

/** Serves until a signal ends the process. */
export async function serve(options: ServeOptions): Promise<void> {
  const { settings, early, log, flush, output, operations, certificates, store, announcer, onServing } = options;
  const { controllersDir, dataDir } = settings;
  const generationFile = createGenerationFile({ dataDir, folder: controllersDir, runtime: packagePath(), log });
  let supervisor: Supervisor | undefined;
  let isServing = false;
  /** The time of the first signal to stop. `stoppingSince` is undefined until that signal comes. */
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
  // The workers must keep serving when this process throws an exception, or when nobody reads its output any more.
  process.on('uncaughtException', (error) => log.error('supervisor-exception', describeError(error)));
  process.stdout.on('error', () => {});

  try {
    checkFolder(settings.controllersDir, log);
    await openOperations();
    // When this machine has no replica of the store's credentials table, this waits for the table. A worker with an
    // empty table would refuse all keys.
    await store?.start().catch(failStart);
    // The port of the service is bound after the certificate has come. The order of a first certificate can need its
    // own listener on that port.
    await certificates?.start().catch(failStart);
    if (isStopping()) return;
    const port = await openPort(settings.port, settings.host);
    if (isStopping()) return;
    const { workers, host, drainTimeout, controllersDir: dir } = settings;
    const acceptFor = operations === undefined ? SOCKET_CLOSE_TIME : BALANCER_TIME;
    const onMetrics = (worker: { pid: number | undefined }, metrics: unknown) =>
      operations?.addReport(worker.pid ?? 0, metrics);
    const ledger = await openLedger();
    const hints = createHints(dir, log, settings.mcp !== 'off');
    const onSpent = (worker: WorkerHandle, spendings: readonly Spending[]) =>
      worker.send({ kind: 'balances', balances: ledger.spend(spendings) });
    supervisor = createSupervisor({
      ...{ workers, dir, port, drainTimeout, acceptFor, log, onMetrics, onSpent },
      secureState: certificates?.state,
      onGroups(loads) {
        const groups = [...loads];
        announcer?.updateGroups(groups);
        hints.report(groups);
      },
      onResult: (result) => supervisor && generationFile.addResult(result, supervisor.status()),
      onWorkers: () => !isStopping() && supervisor && generationFile.update(supervisor.status()),
      createPool: (events) => createPool({ early, drainTimeout, events }),
      createWatch: (onChange) => createFolderWatch({ dir, log, onChange }),
    });
    certificates?.handOverPort(port.number, supervisor.sendSecureState);
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
    // The early workers are killed first. A worker that outlives this process would log that its supervisor is gone,
    // after the one line of the error.
    await killEarlyWorkers();
    await output?.drained();
    const isStartError = error instanceof StartError;
    generationFile.stop(String(error instanceof Error ? error.message : error));
    if (!isStartError) log.error('supervisor-exception', describeError(error));
    flush();
    process.stderr.write(`gatefold: ${isStartError ? error.message : `Cannot start: ${String(error)}`}\n`, () =>
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

  function failStart({ message }: Error): never {
    throw new StartError(message);
  }

  /** Opens the ledger, which counts the calls of each caller with a rate limit, over all workers. */
  async function openLedger(): Promise<Pick<Ledger, 'spend'>> {
    if (store === undefined) return createLedger();
    const { createSharedLedger } = await import('../limits/shared-rates.ts');
    return createSharedLedger(store);
  }

  function stop(signal: NodeJS.Signals): void {
    if (stoppingSince !== undefined) {
      // `timeout`, npm and terminals may deliver one signal twice: to the process, and to its process group.
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

/** Logs that the documentation is served, with the setting that turns it off: nobody wrote a controller for it. */
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

/** Maximum milliseconds between two deliveries of the same signal. A later signal is a new one, and forces the stop. */
const SAME_SIGNAL_TIME = 25;
/**
 * Milliseconds for which the workers still accept connections after a signal to stop. Meanwhile, every process that
 * does not accept connections closes its copy of the listening socket.
 */
const SOCKET_CLOSE_TIME = 100;
/**
 * The same time when there is an operations port. Meanwhile, a load balancer sees that /readyz answers 503, and uses
 * other servers. HAProxy with deploy/haproxy.cfg needs 700 ms.
 */
const BALANCER_TIME = 1000;

/** @throws StartError when the folder does not exist or cannot be read */
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
  // A user who can write to these paths can run code as the user of the service.
  const folder = realpathSync(dir);
  const files = Array.from(listControllers(folder).values(), (file) => join(folder, file));
  for (const path of new Set([folder, ...files.map((file) => dirname(file)), ...files])) {
    if ((trustedMode(statSync(path)) & WRITABLE_BY_EVERYONE) !== 0) {
      log.warn('writable-by-everyone', { path, effect: 'every user of this machine can change what the service runs' });
    }
  }
}

const FOLDER_REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such folder; npx gatefold new hello makes it, with a controller',
  ENOTDIR: 'it is not a folder',
  EACCES: 'this user may not read it',
};
