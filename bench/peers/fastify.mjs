// Fastify with @fastify/autoload, which loads routes from a folder. It is the peer most like Gatefold.
import { fileURLToPath } from 'node:url';
import autoload from '@fastify/autoload';
import fastify from 'fastify';
import {
  announce,
  errorHeaders,
  listenOptions,
  nextRequestId,
  notFoundAnswer,
  preflightHeaders,
  tlsPair,
} from './answers.mjs';

const app = fastify(tlsPair === undefined ? {} : { https: tlsPair });
app.register(autoload, { dir: fileURLToPath(new URL('./fastify-routes', import.meta.url)) });
app.options('/*', (_request, reply) => {
  reply.headers(preflightHeaders(nextRequestId())).send();
});
app.setNotFoundHandler((_request, reply) => {
  const id = nextRequestId();
  reply.code(404).headers(errorHeaders(id)).send(notFoundAnswer(id));
});

await app.listen(listenOptions);
announce(app.server.address());
