// The requests of a worker that wait until a new group may answer.
import assert from 'node:assert/strict';
import { describe, it, mock, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createAdmissions } from '../../../src/live/worker/admissions.ts';

function create(test: TestContext) {
  mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  test.after(() => mock.timers.reset());
  const asked: string[] = [];
  const ends: string[] = [];
  const admissions = createAdmissions((group) => asked.push(group), Date.now);
  const request = (group = 'New', patience = { milliseconds: 2000 }) =>
    void admissions.request(group, patience).then((end) => ends.push(`${group} ${end}`));
  const after = async (milliseconds: number) => {
    await turn();
    if (milliseconds > 0) mock.timers.tick(milliseconds);
    await turn();
    return { asked: asked.splice(0), ends: ends.splice(0) };
  };
  return { admissions, request, after };
}

describe('createAdmissions', () => {
  it('asks once for all requests of a group, and passes the answer on', async (test) => {
    const { admissions, request, after } = create(test);
    admissions.setGeneration('serving');
    request();
    request();
    request('Other');
    assert.deepEqual(await after(0), { asked: ['New', 'Other'], ends: [] });
    admissions.settle('New', 'admitted');
    admissions.settle('Other', 'failed');
    assert.deepEqual((await after(0)).ends.sort(), ['New admitted', 'New admitted', 'Other failed']);
  });

  it('asks nothing before its generation is accepted', async (test) => {
    const { admissions, request, after } = create(test);
    request();
    assert.deepEqual(await after(1999), { asked: [], ends: [] });
    admissions.setGeneration('serving');
    assert.deepEqual(await after(0), { asked: ['New'], ends: [] });
  });

  it('refuses at once after a rejected generation', async (test) => {
    const { admissions, request, after } = create(test);
    request();
    admissions.setGeneration('rejected');
    request('Other');
    assert.deepEqual((await after(0)).ends.sort(), ['New rejected', 'Other rejected']);
    assert.equal(admissions.waiting(), 0);
  });

  it('waits at most 2 s for the generation that a changed folder needs, and asks at most once in this time', async (test) => {
    const { admissions, request, after } = create(test);
    admissions.setGeneration('serving');
    request();
    assert.deepEqual((await after(0)).asked, ['New']);
    admissions.settle('New', 'changed');
    await after(0);
    assert.equal(admissions.waiting(), 1);
    request();
    assert.deepEqual(await after(1999), { asked: [], ends: [] });
    const { asked, ends } = await after(1);
    assert.ok(ends.every((end) => end === 'New loading') && ends.length + asked.length > 0, `${ends} ${asked}`);
  });

  it('adds up the waits of one request, and does not count the time of an answer', async (test) => {
    const { admissions, request, after } = create(test);
    const patience = { milliseconds: 2000 };
    request('New', patience);
    await after(1500);
    for (const left of [500, 100]) {
      admissions.setGeneration('serving');
      await after(9000);
      assert.equal(patience.milliseconds, left, 'the supervisor takes its time to answer');
      admissions.settle('New', 'changed');
      assert.deepEqual((await after(left === 500 ? 400 : 99)).ends, []);
    }
    assert.deepEqual((await after(1)).ends, ['New loading']);
    request('New', patience);
    assert.deepEqual((await after(0)).ends, ['New loading'], 'a further question of the request does not wait');
  });

  it('lets 100 requests wait, and refuses the others at once', async (test) => {
    const { admissions, request, after } = create(test);
    for (let count = 0; count < 103; count++) request();
    assert.deepEqual((await after(0)).ends, ['New loading', 'New loading', 'New loading']);
    assert.equal(admissions.waiting(), 100);
    assert.equal((await after(2000)).ends.length, 100);
    assert.equal(admissions.waiting(), 0);
  });

  it('ends all waits when the worker drains', async (test) => {
    const { admissions, request, after } = create(test);
    request('Waiting');
    admissions.setGeneration('serving');
    request('Asked');
    await after(0);
    admissions.close();
    request('Late');
    assert.deepEqual((await after(0)).ends.sort(), ['Asked loading', 'Late loading', 'Waiting loading']);
  });

  it('gives up a question that the supervisor does not answer', async (test) => {
    const { admissions, request, after } = create(test);
    admissions.setGeneration('serving');
    request();
    assert.deepEqual((await after(14_999)).ends, []);
    assert.deepEqual((await after(1)).ends, ['New loading']);
  });
});
