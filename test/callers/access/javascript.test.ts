// The service file in plain JavaScript: `service.mjs` and `service.js`.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { startTest } from '../../../src/api/testing.ts';
import { makeProject } from '../../support/command-bench.ts';
import { GATEFOLD } from '../../support/service.ts';

const SERVICE = `
import { defineService, HttpError } from '${GATEFOLD}';

/** @type {import('gatefold').Service} */
export default defineService({
  strict: true,
  access: 'user',
  authenticate({ authorization }) {
    if (authorization === 'Token banned') throw new HttpError(403, 'BANNED', 'You are banned');
    return authorization === 'Token ann' ? { id: 'ann' } : undefined;
  },
  /** @param {import('gatefold').Refusal} refusal */
  formatError({ message }) { return { title: message }; },
});
`;
const NOTE = `export default class NoteController {
  index(_, { user }) { return { user: user.id }; }
}`;

describe('a service file in plain JavaScript', () => {
  for (const extension of ['mjs', 'js'])
    test(`applies its settings as service.${extension}`, async (t) => {
      const cwd = makeProject(t, {
        [`controllers/service.${extension}`]: SERVICE,
        [`controllers/NoteController.${extension}`]: NOTE,
      });
      const api = await startTest({ controllers: `${cwd}/controllers` });
      t.after(() => api.close());
      const ask = async (authorization: string, path = '/note') => {
        const response = await api.fetch(path, { headers: { authorization } });
        return [response.status, await response.json()];
      };
      assert.deepEqual(await ask('Token ann'), [200, { user: 'ann' }]);
      assert.deepEqual(await ask('Token banned'), [403, { title: 'You are banned' }]);
      assert.equal((await ask('Token bob'))[0], 401);
      assert.equal((await ask('Token ann', '/note/what/ever'))[0], 404);
    });

  test('is refused with the line of a mistake', async (t) => {
    const source = `import { defineService } from '${GATEFOLD}';\n\nexport default defineService({\n  close: 7,\n});\n`;
    const cwd = makeProject(t, { 'controllers/service.mjs': source });
    await assert.rejects(startTest({ controllers: `${cwd}/controllers` }), /service\.mjs:4: close must be a function/);
  });

  test('is refused when it does not export a service', async (t) => {
    const cwd = makeProject(t, { 'controllers/service.js': 'export const query = () => {};\n' });
    await assert.rejects(startTest({ controllers: `${cwd}/controllers` }), /service\.js:1: .*defineService.*rename it/);
  });
});
