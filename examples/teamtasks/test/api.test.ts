// The whole service with a real PostgreSQL, and a mail server that keeps what it gets.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { startTest, type TestApi } from 'gatefold/testing';
import { SMTPServer } from 'smtp-server';
import type OrdersController from '../controllers/OrdersController.ts';
import type ProjectsController from '../controllers/ProjectsController.ts';
import type TasksController from '../controllers/TasksController.ts';
import type TeamsController from '../controllers/TeamsController.ts';
import { noPostgres, startPostgres } from './postgres.ts';

interface Groups {
  teams: typeof TeamsController;
  projects: typeof ProjectsController;
  tasks: typeof TasksController;
  orders: typeof OrdersController;
}

describe('teamtasks', { skip: noPostgres }, () => {
  const files = mkdtempSync(join(tmpdir(), 'teamtasks-files-'));
  const inbox = new EventEmitter();
  const tried = new Set<string>();
  const mails: string[] = [];
  const mailServer = new SMTPServer({
    authOptional: true,
    async onData(stream, _session, done) {
      let text = '';
      for await (const piece of stream) text += piece;
      const subject = subjectOf(text);
      // The first try of each subject fails.
      if (!tried.has(subject)) {
        tried.add(subject);
        return done(new Error('try again'));
      }
      mails.push(subject);
      inbox.emit('mail');
      done();
    },
  });
  const subjectOf = (text: string) => /^Subject: (.*)$/m.exec(text)?.[1]?.trim() ?? '';

  let postgres: Awaited<ReturnType<typeof startPostgres>>;
  let api: TestApi;
  let ann: Awaited<ReturnType<typeof signUp>>;
  let bob: Awaited<ReturnType<typeof signUp>>;
  let team: number;
  let project: number;

  before(async () => {
    postgres = await startPostgres();
    mailServer.listen(0, '127.0.0.1');
    await once(mailServer.server, 'listening');
    const { port } = mailServer.server.address() as AddressInfo;
    Object.assign(process.env, {
      DATABASE_URL: postgres.url,
      FILES_DIR: files,
      SMTP_URL: `smtp://127.0.0.1:${port}?ignoreTLS=true`,
      BETTER_AUTH_SECRET: 'of the tests, 32 characters long',
      PAYMENT_SECRET: 'of the tests',
    });
    const { migrate } = await import('../lib/migrate.ts');
    await migrate();
    api = await startTest({ controllers: './controllers', env: { MCP: 'on' } });
    ann = await signUp('Ann');
    bob = await signUp('Bob');
    team = (await ann.client.teams.POST({ body: { name: 'Garden' } })).id;
    project = (await ann.client.projects.POST({ body: { teamId: team, name: 'Spring' } })).id;
  });
  after(async () => {
    mailServer.close();
    rmSync(files, { recursive: true });
    await api?.close().finally(() => postgres.close());
  });

  /** Signs up as a browser does. Everything else is called with the cookie. */
  async function signUp(name: string) {
    const json = { name, email: `${name.toLowerCase()}@example.com`, password: 'correct horse' };
    const answer = await api.fetch('/auth/sign-up/email', { method: 'POST', json, headers: { origin: api.url } });
    assert.equal(answer.status, 200, await answer.clone().text());
    const { user } = (await answer.json()) as { user: { id: string } };
    const cookie = answer.headers.getSetCookie().map((line) => line.split(';')[0]);
    const as = api.as({ id: user.id, name });
    return { id: user.id, cookie: cookie.join('; '), fetch: as.fetch, client: as.client<Groups>() };
  }

  test('a session of better-auth is the user, and nobody gets in without one', async () => {
    const me = await api.fetch('/users/me', { headers: { cookie: ann.cookie } });
    assert.deepEqual(await me.json(), { id: ann.id, name: 'Ann' });
    assert.equal((await api.fetch('/users/me')).status, 401);
  });

  test('errors come in two languages', async () => {
    const post = (language: string) =>
      ann.fetch('/tasks', { method: 'POST', json: { title: 7 }, headers: { 'accept-language': language } });
    const [english, german] = await Promise.all([post('en'), post('de-AT')]);
    assert.equal(english.status, 422);
    assert.equal(((await english.json()) as { message: string }).message, '2 fields of the request are wrong');
    assert.equal(((await german.json()) as { message: string }).message, 'Bitte prüfen Sie Ihre Angaben');
  });

  test('a team is closed to others, and its roles decide', async () => {
    await assert.rejects(bob.client.projects.GET({ query: { team } }), { status: 404 });
    const leave = bob.client.teams['DELETE {id}/members/{member}']({ path: { id: team, member: bob.id } });
    await assert.rejects(leave, { status: 404 }, 'who is no member cannot leave, and writes nothing into the activity');
    const { length } = await ann.client.teams['GET {id}/activity']({ path: { id: team } });
    assert.equal(length, 1, 'that of the project');
    const guest = { kind: 'person', email: 'bob@example.com', role: 'guest' } as const;
    await ann.client.teams['POST {id}/members']({ path: { id: team }, body: guest });
    assert.equal((await bob.client.projects.GET({ query: { team } })).length, 1);
    const task = { projectId: project, title: 'Sow peas' };
    await assert.rejects(bob.client.tasks.POST({ body: task }), { status: 403 });
    await ann.client.teams['POST {id}/members']({ path: { id: team }, body: { ...guest, role: 'member' } });
    assert.equal((await bob.client.tasks.POST({ body: task })).state, 'open');
  });

  test('a change needs the version that it is based on', async () => {
    const { id, version } = await ann.client.tasks.POST({ body: { projectId: project, title: 'Water' } });
    const change = (body: object, headers = {}) => ann.fetch(`/tasks/${id}`, { method: 'PATCH', json: body, headers });
    assert.equal((await change({ state: 'done' })).status, 428);
    assert.equal((await change({ state: 'done' }, { 'if-match': '"1"' })).status, 200);
    assert.equal((await change({ state: 'open' }, { 'if-match': '"1"' })).status, 412);
    assert.equal((await change({ state: 'open', version })).status, 412);
    const etag = (await ann.fetch(`/tasks/${id}`)).headers.get('etag') ?? '';
    assert.equal((await ann.fetch(`/tasks/${id}`, { headers: { 'if-none-match': etag } })).status, 304);
  });

  test('an attachment of 200 MB goes to the disk, and comes back in parts', async () => {
    const { id } = await ann.client.tasks.POST({ body: { projectId: project, title: 'Film' } });
    const piece = new Uint8Array(1_000_000).fill(7);
    let pieces = 200;
    const body = new ReadableStream({
      pull: (controller) => (pieces-- > 0 ? controller.enqueue(piece) : controller.close()),
    });
    const before = process.memoryUsage().arrayBuffers;
    const sent = await ann.fetch(`/tasks/${id}/attachments/bees.mp4`, { method: 'PUT', body, duplex: 'half' });
    assert.equal(sent.status, 201, await sent.clone().text());
    const attachment = (await sent.json()) as { id: string; size: number };
    assert.equal(attachment.size, 200_000_000);
    assert.ok(process.memoryUsage().arrayBuffers - before < 100_000_000);
    const part = await ann.fetch(`/attachments/${attachment.id}`, { headers: { range: 'bytes=199999990-' } });
    assert.equal(part.status, 206);
    assert.equal(part.headers.get('content-range'), 'bytes 199999990-199999999/200000000');
    assert.match(part.headers.get('content-disposition') ?? '', /bees\.mp4/);
    assert.deepEqual(new Uint8Array(await part.arrayBuffer()), piece.subarray(0, 10));
    const attachments = await ann.client.tasks['GET {id}/attachments']({ path: { id } });
    assert.deepEqual(
      attachments.map(({ name }) => name),
      ['bees.mp4'],
    );
  });

  test('an avatar is an image', async () => {
    const put = (type: string) => {
      const form = new FormData();
      form.set('image', new File(['…'], 'me', { type }));
      return ann.fetch('/users/me/avatar', { method: 'PUT', body: form });
    };
    assert.equal((await put('text/html')).status, 415);
    assert.equal((await put('image/png')).status, 204);
    const shown = await bob.fetch(`/users/${ann.id}/avatar`);
    assert.equal(shown.headers.get('content-type'), 'image/png');
  });

  test('an order that is sent again is one order, and a payment counts once', async () => {
    const order = (body: { teamId: number; seats: number }) =>
      ann.client.orders.POST({ body, headers: { 'idempotency-key': '0f8fad5b-d9cb-469f-a165-70867728950e' } });
    const { id } = await order({ teamId: team, seats: 3 });
    assert.equal((await order({ teamId: team, seats: 3 })).id, id);
    await assert.rejects(order({ teamId: team, seats: 4 }), { status: 422 });
    const body = JSON.stringify({ order: id });
    const pay = (signature: string) =>
      api.fetch('/payments', {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json', 'x-signature': signature },
      });
    assert.equal((await pay('00')).status, 401);
    const signature = createHmac('sha256', 'of the tests').update(body).digest('hex');
    for (const _ of [1, 2]) assert.equal((await pay(signature)).status, 204);
    assert.equal((await ann.client.teams.GET())[0]?.seats, 8);
  });

  test('a mail is sent after the answer, and again where it failed; a report only once', async () => {
    const due = { dueAt: new Date('2026-11-24T03:00:00Z') };
    await api.run('report', due);
    await api.run('report', due);
    const end = new AbortController();
    const sending = api.run('mails', { signal: end.signal });
    while (mails.length < 3) await once(inbox, 'mail');
    end.abort();
    await sending;
    assert.deepEqual(mails.sort(), ['Garden', 'Garden', 'Garden, 2026-11-24']);
  });

  test('a program is a member, and an agent calls the same operations as tools', async () => {
    const program = { kind: 'program', id: 'app-1', name: 'Agent', role: 'member' } as const;
    await ann.client.teams['POST {id}/members']({ path: { id: team }, body: program });
    const agent = api.as({ application: { id: 'app-1', name: 'Agent' } });
    const ask = async (method: string, params: object) => {
      const json = { jsonrpc: '2.0', id: 1, method, params };
      const answer = await agent.fetch('/mcp', {
        method: 'POST',
        json,
        headers: { accept: 'application/json, text/event-stream' },
      });
      return ((await answer.json()) as { result: { tools: { name: string }[]; structuredContent: { title: string } } })
        .result;
    };
    const { tools } = await ask('tools/list', {});
    assert.deepEqual(tools.map(({ name }) => name).sort(), [
      'add_task',
      'change_task',
      'comment_task',
      'find_tasks',
      'get_task',
      'list_comments',
      'list_projects',
      'list_teams',
    ]);
    const call = { name: 'add_task', arguments: { body: { projectId: project, title: 'Mulch' } } };
    assert.equal((await ask('tools/call', call)).structuredContent.title, 'Mulch');
    const [last] = await ann.client.teams['GET {id}/activity']({ path: { id: team } });
    assert.deepEqual([last?.actor, last?.what, last?.subject], ['Agent', 'added', 'Mulch']);
  });

  test('a program makes no team, and the id of a person is that of no program', async () => {
    const agent = api.as({ application: { id: 'app-2', name: 'Agent' } });
    const made = await agent.fetch('/teams', { method: 'POST', json: { name: 'Robots' } });
    assert.deepEqual([made.status, ((await made.json()) as { code: string }).code], [403, 'PEOPLE_ONLY']);

    const program = { kind: 'program', id: bob.id, name: 'Evil', role: 'guest' } as const;
    await assert.rejects(ann.client.teams['POST {id}/members']({ path: { id: team }, body: program }), {
      status: 404,
    });
    const me = await api.fetch('/users/me', { headers: { cookie: bob.cookie } });
    assert.deepEqual(await me.json(), { id: bob.id, name: 'Bob' });
  });

  test('a number beyond the range of its column, and a text with a NUL, are refused', async () => {
    const found = await ann.fetch('/tasks/3000000000');
    assert.deepEqual([found.status, ((await found.json()) as { code: string }).code], [422, 'UNSTORABLE']);
    const made = await ann.fetch('/teams', { method: 'POST', json: { name: 'a\0' } });
    assert.equal(made.status, 422);
  });

  test('the old application answers its paths', async () => {
    const answer = await fetch(`${api.url}/legacy/status`);
    assert.deepEqual(await answer.json(), { status: 'as ever' });
  });
});
