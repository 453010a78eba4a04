// The mark that a service has had a service file: what sets it, what clears it, and a folder that cannot be examined.
import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { createServiceMark, hasServiceMark } from '../../../src/live/supervisor/service-mark.ts';
import { createFolder } from '../../support/folder.ts';
import { createMemoryLog } from '../../support/memory-log.ts';

describe('the mark of a service file', () => {
  it('is set by rules, and cleared only by an empty definition or by the operator', (test) => {
    const dataDir = join(dirname(createFolder(test)), 'data');
    const { log } = createMemoryLog();
    const mark = createServiceMark(dataDir, log);
    const load = { group: 'service', file: 'service.js' };
    const states = [mark.isSet()];
    const note = (change: () => void) => {
      change();
      assert.equal(hasServiceMark(dataDir), mark.isSet(), 'a restart knows the same');
      states.push(mark.isSet());
    };
    note(() => mark.update({ ...load, ok: true }));
    note(() => mark.update(undefined));
    note(() => mark.update({ ...load, ok: false, isEmpty: true }));
    note(() => mark.update({ ...load, ok: true, isEmpty: true }));
    note(() => mark.update({ ...load, ok: true }));
    note(() => mark.clear());
    assert.deepEqual(states, [false, true, true, true, false, true, false]);
  });

  it('counts as set where the folder cannot be examined, and the log says once that it cannot be kept', (test) => {
    const dataDir = join(dirname(createFolder(test)), 'data');
    symlinkSync('data', dataDir);
    const { log, lines } = createMemoryLog();
    const mark = createServiceMark(dataDir, log);
    assert.equal(mark.isSet(), true);
    for (let times = 0; times < 2; times++) mark.update({ group: 'service', file: 'service.js', ok: true });
    assert.deepEqual(
      lines.map(({ event, effect }) => [event, effect]),
      [['service-mark-not-kept', 'a start without service.ts would serve without its rules']],
    );
  });
});
