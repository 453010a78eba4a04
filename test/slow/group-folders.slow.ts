// Groups in subfolders of a running service: files are added, and `folders: true` is added and removed. Each change
// reaches all workers at once.
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { controller, startService, write } from '../support/cluster-server.ts';

const GATEFOLD = pathToFileURL(resolve(import.meta.dirname, '../../dist/controller.js')).href;
const service = (options: string) =>
  `import { defineService } from '${GATEFOLD}';\nexport default defineService({ ${options} });\n`;

async function start(test: TestContext, files: Readonly<Record<string, string>>) {
  const running = await startService(test, {
    files: { 'TestController.mjs': controller('test'), ...files },
    env: { WORKERS: '2' },
  });
  /** Sends two requests on two connections, so that both workers may answer. */
  const ask = async (path: string): Promise<string> => {
    const answers = await Promise.all(
      [1, 2].map(async () => {
        const response = await fetch(`http://127.0.0.1:${running.port}/api/${path}`, {
          headers: { connection: 'close' },
        });
        const { value, error_code } = (await response.json()) as { value?: string; error_code?: string };
        return `${response.status} ${value ?? error_code}`;
      }),
    );
    assert.equal(answers[0], answers[1], `${path}: both workers must give the same response`);
    return answers[0] ?? '';
  };
  let generation = 1;
  /** Waits until the next generation serves. */
  const served = async (change: () => void) => {
    generation++;
    change();
    await running.logged('generation-serving', (line) => line.generation === generation);
  };
  return { ...running, ask, served };
}

describe('groups in folders of a running service', () => {
  it('serve a new file at the next request and an edited file in a new generation', async (t) => {
    const { dir, ask, served } = await start(t, { 'service.mjs': service('folders: true') });
    assert.equal(await ask('v2/order'), '404 GROUP_NOT_FOUND');
    for (const folder of ['v2', 'v3']) {
      write(dir, `${folder}/OrderController.mjs`, controller(`${folder} old`));
      assert.equal(await ask(`${folder}/order`), `200 ${folder} old`);
    }
    await served(() => write(dir, 'v2/OrderController.mjs', controller('v2 new')));
    assert.equal(await ask('v2/order'), '200 v2 new');
    assert.equal(await ask('v3/order'), '200 v3 old');
    await served(() => rmSync(join(dir, 'v2'), { recursive: true }));
    assert.equal(await ask('v2/order'), '404 GROUP_NOT_FOUND');
  });

  it('appear and disappear with folders: true in one generation each', async (t) => {
    const { dir, lines, ask, served } = await start(t, { 'v2/OrderController.mjs': controller('v2') });
    assert.equal(await ask('v2/order'), '404 GROUP_NOT_FOUND');
    await served(() => write(dir, 'service.mjs', service('folders: true')));
    assert.equal(await ask('v2/order'), '200 v2');
    await served(() => write(dir, 'service.mjs', service('folders: false')));
    assert.equal(await ask('v2/order'), '404 GROUP_NOT_FOUND');
    await served(() => write(dir, 'service.mjs', service('folders: true, headers: {}')));
    assert.equal(await ask('v2/order'), '200 v2');
    await served(() => write(dir, 'service.mjs', service('')));
    await served(() => rmSync(join(dir, 'service.mjs')));
    assert.equal(await ask('v2/order'), '404 GROUP_NOT_FOUND');
    assert.equal(await ask('test'), '200 test');
    assert.deepEqual(
      lines.filter(({ event }) => event === 'generation-rejected'),
      [],
    );
  });

  it('give way to a controller with the name of the folder, and the log names both files', async (t) => {
    const running = await start(t, {
      'service.mjs': service('folders: true'),
      'v2/OrderController.mjs': controller('folder'),
    });
    const { dir, ask, served } = running;
    assert.equal(await ask('v2/order'), '200 folder');
    const above = "export default { index: () => ({ value: 'above' }), order: () => ({ value: 'above order' }) };\n";
    await served(() => write(dir, 'V2Controller.mjs', above));
    assert.equal(await ask('v2/order'), '200 above order');
    const line = await running.logged('file-ignored');
    assert.equal(line.file, 'v2/OrderController.mjs');
    assert.equal(
      line.reason,
      'V2Controller.mjs serves the URLs of the folder v2: move it to v2/Controller.mjs, or rename one of the two',
    );
    await served(() => rmSync(join(dir, 'V2Controller.mjs')));
    assert.equal(await ask('v2/order'), '200 folder');
  });
});
