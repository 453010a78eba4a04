// An open stream ends when its credential loses the right to it: the row is revoked, changes or expires. Uses the
// service's own table and real sockets. Each test waits for events, without a time limit of its own.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, mock, test } from 'node:test';
import { startTest, type TestApi } from '../../../src/api/testing.ts';
import { createCredentials } from '../../../src/callers/credentials/credentials.ts';
import { generateToken, hashSecret } from '../../../src/callers/credentials/token.ts';
import { makeProject } from '../../support/command-bench.ts';
import { createFolder, createMemoryLog, makeRow, type TestRow, tableText } from '../../support/credentials-bench.ts';
import { moduleUrl } from '../../support/own-modules.ts';

const GATEFOLD = moduleUrl('src/api/controller');
const CONTROLLER = `
  import { setTimeout as sleep } from 'node:timers/promises';
  import { eventStream, Reply } from ${JSON.stringify(GATEFOLD)};
  async function* ticks(signal, make) {
    for (let i = 0; !signal.aborted; i++) {
      yield make(i);
      await sleep(150, undefined, { signal, ref: false }).catch(() => {});
    }
  }
  export default class FeedController {
    static operations = { scoped: { access: { scope: 'feed:read' } } };
    index(data, { signal }) { return eventStream(ticks(signal, (i) => i)); }
    scoped(data, params) { return this.index(data, params); }
    created(data, params) { return this.index(data, params); }
    bytes(data, { signal }) { return ReadableStream.from(ticks(signal, () => new Uint8Array(100))); }
    reply(data, { signal }) { return new Reply(200, ReadableStream.from(ticks(signal, () => new Uint8Array(100)))); }
    web(data, { signal }) { return new Response(ReadableStream.from(ticks(signal, () => new Uint8Array(100)))); }
    only({ bytes }, params) {
      params.signal.addEventListener('abort', () => globalThis.openStreamsReasons.push(params.signal.reason.message));
      return bytes ? this.bytes(0, params) : this.index(0, params);
    }
    single() { return new ReadableStream({ start(stream) { stream.enqueue(new Uint8Array(100)); } }); }
    silent() { return new ReadableStream(); }
    async late(data, { signal }) { globalThis.openStreamsEntered(); await globalThis.openStreamsGate; return eventStream(ticks(signal, (i) => i)); }
  }`;

const dir = makeProject(
  { after },
  {
    'controllers/FeedController.mjs': CONTROLLER,
    'controllers/SdkController.mjs': CONTROLLER.replaceAll('Feed', 'Sdk'),
  },
);
const data = createFolder({ after });
const KEY = 'k'.repeat(40);
let api: TestApi;
/** The rows of the table, which `set` writes. */
const rows = new Map<string, Record<string, unknown>>();

function set(...changes: readonly Record<string, unknown>[]): void {
  for (const row of changes) rows.set(String(row.id), row);
  // The rename keeps the file complete at every moment, because the service may be reading it.
  writeFileSync(join(data, 'next.json'), tableText(...rows.values()));
  renameSync(join(data, 'next.json'), join(data, 'production.json'));
}

/** Adds a row to the table. */
async function add(fields: Record<string, unknown> = {}): Promise<TestRow> {
  const made = makeRow({ groups: '*', scopes: ['feed:read', 'other'], ...fields });
  set(made.row);
  return made;
}

/** Milliseconds that the clock has skipped. */
let skipped = 0;

before(async () => {
  const now = Date.now;
  mock.method(Date, 'now', () => now() + skipped);
  set();
  api = await startTest({ controllers: join(dir, 'controllers'), data, env: { SESSION_KEY: KEY } });
});
after(() => mock.restoreAll());
after(() => api.close());

interface Open {
  /** Resolves with the next piece of the body. */
  piece(): Promise<void>;
  /** Whether the body ended complete or cut. */
  readonly end: Promise<'whole' | 'cut'>;
  text(): string;
  leave(): void;
}

async function open(token: string, path = 'feed', method = 'GET'): Promise<Open> {
  const abort = new AbortController();
  const answer = await fetch(`${api.url}/api/${path}`, {
    method,
    signal: abort.signal,
    headers: { authorization: `Bearer ${token}` },
  });
  assert.equal(answer.status, 200, path);
  const pieces = new EventTarget();
  let text = '';
  const read = async (): Promise<'whole' | 'cut'> => {
    try {
      for await (const bytes of answer.body ?? []) {
        text += Buffer.from(bytes).toString('latin1');
        pieces.dispatchEvent(new Event('piece'));
      }
      return 'whole';
    } catch {
      return 'cut';
    }
  };
  const end = read();
  return { piece: async () => void (await once(pieces, 'piece')), end, text: () => text, leave: () => abort.abort() };
}

const call = async (token: string, path = 'feed/silent') =>
  (await fetch(`${api.url}/api/${path}`, { method: 'HEAD', headers: { authorization: `Bearer ${token}` } })).status;

const bystanders: Open[] = [];
after(() => {
  for (const { leave } of bystanders) leave();
});

/** Opens streams that the change must not end: of another row, of a row whose limit and name change, and of no row. */
async function openBystanders(): Promise<{ readonly others: readonly Open[]; change(): Record<string, unknown> }> {
  const other = await add();
  const others = [await open(other.token), await open(other.token, 'feed/bytes'), await open('', 'feed')];
  bystanders.push(...others);
  return {
    others,
    change: () => ({
      ...rows.get(other.id),
      limit: '1000/s',
      name: 'renamed',
      scopes: ['other', 'feed:read', 'more'],
      groups: ['feed'],
      methods: ['GET'],
    }),
  };
}

describe('an open stream of a credential ends when the row', { concurrency: true }, () => {
  const changes: readonly [
    what: string,
    change: (row: Record<string, unknown>) => Record<string, unknown> | undefined,
    then: number,
  ][] = [
    ['is revoked', (row) => ({ ...row, revoked_at: '2026-01-01T00:00:00Z' }), 401],
    ['is removed', () => undefined, 401],
    ['is quarantined', (row) => ({ ...row, groups: 7 }), 401],
    ['gets another secret', (row) => ({ ...row, hash: hashSecret(generateToken().secret) }), 401],
    ['expires', (row) => ({ ...row, expires_at: new Date(Date.now() - 1000).toISOString() }), 401],
    ['loses the group', (row) => ({ ...row, groups: ['sdk'] }), 403],
    ['gets a handler instead of groups', ({ groups: _, ...row }) => ({ ...row, handler: 'Sdk' }), 200],
    ['loses the method', (row) => ({ ...row, methods: ['POST'] }), 405],
    ['loses a scope', (row) => ({ ...row, scopes: ['other'] }), 200],
  ];
  for (const [what, change, then] of changes) {
    test(what, async () => {
      const { others, change: harmless } = await openBystanders();
      const { row, id, token } = await add();
      const streams = {
        index: await open(token),
        bytes: await open(token, 'feed/bytes'),
        reply: await open(token, 'feed/reply'),
        web: await open(token, 'feed/web'),
      };
      const changed = change(row);
      if (changed === undefined) rows.delete(id);
      set(harmless(), ...(changed === undefined ? [] : [changed]));
      const ends = await Promise.all(Object.values(streams).map(({ end }) => end));
      assert.deepEqual(
        ends,
        ['whole', 'cut', 'cut', 'cut'],
        'an event stream ends between two events, and the other streams are cut',
      );
      assert.match(
        streams.index.text(),
        /^retry: 500\n\n(?:data: \d+\n\n)+$/,
        'the event stream has whole events and no end event',
      );
      assert.equal(await call(token, 'feed'), then);
      for (const stream of others) await stream.piece();
    });
  }

  test('loses a scope that the operation requires', async () => {
    const { row, token } = await add();
    const stream = await open(token, 'feed/scoped');
    set({ ...row, scopes: [] });
    assert.deepEqual([await stream.end, await call(token, 'feed/scoped')], ['whole', 403]);
  });

  test('loses the method of the operation', async () => {
    const { row, token } = await add({ methods: ['GET', 'POST'] });
    const stream = await open(token, 'feed/created');
    set({ ...row, methods: ['GET'] });
    assert.equal(await stream.end, 'whole');
  });

  test('gets another handler', async () => {
    const { row, token } = await add({ groups: undefined, handler: 'Feed' });
    const stream = await open(token, 'anything');
    set({ ...row, handler: 'Sdk' });
    assert.equal(await stream.end, 'whole');
  });
});

describe('an open stream ends by the clock', () => {
  /** Milliseconds until a row expires: less than a session lasts, and more than the tests take. */
  const SOON = 1_800_000;
  const soon = () => new Date(Date.now() + SOON).toISOString();
  const skip = () => {
    skipped += SOON;
  };

  test('when its row expires', async () => {
    const { token } = await add({ expires_at: soon() });
    const streams = [await open(token), await open(token, 'feed/bytes')];
    skip();
    assert.deepEqual([await Promise.all(streams.map(({ end }) => end)), await call(token)], [['whole', 'cut'], 401]);
  });

  test('when the overlap of its rotated secret ends, and a stream of the new secret stays open', async () => {
    const { row, id, token: old } = await add();
    const { secret, token } = generateToken(undefined, id);
    set({ ...row, hash: hashSecret(secret), previous: [{ hash: row.hash, expires_at: soon() }] });
    const streams = [await open(old), await open(token)];
    skip();
    assert.deepEqual([await streams[0]?.end, await call(old)], ['whole', 401]);
    await streams[1]?.piece();
    streams[1]?.leave();
  });

  test('when its session expires, and when the row of its session is revoked', async () => {
    const { row, id, token } = await add();
    const log = createMemoryLog();
    const past = await createCredentials({
      dataDir: data,
      sessionKey: KEY,
      log,
      now: () => Date.now() - 3_600_000 + SOON,
    });
    const present = await createCredentials({ dataDir: data, sessionKey: KEY, log });
    const [brief, long] = [past.issueSession(id).token, present.issueSession(id).token];
    past.close();
    present.close();
    const streams = { brief: await open(brief), long: await open(long), key: await open(token) };
    skip();
    assert.deepEqual([await streams.brief.end, await call(brief)], ['whole', 401]);
    await Promise.all([streams.long.piece(), streams.key.piece()]);
    set({ ...row, revoked_at: 'now' });
    assert.deepEqual([await streams.long.end, await streams.key.end, await call(long)], ['whole', 'whole', 401]);
  });
});

test('a stream that has sent nothing gets 401 when its row is revoked', async () => {
  const { row, token } = await add();
  const answer = fetch(`${api.url}/api/feed/silent`, { headers: { authorization: `Bearer ${token}` } });
  await new Promise((later) => setTimeout(later, 50));
  set({ ...row, revoked_at: 'now' });
  const refused = await answer;
  assert.deepEqual([refused.status, refused.headers.get('www-authenticate')], [401, 'Bearer error="invalid_token"']);
});

test('a stream ends when the operation returns it after the row was revoked', async () => {
  const { row, token } = await add();
  let letGo = () => {};
  const shared = globalThis as unknown as { openStreamsGate: Promise<void>; openStreamsEntered(): void };
  shared.openStreamsGate = new Promise((resolve) => {
    letGo = resolve;
  });
  const entered = new Promise<void>((resolve) => {
    shared.openStreamsEntered = resolve;
  });
  const late = open(token, 'feed/late');
  await entered;
  set({ ...row, revoked_at: 'now' });
  while ((await call(token)) !== 401);
  letGo();
  assert.equal(await (await late).end, 'whole');
});

test('a stream that is cut in HTTP/1.0 ends with a reset', async () => {
  const { row, token } = await add();
  const socket = connect(api.port, '127.0.0.1');
  socket.write(`GET /api/feed/single HTTP/1.0\r\nAuthorization: ${token}\r\n\r\n`);
  // All bytes are read first. A Node client reports bytes that arrive together with a reset as a plain end.
  for (let text = ''; !text.includes(`\r\n\r\n${'\0'.repeat(100)}`); )
    text += String(await once(socket.resume(), 'data'));
  set({ ...row, revoked_at: 'now' });
  const codes: unknown[] = [];
  socket.on('error', ({ code }: NodeJS.ErrnoException) => codes.push(code));
  await new Promise((closed) => socket.on('close', closed));
  assert.deepEqual(codes, ['ECONNRESET']);
});

test('the early end of a stream aborts its operation and is logged', async () => {
  const { row, token } = await add();
  const reasons: string[] = [];
  Object.assign(globalThis, { openStreamsReasons: reasons });
  const streams = [await open(token, 'feed/only'), await open(token, 'feed/only?bytes=1')];
  set({ ...row, revoked_at: 'now' });
  await Promise.all(streams.map(({ end }) => end));
  const lines = api.lines.filter(
    ({ event, cause, operation }) =>
      event === 'stream-ended-early' && cause === 'its row is revoked' && operation === 'only',
  );
  assert.equal(lines.length, 2);
  assert.deepEqual(reasons, Array(2).fill('the credential does not allow the stream any more'));
});
