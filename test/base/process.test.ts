// Runs the service as processes, and reads the parts of them that other users of the machine can read, too.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { startService } from '../support/cluster-server.ts';

test('a secret on the command line is logged, and the process list does not show it', {
  skip: process.platform !== 'linux',
}, async (t) => {
  const key = 'k'.repeat(40);
  const service = await startService(t, { flags: [`--session-key=${key}`] });
  assert.equal((await service.logged('secret-on-command-line')).flag, '--session-key');
  const pid = service.process.pid as number;
  const workers = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim().split(' ');
  assert.equal(workers.length, 2);
  for (const process of [pid, ...workers])
    assert.doesNotMatch(readFileSync(`/proc/${process}/cmdline`, 'latin1'), /kkk/, `process ${process}`);
});
