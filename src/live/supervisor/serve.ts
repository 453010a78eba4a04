// Runs the supervisor's process: checks the controllers folder, starts the supervisor, prints the line with the
// address, handles signals, and sets the exit code. supervisor.ts manages the workers.
import { accessSync, constants, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isatty } from 'node:tty';
import { errorMessage } from '../../base/failure.ts';
import { statOf } from '../../base/fingerprint.ts';
import { SERVICE } from '../../base/group-name.ts';
import type { InspectorAddress } from '../../base/inspector.ts';
import type { ListenFds } from '../../base/listen-fds.ts';
import { describeError, type Log } from '../../base/log.ts';
import { lacksGroups } from '../../base/ready-groups.ts';
import type { Settings } from '../../base/settings.ts';
import { trustedMode } from '../../base/system.ts';
import { createLedger, type Ledger } from '../../callers/rates/supervisor-rates.ts';
import type { Announcer } from '../../operate/cli/announce.ts';
import type { Certificates } from '../../operate/https/certificates.ts';
import type { OperationsServer } from '../../operate/ops/server.ts';
import type { SharedStore } from '../../operate/store/link.ts';
import { packagePath } from '../../own-files.ts';
import { createFolderWatch } from '../folder/watch.ts';
import { createHints } from '../load/hints.ts';
import { listControllers, WRITABLE_BY_EVERYONE } from '../load/naming.ts';
import { type DevRecord, GenerationFile } from './generation-file.ts';
import { listGroups } from './group-table.ts';
import { watchLauncher } from './launcher.ts';
import { createServiceMark } from './service-mark.ts';
import type { SupervisorStatus } from './status.ts';
import type { Service } from './step-parts.ts';
import { Supervisor } from './supervisor.ts';
import { createPool } from './workers/pool.ts';
import { adoptPort, describeListenError, hostAndPort, openPort, StartError } from './workers/port.ts';
import type { WorkerOutput } from './workers/worker-output.ts';

export interface Dev {
  readonly record: DevRecord;
  readonly makeTypes: NonNullable<Service['makeTypes']>;
}

export interface ServeOptions {
  readonly settings: Settings;
  readonly listenFds?: ListenFds;
  readonly log: Log;
  /** Writes the log lines that are still buffered. Called just before the process ends. */
  readonly flush: () => void;
  /** Undefined when the workers write to the same streams as this process. */
  readonly output?: WorkerOutput | undefined;
  /** Each of the next three is undefined without its setting: OPS_PORT, TLS, STORE. */
  readonly opsServer?: OperationsServer | undefined;
  readonly certificates?: Certificates | undefined;
  readonly store?: SharedStore | undefined;
  /** Lists the routes on the terminal; undefined when nobody watches a terminal. */
  readonly announcer?: Announcer | undefined;
  /** Whether the operator wants to serve without the service file that the service has had. */
  readonly isWithoutServiceFile?: boolean;
  /** Whether a start whose groups do not load, as READY demands, ends with an error. */
  readonly exitsIfNotReady?: boolean;
  readonly dev?: Dev | undefined;
  readonly inspect?: InspectorAddress | undefined;
}

/**
 * Starts the service, which then runs until a signal ends the process. Resolves when the service is announced, or when
 * the start has failed or was interrupted by a signal, so that the process is about to end.
 */
export async function serve(options: ServeOptions): Promise<void> {
  const { settings, log, flush, output, opsServer, certificates, store, announcer, dev } = options;
  const { workers: workerCount, host, drainTimeout, controllersDir, dataDir } = settings;
  const acceptFor = opsServer === undefined ? ACCEPT_TIME : ACCEPT_TIME_WITH_OPS_PORT;
  const generationFile = new GenerationFile({
    ...{ dataDir, folder: controllersDir, packageFolder: packagePath(), dev: dev?.record, log },
  });
  const mark = createServiceMark(dataDir, log);
  let supervisor: Supervisor | undefined;
  let isServing = false;
  /** The time of the first signal to stop. */
  let stoppingSince: number | undefined;
  const isStopping = () => stoppingSince !== undefined;

  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  const isOnTerminal = isatty(2);
  process.on('SIGHUP', (signal) => {
    // The terminal was closed. A service that continued would hold the port, and nobody would see it.
    if (isOnTerminal && !isatty(2)) return stop(signal);
    // Otherwise an operator has sent SIGHUP, to repeat a failed order of a certificate and to load everything again.
    certificates?.retryNow();
    supervisor?.requestGeneration('signal');
  });
  watchLauncher((pid) => {
    if (isStopping()) return;
    log.info('launcher-exited', { launcher: pid });
    stop('SIGTERM');
  });
  // The workers must keep serving when this process throws an exception, or when nobody reads its output any more.
  process.on('uncaughtException', (error) => log.error('supervisor-exception', describeError(error)));
  process.stdout.on('error', () => {});

  try {
    checkFolder(controllersDir, log);
    if (options.isWithoutServiceFile) {
      const file = listGroups(controllersDir).get(SERVICE);
      if (file !== undefined)
        throw new StartError(
          `--without-service-file: ${join(controllersDir, file)} exists: remove the file or the flag`,
        );
      mark.clear();
    }
    await openOpsPort();
    // Without a copy of the store's table on this machine, the start waits. An empty table would refuse all keys.
    await store?.start().catch(failStart);
    // The port of the service is bound only when there is a certificate. Before the first one is issued, the ACME
    // server may have to check this machine on the same port, where acme/challenges.ts then listens.
    await certificates?.start().catch(failStart);
    const ledger = await openLedger();
    if (isStopping()) return;
    const { http, httpPort } = options.listenFds ?? {};
    if (httpPort !== undefined && settings.httpPort === undefined)
      throw new StartError(
        'LISTEN_FDS: there is a socket http-port, and HTTP_PORT is off: stop that socket, or set it',
      );
    const port = await (http === undefined ? openPort(settings.port, host) : adoptPort(http, settings.port, host));
    if (isStopping()) return;
    const hints = createHints(controllersDir, log, settings.mcp !== 'off');
    supervisor = new Supervisor({
      ...{ workerCount, dir: controllersDir, port, mark, drainTimeout, acceptFor, log },
      ...{ dataDir, store, secureState: certificates?.state, inspect: options.inspect },
      makeTypes: dev?.makeTypes,
      received(worker, message) {
        if (message.kind === 'metrics') opsServer?.addReport(worker.pid ?? 0, message.metrics);
        if (message.kind === 'spent') worker.send({ kind: 'balances', balances: ledger.spend(message.spendings) });
      },
      onGroups(servingGroups) {
        const groups = [...servingGroups];
        announcer?.showChanges(groups);
        hints.report(groups);
      },
      onResult: (result) => supervisor && generationFile.addResult(result, supervisor.status()),
      onWorkers: () => !isStopping() && supervisor && generationFile.update(supervisor.status()),
      createPool: (events) => createPool({ ...settings, events }),
      createWatch: (onChange) => createFolderWatch({ dir: controllersDir, log, onChange }),
    });
    certificates?.handOverPort(port.number, () => supervisor?.sendSecureState());
    // The files of a package can have changed since the types were made, which no worker sees.
    const hadMadeTypes = statOf(join(controllersDir, 'contracts.gen.ts')) !== undefined;
    await supervisor.start();
    if (isStopping()) return;
    if (options.exitsIfNotReady) refuseUnready(supervisor.status(), settings.ready);
    isServing = true;
    const scheme = certificates === undefined ? 'http' : 'https';
    const url = `${scheme}://${hostAndPort(settings.domains[0] ?? host, port.number)}`;
    process.stdout.write(`gatefold listening on ${url}\n`);
    announcer?.showAll(url);
    logDocs(settings, log);
    logShadowed(settings, log);
    if (hadMadeTypes) void dev?.makeTypes();
  } catch (error) {
    // This error does not end the process: either the workers serve, or `stop` is about to end the process.
    if (isServing || isStopping()) return log.error('supervisor-exception', describeError(error));
    store?.close();
    supervisor?.kill();
    await output?.drained();
    const isStartError = error instanceof StartError;
    generationFile.stop(errorMessage(error));
    if (!isStartError) log.error('supervisor-exception', describeError(error));
    flush();
    process.stderr.write(`gatefold: ${isStartError ? error.message : `Cannot start: ${String(error)}`}\n`, () =>
      process.exit(1),
    );
  }

  /** Opens the operations port before any worker loads, so that health checks see a start that is slow or fails. */
  async function openOpsPort(): Promise<void> {
    const { opsPort, opsHost } = settings;
    if (opsPort === undefined) return;
    await opsServer
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

  /** Opens the ledger, which counts the requests of each caller with a rate limit, over all workers. */
  async function openLedger(): Promise<Pick<Ledger, 'spend'>> {
    if (store === undefined) return createLedger();
    const { createSharedLedger } = await import('../../callers/rates/shared-rates.ts');
    return createSharedLedger(store);
  }

  function stop(signal: NodeJS.Signals): void {
    if (stoppingSince !== undefined) {
      // `timeout`, npm and terminals may deliver one signal twice: to the process, and to its process group.
      if (performance.now() - stoppingSince < REDELIVERY_TIME) return;
      supervisor?.kill();
      log.warn('stop-forced', { signal });
      flush();
      process.exit(1);
    }
    stoppingSince = performance.now();
    opsServer?.setStopping();
    // HTTP_PORT closes like PORT: a redirect would lead to a closed port, and the next service needs both ports.
    setTimeout(() => certificates?.close(), acceptFor);
    log.info('stopping', { signal });
    void stopParts()
      .catch((error: unknown) => {
        log.error('supervisor-exception', describeError(error));
        process.exitCode = 1;
      })
      .finally(() => {
        flush();
        process.exit();
      });
  }

  async function stopParts(): Promise<void> {
    await supervisor?.stop();
    store?.close();
    generationFile.stop();
    await output?.drained();
    log.info('stopped', {});
  }
}

/** @throws StartError with each file that does not load, when the service is not ready */
function refuseUnready(status: SupervisorStatus, ready: Settings['ready']): void {
  const isServiceBroken = status.notLoadable.some(({ group }) => group === SERVICE);
  if (!isServiceBroken && !lacksGroups(status, ready)) return;
  const reasons = status.notLoadable.map(({ file, at = file, error }) => `${at}: ${error}`);
  throw new StartError(`--exit-if-not-ready: ${reasons.join('; ')}`);
}

/** Logs where the documentation is served, and the setting that turns it off. No controller shows these routes. */
function logDocs({ docs, basePath }: Settings, log: Log): void {
  if (docs === 'off') return;
  const access = docs === 'on' ? 'anyone' : 'application';
  log.info('docs-served', { document: `${basePath}/openapi.json`, page: `${basePath}/docs`, access, setting: 'DOCS' });
}

/** Logs each group whose requests a row of the service itself takes (request/routes.ts). */
function logShadowed({ docs, mcp, controllersDir, basePath }: Settings, log: Log): void {
  const groups = listGroups(controllersDir);
  const shadow = (group: string, path: string, effect: string) => {
    if (groups.has(group)) log.warn('group-shadowed', { group, path: basePath + path, effect });
  };
  if (docs !== 'off') shadow('Docs', '/docs', 'GET shows the page and not the group; DOCS=off gives it back');
  if (mcp !== 'off') shadow('Mcp', '/mcp', 'requests reach the tools and not the group; MCP=off gives it back');
  shadow('Register', '/register', 'POST is the registration of docs/IDENTITY.md and not the group: rename the group');
}

/** Milliseconds in which a further signal to stop is a second delivery of the first. A later one forces the stop. */
const REDELIVERY_TIME = 25;
/**
 * Milliseconds for which the workers still accept connections after a signal to stop. In this time, the supervisor
 * closes its copy of the socket. With a last copy, the kernel would complete connections that nobody accepts.
 */
const ACCEPT_TIME = 100;
/** With OPS_PORT, a load balancer sees the 503 of /readyz first. HAProxy with deploy/haproxy.cfg needs 700 ms. */
const ACCEPT_TIME_WITH_OPS_PORT = 1000;

/** Logs a warning for each path that every user can change. @throws StartError when the folder cannot be read */
function checkFolder(controllersDir: string, log: Log): void {
  let paths: Set<string>;
  try {
    const folder = realpathSync(controllersDir);
    const files = Array.from(listControllers(folder).values(), (file) => join(folder, file));
    paths = new Set([folder, ...files.map((file) => dirname(file)), ...files]);
    accessSync(folder, constants.X_OK);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new StartError(
      `Cannot read the controllers folder ${controllersDir}: ${FOLDER_REASONS[code] ?? 'the system refuses'} (${code})`,
    );
  }
  // A user who can write to these paths can run code as the user of the service.
  for (const path of paths) {
    // A dead link has no stat, nor has a file that was removed after it was listed.
    if ((trustedMode(statOf(path) ?? { mode: 0 }) & WRITABLE_BY_EVERYONE) !== 0) {
      log.warn('writable-by-everyone', { path, effect: 'every user of this machine can change what the service runs' });
    }
  }
}

const FOLDER_REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such folder; npx gatefold new hello makes it, with a controller',
  ENOTDIR: 'it is not a folder',
  EACCES: 'this user may not read it',
};
