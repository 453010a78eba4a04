// The bare server of streams.mjs: `pipeline` from the same stream into the response, and nothing else.
import { createServer } from 'node:http';
import { pipeline } from 'node:stream';
import StreamController from '../fixtures/streams/StreamController.js';
import { announce } from './answers.mjs';

const controller = new StreamController();

const server = createServer((request, response) => {
  const bytes = new URL(String(request.url), 'http://bench').searchParams.get('bytes') ?? '0';
  response.writeHead(200, ['Content-Type', 'application/octet-stream']);
  pipeline(controller.index({ bytes }), response, () => {});
});

server.listen(0, '127.0.0.1', () => announce(server.address()));
