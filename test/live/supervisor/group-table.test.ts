// The groups that serve, and how the groups of a load differ from them.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SERVICE } from '../../../src/base/group-name.ts';
import type { GroupLoad } from '../../../src/live/load/group-load.ts';
import {
  compareWithServing,
  findUnseenGroups,
  GroupTable,
  hasMoreGroups,
  isAnyInFolder,
  isReadable,
} from '../../../src/live/supervisor/group-table.ts';
import { createFolder } from '../../support/folder.ts';

const good = (group: string): GroupLoad => ({ group, file: `${group}Controller.js`, ok: true });
const bad = (group: string): GroupLoad => ({ ...good(group), ok: false });
const serving = (...loads: GroupLoad[]) => new Map(loads.map((load) => [load.group, load]));
const names = (loads: readonly GroupLoad[]) => loads.map(({ group }) => group);

describe('hasMoreGroups', () => {
  const rows: [name: string, now: GroupLoad[], loads: GroupLoad[], expected: boolean][] = [
    ['the same groups', [good('A')], [good('A')], false],
    ['a group that had failed', [good('A'), bad('B')], [good('A'), good('B')], true],
    ['a group that still fails', [good('A'), bad('B')], [good('A'), bad('B')], false],
    ['a new group beside one that serves', [good('A')], [good('A'), good('B')], false],
    ['a new group where none serves', [bad('A')], [bad('A'), good('B')], true],
    ['a new group beside the service file alone', [good(SERVICE)], [good(SERVICE), good('B')], true],
    ['a group that had failed in the place of one that serves', [good('A'), bad('B')], [bad('A'), good('B')], false],
  ];
  for (const [name, now, loads, expected] of rows)
    it(`is ${expected} for ${name}`, () => assert.equal(hasMoreGroups(serving(...now), loads), expected));
});

describe('compareWithServing', () => {
  const rows: [
    name: string,
    now: GroupLoad[],
    loads: GroupLoad[],
    isSame: boolean,
    difference: unknown,
    groups: string[],
  ][] = [
    ['equal groups', [good('A'), bad('B')], [good('A'), bad('B')], true, undefined, []],
    ['a group that does not load', [good('A')], [bad('A')], true, 'group-lost', ['A']],
    ['other code', [good('A')], [good('A')], false, 'other-code', []],
    ['a group that it has not found', [good('A'), good('B')], [good('A')], true, 'group-missed', ['B']],
    ['a failed group that it has not found', [good('A'), bad('B')], [good('A')], true, undefined, []],
    ['a broken service file where none serves', [good('A')], [bad('A'), bad(SERVICE)], true, 'group-lost', [SERVICE]],
    ['a service file that was broken before', [bad(SERVICE)], [bad(SERVICE)], true, undefined, []],
  ];
  for (const [name, now, loads, isSame, difference, groups] of rows)
    it(`finds ${difference ?? 'no difference'} for ${name}`, () => {
      const found = compareWithServing(serving(...now), loads, isSame);
      assert.deepEqual([found.difference, names(found.groups)], [difference, groups]);
    });
});

describe('GroupTable', () => {
  it('knows which groups have served, and whether a generation was complete', () => {
    const table = new GroupTable();
    assert.deepEqual([table.current.generation, ++table.newest], [0, 1]);
    table.replace([good('A'), bad('B')]);
    assert.deepEqual([table.current.generation, table.wasComplete, names(table.lost())], [1, false, []]);
    table.addGroup(good('C'));
    table.addGroup(bad('C'));
    assert.equal(table.current.groups.get('C')?.ok, true, 'a group that has answered keeps its outcome');
    table.addGroup(bad('D'));
    table.newest++;
    table.replace([good('A'), good('B')]);
    assert.deepEqual([table.current.generation, table.wasComplete], [2, true]);
    table.replace([bad('A'), bad('B'), bad('C'), bad('D')]);
    assert.deepEqual([table.wasComplete, names(table.lost())], [true, ['A', 'B', 'C']]);
  });
});

it('findUnseenGroups and isAnyInFolder look for groups that a load has not found', (test) => {
  const dir = createFolder(test, { 'AController.js': '' });
  assert.deepEqual(names(findUnseenGroups(serving(good('A'), bad('B'), good('C')), [bad('A')])), ['C']);
  assert.equal(isAnyInFolder([], dir, []), false);
  assert.equal(isAnyInFolder([good('A')], dir, []), true);
  assert.equal(isAnyInFolder([good('B')], dir, []), false);
  assert.equal(isAnyInFolder([good('A')], `${dir}/none`, []), false);
  assert.deepEqual([isReadable(dir), isReadable(`${dir}/none`)], [true, false]);
});
