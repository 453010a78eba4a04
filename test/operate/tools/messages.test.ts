// The messages of the Model Context Protocol over a real socket: both revisions, and messages that break the protocol.
import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { HttpError } from '../../../src/base/errors.ts';
import { createCallRequest } from '../../../src/operate/tools/call-request.ts';
import { createToolServer } from '../../../src/operate/tools/messages.ts';
import { createResult, describeRefusal } from '../../../src/operate/tools/results.ts';
import type { Tool } from '../../../src/operate/tools/tool-list.ts';
import { META, post, type Sent, send, startShop, textOf } from './shop.ts';

const cleanUps: (() => Promise<void> | void)[] = [];
after(async () => {
  for (const end of cleanUps.reverse()) await end();
});
const t = { after: (end: () => Promise<void> | void) => void cleanUps.push(end) };
const api = await startShop(t);

const NEWEST = '2026-07-28';
const BEFORE = '2025-11-25';
const OLDER = ['2025-06-18', '2025-03-26'];
const request = (method: string, params?: object, id: unknown = 1) => ({ jsonrpc: '2.0', id, method, params });
const brief = ({ status, body: { error, id } }: Sent) => [status, error?.code, id];

describe('MCP revision 2026-07-28', () => {
  it('answers server/discover, tools/list and tools/call with the server info', async () => {
    const server = { 'io.modelcontextprotocol/serverInfo': { name: api.dir.split('/').at(-2), version: '0.0.0' } };
    const discovered = await send(api, 'server/discover');
    assert.equal(discovered.status, 200);
    assert.equal(discovered.headers.get('cache-control'), 'no-store');
    assert.deepEqual(discovered.body.result, {
      supportedVersions: [NEWEST, BEFORE, ...OLDER],
      capabilities: { tools: {} },
      ttlMs: 60_000,
      cacheScope: 'private',
      resultType: 'complete',
      _meta: server,
    });
    const { result: list } = (await send(api, 'tools/list')).body;
    assert.deepEqual(Object.keys(list ?? {}), ['tools', 'ttlMs', 'cacheScope', 'resultType', '_meta']);
    const { result } = (await send(api, 'tools/call', { name: 'find_order', arguments: { path: { id: 5 } } })).body;
    assert.deepEqual(result, {
      content: [{ type: 'text', text: '{"id":5,"title":"Tea"}' }],
      structuredContent: { id: 5, title: 'Tea' },
      resultType: 'complete',
      _meta: server,
    });
  });

  it('refuses a message whose headers and body differ or are incomplete', async () => {
    const headers = { 'mcp-protocol-version': NEWEST, 'mcp-method': 'tools/call', 'mcp-name': 'find_order' };
    const call = request('tools/call', { name: 'find_order', arguments: { path: { id: 5 } }, _meta: META });
    assert.deepEqual(brief(await post(api, call, headers)), [200, undefined, 1]);
    const encoded = { ...headers, 'mcp-name': `=?base64?${Buffer.from('find_order').toString('base64')}?=` };
    assert.deepEqual(brief(await post(api, call, encoded)), [200, undefined, 1]);
    for (const [change, code] of [
      [{ 'mcp-name': 'order_created' }, -32_020],
      [{ 'mcp-name': '' }, -32_020],
      [{ 'mcp-method': 'tools/list' }, -32_020],
      [{ 'mcp-protocol-version': BEFORE }, -32_020],
      [{ 'mcp-protocol-version': '' }, -32_020],
    ] as const)
      assert.deepEqual(brief(await post(api, call, { ...headers, ...change })), [400, code, 1], JSON.stringify(change));
    const { 'mcp-protocol-version': _, ...unversioned } = headers;
    assert.deepEqual(brief(await post(api, call, unversioned)), [400, -32_020, 1]);
    const { 'mcp-name': __, ...unnamed } = headers;
    for (const name of ['find_order', 'undefined', undefined])
      assert.deepEqual(
        brief(await post(api, request('tools/call', { name, _meta: META }), unnamed)),
        [400, -32_020, 1],
      );
    const bare = request('tools/call', { name: 'find_order' });
    assert.deepEqual(brief(await post(api, bare, headers)), [400, -32_602, 1]);
    const { 'io.modelcontextprotocol/clientCapabilities': capabilities, ...incomplete } = META;
    assert.deepEqual(capabilities, {});
    const poor = request('tools/call', { name: 'find_order', _meta: incomplete });
    assert.deepEqual(brief(await post(api, poor, headers)), [400, -32_602, 1]);
  });

  it('returns the supported revisions to a client with another revision', async () => {
    for (const version of ['2099-01-01', '2025-06-18', 'constructor']) {
      const params = { _meta: { ...META, 'io.modelcontextprotocol/protocolVersion': version } };
      const headers = { 'mcp-protocol-version': version, 'mcp-method': 'tools/list' };
      const answer = await post(api, request('tools/list', params), headers);
      assert.deepEqual(brief(answer), [400, -32_022, 1]);
      assert.deepEqual(answer.body.error?.data, { supported: [NEWEST, BEFORE, ...OLDER], requested: version });
    }
  });

  it('refuses unknown methods, unknown tools and cursors', async () => {
    for (const method of ['ping', 'initialize', 'resources/list', 'subscriptions/listen', '__proto__', 'toString', ''])
      assert.deepEqual(brief(await send(api, method)), [404, -32_601, 1], method);
    assert.deepEqual(brief(await send(api, 'tools/list', { cursor: 'x' })), [200, -32_602, 1]);
    for (const name of ['absent', 'order_GET_private', 'constructor', '', 7, null, {}, undefined]) {
      const { status, body } = await send(api, 'tools/call', { name }, { 'mcp-name': String(name) });
      if (typeof name === 'string') assert.deepEqual([status, body.error?.code], [200, -32_602], String(name));
      else assert.equal(status, 400);
    }
  });
});

for (const [revision, headers] of [
  ...[BEFORE, ...OLDER].map((name) => [name, { 'mcp-protocol-version': name }] as const),
  ['2025-03-26 without a header', {}] as const,
])
  it(`lists and calls tools in the revision ${revision}`, async () => {
    const [protocolVersion] = revision.split(' ');
    const agreed = await post(api, request('initialize', { protocolVersion, capabilities: {} }));
    assert.equal(agreed.body.result?.protocolVersion, protocolVersion);
    const list = (await post(api, request('tools/list'), headers)).body.result;
    assert.deepEqual(Object.keys(list ?? {}), ['tools']);
    const { body } = await post(api, request('tools/call', { name: 'order_GET_text' }, 'a'), headers);
    assert.deepEqual([body.id, body.result], ['a', { content: [{ type: 'text', text: 'plain' }] }]);
  });

describe('MCP revision 2025-11-25', () => {
  const headers = { 'mcp-protocol-version': BEFORE };

  it('answers initialize without opening a session', async () => {
    for (const protocolVersion of [BEFORE, '2024-11-05', NEWEST]) {
      const params = { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } };
      const answer = await post(api, request('initialize', params));
      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get('mcp-session-id'), null);
      const { protocolVersion: agreed, capabilities, serverInfo } = answer.body.result ?? {};
      assert.deepEqual([agreed, capabilities], [BEFORE, { tools: {} }]);
      assert.deepEqual(Object.keys(serverInfo as object), ['name', 'version']);
    }
    const answer = await post(api, { jsonrpc: '2.0', method: 'notifications/initialized' }, headers);
    assert.deepEqual([answer.status, answer.headers.get('content-length')], [202, '0']);
    assert.deepEqual((await post(api, request('ping'), headers)).body, { jsonrpc: '2.0', id: 1, result: {} });
  });

  it('lists and calls tools, and answers JSON-RPC errors with 200', async () => {
    const list = (await post(api, request('tools/list'), headers)).body.result;
    assert.deepEqual(Object.keys(list ?? {}), ['tools']);
    const call = request('tools/call', { name: 'order_index', arguments: { query: { size: 1 } } }, 'a');
    const { body } = await post(api, call, headers);
    assert.equal(body.id, 'a');
    assert.deepEqual(Object.keys(body.result ?? {}), ['content', 'structuredContent']);
    assert.deepEqual(brief(await post(api, request('server/discover'), headers)), [200, -32_601, 1]);
    assert.deepEqual(brief(await post(api, request('tools/call', { name: 'absent' }), headers)), [200, -32_602, 1]);
    assert.deepEqual(brief(await post(api, request('initialize'), headers)), [200, -32_602, 1]);
  });
});

describe('hostile messages', () => {
  const headers = { 'mcp-protocol-version': BEFORE };
  const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
  const call = (args: string) =>
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"order_created","arguments":${args}}}`;
  const rows: readonly [name: string, body: unknown, status: number, code: number | undefined, id: unknown][] = [
    ['a batch', [request('tools/list')], 400, -32_600, null],
    ['an empty batch', [], 400, -32_600, null],
    ['a batch of ten thousand messages', Array.from({ length: 10_000 }, () => request('ping')), 400, -32_600, null],
    ['a JSON text', '"tools/list"', 400, -32_600, null],
    ['null', 'null', 400, -32_600, null],
    ['no body', '', 400, -32_600, null],
    ['half of a message', '{"jsonrpc":"2.0",', 400, -32_700, null],
    ['another version of JSON-RPC', { ...request('ping'), jsonrpc: '1.0' }, 400, -32_600, 1],
    ['an id that is null', request('ping', {}, null), 400, -32_600, null],
    ['an id that is a fraction', request('ping', {}, 1.5), 400, -32_600, null],
    ['an id that is an object', request('ping', {}, {}), 400, -32_600, null],
    ['an id beyond the safe numbers', '{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}', 400, -32_600, null],
    ['an id that is infinite', '{"jsonrpc":"2.0","id":1e999,"method":"ping"}', 400, -32_600, null],
    ['an id that is long', request('ping', {}, 'x'.repeat(257)), 400, -32_600, null],
    ['the longest id', request('ping', {}, 'x'.repeat(256)), 200, undefined, 'x'.repeat(256)],
    ['a method that is a number', { ...request('ping'), method: 7 }, 400, -32_600, 1],
    ['a response', { jsonrpc: '2.0', id: 1, result: {} }, 400, -32_600, 1],
    ['a call without an id', { jsonrpc: '2.0', method: 'tools/call', params: {} }, 400, -32_600, null],
    ['params that are a list', request('ping', []), 400, -32_602, 1],
    ['a key that sets a prototype', '{"jsonrpc":"2.0","id":1,"method":"ping","__proto__":{}}', 400, -32_600, null],
    ['a prototype in the arguments', call('{"body":{"constructor":{"prototype":{}}}}'), 400, -32_600, null],
    ['a method named like a property of Object', request('hasOwnProperty'), 200, -32_601, 1],
    ['a long message', request('ping', { long: 'x'.repeat(1024 * 1024) }), 413, -32_600, null],
    ['a deep message', `{"jsonrpc":"2.0","id":1,"method":"ping","params":${deep(100_000)}}`, 200, undefined, 1],
    ['deep arguments', call(`{"body":${deep(100_000)}}`), 200, undefined, 1],
    ['arguments that are a list', call('[1]'), 200, undefined, 1],
  ];
  for (const [name, body, status, code, id] of rows) {
    it(`${name}: ${status} ${code ?? ''}`, async () => {
      assert.deepEqual(brief(await post(api, body, headers)), [status, code, id]);
    });
  }

  it('arguments that have no form in a request get an error result, and the server still answers', async () => {
    for (const [args, text] of [
      ['[1]', 'The arguments are wrong:\n- the arguments must be an object'],
      [
        '{"query":{"a":"\\ud800"}}',
        'The arguments are wrong:\n- /query is unknown: the arguments are body\n- /query/a has half of a character (a lone surrogate)',
      ],
    ] as const) {
      const { body } = await post(api, call(args), headers);
      assert.deepEqual([body.result?.isError, textOf(body.result ?? {})], [true, text]);
    }
    const { result = {} } = (await post(api, call(`{"body":{"title":${deep(100_000)}}}`), headers)).body;
    assert.equal(result.isError, true);
    // Node 26 writes JSON of any depth, so the check of the types refuses the value there.
    assert.match(
      textOf(result),
      /^The arguments are wrong:\n- \/body is nested too deeply$|\/body\/title must be a string/,
    );
    assert.equal((await send(api, 'tools/list')).status, 200);
  });

  it('an error says how the message must be', async () => {
    const newest = { 'mcp-protocol-version': NEWEST, 'mcp-method': 'ping' };
    const list = { ...newest, 'mcp-method': 'tools/list' };
    const find = { ...newest, 'mcp-method': 'tools/call', 'mcp-name': 'x' };
    const META_NAME = 'io.modelcontextprotocol/';
    for (const [message, sent, text] of [
      [[], headers, 'The body is a batch: send one message in each request'],
      ['null', headers, 'The body must be an object of JSON-RPC 2.0'],
      [{ ...request('ping'), jsonrpc: '1.0' }, headers, "jsonrpc must be '2.0'"],
      [request('ping', {}, {}), headers, 'id must be a whole number, or a text of at most 256 characters'],
      [
        { jsonrpc: '2.0', id: 1, result: {} },
        headers,
        'method must be a text: the server sends no requests and takes no responses',
      ],
      [{ jsonrpc: '2.0', method: 'ping' }, headers, 'id is missing: only notifications have none'],
      [request('ping', []), headers, 'params must be an object'],
      [request('initialize', {}), headers, 'params.protocolVersion is missing'],
      [request('fly'), headers, 'There is no such method: the server has tools alone'],
      [request('tools/list', { cursor: 'x' }), headers, 'The cursor is unknown: ask without one'],
      [request('tools/call', {}), headers, 'There is no tool of this name: tools/list has all names'],
      [
        request('tools/list', { _meta: META }),
        headers,
        'The header MCP-Protocol-Version and protocolVersion in _meta differ',
      ],
      [request('tools/list'), list, `params._meta must have ${META_NAME}protocolVersion and clientCapabilities`],
      [request('tools/list', { _meta: META }), newest, 'The header Mcp-Method must be the method of the message'],
      [request('tools/call', { name: 'y', _meta: META }), find, 'The header Mcp-Name must be the name of the tool'],
      [
        request('tools/list'),
        { 'mcp-protocol-version': '2024-11-05' },
        `Unsupported protocol version: send ${[NEWEST, BEFORE, ...OLDER].join(' or ')}`,
      ],
    ] as const)
      assert.equal((await post(api, message, sent)).body.error?.message, text);
  });

  it('a method other than POST and a type other than JSON are refused', async () => {
    for (const method of ['GET', 'DELETE', 'PUT', 'HEAD']) {
      const answer = await api.fetch('/mcp', { method });
      assert.deepEqual([answer.status, answer.headers.get('allow')], [405, 'POST'], method);
      await answer.arrayBuffer();
    }
    for (const type of ['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data; boundary=x', 'a'])
      assert.deepEqual(brief(await post(api, 'method=ping', { ...headers, 'content-type': type })), [
        415,
        -32_600,
        null,
      ]);
  });
});

it('results and refusals at their limits', () => {
  const json = ['Content-Type', 'application/json'];
  const plain = ['content-type', 'text/plain'];
  const textOfResult = (status: number, headers: string[], body: string) => {
    const { isError, content } = createResult({ status, headers, body });
    return [isError, (content[0] as { text: string }).text];
  };
  assert.deepEqual(textOfResult(399, plain, 'moved'), [undefined, 'moved']);
  assert.deepEqual(textOfResult(400, plain, ''), [true, 'The call failed with the status 400.']);
  const longest = 'x'.repeat(1024 * 1024);
  assert.deepEqual(textOfResult(200, plain, longest), [undefined, longest]);
  const tooLong = 'The result is longer than 1048576 bytes, the limit of a tool: ask for less.';
  assert.deepEqual(textOfResult(200, plain, `${longest}x`), [true, tooLong]);
  // The text of an object stays as the operation has written it.
  assert.deepEqual(textOfResult(200, json, '{ "a": 1 }'), [undefined, '{ "a": 1 }']);
  assert.deepEqual(textOfResult(200, json, '[ 1 ]'), [undefined, '{"items":[1]}']);
  assert.deepEqual(textOfResult(200, json, '1'), [undefined, '{"data":1}']);
  const unknown = 'The result has the type of unknown bytes, which no tool returns.';
  assert.deepEqual(textOfResult(200, [], 'x'), [true, unknown]);
  assert.deepEqual(textOfResult(204, ['x-a', '1'], ''), [undefined, 'Done (204).']);
  const refuse = (status: number, code: string, message: string) =>
    describeRefusal(new HttpError(status, code, message), 'id-1', 'body');
  assert.equal(refuse(499, 'A', 'No.'), 'A (499): No.');
  assert.equal(refuse(500, 'B', 'no'), 'B (500): no.\nThe operator finds the cause under the request id id-1.');
  assert.equal(
    refuse(428, 'PRECONDITION_REQUIRED', 'no'),
    'PRECONDITION_REQUIRED (428): no.\nA tool sends no such header, so this operation cannot be called.',
  );
  const { refuseMessage } = createToolServer({ groups: async () => [], info: () => ({}) as never, basePath: '' });
  const codeOf = (status: number, code: string) =>
    JSON.parse(refuseMessage(new HttpError(status, code, 'no'), 'id-1')).error.code;
  assert.deepEqual([codeOf(499, 'A'), codeOf(500, 'B'), codeOf(400, 'MALFORMED_JSON')], [-32_600, -32_603, -32_700]);
});

it('a call becomes a request with each part of a path, and lists at most 20 mistakes', () => {
  const requestOf = (segments: object[], given: object) => {
    const definition = { inputSchema: { properties: { path: {}, query: {} } } };
    return createCallRequest({ segments, groupInUrl: 'a', definition } as unknown as Tool, given, '/api');
  };
  const rest = [{ literal: 'x y' }, { name: 'rest', isRest: true, suffix: '' }];
  assert.deepEqual(requestOf(rest, { path: { rest: 'a/b c' }, query: { a: [1, true], b: 'ü' } }), {
    target: '/api/a/x%20y/a/b%20c?a=1&a=true&b=%C3%BC',
    body: undefined,
  });
  const id = [{ name: 'id', suffix: '.json' }];
  assert.deepEqual(requestOf(id, { path: { id: 'a/b' } }), { target: '/api/a/a%2Fb.json', body: undefined });
  const longest = 'x'.repeat(16 * 1024 - '/api/a/.json'.length);
  assert.ok('target' in requestOf(id, { path: { id: longest } }));
  assert.deepEqual(requestOf(id, { path: { id: `${longest}x` } }), {
    problems: [{ pointer: '', message: 'path and query have more than 16384 characters' }],
  });
  for (const [value, message] of [
    [undefined, 'is missing'],
    ['', 'must be a text or a number'],
    [{}, 'must be a text or a number'],
  ] as const)
    assert.deepEqual(requestOf(id, { path: { id: value } }), { problems: [{ pointer: '/path/id', message }] });
  const many = requestOf([], Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`x${i}`, 1])));
  assert.equal('problems' in many && many.problems.length, 20);
});
