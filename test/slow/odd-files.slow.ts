// Entries of the folder that are no regular files or are endless. They are never read, the log names each that has a
// controller's name, and edits, commands and the end of the service do not wait for them.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ask, json } from '../support/cluster-client.ts';
import { spawnService } from '../support/cluster-server.ts';
import { controller, createFolder, write } from '../support/folder.ts';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const empty = (head: string) => `${head}\nexport default class { index() {} created(data) {} }\n`;

/** The reason why each group does not answer; undefined when there is no such group. */
const REASONS: Readonly<Record<string, RegExp | undefined>> = {
  Pipe: undefined,
  Zeros: undefined,
  Huge: /HugeController\.ts has 3,000,000,000 bytes and is not read/,
  ImportsPipe: /lib\/pipe\.mjs is a named pipe and is not read/,
  ImportsZeros: /zeros?(?:\.mjs)? is a device and is not read/,
  ImportsHuge: /lib\/huge\.mjs has 3,000,000,000 bytes and is not read/,
  TypesOfPipe: /lib\/pipe\.ts is a named pipe and is not read/,
  TypesOfHuge: /lib\/huge\.ts has 3,000,000,000 bytes and is not read/,
};

function createOddFolder(test: TestContext): string {
  const dir = createFolder(test, { 'TestController.mjs': controller(0) });
  mkdirSync(join(dir, 'lib'));
  for (const name of ['pipe.ts', 'PipeController.ts', 'lib/pipe.mjs', 'lib/pipe.ts'])
    execFileSync('mkfifo', [join(dir, name)]);
  for (const name of ['zeros.ts', 'ZerosController.ts', 'lib/zeros.mjs']) symlinkSync('/dev/zero', join(dir, name));
  for (const name of ['huge.ts', 'HugeController.ts', 'lib/huge.ts', 'lib/huge.mjs']) {
    writeFileSync(join(dir, name), '');
    truncateSync(join(dir, name), 3e9);
  }
  for (const [group, name] of [
    ['ImportsPipe', 'pipe'],
    ['ImportsZeros', 'zeros'],
    ['ImportsHuge', 'huge'],
  ]) {
    write(dir, `${group}Controller.mjs`, empty(`import './lib/${name}.mjs';`));
  }
  for (const [group, name] of [
    ['TypesOfPipe', 'pipe'],
    ['TypesOfHuge', 'huge'],
  ]) {
    write(
      dir,
      `${group}Controller.ts`,
      empty(`import type { X } from './lib/${name}.ts';`).replace('(data)', '(data: X)'),
    );
  }
  return dir;
}

/**
 * Returns a Node with limited memory. Without the limit, a process that reads a device would bring down the machine.
 */
function boundedNode(dir: string): string {
  const path = join(dirname(dir), 'node');
  writeFileSync(path, `#!/bin/sh\nulimit -d 4000000\nexec ${process.execPath} "$@"\n`);
  chmodSync(path, 0o755);
  return path;
}

describe('a folder with pipes, devices and huge files', { timeout: 500_000 }, () => {
  it('serves its other groups and edits, logs each unreadable file, and exits with 0', async (test) => {
    const dir = createOddFolder(test);
    const service = spawnService(test, { dir, node: boundedNode(dir) });
    const port = await service.listening;
    for (const value of ['first', 'second']) {
      write(dir, 'TestController.mjs', controller(value));
      while (json(await ask(port, '/api/test')).value !== value);
    }
    for (const [group, reason] of Object.entries(REASONS)) {
      const { status } = await ask(port, `/api/${group}`);
      if (reason === undefined) {
        assert.equal(status, 404, group);
        await service.logged('file-ignored', ({ file }) => file === `${group}Controller.ts`);
      } else {
        assert.equal(status, 500, group);
        const { error } = await service.logged('group-not-loadable', (line) => line.group === group);
        assert.match(String(error), reason);
      }
    }
    service.process.kill('SIGTERM');
    assert.deepEqual(await service.exited, { code: 0, signal: null });
    assert.deepEqual(
      service.lines.filter(({ event }) => event === 'worker-died'),
      [],
    );
  });

  for (const words of [['routes'], ['doctor']]) {
    it(`does not block gatefold ${words.join(' ')}`, (test) => {
      const dir = createOddFolder(test);
      const { stdout, signal } = spawnSync(boundedNode(dir), [CLI, ...words, '--controllers-dir', dir], {
        timeout: 180_000,
        encoding: 'utf8',
      });
      assert.equal(signal, null);
      assert.match(stdout, /\/api\/test|PipeController\.ts/);
    });
  }
});
