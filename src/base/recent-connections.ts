// Bounds the connections that are in an early state, such as a TLS handshake. Beyond the bound, the one that was added
// first is destroyed. A real client leaves this state after a round trip or two, so idle ones cannot exclude it.
import type { Duplex } from 'node:stream';

export interface RecentConnections {
  /** Keeps a connection until it closes, or `release` is called. One that is added again counts as new. */
  add(connection: Duplex): void;
  release(connection: Duplex): void;
}

export function createRecentConnections(most: number): RecentConnections {
  const connections = new Set<Duplex>();
  const release = (connection: Duplex) => void connections.delete(connection);

  return {
    add(connection) {
      if (!connections.delete(connection)) connection.once('close', () => release(connection));
      const [oldest] = connections.size < most ? [] : connections;
      oldest?.destroy();
      connections.add(connection);
    },
    release,
  };
}
