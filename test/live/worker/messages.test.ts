// A controller can use the channel between supervisor and worker, too.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { seal, unseal } from '../../../src/live/worker/messages.ts';

describe('messages between supervisor and worker', () => {
  it('are distinguished from messages that a controller sends over the same channel', () => {
    assert.deepEqual(unseal(seal({ kind: 'booted' })), { kind: 'booted' });
    for (const foreign of [
      { kind: 'load-failed', reason: 'x' },
      { kind: 'faulty' },
      { hello: 'parent' },
      'pong',
      null,
      7,
      undefined,
    ]) {
      assert.equal(unseal(foreign), undefined);
    }
  });
});
