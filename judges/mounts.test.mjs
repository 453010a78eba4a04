// Libraries that nobody here wrote answer through mounts of the built service, with one worker: better-auth, GraphQL
// Yoga, tRPC with its own client, Hono, Express 5, Fastify and Nest. Uploads of 200 MB take no memory, and edits lose nothing.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { Agent, request as httpRequest } from 'node:http';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pipeline } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { createTRPCClient, httpBatchLink } from '@trpc/client';
import express from 'express';

const root = resolve(import.meta.dirname, '..');
const controllers = {
  'AuthController.mjs': `
    import { mount } from 'gatefold';
    import { betterAuth } from 'better-auth';
    import { memoryAdapter } from 'better-auth/adapters/memory';
    const auth = betterAuth({
      baseURL: process.env.PUBLIC_ORIGIN, basePath: '/api/auth', secret: 'a secret of the judges, 32 characters',
      database: memoryAdapter({ user: [], session: [], account: [], verification: [] }),
      emailAndPassword: { enabled: true }, rateLimit: { enabled: false }, telemetry: { enabled: false },
    });
    export default mount(auth.handler);`,
  'GraphqlController.mjs': `
    import { mount } from 'gatefold';
    import { createSchema, createYoga } from 'graphql-yoga';
    const schema = createSchema({
      typeDefs: 'type Query { hello(name: String): String } type Subscription { count(to: Int!): Int }',
      resolvers: {
        Query: { hello: (_, { name }) => 'Hello ' + name },
        Subscription: { count: { subscribe: async function* (_, { to }) { for (let i = 1; i <= to; i++) yield { count: i }; } } },
      },
    });
    export default mount(createYoga({ schema, graphqlEndpoint: '/api/graphql', logging: false }));`,
  'TrpcController.mjs': `
    import { mount } from 'gatefold';
    import { initTRPC } from '@trpc/server';
    import { fetchRequestHandler } from '@trpc/server/adapters/fetch';
    import { z } from 'zod';
    const t = initTRPC.create();
    const router = t.router({
      hello: t.procedure.input(z.object({ name: z.string() })).query(({ input }) => 'Hello ' + input.name),
      add: t.procedure.input(z.array(z.number())).mutation(({ input }) => input[0] + input[1]),
    });
    export default mount((req) => fetchRequestHandler({ endpoint: '/api/trpc', req, router, createContext: () => ({}) }));`,
  'HonoController.mjs': `
    import { mount } from 'gatefold';
    import { Hono } from 'hono';
    import { streamSSE } from 'hono/streaming';
    const app = new Hono().basePath('/api/hono');
    app.get('/item/:id', (c) => { c.header('Set-Cookie', 'a=1', { append: true }); c.header('Set-Cookie', 'b=2', { append: true }); return c.json({ id: c.req.param('id') }); });
    app.get('/events', (c) => streamSSE(c, async (stream) => { for (let i = 0; i < 3; i++) await stream.writeSSE({ data: String(i) }); }));
    app.get('/throws', () => { throw new Error('no'); });
    app.get('/boom', (c) => c.body(new ReadableStream({ start(controller) { controller.enqueue(new Uint8Array(10)); }, pull() { throw new Error('no'); } })));
    app.post('/upload', async (c) => { let size = 0; for await (const piece of c.req.raw.body) size += piece.length; return c.json({ size }); });
    export default mount(app, { bodyLimit: 300e6 });`,
  'ExpressController.mjs': `
    import { mount } from 'gatefold';
    import express from 'express';
    const app = express();
    const api = express.Router();
    api.get('/item/:id', (req, res) => { res.cookie('a', '1').cookie('b', '2').json({ id: req.params.id, ip: req.ip, path: req.originalUrl }); });
    api.post('/json', express.json(), (req, res) => res.status(201).send(req.body));
    api.get('/wait', (req, res) => { req.resume().on('end', () => res.send('ended')); });
    api.get('/events', (req, res) => { res.type('text/event-stream'); for (let i = 0; i < 3; i++) res.write('data: ' + i + '\\n\\n'); res.end(); });
    api.get('/file', (req, res) => res.sendFile(process.env.A_FILE));
    api.get('/throws', () => { throw new Error('no'); });
    api.get('/async', async () => { throw new Error('no'); });
    api.get('/boom', (req, res) => { res.write('x'); setTimeout(() => res.destroy(new Error('no')), 10); });
    api.post('/upload', (req, res) => { let size = 0; req.on('data', (piece) => { size += piece.length; }).on('end', () => res.json({ size })); });
    app.use('/api/express', api);
    export default mount.node(app, { bodyLimit: 300e6 });`,
  'FastifyController.mjs': `
    import { mount } from 'gatefold';
    import fastify from 'fastify';
    const app = fastify({ bodyLimit: 300e6 });
    app.addContentTypeParser('application/octet-stream', (request, payload, done) => done(null, payload));
    app.get('/api/fastify/item/:id', async ({ params }) => params);
    app.post('/api/fastify/json', { schema: { body: { type: 'object', required: ['a'] } } }, async ({ body }) => body);
    app.post('/api/fastify/upload', async ({ body }) => { let size = 0; for await (const piece of body) size += piece.length; return { size }; });
    await app.ready();
    export default mount.node((request, response) => app.routing(request, response), { bodyLimit: 300e6 });`,
  'NestController.mjs': `
    import 'reflect-metadata';
    import { mount } from 'gatefold';
    import { Controller, Get, Module, Param } from '@nestjs/common';
    import { NestFactory } from '@nestjs/core';
    class Items { item(id) { return { id }; } }
    Get('item/:id')(Items.prototype, 'item', Object.getOwnPropertyDescriptor(Items.prototype, 'item'));
    Param('id')(Items.prototype, 'item', 0);
    Controller('api/nest')(Items);
    class App {}
    Module({ controllers: [Items] })(App);
    const app = await NestFactory.create(App, { logger: false });
    await app.init();
    export default mount.node(app.getHttpAdapter().getInstance());`,
  'service.mjs': `
    import { defineService, mount } from 'gatefold';
    import express from 'express';
    const old = express();
    old.get('/', (req, res) => res.send('<h1>old</h1>'));
    old.get('/robots.txt', (req, res) => res.type('text').send('User-agent: *'));
    export default defineService({ fallback: mount.node(old) });`,
};

let service;
let url;
let work;

before(async () => {
  work = mkdtempSync(join(import.meta.dirname, 'work-'));
  writeFileSync(join(work, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(work, 'file.txt'), 'a file');
  mkdirSync(join(work, 'controllers'));
  mkdirSync(join(work, 'node_modules'));
  symlinkSync(root, join(work, 'node_modules/gatefold'));
  for (const [name, source] of Object.entries(controllers)) writeFileSync(join(work, 'controllers', name), source);
  const env = {
    ...process.env,
    ...{ PORT: '0', HOST: '127.0.0.1', WORKERS: '1', LOG_LEVEL: 'info', PUBLIC_ORIGIN: 'http://judge.test' },
    ...{ CONTROLLERS_DIR: join(work, 'controllers'), DATA_DIR: join(work, 'data'), A_FILE: join(work, 'file.txt') },
    NODE_TEST_CONTEXT: undefined,
  };
  service = spawn(process.execPath, [join(root, 'dist/server.js')], {
    ...{ env, cwd: work, stdio: ['ignore', 'pipe', 'pipe'] },
  });
  service.lines = [];
  // Express writes errors of its own there, too.
  createInterface({ input: service.stderr }).on('line', (line) => {
    if (line.startsWith('{')) service.lines.push(JSON.parse(line));
  });
  for await (const line of createInterface({ input: service.stdout })) {
    url = /http:\/\/\S+/.exec(line)?.[0];
    if (url !== undefined) break;
  }
  const broken = service.lines.filter(({ event }) => /not-loadable/.test(event));
  assert.deepEqual(broken, []);
});

after(async () => {
  service.kill();
  await once(service, 'exit');
  rmSync(work, { recursive: true, force: true });
});

const ask = async (path, init) => {
  const response = await fetch(url + path, init);
  return { status: response.status, headers: response.headers, text: await response.text() };
};
const post = (path, body, headers = {}) =>
  ask(path, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', ...headers },
  });

test('better-auth signs up, keeps a session by its cookie, and signs out', async () => {
  const headers = { origin: 'http://judge.test' };
  const ann = { name: 'Ann', email: 'ann@example.com', password: 'a long password' };
  const signUp = await post('/api/auth/sign-up/email', ann, headers);
  assert.equal(signUp.status, 200, signUp.text);
  const cookie = signUp.headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ');
  assert.match(cookie, /session_token/);
  const session = JSON.parse((await ask('/api/auth/get-session', { headers: { cookie } })).text);
  assert.equal(session.user.email, 'ann@example.com');
  assert.equal((await post('/api/auth/sign-out', {}, { ...headers, cookie })).status, 200);
  assert.equal((await ask('/api/auth/get-session', { headers: { cookie } })).text, 'null');
});

test('GraphQL Yoga answers queries and streams a subscription', async () => {
  const { text } = await post('/api/graphql', { query: '{ hello(name: "Ann") }' });
  assert.deepEqual(JSON.parse(text), { data: { hello: 'Hello Ann' } });
  const stream = await post(
    '/api/graphql',
    { query: 'subscription { count(to: 3) }' },
    { accept: 'text/event-stream' },
  );
  assert.equal(stream.text.match(/"count":\d/g)?.length, 3);
});

test("tRPC's own client calls a query and a mutation", async () => {
  const client = createTRPCClient({ links: [httpBatchLink({ url: `${url}/api/trpc` })] });
  assert.equal(await client.hello.query({ name: 'Ann' }), 'Hello Ann');
  assert.equal(await client.add.mutate([2, 3]), 5);
  await assert.rejects(client.hello.query({}), /invalid/i);
});

for (const kind of ['hono', 'express'])
  test(`${kind}: parameters, cookies, events, errors before and after the head`, async () => {
    const { text, headers } = await ask(`/api/${kind}/item/7`);
    assert.equal(JSON.parse(text).id, '7');
    assert.equal(headers.getSetCookie().length, 2);
    assert.ok(headers.get('x-request-id'));
    assert.equal((await ask(`/api/${kind}/events`)).text.match(/^data: ?\d$/gm)?.length, 3);
    assert.equal((await ask(`/api/${kind}/throws`)).status, 500);
    await assert.rejects(ask(`/api/${kind}/boom`));
    assert.equal((await ask(`/api/${kind}/nothing`)).status, 404);
  });

test('Express 5 parses JSON, waits for the end of a GET, sends a file, and its errors are the service’s', async () => {
  const made = await post('/api/express/json', { a: 1 });
  assert.deepEqual([made.status, made.text], [201, '{"a":1}']);
  assert.equal((await ask('/api/express/wait')).text, 'ended');
  assert.equal((await ask('/api/express/file')).text, 'a file');
  const failed = await ask('/api/express/async');
  assert.deepEqual([failed.status, JSON.parse(failed.text).error_code], [500, 'INTERNAL_ERROR']);
});

test('Fastify checks its bodies', async () => {
  assert.equal((await ask('/api/fastify/item/7')).text, '{"id":"7"}');
  assert.equal((await post('/api/fastify/json', { a: 1 })).text, '{"a":1}');
  assert.equal((await post('/api/fastify/json', {})).status, 400);
});

test('Nest finds its controllers, and its 404 is its own', async () => {
  assert.equal((await ask('/api/nest/item/7')).text, '{"id":"7"}');
  assert.equal((await ask('/api/nest/nothing')).status, 404);
});

test('the application that is being replaced serves on', async () => {
  assert.equal((await ask('/')).text, '<h1>old</h1>');
  assert.equal((await ask('/robots.txt')).text, 'User-agent: *');
  assert.equal((await ask('/nothing')).status, 404);
});

test('an Express application in front passes a path on, by the code of docs/MIGRATING.md', async (t) => {
  const page = readFileSync(join(root, 'docs/MIGRATING.md'), 'utf8');
  const code = /```js\n(?:import [^\n]+\n)+(.*?)```/s.exec(page)[1].replace('3000', new URL(url).port);
  const app = express();
  new Function('app', 'send', 'pipeline', code)(app, httpRequest, pipeline);
  app.use((_req, res) => res.status(404).send('old'));
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const front = `http://127.0.0.1:${server.address().port}`;
  assert.equal((await (await fetch(`${front}/api/hono/item/7`)).json()).id, '7');
  assert.equal((await fetch(`${front}/api/hono/upload`, { method: 'POST', body: 'abc' })).status, 200);
  assert.equal(await (await fetch(`${front}/other`)).text(), 'old');
  const cut = await fetch(`${front}/api/express/boom`, { signal: AbortSignal.timeout(5000) });
  await assert.rejects(cut.text(), { message: 'terminated' });
  server.closeAllConnections();
});

/** Sends bytes in pieces of 64 KiB, and returns the body of the answer. */
function upload(path, size) {
  return new Promise((done, failed) => {
    const headers = { 'content-type': 'application/octet-stream', 'content-length': size };
    const sent = httpRequest(url + path, { method: 'POST', headers }, (response) => {
      response.setEncoding('utf8');
      let text = '';
      response.on('data', (piece) => (text += piece)).on('end', () => done(text));
    });
    sent.on('error', failed);
    const piece = Buffer.alloc(65536);
    let left = size;
    const write = () => {
      while (left > 0) {
        left -= piece.length;
        if (!sent.write(left < 0 ? piece.subarray(0, left) : piece)) return sent.once('drain', write);
      }
      sent.end();
    };
    write();
  });
}

/** The resident memory of the worker in MiB, as Linux counts it. */
function memoryOf(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;
}

describe('uploads of 200 MB', { skip: process.platform !== 'linux' }, () => {
  for (const kind of ['hono', 'express', 'fastify'])
    test(`${kind}: in flat memory`, async () => {
      const { pid } = service.lines.findLast(({ event, path }) => event === 'request' && path);
      await upload(`/api/${kind}/upload`, 20_000_000);
      const before = memoryOf(pid);
      let highest = 0;
      const timer = setInterval(() => {
        highest = Math.max(highest, memoryOf(pid));
      }, 50);
      const text = await upload(`/api/${kind}/upload`, 200_000_000);
      clearInterval(timer);
      assert.equal(text, '{"size":200000000}');
      assert.ok(highest - before < 100, `${before} MiB, and then ${highest} MiB`);
    });
});

test('edits under load lose nothing, through each kind', async () => {
  const agent = new Agent({ keepAlive: true });
  const get = (path) =>
    new Promise((done) => {
      httpRequest(url + path, { agent }, (response) => {
        response.resume().on('end', () => done(response.statusCode));
      })
        .on('error', (error) => done(error.code))
        .end();
    });
  const paths = [
    '/api/hono/item/1',
    '/api/express/item/1',
    '/api/fastify/item/1',
    '/api/graphql?query=%7Bhello%7D',
    '/',
  ];
  const counts = {};
  let isOver = false;
  const load = paths.map(async (path) => {
    while (!isOver) {
      const status = await get(path);
      counts[`${path} ${status}`] = (counts[`${path} ${status}`] ?? 0) + 1;
    }
  });
  for (let edit = 1; edit <= 3; edit++) {
    const isNew = once(service.stderr, 'data');
    for (const name of Object.keys(controllers))
      writeFileSync(join(work, 'controllers', name), `${controllers[name]}\n// edit ${edit}`);
    await isNew;
    while (service.lines.filter(({ event }) => event === 'generation-serving').length < edit + 1)
      await new Promise((done) => setTimeout(done, 100));
  }
  isOver = true;
  await Promise.all(load);
  agent.destroy();
  assert.deepEqual(Object.keys(counts).sort(), paths.map((path) => `${path} 200`).sort(), JSON.stringify(counts));
});
