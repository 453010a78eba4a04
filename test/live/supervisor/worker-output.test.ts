// The complete output of workers reaches the reader of the service, and a reader that stops reading blocks no process.
// A service under test writes to two sockets, as a systemd unit does.
import assert from 'node:assert/strict';
import cluster from 'node:cluster';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import { relayOutput } from '../../../src/live/supervisor/workers/worker-output.ts';
import { ask, json } from '../../support/cluster-client.ts';
import { spawnService, startService } from '../../support/cluster-server.ts';
import { createFolder } from '../../support/folder.ts';

const LINE = 3000;
const TALKER = `export default class {
    index() {
      console.log(JSON.stringify({ printed: 'o'.repeat(${LINE}) }));
      console.error(JSON.stringify({ printed: 'ü'.repeat(${LINE}), event: 'printed' }));
    }
    flood() { for (let i = 0; i < 100; i++) console.error('x'.repeat(9999)); }
    held() { return process.stderr.writableLength; }
    warn(_, { log }) { log.error('last words'); return { pid: process.pid }; }
    [Symbol.dispose]() { process.stdout.write('last words'); }
  }`;

describe('the output of workers that share a socket', { timeout: 200_000 }, () => {
  it('arrives line by line, up to the last line', async (test) => {
    const service = spawnService(test, { files: { 'TestController.mjs': TALKER } });
    const port = await service.listening;
    const asked = 100;
    // Ten requests at a time, so that the socket never fills up. In a full socket, Node splits the lines of a
    // controller.
    for (let i = 10; i <= asked; i += 10) {
      await Promise.all(Array.from({ length: 10 }, () => ask(port, '/api/test')));
      while (service.lines.filter(({ event }) => event === 'printed').length < i)
        await new Promise((later) => setTimeout(later, 5));
    }
    service.process.kill('SIGTERM');
    await service.closed;
    const printed = service.output().split('\n').slice(1, -1);
    assert.deepEqual(printed.slice(-2), ['last words', 'last words']);
    assert.equal(
      printed.filter((line) => line.startsWith('{') && JSON.parse(line).printed.length === LINE).length,
      asked,
    );
    // spawnService has parsed each line. A split or merged line would have thrown.
    assert.equal(service.lines.filter(({ event }) => event === 'printed').length, asked);
    assert.equal(service.lines.filter(({ event }) => event === 'request').length, asked);
    assert.equal(service.lines.at(-1)?.event, 'stopped');
  });

  it('is lost without an error when its reader has gone', async (test) => {
    const service = await startService(test, { files: { 'TestController.mjs': TALKER }, env: { WORKERS: '1' } });
    service.process.stdout?.destroy();
    for (let i = 0; i < 2; i++) assert.equal((await ask(service.port, '/api/test')).status, 200);
    service.process.kill('SIGTERM');
    assert.deepEqual(await service.exited, { code: 0, signal: null });
    assert.deepEqual(
      service.lines.filter(({ level }) => level === 'error'),
      [],
    );
  });

  it('is not buffered in a worker while nobody reads it', async (test) => {
    const service = await startService(test, { files: { 'TestController.mjs': TALKER }, env: { WORKERS: '1' } });
    service.process.stderr?.pause();
    // 12 MB are more than the service buffers.
    for (let i = 0; i < 12; i++) await ask(service.port, '/api/test/flood');
    while (json(await ask(service.port, '/api/test/held')).data !== 0)
      await new Promise((later) => setTimeout(later, 25));
    service.process.kill('SIGTERM');
    assert.deepEqual(await service.exited, { code: 0, signal: null });
  });
});

describe('the log of workers in a file', { timeout: 200_000 }, () => {
  it('has whole lines of several workers, also when one of them is killed', async (test) => {
    const dir = createFolder(test, { 'TestController.mjs': TALKER });
    const logFile = join(dirname(dir), 'log');
    const service = await startService(test, { dir, logFile, env: { WORKERS: '2' } });
    const long = `/api/test/${'x'.repeat(9000)}`;
    for (let i = 0; i < 5; i++) await Promise.all(Array.from({ length: 30 }, () => ask(service.port, long)));
    const count = () => readFileSync(logFile, 'utf8').split('"event":"request"').length - 1;
    // A line waits up to 50 ms for others, and another thread writes it. So the worker is killed when the lines of all
    // requests are in the file.
    while (count() < 150) await new Promise((later) => setTimeout(later, 25));
    const { pid } = json(await ask(service.port, '/api/test/warn'));
    while (!readFileSync(logFile, 'utf8').includes('"operation-error"'))
      await new Promise((later) => setTimeout(later, 25));
    process.kill(Number(pid), 'SIGKILL');
    while (!readFileSync(logFile, 'utf8').includes('"worker-died"'))
      await new Promise((later) => setTimeout(later, 25));
    service.process.kill('SIGTERM');
    assert.deepEqual(await service.exited, { code: 0, signal: null });
    const events = readFileSync(logFile, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).event);
    // The line of the last request can be lost with its worker.
    assert.ok(events.filter((event) => event === 'request').length >= 150);
    for (const event of ['operation-error', 'worker-died', 'stopped']) assert.ok(events.includes(event), event);
  });
});

describe('relayOutput', () => {
  it('relays whole lines, a text of more than 65,536 characters at once, and the rest at the end', async (test) => {
    const before = cluster.listeners('fork');
    const passed: string[] = [];
    const { drained } = relayOutput({ pass: (lines) => passed.push(lines) });
    test.after(() => {
      for (const listener of cluster.listeners('fork').slice(before.length)) cluster.off('fork', listener as never);
    });
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    cluster.emit('fork', { process: { stdout, stderr } } as never);
    // A worker that the system refused to start has no streams.
    cluster.emit('fork', { process: {} } as never);
    const read = () => new Promise((later) => setImmediate(later));
    for (const text of ['a', 'b\nc\nd', 'x'.repeat(65_535), 'y', 'end']) {
      stderr.write(text);
      await read();
    }
    assert.deepEqual(passed, ['ab\nc\n', `d${'x'.repeat(65_535)}y`.slice(0, 65_537)]);
    stdout.destroy(new Error('a broken pipe'));
    stderr.end();
    await drained();
    assert.equal(passed.at(-1), 'end\n');
  });

  it('waits a fifth of a second at most for output that a process holds open', async () => {
    const before = cluster.listeners('fork');
    const { drained } = relayOutput({ pass() {} });
    cluster.emit('fork', { process: { stdout: new PassThrough() } } as never);
    for (const listener of cluster.listeners('fork').slice(before.length)) cluster.off('fork', listener as never);
    let isOver = false;
    const end = drained().then(() => {
      isOver = true;
    });
    await new Promise((later) => setImmediate(later));
    assert.equal(isOver, false);
    await end;
  });
});
