// Runs the app in this process on a free port, with its log in an array, and sends requests by fetch or a raw socket. A
// test that logs an unexpected error fails when its service closes.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseSettings } from '../../src/base/config.ts';
import { createLog, type LineSink } from '../../src/base/log.ts';
import { createGroups } from '../../src/live/load/registry.ts';
import { type AppParts, createApp } from '../../src/request/app.ts';
import { createPublicFiles } from '../../src/request/files/public-files.ts';
import { write as writeController } from './folder.ts';
import { moduleUrl } from './own-modules.ts';

export const SHIPPED_CONTROLLERS = resolve(import.meta.dirname, '../../controllers');

/** The specifier by which a source in a temporary folder imports `gatefold`. */
export const GATEFOLD = moduleUrl('src/api/controller');

export type LogLine = Record<string, unknown> & { event: string; level: string };

export interface ServiceOptions {
  /** The source of each controller file by its name, for a new folder. Default: the shipped controllers. */
  readonly controllers?: Readonly<Record<string, string>>;
  /** Settings, as environment variables. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly parts?: Partial<
    Pick<AppParts, 'credentials' | 'identity' | 'docs' | 'observer' | 'transport' | 'noteBegin'>
  >;
  /** The events of level error that the test expects. */
  readonly expectedErrors?: readonly string[];
}

export interface Service {
  readonly url: string;
  readonly port: number;
  readonly dir: string;
  readonly lines: LogLine[];
  readonly app: ReturnType<typeof createApp>;
  /** Sends bytes, and returns the received text after `answers` answers or when the server closes the connection. */
  raw(bytes: string | Buffer, answers?: number): Promise<string>;
  close(): Promise<void>;
}

export async function startService({
  controllers,
  settings = {},
  parts = {},
  expectedErrors = [],
}: ServiceOptions = {}): Promise<Service> {
  const dir = controllers === undefined ? SHIPPED_CONTROLLERS : mkdtempSync(join(tmpdir(), 'gatefold-service-'));
  for (const [name, source] of Object.entries(controllers ?? {})) writeController(dir, name, source);
  const lines: LogLine[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line));
  const sink: LineSink = { write, flush: () => {} };
  const log = createLog({ level: 'debug', sink });
  const parsed = parseSettings({ CONTROLLERS_DIR: dir, ...settings }, [], { cores: 1 });
  const groups = createGroups({ dir, log, onService: (state) => app.useService(state) });
  const { publicDir, publicFallback: fallback, dataDir } = parsed;
  const fileOptions = { fallback, controllersDir: dir, dataDir, log };
  const app = createApp({
    settings: parsed,
    files: publicDir === undefined ? undefined : createPublicFiles({ dir: publicDir, ...fileOptions }),
    log,
    requestLog: sink,
    groups,
    credentials: { identify: () => ({ kind: 'foreign' }) },
    identity: { signin: async () => ({ status: 200, body: {} }), register: async () => ({ status: 201, body: {} }) },
    docs: { openapi: () => ({}), page: () => ({}) },
    ...parts,
  });
  // Only a load of the whole folder reads the service file.
  if (Object.keys(controllers ?? {}).some((name) => name.startsWith('service.')))
    await groups.loadAll({ skip: new Map(), onLoading: () => {} });
  await new Promise<void>((listening) => app.server.listen(0, '127.0.0.1', listening));
  const { port } = app.server.address() as AddressInfo;
  const close = async () => {
    app.server.closeAllConnections();
    await new Promise<void>((closed) => app.server.close(() => closed()));
    if (controllers !== undefined) rmSync(dir, { recursive: true, force: true });
    const surprises = lines.filter(({ level, event }) => level === 'error' && !expectedErrors.includes(event));
    assert.deepEqual(surprises, [], 'the log has errors that no test announced');
  };
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    dir,
    lines,
    app,
    raw: (bytes, answers = 1) => sendRaw(port, bytes, answers),
    close,
  };
}

/** Reads until the server closes the connection or has sent that many complete answers. */
export function sendRaw(port: number, bytes: string | Buffer, answers = 1): Promise<string> {
  return new Promise((done, failed) => {
    const socket: Socket = connect(port, '127.0.0.1');
    let received = '';
    const finish = () => {
      socket.destroy();
      done(received);
    };
    socket.setEncoding('latin1');
    socket.setTimeout(60_000, () => failed(new Error(`no answer to ${JSON.stringify(String(bytes).slice(0, 80))}`)));
    socket.on('data', (chunk) => {
      received += chunk;
      if (countAnswers(received) >= answers) finish();
    });
    socket.on('end', finish);
    socket.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNRESET' || error.code === 'EPIPE' ? finish() : failed(error),
    );
    socket.write(bytes);
  });
}

/** Counts the complete answers in a text, by their Content-Length. Interim answers do not count. */
function countAnswers(text: string): number {
  let count = 0;
  for (let at = 0; ; ) {
    const end = text.indexOf('\r\n\r\n', at);
    if (end < 0) return count;
    const head = text.slice(at, end);
    const interim = /^HTTP\/1\.1 1\d\d /.test(head);
    const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
    at = end + 4 + (interim ? 0 : length);
    if (at > text.length) return count;
    if (!interim) count++;
  }
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** Returns the last answer in a raw text. */
export function parseRaw(text: string): RawAnswer {
  const from = text.lastIndexOf('HTTP/1.1 ');
  assert.ok(from >= 0, `no answer in ${JSON.stringify(text)}`);
  const [head = '', ...body] = text.slice(from).split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = new Map(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  return { status: Number(statusLine.split(' ')[1]), headers, body: body.join('\r\n\r\n') };
}

export const CORS = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS',
  'access-control-allow-headers': '*, Authorization',
};

/** Header fields of every answer. */
const ON_EVERY_ANSWER = { ...CORS, 'x-content-type-options': 'nosniff' };

/** Checks an error answer: status, envelope, CORS and no-store (decisions 2.2 and 5). */
export function assertEnvelope(answer: RawAnswer, status: number, code: string): Record<string, unknown> {
  assert.equal(answer.status, status, answer.body);
  const body = JSON.parse(answer.body) as Record<string, unknown>;
  assert.equal(body.status, 'error');
  assert.equal(body.error_code, code);
  assert.equal(typeof body.message, 'string');
  assert.ok(Number.isInteger(body.timestamp));
  assert.equal(body.request_id, answer.headers.get('x-request-id'));
  assert.equal(answer.headers.get('content-type'), 'application/json; charset=UTF-8');
  assert.equal(answer.headers.get('cache-control'), 'no-store');
  assert.equal(answer.headers.get('access-control-expose-headers'), '*');
  for (const [name, value] of Object.entries(ON_EVERY_ANSWER)) assert.equal(answer.headers.get(name), value);
  assert.equal(answer.headers.get('access-control-allow-credentials'), undefined);
  return body;
}

/**
 * Calls `listener` for an uncaught error until the test ends, as a worker does. The listener of the test runner, which
 * would fail the test, is away meanwhile.
 */
export function onUncaught(test: { after(end: () => void): void }, listener: (error: Error) => void): void {
  const others = process.rawListeners('uncaughtException') as (typeof listener)[];
  process.removeAllListeners('uncaughtException').on('uncaughtException', listener);
  test.after(() => {
    process.removeAllListeners('uncaughtException');
    for (const other of others) process.on('uncaughtException', other);
  });
}

/** Converts an answer of fetch to the shape that the raw helpers return. */
export async function asRaw(response: Response): Promise<RawAnswer> {
  return { status: response.status, headers: new Map(response.headers), body: await response.text() };
}
