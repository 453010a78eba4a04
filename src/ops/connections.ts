// Limits the connections of the operations port: their number, one request at a time on each, and the time to read an
// answer. So a client that holds connections open cannot keep probes out or fill the supervisor's memory.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createRecentConnections } from '../base/recent-connections.ts';

export interface ConnectionLimits {
  /** Maximum number of connections. One more connection ends the one whose last request is longest ago. */
  readonly maxConnections: number;
  /** Milliseconds that a client has to read an answer. */
  readonly answerTimeout: number;
}

export function limitConnections(server: Server, { maxConnections, answerTimeout }: ConnectionLimits): void {
  const connections = createRecentConnections(maxConnections);
  const answering = new WeakSet<object>();
  server.on('connection', connections.add);
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    // A second request during an answer ends the connection. Probes and scrapers wait for an answer before they send
    // the next request.
    if (answering.has(socket)) return void socket.destroy();
    connections.add(socket);
    answering.add(socket);
    const timer = setTimeout(() => socket.destroy(), answerTimeout).unref();
    response.once('finish', () => answering.delete(socket));
    response.once('close', () => clearTimeout(timer));
  });
}
