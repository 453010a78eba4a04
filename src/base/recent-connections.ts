// Limits the number of connections in one state, such as a TLS handshake. When there are too many, the connection that
// was added longest ago is destroyed. A real client leaves such a state after a round trip or two, so its connection is
// seldom the oldest. So a client that leaves its connections in that state locks no real client out.
import type { Duplex } from 'node:stream';

export function createRecentConnections(maxConnections: number) {
  const connections = new Set<Duplex>();
  const release = (connection: Duplex) => void connections.delete(connection);

  return {
    /** A connection that is added again becomes the newest one. It leaves when it closes. */
    add(connection: Duplex): void {
      if (!connections.delete(connection)) connection.once('close', () => release(connection));
      const [oldest] = connections.size < maxConnections ? [] : connections;
      oldest?.destroy();
      connections.add(connection);
    },
    release,
  };
}
