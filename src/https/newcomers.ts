// Connections in the order in which they last counted as new. Their number is bounded: beyond the bound the oldest ends for the
// next one, so connections that do nothing shut nobody out. This file does not know what they do.
import type { Duplex } from 'node:stream';

export interface Newcomers {
  /** Counts it until it is closed, or `release` is called. One that is counted already counts as the newest from now on. */
  add(connection: Duplex): void;
  release(connection: Duplex): void;
}

export function createNewcomers(most: number): Newcomers {
  const waiting = new Set<Duplex>();

  function forget(this: Duplex): void {
    waiting.delete(this);
  }

  return {
    add(connection) {
      if (!waiting.delete(connection)) connection.once('close', forget);
      const [oldest] = waiting.size < most ? [] : waiting;
      oldest?.destroy();
      waiting.add(connection);
    },
    release: (connection) => void waiting.delete(connection),
  };
}
