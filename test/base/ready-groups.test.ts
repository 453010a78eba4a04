// The groups that must load before a service is ready.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { lacksGroups } from '../../src/base/ready-groups.ts';

const ROWS = [
  // Groups that do not load, that load, that have served before; whether all have loaded before; for `some`, for `all`.
  { broken: 0, loaded: 0, lost: 0, wasComplete: false, some: false, all: false },
  { broken: 1, loaded: 0, lost: 0, wasComplete: false, some: true, all: true },
  { broken: 1, loaded: 2, lost: 0, wasComplete: false, some: false, all: true },
  { broken: 1, loaded: 2, lost: 0, wasComplete: true, some: false, all: false },
  { broken: 1, loaded: 2, lost: 1, wasComplete: true, some: false, all: true },
];

for (const { broken, loaded, lost, wasComplete, some, all } of ROWS)
  it(`${broken} broken, ${loaded} loaded, ${lost} lost, ${wasComplete ? 'complete' : 'not complete'} before`, () => {
    const groups = { loaded, lost: Array(lost).fill(0), wasComplete };
    const status = { notLoadable: Array(broken).fill(0), groups };
    assert.deepEqual([lacksGroups(status, 'some'), lacksGroups(status, 'all')], [some, all]);
  });
