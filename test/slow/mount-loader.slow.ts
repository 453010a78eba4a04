// A process can have a module loader, which is asked again at each `import()`, also for a module that is loaded.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { createFolder, startService, write } from '../support/cluster-server.ts';

test('requests to mount.node look its code up once', async (test) => {
  const folder = createFolder(test);
  const asked = join(folder, 'asked');
  write(folder, 'asked', '');
  write(
    folder,
    'loader.mjs',
    `import { appendFileSync } from 'node:fs';
    export async function resolve(specifier, context, next) {
      appendFileSync(${JSON.stringify(asked)}, specifier + '\\n');
      return next(specifier, context);
    }`,
  );
  write(folder, 'register.mjs', `import { register } from 'node:module'; register('./loader.mjs', import.meta.url);`);
  const { port } = await startService(test, {
    files: {
      'NodeController.mjs': `import { mount } from 'gatefold';
        export default mount.node((request, response) => response.end('mounted'));`,
    },
    env: { WORKERS: '1', NODE_OPTIONS: `--import=${pathToFileURL(join(folder, 'register.mjs')).href}` },
  });
  for (let i = 0; i < 5; i++) assert.equal(await (await fetch(`http://127.0.0.1:${port}/api/node`)).text(), 'mounted');
  const lookUps = readFileSync(asked, 'utf8').match(/^.*node-mount.*$/gm) ?? [];
  assert.equal(lookUps.length, 1, lookUps.join());
});
