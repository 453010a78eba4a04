import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startTest } from 'gatefold/testing';
import type HelloController from '../controllers/HelloController.ts';

const api = await startTest({ controllers: './controllers' });
after(() => api.close());
const { hello } = api.client<{ hello: typeof HelloController }>();

test('GET /api/hello greets the world', async () => {
  const response = await api.fetch('/hello');
  assert.equal(response.status, 200);
  assert.deepEqual(await response.json(), { hello: 'world' });
});

test('POST /api/hello greets the name in the body', async () => {
  assert.deepEqual(await hello.POST({ body: { name: 'Ada' } }), { hello: 'Ada' });
});

test('GET /api/hello/Ada greets Ada', async () => {
  assert.deepEqual(await hello['GET {name}']({ path: { name: 'Ada' } }), { hello: 'Ada' });
});

test('POST /api/hello without a name is refused before the controller sees it', async () => {
  const response = await api.fetch('/hello', { method: 'POST', json: { name: '' } });
  assert.equal(response.status, 422);
  const { errors } = (await response.json()) as { errors: unknown };
  assert.deepEqual(errors, [
    { in: 'body', pointer: '/name', code: 'minLength', message: 'must not be empty', params: { limit: 1 } },
  ]);
});
