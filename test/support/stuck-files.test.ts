// run.mjs runs a file again only when the file exceeded its time limit and none of its tests had a result.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import stuckFiles from './stuck-files.mjs';

type Event = [type: 'test:pass' | 'test:fail' | 'test:start', name: string, file: string, failureType?: string];

const rows: [what: string, events: Event[], report: { stuck: string[]; failed: number }][] = [
  ['all is well', [['test:pass', 'one', '/a']], { stuck: [], failed: 0 }],
  [
    'nothing began',
    [
      ['test:start', '/a', '/a'],
      ['test:fail', '/a', '/a', 'testTimeoutFailure'],
    ],
    { stuck: ['/a'], failed: 0 },
  ],
  [
    'one passed, then it hung',
    [
      ['test:pass', 'one', '/a'],
      ['test:fail', '/a', '/a', 'testTimeoutFailure'],
    ],
    { stuck: [], failed: 1 },
  ],
  ['a test was out of time', [['test:fail', 'one', '/a', 'testTimeoutFailure']], { stuck: [], failed: 1 }],
  ['it does not load', [['test:fail', '/a', '/a', 'testCodeFailure']], { stuck: [], failed: 1 }],
  [
    'another file fails beside it',
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
    assert.deepEqual(JSON.parse(text), report);
  });
}
