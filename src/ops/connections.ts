// The bounds of the operations port: the number of connections, one answer at a time on each, and the time an answer may take to
// be read. A client that holds connections open can neither keep a probe out nor fill the supervisor's memory.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface ConnectionBounds {
  /** More than so many: the one that was quiet for longest goes. */
  readonly mostConnections: number;
  /** Milliseconds from an answer to its last byte. */
  readonly answerTimeout: number;
}

export function boundConnections(server: Server, { mostConnections, answerTimeout }: ConnectionBounds): void {
  /** In the order of their last request, or of their coming. */
  const connections = new Set<Socket>();
  const answering = new WeakSet<Socket>();

  server.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
    if (connections.size > mostConnections) for (const quietest of connections) return void quietest.destroy();
  });
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    // Who asks again before it has its answer is no scraper and no probe.
    if (answering.has(socket)) return void socket.destroy();
    connections.delete(socket);
    connections.add(socket);
    answering.add(socket);
    const timer = setTimeout(() => socket.destroy(), answerTimeout).unref();
    response.once('finish', () => answering.delete(socket));
    response.once('close', () => clearTimeout(timer));
  });
}
