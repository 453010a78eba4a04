// Hono on @hono/node-server, its headers given with the answer: its CORS middleware would cost it more.
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
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

const app = new Hono();
app.get('/api/test', (c) => c.body(JSON.stringify(indexAnswer()), 200, answerHeaders(nextRequestId())));
app.post('/api/test', async (c) => {
  const id = nextRequestId();
  return c.body(JSON.stringify(createdAnswer(await c.req.json(), id)), 200, answerHeaders(id));
});
app.options('*', (c) => c.body(null, 200, preflightHeaders(nextRequestId())));
app.notFound((c) => {
  const id = nextRequestId();
  return c.body(JSON.stringify(notFoundAnswer(id)), 404, errorHeaders(id));
});

serve({ fetch: app.fetch, port: listenOptions.port, hostname: listenOptions.host }, announce);
