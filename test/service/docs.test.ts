// Runs the example of the service file in docs/CONTROLLERS.md, and checks its drawing of the order of a request.
import assert from 'node:assert/strict';
import { readFileSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { runCommand } from '../../src/cli/command.ts';
import { command as explain } from '../../src/cli/explain.ts';
import { startTest, type TestApi } from '../../src/testing.ts';
import { makeProject, runHere } from '../support/command-bench.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const TEXT = readFileSync(join(ROOT, 'docs/CONTROLLERS.md'), 'utf8');
const section = TEXT.slice(TEXT.indexOf('## The service file'));
const sources = Object.fromEntries(
  Array.from(section.matchAll(/```ts\n\/\/ (controllers\/\w+\.ts)\n([\s\S]*?)```/g), ([, name = '', text = '']) => [
    name,
    text,
  ]),
);
const answers = new Map(
  Array.from(section.matchAll(/^\| (.*) \| (\d{3}) `(.*)` \|$/gm), ([, request = '', status, body = '']) => [
    request,
    [Number(status), JSON.parse(body)],
  ]),
);

describe('the service file of docs/CONTROLLERS.md', () => {
  let api: TestApi;
  const cleanUp: (() => void)[] = [];
  before(async () => {
    assert.deepEqual(Object.keys(sources), ['controllers/service.ts', 'controllers/NoteController.ts']);
    const cwd = makeProject({ after: (clean) => cleanUp.push(clean) }, { ...sources, 'node_modules/.keep': '' });
    symlinkSync(ROOT, join(cwd, 'node_modules/gatefold'));
    api = await startTest({ controllers: `${cwd}/controllers` });
  });
  after(async () => {
    await api?.close();
    for (const clean of cleanUp) clean();
  });

  const ann = { authorization: 'Token ann' };
  const requests: readonly [row: string, path: string, init: Parameters<TestApi['fetch']>[1]][] = [
    ['`POST /api/note` with `{"text":1}`', '/note', { method: 'POST', json: { text: 1 } }],
    ['the same with `Authorization: Token ann`', '/note', { method: 'POST', json: { text: 1 }, headers: ann }],
    ['with `{"text":"Buy milk"}`', '/note', { method: 'POST', json: { text: 'Buy milk' }, headers: ann }],
    ['`GET /api/note/1` by nobody', '/note/1', {}],
    ['`DELETE /api/note` by Ann', '/note', { method: 'DELETE', headers: ann }],
    ['`GET /api/note/1/2` by Ann', '/note/1/2', { headers: ann }],
    ['`GET /api/nothing` by Ann', '/nothing', { headers: ann }],
  ];
  test('gives the responses that the table shows', async () => {
    assert.deepEqual(
      [...answers.keys()],
      requests.map(([row]) => row),
    );
    for (const [row, path, init] of requests) {
      const response = await api.fetch(path, init);
      assert.deepEqual([response.status, await response.json()], answers.get(row), row);
    }
  });

  test('has a table of all properties of ServiceOptions', () => {
    const options = readFileSync(join(ROOT, 'src/controller/service.ts'), 'utf8');
    const [, body = ''] = /interface ServiceOptions<[^{]*\{([\s\S]*?)^\}/m.exec(options) ?? [];
    const names = Array.from(body.matchAll(/^ {2}readonly (\w+)\?/gm), ([, name = '']) => name);
    assert.ok(names.length > 9);
    for (const name of names) assert.match(section, new RegExp(`^\\| \`${name}\\b`, 'm'), name);
  });
});

test('the drawing in docs/CONTROLLERS.md has the steps that gatefold explain prints', async (t) => {
  const service = `import { defineService } from 'gatefold';
    export default defineService({ cors: { origins: ['https://a.example'], credentials: true } });`;
  const controller = `export default class { 'POST'(data: { n: number }) { return data; } }`;
  const cwd = makeProject(t, {
    'controllers/service.ts': service,
    'controllers/ThingController.ts': controller,
    'node_modules/.keep': '',
  });
  symlinkSync(ROOT, join(cwd, 'node_modules/gatefold'));
  const argv = ['POST', '/api/thing', '--data', '{"n":"text"}'];
  const { out } = await runHere((given, io) => runCommand(explain, given, io), argv, { cwd });
  const [, last = '', earlier = ''] = /^ {2}step +(\w+), after (.*)$/m.exec(out) ?? [];
  const named = [...earlier.split(', '), last];
  const [, drawing = ''] = /## The order of a request\n[\s\S]*?```\n([\s\S]*?)```/.exec(TEXT) ?? [];
  const drawn = Array.from(drawing.matchAll(/^(\w[\w ]*?) {2,}/gm), ([, name = '']) => name);
  assert.deepEqual(
    named,
    drawn.slice(0, drawn.indexOf('_before')).filter((name) => name !== 'authenticate'),
    out,
  );
});
