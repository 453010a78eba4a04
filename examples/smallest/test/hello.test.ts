import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startTest } from 'gatefold/testing';
import type HelloController from '../controllers/HelloController.ts';

const api = await startTest({ controllers: './controllers' });
after(() => api.close());

test('GET /api/hello answers', async () => {
  const response = await api.fetch('/hello');
  assert.equal(response.status, 200);
  assert.deepEqual(await response.json(), { hello: 'world' });
});

test('POST /api/hello greets who is named', async () => {
  const { hello } = api.client<{ hello: typeof HelloController }>();
  assert.deepEqual(await hello.created({ name: 'Ada' }), { hello: 'Ada' });
});
