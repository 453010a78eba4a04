// The entry of the service, in the process of the supervisor, which starts the workers. The entry only connects the
// parts. A part that a setting switches on is imported only then, which saves memory. worker.ts is the worker's entry.
import cluster from 'node:cluster';
import { watchFile } from 'node:fs';
import { join } from 'node:path';
import { parseCommandLine, START_FLAGS, secretFlags } from '../base/config.ts';
import { envFileOf, envFilePaths, withEnvFiles } from '../base/env-files.ts';
import { attempt } from '../base/failure.ts';
import { fingerprint } from '../base/fingerprint.ts';
import { ignoredVariables } from '../base/ignored-variables.ts';
import { type InspectorAddress, parseInspectorAddress } from '../base/inspector.ts';
import { type ListenFds, takeListenFds } from '../base/listen-fds.ts';
import type { Log } from '../base/log.ts';
import { type ProcessBasics, readProcessBasics } from '../base/process.ts';
import { isSecure } from '../base/settings.ts';
import { asksForTraces } from '../base/trace-switch.ts';
import { findOtherPackage } from '../live/load/own-package.ts';
import type { DevRecord } from '../live/supervisor/generation-file.ts';
import type { Dev } from '../live/supervisor/serve.ts';
import { relayOutput } from '../live/supervisor/workers/worker-output.ts';
import type { Announcer } from '../operate/cli/announce.ts';
import type { OperationsServer } from '../operate/ops/server.ts';
import type { SharedStore } from '../operate/store/link.ts';
import { entryPath, packagePath, version } from '../own-files.ts';

// `--inspect` alone means Node's usual port.
const argv = process.argv.slice(2).map((word) => (word === '--inspect' ? '--inspect=9229' : word));
const isDev = argv.includes('--dev');
let inspect: InspectorAddress | undefined;
let listenFds: ListenFds;
await start();

async function start(): Promise<void> {
  try {
    if (cluster.isWorker)
      throw new Error(
        'a worker of node:cluster cannot start workers: with PM2, use `exec_mode: "fork"`, and set WORKERS',
      );
    const envFile = envFileOf(argv, process.env);
    // The workers inherit the variables.
    Object.assign(process.env, withEnvFiles(process.env, envFile), { ENV_FILE: envFile });
    const flag = argv.find((word) => word.startsWith('--inspect='));
    if (flag !== undefined) inspect = parseInspectorAddress(flag.slice('--inspect='.length));
    listenFds = takeListenFds();
  } catch (error) {
    process.stderr.write(`gatefold: ${(error as Error).message}\n`);
    process.exitCode = 1;
    return;
  }
  if (isDev) process.env.WORKERS ||= '1';
  // Node itself looks for `--env-file` among the arguments of a script, and a worker without that file would end.
  const isEnvFile = (word: string, i: number) => /^--env-file(?:=|$)/.test(word) || argv[i - 1] === '--env-file';
  process.argv.splice(2, process.argv.length, ...argv.filter((word, i) => !isEnvFile(word, i)));
  const basics = readProcessBasics();
  if (basics !== undefined) await run(basics);
}

async function run(basics: ProcessBasics): Promise<void> {
  const { settings, log, sink } = basics;
  // Packages of the controllers read it, too. Without it, Express sends stacks, and better-auth takes a public secret.
  const { values } = parseCommandLine(argv, START_FLAGS);
  process.env.NODE_ENV = String(values['node-env'] ?? (process.env.NODE_ENV || 'production'));
  for (const flag of secretFlags(process.argv)) log.warn('secret-on-command-line', { flag });
  for (const ignored of ignoredVariables(process.env)) log.warn('variable-ignored', { ...ignored });
  warnOfOtherPackage(settings.controllersDir, log);
  if (asksForTraces(process.env)) (await import('../operate/trace/tracing.ts')).announceTracing(process.env, log);
  const output = sink.isShared ? relayOutput(sink) : undefined;
  const { serve } = await import('../live/supervisor/serve.ts');
  const opsServer = await createOpsServer(basics);
  const certificates = await createCertificates(basics, listenFds);
  const store = await createStore(basics);
  const announcer = await createAnnouncer(basics);
  await serve({
    ...{ settings, listenFds, log, flush: sink.close, output, opsServer, certificates, store, announcer },
    isWithoutServiceFile: process.argv.includes('--without-service-file'),
    exitsIfNotReady: process.argv.includes('--exit-if-not-ready'),
    dev: isDev ? await createDev(basics) : undefined,
    inspect,
  });
}

async function createOpsServer({ settings, log, sink }: ProcessBasics): Promise<OperationsServer | undefined> {
  const { opsPort, opsHost, workers, ready } = settings;
  if (opsPort === undefined) return undefined;
  const { createOperationsServer } = await import('../operate/ops/server.ts');
  return createOperationsServer({ port: opsPort, host: opsHost, workers, ready, log, droppedLines: sink.droppedLines });
}

async function createAnnouncer({ settings, ink, sink }: ProcessBasics): Promise<Announcer | undefined> {
  if (!settings.development || ink === undefined) return undefined;
  const { createAnnouncer } = await import('../operate/cli/announce.ts');
  return createAnnouncer({ settings, cwd: process.cwd(), ink, write: sink.write });
}

async function createDev({ settings, log }: ProcessBasics): Promise<Dev> {
  const { createTypeMaker } = await import('../live/supervisor/type-maker.ts');
  return { record: watchEnvFiles(log), makeTypes: createTypeMaker(settings.controllersDir, log) };
}

/** Logs that another version of this package is beside the controllers, or is installed in the place of this one. */
function warnOfOtherPackage(dir: string, log: Log): void {
  const running = version();
  const other = findOtherPackage(dir);
  if (other !== undefined)
    log.warn('package-version-differs', { ...other, running, to_do: 'install one version, and restart the service' });
  const folder = packagePath();
  watchFile(join(folder, 'package.json'), { interval: 1000, persistent: false }, () => {
    // During an installation, the file is missing or incomplete.
    const installed = attempt(version, running);
    const toDo = 'restart the service: its new workers have this version, and its supervisor has not';
    if (installed !== running)
      log.warn('package-version-differs', { folder, version: installed, running, to_do: toDo });
  });
}

/** Logs each change of a file of variables, because all code reads the environment once. */
function watchEnvFiles(log: Log): DevRecord {
  const { ENV_FILE: envFile = '' } = process.env;
  const paths = envFilePaths(envFile);
  const fingerprints = paths.map(fingerprint);
  const effect = 'the service keeps its variables: start gatefold dev again';
  for (const [i, file] of paths.entries()) {
    watchFile(file, { interval: 300, persistent: false }, () => {
      if (fingerprint(file) !== fingerprints[i]) log.warn('env-file-changed', { file, effect });
    });
  }
  return { folder: process.cwd(), envFile, fingerprints };
}

async function createStore({ settings, log, sink }: ProcessBasics): Promise<SharedStore | undefined> {
  if (settings.store === undefined) return undefined;
  const { createSharedStore } = await import('../operate/store/link.ts');
  const scriptArguments = process.argv.slice(2);
  const scriptPath = entryPath('store-host');
  return createSharedStore({ scriptPath, scriptArguments, maxAge: settings.storeMaxAge, log, writeLine: sink.write });
}

async function createCertificates({ settings, log }: ProcessBasics, { httpPort: httpPortFd }: ListenFds) {
  if (!isSecure(settings)) return undefined;
  const { createCertificates } = await import('../operate/https/certificates.ts');
  return createCertificates({ settings, log, version: version(), httpPortFd });
}
