// The handler group `test` as @fastify/autoload finds it: the folder is the prefix `/api/test`.
import { answerHeaders, createdAnswer, indexAnswer, nextRequestId, nextTurn } from '../../../answers.mjs';

/** @param {import('fastify').FastifyInstance} app */
export default async function testRoutes(app) {
  app.get('/', (_request, reply) => {
    reply.headers(answerHeaders(nextRequestId())).send(indexAnswer());
  });
  app.get('/awaited', async (_request, reply) => {
    await nextTurn();
    return reply.headers(answerHeaders(nextRequestId())).send(indexAnswer());
  });
  app.post('/', (request, reply) => {
    const id = nextRequestId();
    reply.headers(answerHeaders(id)).send(createdAnswer(request.body, id));
  });
}
