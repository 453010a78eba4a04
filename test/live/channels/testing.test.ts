// Tests channels in `gatefold/testing` and in commands, by the first example of docs/CHANNELS.md.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type TestContext, test } from 'node:test';
import { startTest } from '../../../src/api/testing.ts';
import { makeProject, runProcess } from '../../support/command-bench.ts';
import { GATEFOLD } from '../../support/service.ts';

const PAGE = readFileSync(resolve(import.meta.dirname, '../../../docs/CHANNELS.md'), 'utf8');
const example = (path: string) => new RegExp(`\`\`\`ts\\n// ${path}\\n([\\s\\S]*?)\`\`\``).exec(PAGE)?.[1] ?? '';
const FILES = {
  'lib/tasks.ts': example('lib/tasks\\.ts'),
  'controllers/TaskController.ts': example('controllers/TaskController\\.ts'),
};
const decoder = new TextDecoder();

/** The controllers import the built package, and the service of a test finds their channels all the same. */
function makeLinkedProject(t: TestContext, files: Readonly<Record<string, string>>): string {
  const root = makeProject(t, files);
  mkdirSync(join(root, 'node_modules'));
  symlinkSync(resolve(import.meta.dirname, '../../..'), join(root, 'node_modules/gatefold'));
  return root;
}

test('the example of CHANNELS.md serves a live page in a test', async (t) => {
  const root = makeLinkedProject(t, FILES);
  const [api, other] = await Promise.all(
    [{}, { BASE_PATH: '/v1' }].map((env) => startTest({ controllers: join(root, 'controllers'), env })),
  );
  assert.ok(api && other);
  t.after(() => Promise.all([api.close(), other.close()]));
  const open = async (lastId?: string) => {
    const headers = lastId === undefined ? {} : { 'Last-Event-ID': lastId };
    const answer = await other.fetch('/task/live', { headers });
    const reader = answer.body?.getReader();
    assert.ok(reader);
    return async (end: string) => {
      for (let text = ''; ; ) {
        const piece: { done: boolean; value?: Uint8Array | undefined } = await reader.read();
        assert.ok(!piece.done, text);
        text += decoder.decode(piece.value);
        if (text.endsWith(end)) return text;
      }
    };
  };
  const page = await open();
  const add = (title: string) => api.fetch('/task', { method: 'POST', json: { title } });
  assert.equal((await add('one')).status, 200);
  const first = await page('"one"}\n\n');
  const id = /^id: (\w+\.1)$/m.exec(first)?.[1] ?? '';
  assert.match(first, /^id: \w+\.1\ndata: \{"id":1,"title":"one"\}\n\n/m);
  await add('two');
  const again = await open(id);
  assert.match(await again('"two"}\n\n'), /^retry: 500\nid: \w+\.1\n\nid: \w+\.2\ndata: \{"id":2,"title":"two"\}\n\n$/);
  const lost = await open('lost');
  assert.match(await lost('null\n\n'), /^retry: 500\n\nevent: reset\nid: \w+\.2\ndata: null\n\n$/);
});

test("results: 'declared' limits the events of a channel, and leaves a reset as it is", async (t) => {
  const source = (FILES['controllers/TaskController.ts'] ?? '')
    .replace('EventStream<TaskEvent | null>', 'EventStream<{ title: string } | null>')
    .replace("lastEventId ?? ''", 'lastEventId');
  const root = makeLinkedProject(t, {
    ...FILES,
    'lib/tasks.ts': (FILES['lib/tasks.ts'] ?? '').replace("('tasks')", "('declared')"),
    'controllers/TaskController.ts': source,
    'controllers/service.ts': `import { defineService } from '${GATEFOLD}';\nexport default defineService({ results: 'declared' });`,
  });
  const api = await startTest({ controllers: join(root, 'controllers') });
  t.after(() => api.close());
  const answer = await api.fetch('/task/live', { headers: { 'Last-Event-ID': 'x' } });
  const reader = answer.body?.getReader();
  let text = '';
  const read = async (part: string) => {
    while (!text.includes(part)) text += decoder.decode((await reader?.read())?.value);
  };
  await read('event: reset\n');
  await api.fetch('/task', { method: 'POST', json: { title: 'one' } });
  await read('"one"}\n\n');
  assert.match(text, /data: null\n\n/);
  const fresh = (await api.fetch('/task/live')).body?.getReader();
  assert.match(decoder.decode((await fresh?.read())?.value), /^retry: 500\nid: \w+\.\d+\n\n$/);
  assert.match(text, /id: \w+\.1\ndata: \{"title":"one"\}\n\n$/);
});

test('doctor and routes end although a controller publishes and subscribes when it loads', async (t) => {
  const source = `import { channel } from '${GATEFOLD}';
    const tasks = channel('tasks');
    const events = tasks.subscribe();
    await tasks.publish({ n: 1 });
    (async () => { for await (const event of events); })();
    export default class TaskController { index() { return {}; } }`;
  const root = makeProject(t, { 'controllers/TaskController.js': source });
  const run = (words: string[], env = {}) => runProcess(words, { cwd: root, env });
  assert.match((await run(['routes'])).out, /GET,HEAD +\/api\/task /);
  const doctor = await run(['doctor']);
  assert.equal(doctor.code, 0, doctor.out);
  assert.doesNotMatch(doctor.out, /channel/);
  const STORE = 'postgres://nobody:x@127.0.0.1:1/none?sslmode=disable';
  const { out } = await run(['doctor'], { STORE, STORE_KEY: 'x'.repeat(32) });
  assert.match(out, /note +store +an event of a channel \(tasks\) reaches one machine: see docs\/CHANNELS\.md/);
});
