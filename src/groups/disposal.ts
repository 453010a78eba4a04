// The end of the controllers of a process: those with `[Symbol.asyncDispose]` or `[Symbol.dispose]` are disposed of, so that pools
// of connections close in good order. When that is, worker/life.ts knows.
import { describeError, type Log } from '../base/log.ts';
import type { Group } from './operations.ts';

/** Milliseconds for all of them together. */
const LIMIT = 5000;

/** Never rejects: the process ends next, whatever they do. */
export async function disposeOf(groups: Iterable<Group>, log: Log, limit = LIMIT): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limit);
  });
  await Promise.all(
    Array.from(groups, async ({ name, controller }) => {
      const work = dispose(controller);
      if (work === undefined) return;
      let isDone = false;
      const done = work.then(
        () => {
          isDone = true;
        },
        (error) => {
          isDone = true;
          log.warn('controller-not-disposed', { group: name, ...describeError(error) });
        },
      );
      await Promise.race([done, expired]);
      if (!isDone) log.warn('controller-not-disposed', { group: name, error: `it took longer than ${limit} ms` });
    }),
  );
  clearTimeout(timer);
}

/** Undefined: it has nothing to close. */
function dispose(controller: object): Promise<unknown> | undefined {
  const { [Symbol.asyncDispose]: later, [Symbol.dispose]: now } = controller as Record<symbol, unknown>;
  const disposer = typeof later === 'function' ? later : typeof now === 'function' ? now : undefined;
  return disposer === undefined ? undefined : (async () => disposer.call(controller))();
}
