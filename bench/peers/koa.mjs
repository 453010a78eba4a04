// Koa with its router and its body parser.
import { bodyParser } from '@koa/bodyparser';
import Router from '@koa/router';
import Koa from 'koa';
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

const router = new Router();
router.get('/api/test', (ctx) => {
  ctx.set(answerHeaders(nextRequestId()));
  ctx.body = indexAnswer();
});
router.post('/api/test', (ctx) => {
  const id = nextRequestId();
  ctx.set(answerHeaders(id));
  ctx.body = createdAnswer(ctx.request.body, id);
});

const app = new Koa();
app.use(async (ctx, next) => {
  if (ctx.method !== 'OPTIONS') return next();
  ctx.status = 200;
  ctx.body = '';
  ctx.remove('Content-Type');
  ctx.set(preflightHeaders(nextRequestId()));
});
app.use(bodyParser());
app.use(router.routes());
app.use((ctx) => {
  const id = nextRequestId();
  ctx.status = 404;
  ctx.set(errorHeaders(id));
  ctx.body = notFoundAnswer(id);
});

const server = app.listen(listenOptions, () => announce(server.address()));
