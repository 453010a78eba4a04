// Disposes of controllers that have `[Symbol.asyncDispose]` or `[Symbol.dispose]`, for example to close connections to
// a database, and runs the function `close` of the service file (`service.ts`). worker/life.ts calls both functions
// after the last request of the process.
import { describeError, type Log } from '../base/log.ts';
import { withTimeLimit } from '../base/time.ts';
import type { Group } from './operations.ts';

/** Maximum milliseconds to dispose of all controllers. The function `close` may then take as long again. */
const TIME_LIMIT_MS = 5000;

/** Disposes of the controllers of all groups at the same time. The promise never rejects. */
export async function disposeOf(groups: Iterable<Group>, log: Log, limit = TIME_LIMIT_MS): Promise<void> {
  const createTimeoutError = () => new Error(`it took longer than ${limit} ms`);
  await Promise.all(
    Array.from(groups, ({ name, controller }) =>
      withTimeLimit(dispose(controller), limit, createTimeoutError).catch((error: unknown) => {
        log.warn('controller-not-disposed', { group: name, ...describeError(error) });
      }),
    ),
  );
}

async function dispose(controller: object): Promise<void> {
  const { [Symbol.asyncDispose]: asyncDispose, [Symbol.dispose]: syncDispose } = controller as Record<symbol, unknown>;
  const disposer = typeof asyncDispose === 'function' ? asyncDispose : syncDispose;
  if (typeof disposer === 'function') await disposer.call(controller);
}

/** Runs `close` of the service file. The promise never rejects. */
export async function closeService(close: (() => unknown) | undefined, log: Log, limit = TIME_LIMIT_MS): Promise<void> {
  if (close === undefined) return;
  const createTimeoutError = () => new Error(`it took longer than ${limit} ms`);
  await withTimeLimit(
    Promise.resolve().then(() => close()),
    limit,
    createTimeoutError,
  ).catch((error: unknown) => {
    log.warn('service-not-closed', describeError(error));
  });
}
