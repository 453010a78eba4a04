// The checked routes, by the JSON Schema that Gatefold makes of its types; Fastify's validator is ajv.
import { answerHeaders, nextRequestId } from '../../../answers.mjs';

const text = { type: 'string' };
const customer = {
  type: 'object',
  required: ['name', 'email', 'country', 'vip'],
  properties: {
    name: text,
    email: { type: 'string', format: 'email' },
    country: { enum: ['NL', 'DE', 'FR'] },
    vip: { type: 'boolean' },
  },
};
const address = { type: 'object', required: ['street', 'zip'], properties: { street: text, zip: text } };
const line = {
  type: 'object',
  required: ['sku', 'quantity', 'price', 'tags'],
  properties: {
    sku: text,
    quantity: { type: 'integer' },
    price: { type: 'number' },
    tags: { type: 'array', items: text },
  },
};
const body = {
  type: 'object',
  required: ['customer', 'address', 'lines', 'note'],
  properties: { customer, address, lines: { type: 'array', items: line }, note: text },
};
const querystring = {
  type: 'object',
  properties: {
    page: { type: 'integer' },
    size: { type: 'integer' },
    vip: { type: 'boolean' },
    ratio: { type: 'number' },
  },
};

/** @param {import('fastify').FastifyInstance} app */
export default async function order(app) {
  app.post('/', { schema: { body } }, (request, reply) => {
    reply.headers(answerHeaders(nextRequestId())).send(JSON.stringify({ ok: true, data: request.body }));
  });
  app.get('/', { schema: { querystring } }, (request, reply) => {
    const { page, size, vip, ratio } = /** @type {Record<string, unknown>} */ (request.query);
    reply.headers(answerHeaders(nextRequestId())).send(JSON.stringify({ page, size, vip, ratio }));
  });
}
