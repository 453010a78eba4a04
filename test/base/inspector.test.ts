// Says which command lines open the inspector. Where it is open, no limit of a worker counts.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { asksForInspector, parseInspectorAddress } from '../../src/base/inspector.ts';

const NODE_OPTIONS = process.env.NODE_OPTIONS;
beforeEach(() => {
  delete process.env.NODE_OPTIONS;
});
afterEach(() => {
  if (NODE_OPTIONS !== undefined) process.env.NODE_OPTIONS = NODE_OPTIONS;
});

test('--inspect, --inspect-brk and --inspect-wait open the inspector, and no other word does', () => {
  for (const word of ['--inspect', '--inspect=9229', '--inspect-brk', '--inspect-brk=0.0.0.0:1', '--inspect-wait']) {
    assert.ok(asksForInspector(['--import', 'x', word]), word);
    process.env.NODE_OPTIONS = `--max-old-space-size=100 ${word}`;
    assert.ok(asksForInspector([]), word);
    delete process.env.NODE_OPTIONS;
  }
  for (const word of ['--inspect-port=0', '--inspect-publish-uid=http', '--x--inspect', 'a--inspect.js', '']) {
    assert.ok(!asksForInspector([word]), word);
    process.env.NODE_OPTIONS = word;
    assert.ok(!asksForInspector([]), word);
    delete process.env.NODE_OPTIONS;
  }
});

test('the value of --inspect is a port, also with a host', () => {
  const rows: [text: string, host: string, port: number][] = [
    ['9229', '127.0.0.1', 9229],
    ['0', '127.0.0.1', 0],
    ['65535', '127.0.0.1', 65_535],
    ['0.0.0.0:1', '0.0.0.0', 1],
    ['[::1]:80', '[::1]', 80],
  ];
  for (const [text, host, port] of rows) assert.deepEqual(parseInspectorAddress(text), { host, port });
  for (const text of ['', 'x', '65536', '123456', '-1', ':80', 'localhost', 'localhost:'])
    assert.throws(
      () => parseInspectorAddress(text),
      new Error(`--inspect: ${JSON.stringify(text)} is not a port or HOST:PORT`),
    );
});
