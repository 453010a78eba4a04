// The output of workers reaches the reader of the service whole and to the end, and a reader that stops reading stops
// nobody. A service under test writes to two sockets, as a systemd unit does.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ask, json } from '../support/cluster-client.ts';
import { spawnService, startService } from '../support/cluster-server.ts';

const LINE = 3000;
const TALKER = `export default class {
    index() {
      console.log(JSON.stringify({ printed: 'o'.repeat(${LINE}) }));
      console.error(JSON.stringify({ printed: 'ü'.repeat(${LINE}), event: 'printed' }));
    }
    flood() { for (let i = 0; i < 100; i++) console.error('x'.repeat(9999)); }
    held() { return process.stderr.writableLength; }
    [Symbol.dispose]() { process.stdout.write('last words'); }
  }`;

describe('the output of workers that share a socket', { timeout: 110_000 }, () => {
  it('is passed on line by line, to the last one', async (test) => {
    const service = spawnService(test, { files: { 'TestController.mjs': TALKER } });
    const port = await service.listening;
    const asked = 300;
    // As many at once as leave room in a socket, and no more before they have arrived: in a full one Node tears what a
    // controller prints.
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
    // spawnService has parsed each line: one that was torn, or ran into another, would have thrown.
    assert.equal(service.lines.filter(({ event }) => event === 'printed').length, asked);
    assert.equal(service.lines.filter(({ event }) => event === 'request').length, asked);
    assert.equal(service.lines.at(-1)?.event, 'stopped');
  });

  it('does not fill the memory of a worker whose controller prints while nobody reads', async (test) => {
    const service = await startService(test, { files: { 'TestController.mjs': TALKER }, env: { WORKERS: '1' } });
    service.process.stderr?.pause();
    // 12 MB: more than the service holds.
    for (let i = 0; i < 12; i++) await ask(service.port, '/api/test/flood');
    while (json(await ask(service.port, '/api/test/held')).data !== 0);
    service.process.kill('SIGTERM');
    assert.deepEqual(await service.exited, { code: 0, signal: null });
  });
});
