// Keeps alive the hidden class of the objects that process.nextTick() queues. Node before 24 makes them by a literal
// with computed keys, and the engine forgets such a class at a full garbage collection in which no tick is queued;
// every tick after that takes the slow way, for good. Loading a folder is such a moment: it cost 30 percent of a
// request (bench/NOTES.md). One object of the class, kept, is enough.
import { executionAsyncResource } from 'node:async_hooks';

/** To be called before there is garbage. Inside of a tick the resource of the execution is the queued object itself. */
export function keepTickShape(): void {
  process.nextTick(() => {
    kept = executionAsyncResource();
  });
}

/** Exported, since what nothing can read may be collected. */
export let kept: object | undefined;
