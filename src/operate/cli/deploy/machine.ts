// The process that a deployment starts on the target machine: it makes a release, leads the link `current` to it, and
// waits until the service has loaded it. A release that does not serve is undone. Once the link has changed, the
// process finishes even when the connection to the deploying machine is lost.
import { existsSync, mkdirSync, realpathSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { describeFailure } from '../../../base/failure.ts';
import { acquireLock } from '../../../base/folder-lock.ts';
import type { GenerationRecord } from '../../../live/supervisor/generation-file.ts';
import { lineOf } from '../command.ts';
import * as folders from './folders.ts';
import type { Order, Reply, Result } from './order.ts';
import { isDiskFull, makeRelease } from './release.ts';
import * as serving from './serving.ts';
import { makeCommand, setUp } from './setup.ts';
import { MARK } from './ssh.ts';

const LOCK_OPTIONS = {
  /** Milliseconds that this deployment waits while another one holds the lock. */
  waitMs: 3000,
  /** Milliseconds until a lock is taken over whose holder cannot be checked, such as one in another container. */
  unseenHolderMs: 1000,
};

export async function runOnMachine(text: string): Promise<void> {
  process.umask(0o022);
  // Without these listeners, a lost connection would end the process. `send` gets the same error.
  process.stdout.on('error', () => {});
  process.on('SIGHUP', () => {});
  try {
    const result = await runOrder(JSON.parse(text));
    await send({ result }).catch(() => {});
  } catch (error) {
    process.exitCode = 1;
    process.stderr.write(`${lineOf(error)}\n`);
  }
  // Without this call, unread standard input would keep the process running.
  process.exit();
}

/** @throws Error when the connection is lost. After the change of the link, the callers ignore the error. */
function send(reply: Reply): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(`${MARK}${JSON.stringify(reply)}\n`, (error) =>
      error ? reject(new Error('The connection is lost, and nothing has changed')) : resolve(),
    );
  });
}

async function runOrder(order: Order): Promise<Result> {
  const { dir } = order;
  for (const name of ['releases', 'runtime']) mkdirSync(join(dir, name), { recursive: true });
  const notes = [...(order.setup ? setUp(order) : []), ...makeCommand(order)];
  const lock = await acquireLock(join(dir, 'deploy.lock'), LOCK_OPTIONS).catch((error: Error) => {
    if (error.message.startsWith('Cannot lock'))
      throw new Error(`Another deployment to ${dir} is under way. ${error.message}`);
    throw new Error(`Cannot write to ${dir}: ${describeFailure(error)}`);
  });
  try {
    folders.removeLeftovers(dir);
    const result = await deploy(order);
    return { ...result, notes: [...notes, ...result.notes] };
  } finally {
    await lock.release();
  }
}

async function deploy(order: Order): Promise<Result> {
  const { dir, keep } = order;
  const report = (step: string) => send({ step });
  const env = serving.readEnvironment(dir);
  // The working folder of the service is `dir`.
  const dataDir = resolve(dir, env.DATA_DIR || 'data');
  const record = serving.readRecord(dataDir);
  const current = folders.readCurrent(dir);
  if (serving.isRunning(record) && !serving.isInRelease(record.folder, dir))
    throw new Error(
      `The service at process ${record.pid} serves ${record.folder}, and no release of ${dir}: start it by ${join(dir, 'run')}`,
    );
  if (isDiskFull(dataDir))
    throw new Error(`No space is left on the disk of ${dataDir}: the service could not answer there`);
  // After an interrupted deployment, `current` may not serve. So the record of a running service counts first.
  const served = folders
    .listReleases(dir)
    .find((name) => serving.isRunning(record) && serving.isInRelease(record.serving, dir, name));
  const before = served ?? current;
  const isRollback = order.action === 'back';
  const release = isRollback ? releaseBefore(dir, current) : order.releaseName;
  const gatefoldCopy = (isRollback ? folders.readNote(dir, release)?.runtime : undefined) ?? order.gatefoldCopy;
  if (isRollback) await report(`swap to ${release}`);
  else {
    const group = serving.serviceGroup(dir, dataDir);
    await makeRelease({ order, before, env: { ...env, DATA_DIR: dataDir }, group, report });
  }
  const outcome = await activate({ dir, dataDir }, release, gatefoldCopy);
  const result = { release, before: before ?? null, current: release, errors: [], notes: outcome.notes };
  if (outcome.state !== 'failed') {
    const newRecord = serving.readRecord(dataDir);
    const servedByWorkers = folders.listReleases(dir).filter((name) => isDraining(newRecord, dir, name));
    const inUse = new Set([release, before, folders.readNote(dir, release)?.before, ...servedByWorkers]);
    folders.pruneReleases(dir, keep, inUse);
    if (outcome.state === 'serving' && newRecord !== undefined) folders.pruneCopies(dir, newRecord.runtime);
    return { ...result, state: outcome.state };
  }
  const failure = { ...result, state: 'failed', errors: outcome.errors } as const;
  if (before === release) return failure;
  if (before === undefined)
    return { ...failure, notes: [...outcome.notes, 'No release was there before, so this one stays'] };
  await report(`swap back to ${before}`).catch(() => {});
  const swapBack = await activate({ dir, dataDir }, before, folders.readNote(dir, before)?.runtime ?? gatefoldCopy);
  const isUnused = swapBack.state === 'serving' && !isDraining(serving.readRecord(dataDir), dir, release);
  if (!isRollback && isUnused) folders.removeRelease(dir, release);
  const backNotes =
    swapBack.state === 'failed' ? [`${before} does not serve: ${swapBack.errors.join('; ')}`] : swapBack.notes;
  return { ...failure, current: before, notes: [...outcome.notes, ...backNotes] };
}

function isDraining(record: GenerationRecord | undefined, dir: string, release: string): boolean {
  return record?.draining.some((path) => serving.isInRelease(path, dir, release)) === true;
}

/** @throws Error when no release served before the current one, or when that release was removed */
function releaseBefore(dir: string, current: string | undefined): string {
  const before = current === undefined ? undefined : folders.readNote(dir, current)?.before;
  if (!before || !folders.listReleases(dir).includes(before))
    throw new Error(`There is no release before ${current ?? 'the first one'} in ${dir}`);
  return before;
}

/** @throws Error when a release lacks the folder that the service reads. The service would wait for that folder */
function checkFolder(folder: string, dir: string, release: string): void {
  const path = relative(join(dir, 'current'), folder);
  if (path.startsWith('..') || existsSync(join(folders.releasePath(dir, release), path))) return;
  throw new Error(
    `${release} has no ${path}, which the service reads. If .gatefoldignore names it, remove the line; if it was renamed, make a link`,
  );
}

/** Changes the links to a release and to its copy of Gatefold, and waits until the service has loaded the release. */
async function activate(
  { dir, dataDir }: { readonly dir: string; readonly dataDir: string },
  release: string,
  gatefoldCopy: string,
): Promise<Pick<Result, 'state' | 'errors' | 'notes'>> {
  try {
    const record = serving.readRecord(dataDir);
    const wasRunning = serving.isRunning(record);
    if (wasRunning) checkFolder(record.folder, dir, release);
    const runsOtherCopy = wasRunning && record.runtime !== realpathSync(join(dir, 'runtime', gatefoldCopy));
    folders.setCurrent(join(dir, 'runtime'), gatefoldCopy);
    folders.setCurrent(dir, join('releases', release));
    const notes: string[] = [];
    const mustRestart = (!wasRunning || runsOtherCopy) && existsSync(join(dir, 'restart'));
    if (mustRestart) {
      if (wasRunning) notes.push(`The service was started again, because it now runs Gatefold ${gatefoldCopy}`);
      await serving.restart(dir);
    } else if (!wasRunning) {
      const note = existsSync(dataDir)
        ? `No service runs. Start it: ${join(dir, 'run')}`
        : `There is no ${dataDir}, in which a service says what it serves: make this folder for its user`;
      return { state: 'unstarted', errors: [], notes: [note] };
    } else if (runsOtherCopy)
      notes.push(`Start the service again: it runs another Gatefold than ${gatefoldCopy}, which is there now`);
    const replacedPid = mustRestart ? record?.pid : undefined;
    const errors = await serving.waitForRelease({ dir, dataDir, release, replacedPid });
    return { state: errors.length === 0 ? 'serving' : 'failed', errors, notes };
  } catch (error) {
    // The caller changes the links back after any failure, so this one is returned and not thrown.
    return { state: 'failed', errors: [lineOf(error)], notes: [] };
  }
}
