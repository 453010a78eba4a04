// What is kept of a connection: as long as it is open the request it is busy with, and afterwards nothing.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { test } from 'node:test';
import { trackConnections } from '../src/connections.ts';
import { Exchange } from '../src/exchange.ts';
import { Request } from '../src/request-head.ts';

test('a connection that has closed lets go of its last request', async (t) => {
  const server = createServer({ IncomingMessage: Request, requireHostHeader: false });
  server.on('clientError', (_error, socket) => socket.destroy());
  const connections = trackConnections(server, { keepAliveTimeout: 1000, readTimeout: 1000 });
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');

  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n1');
  const [request, response] = await once(server, 'request');
  const { socket } = request;
  const exchange = new Exchange(request, response, 0);
  connections.begin(exchange);
  assert.equal(connections.exchangeOn(socket), exchange);

  // It never gets an answer. What closed connections keep alive, the engine copies about at each collection.
  client.destroy();
  await once(socket, 'close');
  assert.equal(connections.exchangeOn(socket), undefined);
});
