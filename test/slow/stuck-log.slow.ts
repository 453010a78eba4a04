// A service whose log nobody reads still answers, loads edits, and ends on a signal.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { ask, json } from '../support/cluster-client.ts';
import { startService } from '../support/cluster-server.ts';
import { controller, createFolder, write } from '../support/folder.ts';

const SLOW =
  'export default class { index() { return { value: 0 }; } wait() { process.stdout.write("waiting\\n"); return new Promise(() => {}); } }';

/** Starts a service whose standard error has this kind, is full, and has no reader. */
type StartUnread = (test: TestContext) => ReturnType<typeof startService>;

const KINDS: readonly [kind: string, start: StartUnread][] = [
  [
    'pipe',
    async (test) => {
      const dir = createFolder(test, { 'TestController.js': SLOW });
      const logFile = join(dirname(dir), 'log');
      execFileSync('mkfifo', [logFile]);
      const reader = openSync(logFile, constants.O_RDONLY | constants.O_NONBLOCK);
      test.after(() => closeSync(reader));
      return fill(await startService(test, { dir, logFile }));
    },
  ],
  [
    // systemd's journal is a socket, and so is a pipe of Node's child processes.
    'socket',
    async (test) => {
      const service = await startService(test, { files: { 'TestController.js': SLOW } });
      service.process.stderr?.pause();
      return fill(service);
    },
  ],
];

/** Fills the log. Each request writes a line of 4 kB, and no kernel buffers that many. */
async function fill<T extends { readonly port: number }>(service: T): Promise<T> {
  const long = `/api/test/${'x'.repeat(8000)}`;
  for (let round = 0; round < 10; round++) await Promise.all(Array.from({ length: 60 }, () => ask(service.port, long)));
  return service;
}

for (const [kind, startUnread] of KINDS) {
  describe(`a service whose log is a ${kind} that nobody reads`, { timeout: 200_000 }, () => {
    it('answers, loads an edit, and exits with 0 on SIGTERM', async (test) => {
      const { port, dir, process: server, exited } = await startUnread(test);
      write(dir, 'TestController.js', controller('edited'));
      while (json(await ask(port, '/api/test')).value !== 'edited');
      server.kill('SIGTERM');
      assert.deepEqual(await exited, { code: 0, signal: null });
    });

    it('exits with 1 on the second SIGTERM during a request', async (test) => {
      const { port, process: server, exited } = await startUnread(test);
      const waiting = new Promise<void>((resolve) =>
        server.stdout?.on('data', (text) => String(text).includes('waiting') && resolve()),
      );
      ask(port, '/api/test/wait').catch(() => {});
      await waiting;
      server.kill('SIGTERM');
      // Signals within some milliseconds count as one, because terminals and npm deliver a signal twice.
      const again = setInterval(() => server.kill('SIGTERM'), 100);
      test.after(() => clearInterval(again));
      assert.deepEqual(await exited, { code: 1, signal: null });
    });
  });
}
