// Inspections of the controllers folder without their process: a test answers the job of `inspectFolder`.
import childProcess from 'node:child_process';
import { EventEmitter } from 'node:events';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { createGroups } from '../../src/live/load/registry.ts';
import type { Inspection, Job } from '../../src/operate/cli/inspection.ts';

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

/** Loads the controllers in this process. The groups have no operations. */
export async function loadHere({ settings: { controllersDir: dir }, madeTypes }: Job): Promise<Inspection> {
  const log = createLog({ level: 'silent', sink: { write() {} } });
  const outcomes = await createGroups({ dir, log, madeTypes }).loadAll({ skip: new Map(), onLoading() {} });
  return inspection({ groups: outcomes.map((load) => ({ ...load, path: join(dir, load.file), operations: [] })) });
}
