// What a process of the service must not load to start: it is paid at each start, in each generation, by each worker.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';

const DIST = join(import.meta.dirname, '../dist');

for (const [name, modules] of [
  ['a worker', ['cluster/worker.js', 'worker-parts.js']],
  ['the supervisor', ['cluster/serve.js', 'ops/operations.js']],
] as const) {
  test(`${name} does not load the HTTP client that comes with Node`, () => {
    const imports = modules.map((file) => `await import(${JSON.stringify(join(DIST, file))});`).join(' ');
    const script = `${imports} process.stdout.write(process.moduleLoadList.join('\\n'));`;
    const loaded = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' }).split('\n');
    assert.ok(loaded.includes('NativeModule _http_server'), 'the list names what is loaded');
    assert.deepEqual(
      loaded.filter((module) => module.includes('undici')),
      [],
    );
  });
}
