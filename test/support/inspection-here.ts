// Inspections of the controllers folder without their process: a test answers the job of `inspectFolder`.
import childProcess from 'node:child_process';
import { EventEmitter } from 'node:events';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { createGroups } from '../../src/live/load/registry.ts';
import type { Inspection, InspectionMessage, Job } from '../../src/operate/cli/inspection.ts';
import { runInspection } from '../../src/operate/cli/inspection-process.ts';

/** The function of Node. A test can replace it twice. */
const { fork } = childProcess;

/** An answer without an inspection has said by itself how the process ends. */
type Answer = (job: Job, child: EventEmitter) => Inspection | undefined | Promise<Inspection>;

/** The jobs of the test are answered by `answer`, until the test ends. An error of `answer` is that of the process. */
export function answerInspections(test: TestContext, answer: Answer): void {
  const answerOne = () => {
    const child = Object.assign(new EventEmitter(), {
      kill() {},
      async send(job: Job) {
        try {
          const result = await answer(job, child);
          if (result === undefined) return;
          child.emit('message', { kind: 'done', inspection: result });
        } catch (error) {
          child.emit('message', { kind: 'failed', message: (error as Error).message });
        }
        child.emit('close', 0, null);
      },
    });
    setImmediate(() => child.emit('message', { kind: 'ready' }));
    return child;
  };
  replaceFork(answerOne as unknown as typeof fork);
  test.after(() => replaceFork(fork));
}

function replaceFork(replacement: typeof fork): void {
  childProcess.fork = replacement;
  syncBuiltinESMExports();
}

export const inspection = (parts: Partial<Inspection>): Inspection => ({
  groups: [],
  channels: [],
  strayErrors: [],
  ...parts,
});

/**
 * The code of the process answers the jobs of the test in this process, until the test ends. A file is imported once,
 * so an inspection does not see that a file has changed since an earlier inspection.
 */
export function inspectHere(test: TestContext): void {
  let last: Promise<unknown> = Promise.resolve();
  answerInspections(test, (job) => {
    const answer = last.then(() => inspectOne(job));
    last = answer.catch(() => {});
    return answer;
  });
}

/** The parts of the process that the code of an inspection uses are replaced until the code has answered. */
async function inspectOne(job: Job): Promise<Inspection> {
  const { send, exit } = process;
  const events = ['message', 'disconnect', 'uncaughtException'] as const;
  const before = events.map((event) => process.rawListeners(event));
  try {
    process.exit = (() => {}) as typeof exit;
    return await new Promise<Inspection>((resolve, reject) => {
      process.send = (message: InspectionMessage) => {
        if (message.kind === 'done') resolve(overChannel(message.inspection));
        if (message.kind === 'failed') reject(new Error(message.message));
        return true;
      };
      runInspection();
      process.emit('message', overChannel(job), undefined);
    });
  } finally {
    for (const [i, event] of events.entries())
      for (const listener of process.rawListeners(event))
        if (!before[i]?.includes(listener)) process.removeListener(event, listener as () => void);
    Object.assign(process, { send, exit });
  }
}

/** Returns a value as the channel between two processes brings it. */
const overChannel = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value)) as Value;

/** Loads the controllers in this process. The groups have no operations. */
export async function loadHere({ settings: { controllersDir: dir }, madeTypes }: Job): Promise<Inspection> {
  const log = createLog({ level: 'silent', sink: { write() {} } });
  const outcomes = await createGroups({ dir, log, madeTypes }).loadAll({ skip: new Map(), onLoading() {} });
  return inspection({ groups: outcomes.map((load) => ({ ...load, path: join(dir, load.file), operations: [] })) });
}
