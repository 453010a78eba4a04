// A call of a tool passes the same steps as a request, so each protection of the operation applies.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestCaller } from '../../../src/api/testing.ts';
import { createFolder, makeRow, writeTable } from '../../support/credentials-bench.ts';
import { GATEFOLD } from '../../support/service.ts';
import { callTool, listTools, META, post, send, startShop, textOf } from './shop.ts';

const GUARDED = `
import type { ControllerParams } from 'gatefold';
import { HttpError } from '${GATEFOLD}';
export default class DeskController {
  static operations = {
    '*': { tool: true },
    'GET scoped': { access: { scope: 'desk' } },
    'GET keyed': { access: 'application' },
    'GET both': { access: ['application', { scope: 'desk' }] },
    'GET asked': { access: () => false },
    'POST limited': { limit: '1/h' },
    'POST small': { bodyLimit: 20 },
  };
  async _before(data: unknown, { request }: ControllerParams) { if (request.headers['x-closed'] !== undefined) throw new HttpError(409, 'CLOSED', 'The desk is closed'); }
  async _after(result: object, { request }: ControllerParams) { return request.headers['x-after'] === undefined ? undefined : { after: result }; }
  'GET open'(_: unknown, { toRequest }: ControllerParams) { return { open: true, hasKey: toRequest().headers.has('authorization') }; }
  'GET scoped'() { return {}; }
  'GET keyed'() { return {}; }
  'GET both'() { return {}; }
  'GET asked'() { return {}; }
  'POST limited'(data: { a: number }) { return data; }
  'POST small'(data: { text: string }) { return data; }
  'DELETE {id}'(_: unknown, { path }: ControllerParams) { return path; }
}`;

const names = (tools: readonly { name: string }[]) => tools.map(({ name }) => name.replace(/^desk_/, ''));
const codeOf = (text: string) => /^\w+/.exec(text)?.[0];

test('tools/list returns the tools that the key and access allow, and calls no access function', async (t) => {
  const api = await startShop(t, {
    'DeskController.ts': GUARDED,
    'OtherController.ts': 'export default { index() {} };',
  });
  const all = [
    'GET_open',
    'GET_scoped',
    'GET_keyed',
    'GET_both',
    'GET_asked',
    'POST_limited',
    'POST_small',
    'DELETE_by_id',
  ];
  const without = (...left: string[]) => all.filter((name) => !left.includes(name));
  assert.deepEqual(names(await listTools(api)), without('GET_scoped', 'GET_keyed', 'GET_both'));
  for (const [credential, expected] of [
    [{ application: {} }, without('GET_scoped', 'GET_both')],
    [{ application: { scopes: ['desk'] } }, all],
    [{ application: {}, groups: ['other'] }, []],
    [{ application: {}, methods: ['DELETE'] }, ['DELETE_by_id']],
    [{ application: {}, handler: 'Other' }, []],
    [{ application: { scopes: ['desk'] }, handler: 'Desk' }, all],
  ] as const)
    assert.deepEqual(names(await listTools(api.as(credential))), expected, JSON.stringify(credential));
});

test('a tool call gets the same refusal as a request', async (t) => {
  const api = await startShop(t, {
    'DeskController.ts': GUARDED,
    'OtherController.ts': 'export default { index() {} };',
  });
  const reader = api.as({ application: {}, methods: ['GET'] });
  const poster = api.as({ application: {}, methods: ['POST'] });
  const stranger = api.as({ application: {}, groups: ['other'] });
  const plain = api.as({ application: {} });
  const good = api.as({ application: { scopes: ['desk'] } });
  const handled = api.as({ application: {}, handler: 'Other' });
  for (const [caller, tool, args, headers, expected] of [
    [reader, 'DELETE_by_id', { path: { id: '1' } }, {}, 'METHOD_NOT_ALLOWED'],
    [poster, 'DELETE_by_id', { path: { id: '1' } }, {}, 'METHOD_NOT_ALLOWED'],
    [stranger, 'GET_open', {}, {}, 'GROUP_NOT_ALLOWED'],
    [handled, 'GET_open', {}, {}, 'ROUTE_NOT_FOUND'],
    [api, 'GET_keyed', {}, {}, 'CREDENTIAL_REQUIRED'],
    [plain, 'GET_scoped', {}, {}, 'SCOPE_MISSING'],
    [good, 'GET_asked', {}, {}, 'ACCESS_DENIED'],
    [good, 'POST_limited', { body: { a: 'x' } }, {}, 'INVALID_DATA'],
    [good, 'POST_limited', { body: { a: 1 } }, {}, 'RATE_LIMITED'],
    [good, 'POST_small', { body: { text: 'x'.repeat(20) } }, {}, 'BODY_TOO_LARGE'],
    [good, 'POST_small', { body: { text: 'x' } }, { 'x-closed': '1' }, 'CLOSED'],
  ] as const) {
    const result = await callTool(caller, `desk_${tool}`, args, headers);
    assert.equal(codeOf(textOf(result)), expected, tool);
    assert.equal(result.isError, true);
  }
  assert.deepEqual((await callTool(good, 'desk_GET_open', {}, { 'x-after': '1' })).structuredContent, {
    after: { open: true, hasKey: false },
  });
  const { structuredContent } = await callTool(good, 'desk_DELETE_by_id', { path: { id: 'a' } });
  assert.deepEqual(structuredContent, { id: 'a' });
});

test('a tool call never runs an operation of the service that has the same path', async (t) => {
  const files = {
    'DocsController.ts': 'export default { operations: { index: { tool: true } }, index() { return {}; } };',
  };
  const api = await startShop(t, files, { env: { DOCS: 'on' } });
  assert.equal(codeOf(textOf(await callTool(api, 'docs_index'))), 'ROUTE_NOT_FOUND');
});

test('a message without a key counts once for its address, and gets a JSON-RPC error above the rate', async (t) => {
  const api = await startShop(t, { 'DeskController.ts': GUARDED }, { env: { RATE_LIMIT: '2/h' } });
  assert.equal((await callTool(api, 'desk_GET_open')).isError, undefined);
  assert.equal((await callTool(api, 'desk_GET_open')).isError, undefined);
  const third = await send(api, 'tools/call', { name: 'desk_GET_open' });
  assert.equal(third.status, 429);
  assert.ok(Number(third.headers.get('retry-after')) > 0);
  assert.equal(third.body.error?.code, -32_600);
  assert.equal((await callTool(api.as({ application: {} }), 'desk_GET_open')).isError, undefined);
});

const SERVICE = `
import { defineService, HttpError } from '${GATEFOLD}';
export default defineService({
  access: 'user',
  keyHeader: 'X-Api-Key',
  cors: { origins: ['https://a.example'], credentials: true },
  authenticate({ authorization, cookies, method }) {
    if (authorization === 'Token broken') throw new HttpError(401, 'BROKEN', 'The token is broken');
    const name = authorization?.replace('Token ', '') ?? cookies.user;
    return name === undefined ? undefined : { id: name, method };
  },
  formatError: ({ code }) => ({ own: code }),
});`;
const USERS = `
export default class DeskController {
  static operations = { '*': { tool: true }, 'GET open': { access: 'anyone' }, 'GET either': { access: 'caller' } };
  'GET open'(_, { user }) { return { user: user ?? null }; }
  'GET mine'(_, { user, request }) { return { user, headers: request.headers }; }
  'GET either'() { return {}; }
  'publish'() { return {}; }
}`;

test('messages use authenticate, access, cors and cookies of the service file, but not formatError', async (t) => {
  const api = await startShop(t, { 'service.ts': SERVICE, 'DeskController.mjs': USERS });
  const as = (authorization: string) => ({
    ...api,
    fetch: (path: string, init: RequestInit = {}) =>
      api.fetch(path, { ...init, headers: { ...(init.headers as object), authorization } }),
  });
  assert.deepEqual(names(await listTools(api)), ['GET_open']);
  assert.deepEqual(names(await listTools(as('Token ann'))), ['GET_open', 'GET_mine', 'GET_either', 'publish']);
  assert.deepEqual(names(await listTools(api.as({ application: {} }))), ['GET_open', 'GET_either']);
  const { structuredContent } = await callTool(as('Token ann'), 'desk_GET_mine');
  assert.deepEqual(structuredContent?.user, { id: 'ann', method: 'GET mine' });
  assert.equal(codeOf(textOf(await callTool(api, 'desk_GET_mine'))), 'USER_REQUIRED');
  const wrong = async (caller: TestCaller) => textOf(await callTool(caller, 'desk_GET_mine', { size: 1 }));
  assert.match(await wrong(as('Token ann')), /^The arguments are wrong:/);
  assert.match(await wrong(api), /^The caller may not call this tool/, 'who may not call learns nothing of the fields');
  assert.equal(codeOf(textOf(await callTool(as('Token broken'), 'desk_GET_mine'))), 'BROKEN');
  const broken = await send(as('Token broken'), 'tools/list');
  assert.deepEqual([broken.status, broken.body.jsonrpc, broken.body.own], [401, '2.0', undefined]);

  const cookie = { cookie: 'user=bob' };
  const call = (headers: Record<string, string>) => send(api, 'tools/call', { name: 'desk_GET_mine' }, headers);
  assert.equal((await call({ ...cookie, origin: 'https://a.example' })).body.result?.isError, undefined);
  for (const origin of ['https://b.example', 'null', 'https://a.example.b.example', api.url]) {
    const { status, body } = await call({ ...cookie, origin });
    assert.deepEqual(
      [status, (body.error?.data as { error_code?: string } | undefined)?.error_code],
      [403, 'ORIGIN_NOT_ALLOWED'],
      origin,
    );
  }
  assert.equal((await call({ ...cookie, 'sec-fetch-site': 'cross-site' })).status, 403);
});

test('a message of a page is refused without origins in cors, and a key in keyHeader is checked', async (t) => {
  const bare = await startShop(t);
  assert.equal((await send(bare, 'tools/list', {}, { origin: bare.url })).status, 403);
  assert.equal((await send(bare, 'tools/list', {}, { 'sec-fetch-site': 'same-origin' })).status, 403);
  const silent = SERVICE.replace(/cors: .*/, 'cors: { maxAge: 600 },');
  const withoutOrigins = await startShop(t, { 'service.ts': silent, 'DeskController.mjs': USERS });
  assert.equal((await send(withoutOrigins, 'tools/list', {}, { origin: 'https://b.example' })).status, 403);
  assert.equal((await send(withoutOrigins, 'tools/list')).status, 200);
  const open = SERVICE.replace(/cors: .*/, "cors: { origins: '*' },");
  const api = await startShop(t, { 'service.ts': open, 'DeskController.mjs': USERS });
  assert.equal((await send(api, 'tools/list', {}, { origin: 'https://b.example' })).status, 200);
  // Any page may send messages, but none may use the cookie of a user for what changes something.
  const fromPage = { cookie: 'user=bob', origin: 'https://b.example' };
  const read = await send(api, 'tools/call', { name: 'desk_GET_mine' }, fromPage);
  assert.equal(read.body.result?.isError, undefined);
  const changed = await send(api, 'tools/call', { name: 'desk_publish' }, fromPage);
  assert.equal(codeOf(textOf(changed.body.result ?? {})), 'ORIGIN_NOT_ALLOWED');
  assert.equal((await callTool(api, 'desk_publish', {}, { cookie: 'user=bob' })).isError, undefined);
  const refused = await send(api, 'tools/list', {}, { 'x-api-key': 'none of ours' });
  assert.deepEqual([refused.status, refused.body.error?.code], [401, -32_600]);
});

test('a tool call with a revoked, expired or unknown key gets a JSON-RPC error, and runs no operation', async (t) => {
  const data = createFolder(t);
  const good = makeRow({ groups: '*' });
  const past = '2026-01-02T00:00:00Z';
  const revoked = makeRow({ groups: '*', revoked_at: past });
  const expired = makeRow({ groups: '*', expires_at: past });
  writeTable(data, good.row, revoked.row, expired.row);
  const api = await startShop(t, { 'DeskController.ts': GUARDED }, { data });
  const call = (token: string) =>
    send(api, 'tools/call', { name: 'desk_GET_open' }, { authorization: `Bearer ${token}` });
  for (const [name, token] of [
    ['revoked', revoked.token],
    ['expired', expired.token],
    ['unknown', makeRow().token],
    ['a wrong secret', `${good.token.slice(0, -1)}${good.token.endsWith('A') ? 'B' : 'A'}`],
  ] as const) {
    const { status, headers, body } = await call(token);
    const request = await api.fetch('/desk/open', { headers: { authorization: `Bearer ${token}` } });
    assert.deepEqual([request.status, headers.get('www-authenticate')], [401, request.headers.get('www-authenticate')]);
    assert.deepEqual([status, body.result, body.error?.code], [401, undefined, -32_600], name);
    assert.equal((body.error?.data as { error_code?: string } | undefined)?.error_code, 'INVALID_CREDENTIAL', name);
  }
  const toolsInLog = () => api.lines.filter(({ tool }) => tool !== undefined).map(({ tool }) => tool);
  assert.deepEqual(toolsInLog(), []);
  assert.deepEqual((await call(good.token)).body.result?.structuredContent, { open: true, hasKey: false });
  assert.deepEqual(toolsInLog(), ['desk_GET_open']);
});

test('an operation gets its own request, with only the headers of the message that concern it', async (t) => {
  const api = await startShop(t);
  const { structuredContent: seen = {} } = await callTool(
    api.as({ application: { name: 'agent' } }),
    'order_POST_mirror',
    { body: { a: [1, null, 'ü'] } },
    { 'x-own': 'kept', 'if-none-match': '*', range: 'bytes=0-1', 'mcp-session-id': 'x', 'last-event-id': '7' },
  );
  const headers = seen.headers as Record<string, string>;
  assert.deepEqual(seen.data, { a: [1, null, 'ü'] });
  assert.deepEqual([seen.url, seen.verb, seen.page], ['/api/order/mirror', 'POST', 'order']);
  assert.deepEqual(
    [headers['content-type'], headers['content-length'], headers['x-own']],
    ['application/json', '19', 'kept'],
  );
  assert.equal(seen.bytes, 19);
  assert.match(String(seen.address), /127\.0\.0\.1/);
  for (const name of ['if-none-match', 'range', 'mcp-session-id', 'last-event-id', 'mcp-method', 'accept']) {
    assert.equal(headers[name], undefined, name);
    assert.equal((seen.distinct as string[]).includes(name), false, name);
    assert.equal(
      (seen.raw as string[]).some((line) => line.toLowerCase() === name),
      false,
      name,
    );
  }
});

test('the log has one line for a message and one for its tool call, with the same request id', async (t) => {
  const api = await startShop(t);
  await callTool(api.as({ application: {} }), 'find_order', { path: { id: 5 } });
  const [call, message] = api.lines.filter(({ event }) => event === 'request');
  assert.deepEqual(
    [call?.method, call?.path, call?.page, call?.operation, call?.status, call?.tool],
    ['GET', '/api/order/5', 'order', 'GET {id}', 200, 'find_order'],
  );
  assert.deepEqual(
    [message?.method, message?.path, message?.page, message?.operation, message?.status, message?.tool],
    ['POST', '/api/mcp', 'mcp', 'message', 200, undefined],
  );
  assert.equal(call?.request_id, message?.request_id);
  assert.ok(typeof call?.credential === 'string' && call.credential === message?.credential);
});

const LEAVING = `
import { Readable } from 'node:stream';
import { Reply } from '${GATEFOLD}';
export const seen = (globalThis.seenByLeaving = []);
export default class DeskController {
  static operations = { '*': { tool: true } };
  async 'GET wait'(_, { signal }) {
    seen.push('began');
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    seen.push('aborted');
    return {};
  }
  'GET stream'() {
    return new Reply(200, new Readable({ read() { seen.push('read'); }, destroy(error, done) { seen.push('destroyed'); done(); } }));
  }
}`;

test('a call is aborted, and its stream is destroyed, when the client disconnects', async (t) => {
  const api = await startShop(t, { 'DeskController.mjs': LEAVING });
  const { seenByLeaving: seen } = globalThis as unknown as { seenByLeaving: string[] };
  const isTrue = async (what: () => boolean) => {
    for (const end = performance.now() + 60_000; !what(); await sleep(10))
      assert.ok(performance.now() < end, seen.join());
  };
  for (const [name, first, last] of [
    ['desk_GET_wait', 'began', 'aborted'],
    ['desk_GET_stream', 'read', 'destroyed'],
  ] as const) {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, _meta: META } });
    const socket = connect(api.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write(
      `POST /api/mcp HTTP/1.1\r\nHost: x\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: ${name}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await isTrue(() => seen.includes(first));
    socket.destroy();
    await isTrue(() => seen.includes(last));
  }
  await isTrue(() => api.lines.filter(({ event, status }) => event === 'request' && status === 499).length === 4);
});

const LARGE = `
import { Readable } from 'node:stream';
import { Reply } from '${GATEFOLD}';
export default class DeskController {
  static operations = { '*': { tool: true, timeout: 5000 } };
  'GET large'() {
    const stream = new Readable({ read() {} });
    stream.push(Buffer.alloc(1024 * 1024 + 1));
    stream.push(null);
    return new Reply(200, stream, { 'Content-Type': 'text/plain' });
  }
  'GET accents'() { return 'é'.repeat(600_000); }
}`;

test('a stream whose last chunk exceeds the limit of a tool is refused, and a text by its bytes', async (t) => {
  const api = await startShop(t, { 'DeskController.mjs': LARGE }, { expectedErrors: ['request-failed'] });
  for (const [tool, expected] of [
    // The stream itself is broken off: a whole result of this length has no code in its refusal.
    ['desk_GET_large', /^UNENCODABLE_RESULT \(500\): The result is longer than 1048576 bytes/],
    ['desk_GET_accents', /^The result is longer than 1048576 bytes/],
  ] as const) {
    const result = await callTool(api, tool);
    assert.equal(result.isError, true);
    assert.match(textOf(result), expected);
  }
});

test('a tool call gives its place in MAX_IN_FLIGHT back, also after an error', async (t) => {
  const api = await startShop(t, undefined, { env: { MAX_IN_FLIGHT: '1' } });
  for (let i = 0; i < 5; i++) assert.equal((await callTool(api, 'find_order', { path: { id: i } })).isError, undefined);
  for (let i = 0; i < 5; i++)
    assert.equal((await callTool(api, 'order_created', { body: { title: 'a' } })).isError, undefined);
  for (let i = 0; i < 3; i++) assert.equal((await callTool(api, 'order_GET_endless')).isError, true);
  assert.equal((await post(api, '[]')).status, 400);
  assert.equal((await send(api, 'tools/list')).status, 200);
});
