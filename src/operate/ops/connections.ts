// Limits the connections of the operations port: their number, one request at a time on each, and the time to read an
// answer. A client that holds connections open could otherwise keep probes out and fill the supervisor's memory.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createRecentConnections } from '../../base/recent-connections.ts';

export interface ConnectionLimits {
  /** Maximum number of connections. A further connection ends the connection whose last request is longest ago. */
  readonly maxConnections: number;
  readonly answerTimeout: number;
}

export function limitConnections(server: Server, { maxConnections, answerTimeout }: ConnectionLimits): void {
  const connections = createRecentConnections(maxConnections);
  const socketsInUse = new WeakSet<object>();
  server.on('connection', connections.add);
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    // Probes and scrapers send a request only after the answer to the one before. Another client is cut off.
    if (socketsInUse.has(socket)) return void socket.destroy();
    connections.add(socket);
    socketsInUse.add(socket);
    const timer = setTimeout(() => socket.destroy(), answerTimeout).unref();
    response.once('finish', () => socketsInUse.delete(socket));
    response.once('close', () => clearTimeout(timer));
  });
}
