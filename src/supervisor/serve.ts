// The supervisor's process from settings to exit code: checks what it was given, starts the supervisor, prints the one
// line, obeys signals. How generations are made and kept is supervisor.ts; what a worker is made of is not known here.
import { accessSync, constants, readdirSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isatty } from 'node:tty';
import { describeError, type Log } from '../base/log.ts';
import type { Settings } from '../base/settings.ts';
import { createHints } from '../groups/hints.ts';
import { listControllers, WRITABLE_BY_EVERYONE } from '../groups/naming.ts';
import type { GroupLoad } from '../groups/registry.ts';
import type { CertificateStatus, Certificates } from '../https/certificates.ts';
import { createLedger } from '../limits/ledger.ts';
import type { Spending } from '../limits/rate-limiter.ts';
import { createFolderWatch } from './folder/watch.ts';
import { listGroups } from './group-table.ts';
import type { SupervisorStatus } from './status.ts';
import { createSupervisor, type Supervisor } from './supervisor.ts';
import { createPool } from './workers/pool.ts';
import { describeListenError, hostAndPort, openPort, StartError } from './workers/port.ts';
import type { EarlyWorker } from './workers/prefork.ts';
import type { WorkerProcess } from './workers/worker-handle.ts';
import type { WorkerOutput } from './workers/worker-output.ts';

/** Tells others how the service fares, on a port of its own; what it tells, it knows alone. */
export interface Operations {
  /** @throws Error of the system when its port cannot be had */
  open(
    supervisor: () => (SupervisorStatus & { readonly certificate: CertificateStatus | undefined }) | undefined,
  ): Promise<void>;
  addReport(pid: number, metrics: unknown): void;
  setStopping(): void;
}

export interface ServeOptions {
  readonly settings: Settings;
  /** The first workers, already on their way. */
  readonly early: readonly EarlyWorker[];
  readonly log: Log;
  /** Has every log line on its way; the process ends next. */
  readonly flush: () => void;
  /** Undefined: workers write to what this process writes to. */
  readonly output?: WorkerOutput | undefined;
  /** Undefined: OPS_PORT is off. */
  readonly operations?: Operations | undefined;
  /** Undefined: HTTP without TLS. */
  readonly certificates?: Certificates | undefined;
  /** Says what answers; undefined: nobody looks. */
  readonly announcer?: Announcer | undefined;
  /** Called once the first generation serves. */
  readonly onServing?: (supervisor: Supervisor) => void;
}

/** Tells people what answers, and what came and went. */
export interface Announcer {
  readonly groups: (loads: Iterable<GroupLoad>) => void;
  readonly opened: (url: string) => void;
}

/** Serves until a signal ends it, and with it the process. */
export async function serve(options: ServeOptions): Promise<void> {
  const { settings, early, log, flush, output, operations, certificates, announcer, onServing } = options;
  let supervisor: Supervisor | undefined;
  let isServing = false;
  let stopping = false;
  let stoppingSince = 0;

  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  const isOnTerminal = isatty(2);
  process.on('SIGHUP', (signal) => {
    // Its terminal was closed: nobody sees it any more, and it would hold the port.
    if (isOnTerminal && !isatty(2)) return stop(signal);
    certificates?.retryNow();
    supervisor?.renew();
  });
  // A mistake of ours, or a reader of the output that went away, must not take down the service: the workers are fine.
  process.on('uncaughtException', (error) => log.error('supervisor-exception', describeError(error)));
  process.stdout.on('error', () => {});

  try {
    checkFolder(settings.controllersDir, log);
    await openOperations();
    await awaitCertificate();
    if (stopping) return;
    const port = await openPort(settings.port, settings.host);
    if (stopping) return;
    const { workers, host, drainTimeout, controllersDir: dir } = settings;
    const acceptFor = operations === undefined ? CLOSE_COPIES : LEAVE_BALANCER;
    const onMetrics = (worker: { pid: number | undefined }, metrics: unknown) =>
      operations?.addReport(worker.pid ?? 0, metrics);
    const ledger = createLedger();
    const hints = createHints(dir, log);
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
          announcer?.groups(groups);
          hints.tell(groups);
        },
      },
      createPool: (events) => createPool({ early, drainTimeout, events }),
      createWatch: (onChange) => createFolderWatch({ dir, log, onChange }),
    });
    certificates?.handOverPort(port.number, supervisor.secure);
    await supervisor.start();
    isServing = true;
    if (stopping) return;
    const scheme = certificates === undefined ? 'http' : 'https';
    const url = `${scheme}://${hostAndPort(settings.domains[0] ?? host, port.number)}`;
    process.stdout.write(`gatefold listening on ${url}\n`);
    announcer?.opened(url);
    announceDocs(settings, log);
    onServing?.(supervisor);
  } catch (error) {
    // The workers serve, whatever has gone wrong beside them.
    if (isServing) return log.error('supervisor-exception', describeError(error));
    supervisor?.kill();
    // One that outlives this process would complain of it behind our one line.
    await endEarly();
    await output?.drained();
    const isKnown = error instanceof StartError;
    if (!isKnown) log.error('supervisor-exception', describeError(error));
    flush();
    process.stderr.write(`gatefold: ${isKnown ? error.message : `Cannot start: ${String(error)}`}\n`, () =>
      process.exit(1),
    );
  }

  async function endEarly(): Promise<void> {
    await Promise.all(early.map((worker) => worker.kill()));
  }

  /** Before there is a worker: a start that takes long, or does not succeed, is what a probe should see. */
  async function openOperations(): Promise<void> {
    const { opsPort, opsHost } = settings;
    if (opsPort === undefined) return;
    await operations
      ?.open(() => {
        const status = supervisor?.status();
        return status && { ...status, certificate: certificates?.status() };
      })
      .catch((error: NodeJS.ErrnoException) => {
        throw new StartError(`OPS_PORT: ${describeListenError(opsPort, opsHost, error.code ?? String(error))}`);
      });
  }

  /** Before the port is taken: the first certificate may take a listener on it. */
  async function awaitCertificate(): Promise<void> {
    await certificates?.start().catch((error: Error) => {
      throw new StartError(error.message);
    });
  }

  function stop(signal: NodeJS.Signals): void {
    if (stopping) {
      // `timeout`, npm and terminals may deliver one signal twice: to the process, and to its group.
      if (performance.now() - stoppingSince < SAME_SIGNAL) return;
      supervisor?.kill();
      log.warn('stopped-at-once', { signal });
      flush();
      process.exit(1);
    }
    stopping = true;
    operations?.setStopping();
    stoppingSince = performance.now();
    log.info('stopping', { signal });
    void (supervisor?.stop() ?? endEarly()).then(async () => {
      await output?.drained();
      log.info('stopped');
      flush();
      process.exit(0);
    });
  }
}

/** They are there without having been asked for, so the log says so, and how to be rid of them. */
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

const SAME_SIGNAL = 25;
/** Milliseconds for every process to close its copy of the listening socket but those that accept on it. */
const CLOSE_COPIES = 100;
/** Milliseconds for a balancer to see that /readyz is 503 and to turn to others; deploy/haproxy.cfg takes 700. */
const LEAVE_BALANCER = 1000;

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
  // Whoever can write here runs code as this user.
  const real = realpathSync(dir);
  for (const path of [real, ...Array.from(listControllers(real).values(), (file) => join(real, file))]) {
    if ((statSync(path).mode & WRITABLE_BY_EVERYONE) !== 0) {
      log.warn('writable-by-everyone', { path, effect: 'every user of this machine can change what the service runs' });
    }
  }
}

const FOLDER_REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such folder; npx gatefold new hello makes it, with a controller',
  ENOTDIR: 'it is not a folder',
  EACCES: 'this user may not read it',
};
