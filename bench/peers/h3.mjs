// h3 with its own body reader and router, on node:http by its own Node handler.
import { createServer } from 'node:http';
import { H3, HTTPResponse, toNodeHandler } from 'h3/node';
import {
  announce,
  answerHeaders,
  createdAnswer,
  errorHeaders,
  indexAnswer,
  listenOptions,
  nextRequestId,
  notFoundAnswer,
  preflightHeaders,
} from './answers.mjs';

const app = new H3();
app.get(
  '/api/test',
  () => new HTTPResponse(JSON.stringify(indexAnswer()), { headers: answerHeaders(nextRequestId()) }),
);
app.post('/api/test', async (event) => {
  const id = nextRequestId();
  return new HTTPResponse(JSON.stringify(createdAnswer(await event.req.json(), id)), { headers: answerHeaders(id) });
});
app.options('/**', () => new HTTPResponse(null, { headers: preflightHeaders(nextRequestId()) }));
app.all('/**', () => {
  const id = nextRequestId();
  return new HTTPResponse(JSON.stringify(notFoundAnswer(id)), { status: 404, headers: errorHeaders(id) });
});

const server = createServer(toNodeHandler(app));
server.listen(listenOptions, () => announce(server.address()));
