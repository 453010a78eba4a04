// OpenTelemetry's own code reads the bodies that the exporter sends, by the protobuf of OTLP and by its TypeScript
// types. Also runs its SDK beside the service, as docs/OBSERVABILITY.md shows.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';

const root = resolve(import.meta.dirname, '..');
const require = createRequire(import.meta.url);
const CONTROLLER = `
export default class BookController {
  async 'GET {id}'(_, { path, trace, waitUntil }) {
    waitUntil(Promise.reject(new RangeError('x')));
    await fetch(process.env.PEER).then((answer) => answer.text());
    return trace.span('"quoted" \\u2028 \\ud800', () => ({ id: path.id }), {
      kind: 'client',
      attributes: { text: 'é\\n"', whole: 7, large: 2 ** 53, half: 0.5, not: Number.NaN, no: false, list: ['a', 1, true] },
    });
  }
  index() { throw new TypeError('x'); }
}`;
/** Adds the fields that the exporter leaves out. The types are for writers and require all fields; readers do not. */
const TYPES = `
import type { IExportTraceServiceRequest } from '../node_modules/@opentelemetry/otlp-transformer/build/src/trace/internal-types';
type Part<T> = T extends (infer Item)[] ? Part<Item>[] : T extends object ? { [Key in keyof T]?: Part<T[Key]> } : T;`;
const PARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

let work;
let collector;
let peer;
/** The received bodies, as texts. */
const bodies = [];
const peerHeaders = [];
const children = [];

const listen = async (handler) => {
  const server = createServer(handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, url: `http://127.0.0.1:${server.address().port}` };
};

before(async () => {
  work = mkdtempSync(join(import.meta.dirname, 'work-'));
  for (const name of ['controllers', 'data', 'node_modules']) mkdirSync(join(work, name));
  writeFileSync(join(work, 'package.json'), '{ "name": "bookshop", "version": "1.2.3", "type": "module" }');
  writeFileSync(join(work, 'controllers/BookController.js'), CONTROLLER);
  symlinkSync(root, join(work, 'node_modules/gatefold'));
  collector = await listen(async (request, response) => {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    bodies.push(text);
    response.setHeader('content-type', 'application/json').end('{"partialSuccess":{}}');
  });
  peer = await listen((request, response) => {
    peerHeaders.push(request.headers);
    response.end('ok');
  });
});
after(() => {
  for (const child of children) child.kill();
  for (const { server } of [collector, peer]) {
    server.closeAllConnections();
    server.close();
  }
  rmSync(work, { recursive: true, force: true });
});

/**
 * Serves the folder, sends requests, and ends the service, which then sends its spans. @returns the lines of the log
 */
async function serve(env, paths) {
  const child = spawn(process.execPath, [join(root, 'dist/server.js')], {
    env: {
      ...process.env,
      ...{ PORT: '0', HOST: '127.0.0.1', WORKERS: '1', LOG_LEVEL: 'info', LOG_FORMAT: 'json' },
      ...{ CONTROLLERS_DIR: join(work, 'controllers'), DATA_DIR: join(work, 'data'), PEER: peer.url },
      ...{ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, NODE_TEST_CONTEXT: undefined, ...env },
    },
    cwd: work,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    log += chunk;
  });
  const closed = once(child, 'close');
  let url;
  for await (const line of createInterface({ input: child.stdout })) {
    url = /http:\/\/\S+/.exec(line)?.[0];
    if (url !== undefined) break;
  }
  assert.ok(url, log);
  for (const path of paths)
    await (await fetch(new URL(path, url), { headers: { traceparent: PARENT, tracestate: 'a=1' } })).text();
  child.kill('SIGTERM');
  await closed;
  return log
    .trim()
    .split('\n')
    .flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []));
}

const spansOf = (body) => body.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans));

test('the exported bodies match the protobuf of OTLP and the types of @opentelemetry/otlp-transformer', async () => {
  bodies.length = 0;
  await serve({}, ['/api/book/7?q=1', '/api/book', '/api/absent']);
  assert.ok(bodies.length > 0);
  const { opentelemetry } = require('otlp-protobuf/build/src/generated/root.js');
  const type = opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;
  for (const text of bodies) {
    // OTLP writes ids in JSON as hexadecimal. Other bytes of protobuf are base64 in JSON.
    const withBytes = JSON.parse(text, (key, value) =>
      ['traceId', 'spanId', 'parentSpanId'].includes(key) ? Buffer.from(value, 'hex').toString('base64') : value,
    );
    // This copy of the protobuf is older than the field `flags` (OTLP 1.1).
    const withoutFlags = JSON.parse(JSON.stringify(withBytes), (key, value) => (key === 'flags' ? undefined : value));
    assert.equal(type.verify(type.fromObject(withBytes)), null);
    // A field that is unknown to protobuf, or has another type, changes when it is encoded and decoded.
    const read = type.toObject(type.decode(type.encode(type.fromObject(withBytes)).finish()), {
      ...{ longs: String, bytes: String, json: true },
    });
    assert.deepEqual(read, withoutFlags);
    // The TypeScript types have numbers. In JSON, protobuf writes whole numbers and NaN as texts, and its readers
    // accept both.
    const typed = JSON.parse(text, (key, value) => (/^(?:int|double)Value$/.test(key) ? Number(value) : value));
    writeFileSync(
      join(work, 'body.ts'),
      `${TYPES}\nexport const body: Part<IExportTraceServiceRequest> = ${JSON.stringify(typed)};\n`,
    );
    const flags = '--noEmit --strict --skipLibCheck --target es2022 --module esnext --moduleResolution bundler'.split(
      ' ',
    );
    const { status, stdout } = spawnSync(
      process.execPath,
      [require.resolve('typescript/bin/tsc'), ...flags, join(work, 'body.ts')],
      { encoding: 'utf8' },
    );
    assert.equal(status, 0, stdout);
  }
  const spans = bodies.flatMap((text) => spansOf(JSON.parse(text)));
  assert.deepEqual(spans.map(({ name }) => name).sort(), [
    '"quoted" \u2028 \ufffd',
    ...['GET', 'GET', 'GET /api/book', 'GET /api/book/{id}', 'waitUntil'],
  ]);
});

test('@opentelemetry/sdk-node traces routes of the service with the file of docs/OBSERVABILITY.md', async () => {
  bodies.length = 0;
  const [, file] = /```js\n(\/\/ otel\.mjs\n.*?)```/s.exec(readFileSync(join(root, 'docs/OBSERVABILITY.md'), 'utf8'));
  writeFileSync(join(work, 'otel.mjs'), file);
  const NODE_OPTIONS = `--import ${join(work, 'otel.mjs')}`;
  const env = { NODE_OPTIONS, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', OTEL_BSP_SCHEDULE_DELAY: '20' };
  const lines = await serve(env, ['/api/book/7', '/api/book/7']);
  assert.deepEqual(
    lines
      .filter(({ event }) => /^trace/.test(event))
      .map(({ event, reason }) => [event, /another tracer/.test(reason)]),
    [['traces-off', true]],
  );
  const spans = bodies.filter((text) => text.includes('resourceSpans')).flatMap((text) => spansOf(JSON.parse(text)));
  const names = spans.map(({ name }) => name);
  const server = spans.find(({ name }) => name === 'GET /api/book/{id}');
  assert.ok(server, JSON.stringify(names));
  assert.equal(server.attributes.find(({ key }) => key === 'http.route')?.value.stringValue, '/api/book/{id}');
  assert.equal(server.traceId, PARENT.slice(3, 35));
  const line = lines.find(({ event, trace_id }) => event === 'request' && trace_id === server.traceId);
  assert.ok(spans.some(({ spanId }) => spanId === line?.span_id));
  assert.ok(peerHeaders.at(-1)?.traceparent?.startsWith(`00-${server.traceId}-`));
});
