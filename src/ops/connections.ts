// The bounds of the operations port: the number of connections, one answer at a time on each, and the time an answer
// may take to be read. A client that holds connections open can neither keep a probe out nor fill the supervisor's
// memory.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createRecentConnections } from '../base/recent-connections.ts';

export interface ConnectionBounds {
  /** Beyond so many, the one that was quiet for longest ends. */
  readonly mostConnections: number;
  /** Milliseconds from an answer to its last byte. */
  readonly answerTimeout: number;
}

export function boundConnections(server: Server, { mostConnections, answerTimeout }: ConnectionBounds): void {
  const connections = createRecentConnections(mostConnections);
  const answering = new WeakSet<object>();
  server.on('connection', connections.add);
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    // Probes and scrapers wait for an answer before they ask again.
    if (answering.has(socket)) return void socket.destroy();
    connections.add(socket);
    answering.add(socket);
    const timer = setTimeout(() => socket.destroy(), answerTimeout).unref();
    response.once('finish', () => answering.delete(socket));
    response.once('close', () => clearTimeout(timer));
  });
}
