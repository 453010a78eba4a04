// Express with its own JSON reader. It sends no entity tag and no X-Powered-By, as the other servers.
import express from 'express';
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

const app = express();
app.disable('x-powered-by');
app.disable('etag');
app.use((request, response, next) => {
  if (request.method !== 'OPTIONS') return next();
  response.set(preflightHeaders(nextRequestId())).status(200).end();
});
app.use(express.json());
app.get('/api/test', (_request, response) => {
  response.set(answerHeaders(nextRequestId())).json(indexAnswer());
});
app.post('/api/test', (request, response) => {
  const id = nextRequestId();
  response.set(answerHeaders(id)).json(createdAnswer(request.body, id));
});
app.use((_request, response) => {
  const id = nextRequestId();
  response.status(404).set(errorHeaders(id)).json(notFoundAnswer(id));
});

const server = app.listen(listenOptions.port, listenOptions.host, () => announce(server.address()));
