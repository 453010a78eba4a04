// Hono on @hono/node-server. It gives the header fields with the answer, because its CORS middleware would cost more.
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { z } from 'zod';
import {
  announce,
  answerHeaders,
  createdAnswer,
  errorHeaders,
  indexAnswer,
  listenOptions,
  nextRequestId,
  nextTurn,
  notFoundAnswer,
  preflightHeaders,
} from './answers.mjs';

const app = new Hono();
app.get('/api/test', (c) => c.body(JSON.stringify(indexAnswer()), 200, answerHeaders(nextRequestId())));
app.get('/api/test/awaited', async (c) => {
  await nextTurn();
  return c.body(JSON.stringify(indexAnswer()), 200, answerHeaders(nextRequestId()));
});
app.post('/api/test', async (c) => {
  const id = nextRequestId();
  return c.body(JSON.stringify(createdAnswer(await c.req.json(), id)), 200, answerHeaders(id));
});
const Order = z.object({
  customer: z.object({ name: z.string(), email: z.email(), country: z.enum(['NL', 'DE', 'FR']), vip: z.boolean() }),
  address: z.object({ street: z.string(), zip: z.string() }),
  lines: z.array(z.object({ sku: z.string(), quantity: z.int(), price: z.number(), tags: z.array(z.string()) })),
  note: z.string(),
});
const Query = z.object({
  page: z.coerce.number().int().optional(),
  size: z.coerce.number().int().optional(),
  vip: z.stringbool().optional(),
  ratio: z.coerce.number().optional(),
});
app.post('/api/order', async (c) =>
  c.body(JSON.stringify({ ok: true, data: Order.parse(await c.req.json()) }), 200, answerHeaders(nextRequestId())),
);
app.get('/api/order', (c) => {
  const { page, size, vip, ratio } = Query.parse(c.req.query());
  return c.body(JSON.stringify({ page, size, vip, ratio }), 200, answerHeaders(nextRequestId()));
});
app.options('*', (c) => c.body(null, 200, preflightHeaders(nextRequestId())));
app.notFound((c) => {
  const id = nextRequestId();
  return c.body(JSON.stringify(notFoundAnswer(id)), 404, errorHeaders(id));
});

serve({ fetch: app.fetch, port: listenOptions.port, hostname: listenOptions.host }, announce);
