// Connections that have yet to show what they want. They are bounded, and beyond the bound the oldest ends for the next one:
// whoever means it is done in a round trip or two, so connections that stand still shut nobody out. What they do, it does not know.
import type { Duplex } from 'node:stream';

export interface Newcomers {
  /** Until it is closed, or `release` is called. */
  add(connection: Duplex): void;
  release(connection: Duplex): void;
}

export function createNewcomers(most: number): Newcomers {
  // In the order of their coming.
  const waiting = new Set<Duplex>();

  function forget(this: Duplex): void {
    waiting.delete(this);
  }

  return {
    add(connection) {
      const [oldest] = waiting.size < most ? [] : waiting;
      oldest?.destroy();
      waiting.add(connection);
      connection.once('close', forget);
    },
    release: (connection) => void waiting.delete(connection),
  };
}
