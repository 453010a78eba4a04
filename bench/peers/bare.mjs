// The bare server: bare-handler.mjs behind node:http, or behind node:https when there is a certificate.
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { announce, listenOptions, tlsPair } from './answers.mjs';
import { serve } from './bare-handler.mjs';

const server = tlsPair === undefined ? createServer(serve) : createSecureServer(tlsPair, serve);
server.listen(listenOptions, () => announce(server.address()));
