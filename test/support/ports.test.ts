import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { moduleUrl } from './own-modules.ts';
import { freePorts } from './ports.ts';

const COUNT = 300;

test('freePorts returns a port to one process only, and nobody listens on the port', async () => {
  const script = `import { freePorts } from ${JSON.stringify(moduleUrl('test/support/ports'))};
    console.log(JSON.stringify(await freePorts(${COUNT})));`;
  const flags = process.execArgv.filter((flag) => !flag.startsWith('--test'));
  const mine = await freePorts(COUNT);
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, '--input-type=module', '--eval', script]);
  const others = JSON.parse(stdout) as number[];
  // Both take ports from the same 6,000.
  assert.equal(new Set([...mine, ...others]).size, 2 * COUNT);
  for (const port of mine.slice(0, 10)) {
    const server = createServer().listen(port, '127.0.0.1');
    await once(server, 'listening');
    server.close();
  }
});
