// The end of a worker: a rejection that nobody awaits, and the parts of the log line of worker-end.slow.ts.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { describe, test } from 'node:test';
import { createNoteWriter, noteEnvironment, openNote } from '../../../src/base/worker-note.ts';
import { describeBlock, describeEnd } from '../../../src/live/supervisor/workers/worker-end.ts';
import { ask } from '../../support/cluster-client.ts';
import { createFolder, startService, write } from '../../support/cluster-server.ts';

const MIB = 1024 * 1024;

test('an edit is refused with the cause when the working folder of the service is gone', async (t) => {
  const cwd = createFolder(t, {});
  const dir = createFolder(t, { 'OrderController.mjs': 'export default class { index() {} }' });
  const service = await startService(t, { dir, cwd, env: { WORKERS: '1' } });
  rmSync(cwd, { recursive: true });
  write(service.dir, 'OrderController.mjs', 'export default class { index() { return 1; } }');
  const { error } = await service.logged('generation-rejected');
  assert.match(
    String(error),
    /exit code 1; its working folder .*\/controllers is gone: start the service in a folder that stays$/,
  );
});

// Sentry, winston and others listen for rejections, and Node then raises no exception of its own.
for (const [name, text, NODE_OPTIONS] of [
  ['a controller listens for rejections', "process.on('unhandledRejection', () => {});", ''],
  ['Node only warns of rejections', '', '--unhandled-rejections=warn'],
  ['Node raises each rejection', '', '--unhandled-rejections=strict'],
] as const)
  test(`a rejection that nobody awaits is the 500 of its request, and replaces the worker, while ${name}`, async (t) => {
    const files = {
      'TestController.js': `${text}
export default class {
  async index() { Promise.reject(new Error('nobody cared')); await new Promise(() => {}); }
}`,
    };
    const service = await startService(t, { files, env: { WORKERS: '1', NODE_OPTIONS } });
    assert.equal((await ask(service.port, '/api/test')).status, 500);
    const { error, origin, request_id } = await service.logged('uncaught-exception');
    assert.deepEqual([error, origin, typeof request_id], ['nobody cared', 'unhandledRejection', 'string']);
    await service.logged('worker-replaced');
    assert.equal(service.lines.filter(({ event }) => event === 'uncaught-exception').length, 1);
  });

test('describeEnd and describeBlock give the causes of an end', () => {
  const heap = { used: 143.4 * MIB, limit: 150 * MIB };
  const end = (signalCode: NodeJS.Signals) => describeEnd({ exitCode: null, signalCode }, heap);
  assert.equal(describeEnd({ exitCode: 3, signalCode: null }, heap), 'it ended the process with exit code 3');
  assert.match(end('SIGKILL'), /^it was ended by SIGKILL, .* mostly the kernel sends it, for want of memory$/);
  assert.match(
    end('SIGABRT'),
    /^it was ended by SIGABRT, as V8 does .*; at its last note, 143 of 150 MiB of heap were used/,
  );
  assert.match(end('SIGSEGV'), /, a crash of native code$/);
  assert.equal(end('SIGUSR2'), 'it was ended by SIGUSR2');
  assert.equal(describeBlock(5), 'its event loop did not turn for 5 s');
  assert.equal(describeBlock(5, { used: 80 * MIB, limit: 150 * MIB }), 'its event loop did not turn for 5 s');
  assert.match(
    describeBlock(5, heap),
    /^its event loop did not turn for 5 s, because its heap was full; at its last note, 143 of 150 MiB/,
  );
});

describe('the note of a worker', () => {
  test('has the last operation alone, and the heap', () => {
    const note = openNote();
    assert.ok(note);
    const env = noteEnvironment(note.fd, true);
    const writer = createNoteWriter(env);
    assert.deepEqual(env, {}, 'processes of controllers do not see the variable');
    writer?.begin?.('GET /api/a-long-name/{id}', 'a-long-request-id');
    writer?.begin?.('GET /api/ä', 'abc');
    writer?.begin?.('GET /api/ä', 'b');
    writer?.heap({ used: 12, limit: 34 });
    const { request, heap } = note.take();
    assert.deepEqual([request?.last_request, request?.last_request_id], ['GET /api/ä', 'b']);
    assert.ok(Math.abs(Date.parse(request?.last_request_at ?? '') - Date.now()) < 60_000);
    assert.deepEqual(heap, { used: 12, limit: 34 });
  });

  test('is empty for a worker that has begun nothing, and holds the longest names', () => {
    assert.deepEqual(openNote()?.take(), { request: undefined, heap: undefined });
    const leftFiles = ['/dev/shm', tmpdir()].flatMap((folder) => (existsSync(folder) ? readdirSync(folder) : []));
    assert.deepEqual(
      leftFiles.filter((name) => name.startsWith(`.gatefold-${process.pid}-`)),
      [],
    );
    const note = openNote();
    const writer = createNoteWriter(noteEnvironment(note?.fd ?? 0, true));
    writer?.heap({ used: 1, limit: 2 });
    writer?.begin?.(`GET /${'€'.repeat(1000)}`, 'i'.repeat(128));
    const { request, heap } = note?.take() ?? {};
    assert.deepEqual([request?.last_request.length, request?.last_request_id], [250, 'i'.repeat(128)]);
    assert.deepEqual(heap, { used: 1, limit: 2 });
    assert.equal(createNoteWriter({}), undefined);
    assert.equal(createNoteWriter(noteEnvironment(note?.fd ?? 0, false))?.begin, undefined);
  });
});
