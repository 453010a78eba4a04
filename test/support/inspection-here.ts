// Inspections of the controllers folder without their process: a test answers the job of `inspectFolder`.
import childProcess from 'node:child_process';
import { EventEmitter } from 'node:events';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { createGroups } from '../../src/live/load/registry.ts';
import type { Inspection, Job } from '../../src/operate/cli/inspection.ts';

/** The jobs of the test are answered by `answer`, until the test ends. */
export function answerInspections(test: TestContext, answer: (job: Job) => Inspection | Promise<Inspection>): void {
  test.mock.method(childProcess, 'fork', () => {
    const child = Object.assign(new EventEmitter(), {
      kill() {},
      async send(job: Job) {
        child.emit('message', { kind: 'done', inspection: await answer(job) });
        child.emit('close', 0, null);
      },
    });
    setImmediate(() => child.emit('message', { kind: 'ready' }));
    return child;
  });
  syncBuiltinESMExports();
  test.after(() => {
    test.mock.restoreAll();
    syncBuiltinESMExports();
  });
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
