// Ends what controllers hold, such as connections to a database: by `[Symbol.asyncDispose]` or `[Symbol.dispose]`, and
// then by `close` of the service file. live/worker/life.ts calls both after the last request of the process.
import { describeError, type Log } from '../../base/log.ts';
import { withTimeLimit } from '../../base/time.ts';
import type { Group } from '../../groups/operations.ts';

/** Maximum milliseconds to dispose of all controllers. The function `close` may then take as long again. */
const TIME_LIMIT_MS = 5000;

/** Disposes of the controllers of all groups at the same time. The promise never rejects. */
export async function disposeOf(groups: Iterable<Group>, log: Log, limit = TIME_LIMIT_MS): Promise<void> {
  await Promise.all(
    Array.from(groups, ({ name, controller }) =>
      runWithin(limit, () => dispose(controller)).catch((error: unknown) => {
        log.warn('controller-not-disposed', { group: name, ...describeError(error) });
      }),
    ),
  );
}

/** Runs `close` of the service file. The promise never rejects. */
export async function closeService(close: () => unknown, log: Log, limit = TIME_LIMIT_MS): Promise<void> {
  await runWithin(limit, close).catch((error: unknown) => {
    log.warn('service-not-closed', describeError(error));
  });
}

async function runWithin(limit: number, work: () => unknown): Promise<void> {
  await withTimeLimit(Promise.resolve().then(work), limit, () => new Error(`it took longer than ${limit} ms`));
}

function dispose(controller: object): unknown {
  const { [Symbol.asyncDispose]: asyncDispose, [Symbol.dispose]: syncDispose } = controller as Record<symbol, unknown>;
  const disposer = typeof asyncDispose === 'function' ? asyncDispose : syncDispose;
  return typeof disposer === 'function' ? disposer.call(controller) : undefined;
}
