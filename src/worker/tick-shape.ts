// Keeps alive the hidden class (V8's description of an object's fields) of the objects that process.nextTick() queues.
// Node before 24 creates them with computed keys. V8 drops such a class when a full garbage collection finds no object
// of it, and from then on each tick is slow. Loading a folder causes such a collection, which cost 30 percent of a
// request (bench/NOTES.md). Keeping one object prevents this.
import { executionAsyncResource } from 'node:async_hooks';

/** Call this at the start of the process. In a tick, executionAsyncResource() returns the queued object. */
export function keepTickShape(): void {
  process.nextTick(() => {
    keptTick = executionAsyncResource();
  });
}

/** The kept object. The export prevents V8 from collecting it. */
export let keptTick: object | undefined;
