// What is used of node:http, had by `require`. An `import` of it asks for each of its exports, and on Node 22 and later one of
// them is WebSocket, for which Node loads its whole HTTP client: 40 ms and 12 MB in each process that never opens one.
import { createRequire } from 'node:module';

const http: typeof import('node:http') = createRequire(import.meta.url)('node:http');

export const { createServer, IncomingMessage, METHODS, STATUS_CODES, validateHeaderName, validateHeaderValue } = http;
