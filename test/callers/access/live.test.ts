// The service file of a running service is added, broken, mended and removed. While it is broken, the last good one
// serves.
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { controller, startService, write } from '../../support/cluster-server.ts';
import { freePorts } from '../../support/ports.ts';

const GATEFOLD = pathToFileURL(resolve(import.meta.dirname, '../../../dist/controller.js')).href;
const service = (options: string) =>
  `import { defineService } from '${GATEFOLD}';\nexport default defineService({ ${options} });\n`;

describe('the service file of a running service', () => {
  it('takes effect when added or removed, and keeps its last good version while broken or gone', async (t) => {
    const running = await startService(t, { files: { 'TestController.mjs': controller(1) }, env: { WORKERS: '1' } });
    const unknown = async () => {
      const headers = { authorization: 'Token of somebody', connection: 'close' };
      const response = await fetch(`http://127.0.0.1:${running.port}/api/nothing`, { headers });
      return [response.status, ((await response.json()) as { error_code: string }).error_code].join(' ');
    };
    assert.equal(await unknown(), '500 DELEGATED_GROUP_NOT_FOUND');

    write(running.dir, 'service.mjs', service('strict: true'));
    await running.logged('generation-serving', ({ generation }) => generation === 2);
    assert.equal(await unknown(), '404 GROUP_NOT_FOUND');

    write(running.dir, 'service.mjs', service('strict: true,\n  authentikate: () => undefined'));
    const rejected = await running.logged('generation-rejected');
    assert.match(String(rejected.error), /authentikate is no property of a service; there are strict, /);
    assert.match(String(rejected.at), /service\.mjs:3$/);
    assert.equal(await unknown(), '404 GROUP_NOT_FOUND', 'the last good service file must still apply');

    rmSync(join(running.dir, 'service.mjs'));
    const gone = await running.logged('generation-rejected', ({ error }) =>
      /has had a service file/.test(String(error)),
    );
    assert.equal(gone.group, 'service');
    assert.equal(await unknown(), '404 GROUP_NOT_FOUND', 'the rules of a file that is gone must still apply');

    write(running.dir, 'service.mjs', service(''));
    await running.logged('generation-serving', ({ generation }) => Number(generation) > 2);
    rmSync(join(running.dir, 'service.mjs'));
    const since = running.lines.length;
    await running.logged('generation-serving', (line) => running.lines.indexOf(line) >= since);
    assert.equal(await unknown(), '500 DELEGATED_GROUP_NOT_FOUND', 'an empty definition takes the rules away');
  });

  it('causes a 500 for every request until its first good version has loaded', async (t) => {
    const [opsPort = 0] = await freePorts(1);
    const running = await startService(t, {
      files: { 'TestController.mjs': controller(1), 'service.mjs': 'export default { strict: true };\n' },
      env: { WORKERS: '1', OPS_PORT: String(opsPort) },
    });
    const ask = async (path: string, port = running.port) => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: 'close' } });
      return { status: response.status, text: await response.text() };
    };
    const failed = await running.logged('service-not-loadable');
    assert.match(String(failed.error), /is not made by defineService\(\{ … \}\): write that, or rename it/);
    for (const path of ['/api/test', '/other', '/api/openapi.json']) {
      const { status, text } = await ask(path);
      assert.equal(status, 500, path);
      assert.match(text, /SERVICE_NOT_LOADABLE/, path);
      assert.doesNotMatch(text, /defineService/, path);
    }
    assert.equal((await ask('/readyz', opsPort)).status, 503);

    write(running.dir, 'service.mjs', service("headers: { 'X-Served-By': 'a test' }"));
    await running.logged('generation-serving', ({ generation }) => generation === 2);
    const response = await fetch(`http://127.0.0.1:${running.port}/api/test`);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('x-served-by'), 'a test');
    assert.equal((await ask('/readyz', opsPort)).status, 200);
  });
});
