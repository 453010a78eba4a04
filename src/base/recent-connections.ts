// Bounds how many connections a server keeps: beyond the bound, the one that was added longest ago ends for the next
// one. Whoever means business is done in a round trip or two, so connections that stand still shut nobody out.
import type { Duplex } from 'node:stream';

export interface RecentConnections {
  /** Keeps a connection until it closes, or `release` is called. One that is added again counts as new. */
  add(connection: Duplex): void;
  release(connection: Duplex): void;
}

export function createRecentConnections(most: number): RecentConnections {
  const kept = new Set<Duplex>();
  const release = (connection: Duplex) => void kept.delete(connection);

  return {
    add(connection) {
      if (!kept.delete(connection)) connection.once('close', () => release(connection));
      const [oldest] = kept.size < most ? [] : kept;
      oldest?.destroy();
      kept.add(connection);
    },
    release,
  };
}
