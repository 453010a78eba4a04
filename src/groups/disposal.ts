// The end of the controllers of a process: those with `[Symbol.asyncDispose]` or `[Symbol.dispose]` are disposed of, so
// that pools of connections close in good order. When that is, worker/life.ts knows.
import { describeError, type Log } from '../base/log.ts';
import { withTimeLimit } from '../base/time.ts';
import type { Group } from './operations.ts';

/** Milliseconds for each; all of them begin at once. */
const LIMIT = 5000;

/** Never rejects: the process ends next, whatever they do. */
export async function disposeOf(groups: Iterable<Group>, log: Log, limit = LIMIT): Promise<void> {
  const late = () => new Error(`it took longer than ${limit} ms`);
  await Promise.all(
    Array.from(groups, ({ name, controller }) =>
      withTimeLimit(dispose(controller), limit, late).catch((error: unknown) => {
        log.warn('controller-not-disposed', { group: name, ...describeError(error) });
      }),
    ),
  );
}

async function dispose(controller: object): Promise<void> {
  const { [Symbol.asyncDispose]: later, [Symbol.dispose]: now } = controller as Record<symbol, unknown>;
  const disposer = typeof later === 'function' ? later : now;
  if (typeof disposer === 'function') await disposer.call(controller);
}

/** Runs `close` of the service file. Never rejects. */
export async function closeService(close: (() => unknown) | undefined, log: Log, limit = LIMIT): Promise<void> {
  if (close === undefined) return;
  const late = () => new Error(`it took longer than ${limit} ms`);
  await withTimeLimit(
    Promise.resolve().then(() => close()),
    limit,
    late,
  ).catch((error: unknown) => {
    log.warn('service-not-closed', describeError(error));
  });
}
