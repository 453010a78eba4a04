// run.mjs runs a file again only when the file exceeded its time limit and none of its tests had a result.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import stuckFiles from './stuck-files.mjs';

type Event = [
  type: 'test:pass' | 'test:fail' | 'test:start' | 'test:dequeue' | 'test:complete',
  name: string,
  file: string,
  failureType?: string,
];

const rows: [what: string, events: Event[], report: { stuck: string[]; unended?: string[]; failed: number }][] = [
  ['a test that passes is not a stuck file', [['test:pass', 'one', '/a']], { stuck: [], failed: 0 }],
  [
    'a file that timed out before its first result is stuck',
    [
      ['test:start', '/a', '/a'],
      ['test:fail', '/a', '/a', 'testTimeoutFailure'],
    ],
    { stuck: ['/a'], failed: 0 },
  ],
  [
    'a file that hangs after its first result has failed',
    [
      ['test:pass', 'one', '/a'],
      ['test:fail', '/a', '/a', 'testTimeoutFailure'],
    ],
    { stuck: [], failed: 1 },
  ],
  [
    'the tests that a file had begun when its time was over are named',
    [
      ['test:dequeue', '/a', '/a'],
      ['test:dequeue', 'suite', '/a.js'],
      ['test:dequeue', 'ended', '/a.js'],
      ['test:complete', 'ended', '/a.js'],
      ['test:pass', 'ended', '/a.js'],
      ['test:dequeue', 'hangs', '/a.js'],
      ['test:complete', '/a', '/a'],
      ['test:fail', '/a', '/a', 'testTimeoutFailure'],
    ],
    { stuck: ['/a'], unended: ['suite', 'hangs'], failed: 0 },
  ],
  [
    'a test without an end is not named when no file was out of time',
    [['test:dequeue', 'one', '/a']],
    { stuck: [], failed: 0 },
  ],
  ['a test that timed out has failed', [['test:fail', 'one', '/a', 'testTimeoutFailure']], { stuck: [], failed: 1 }],
  ['a file that does not load has failed', [['test:fail', '/a', '/a', 'testCodeFailure']], { stuck: [], failed: 1 }],
  [
    'a stuck file is reported beside the failure of another file',
    [
      ['test:fail', 'one', '/b', 'testCodeFailure'],
      ['test:fail', '/a', '/a', 'testTimeoutFailure'],
    ],
    { stuck: ['/a'], failed: 1 },
  ],
];

for (const [what, events, report] of rows) {
  test(what, async () => {
    async function* source() {
      for (const [type, name, file, failureType] of events)
        yield { type, data: { name, file, details: { error: { failureType } } } };
    }
    let text = '';
    for await (const part of stuckFiles(source())) text += part;
    assert.deepEqual(JSON.parse(text), { unended: [], ...report });
  });
}
