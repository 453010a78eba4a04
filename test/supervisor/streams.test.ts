// Streams and server-sent events across a roll and an end of the service: nothing is cut, nothing is lost, nothing is held up.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { startService } from '../support/cluster-server.ts';
import { createFolder, write } from '../support/folder.ts';

const GATEFOLD = new URL('../../dist/controller.js', import.meta.url).href;

it('a stream survives a roll whole, an event stream goes on from the new code, and what a controller holds is closed', async (test) => {
  const state = createFolder(test);
  const gate = join(state, 'over');
  const closed = join(state, 'closed');
  const controller = (code: string) => `
    import { appendFileSync, existsSync } from 'node:fs';
    import { Readable } from 'node:stream';
    import { setTimeout as sleep } from 'node:timers/promises';
    import { eventStream } from ${JSON.stringify(GATEFOLD)};
    export default class {
      code = '${code}';
      index() { return { code: this.code } }
      long() { const code = this.code; return Readable.from((async function* () { yield code; while (!existsSync(${JSON.stringify(gate)})) { await sleep(5); yield '.'.repeat(1000) } yield 'end' })()) }
      feed(data, { lastEventId, signal }) {
        const code = this.code;
        return eventStream((async function* () { for (let id = Number(lastEventId ?? 0) + 1; ; id++) { yield { id: String(id), data: code }; await sleep(5, undefined, { signal }) } })(), { retry: 20 });
      }
      created(data, { waitUntil }) { waitUntil(sleep(300).then(() => appendFileSync(${JSON.stringify(closed)}, 'worked '))); return {} }
      async [Symbol.asyncDispose]() { await sleep(20); appendFileSync(${JSON.stringify(closed)}, 'closed-' + this.code + ' ') }
    }`;
  const service = await startService(test, { files: { 'AController.mjs': controller('old') }, env: { WORKERS: '1' } });
  const url = `http://127.0.0.1:${service.port}/api/a`;

  const long = fetch(`${url}/long`).then((answer) => answer.text());
  const seen: { id: number; code: string }[] = [];
  const stop = new AbortController();
  const reconnects = follow(`${url}/feed`, seen, stop.signal);
  await until(() => seen.length > 3);

  write(service.dir, 'AController.mjs', controller('new'));
  await until(() => seen.at(-1)?.code === 'new');
  assert.deepEqual(
    seen.map(({ id }) => id),
    seen.map((_, i) => i + 1),
    'every event, once',
  );
  // The old worker still has its stream, and nothing else.
  writeFileSync(gate, '');
  const text = await long;
  assert.ok(text.startsWith('old') && text.endsWith('end'));
  await until(() => existsSync(closed));
  assert.equal(readFileSync(closed, 'utf8'), 'closed-old ');

  await fetch(url, { method: 'POST' });
  service.process.kill('SIGTERM');
  stop.abort();
  assert.deepEqual(await service.exited, { code: 0, signal: null });
  assert.equal(readFileSync(closed, 'utf8'), 'closed-old worked closed-new ');
  assert.deepEqual(
    service.lines.filter(({ level }) => level === 'error' || level === 'warn'),
    [],
  );
  await reconnects;
});

/** What a browser's EventSource does. */
async function follow(url: string, seen: { id: number; code: string }[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      const answer = await fetch(url, { signal, headers: seen.length === 0 ? {} : { 'Last-Event-ID': String(seen.at(-1)?.id) } });
      let text = '';
      for await (const piece of answer.body as unknown as AsyncIterable<Uint8Array>) {
        text += Buffer.from(piece).toString('latin1');
        const events = text.split('\n\n');
        text = events.pop() ?? '';
        for (const event of events) {
          const [, id, code] = /^id: (\d+)\ndata: "(\w+)"$/.exec(event) ?? [];
          if (id !== undefined && code !== undefined) seen.push({ id: Number(id), code });
        }
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((later) => setTimeout(later, 5));
}
