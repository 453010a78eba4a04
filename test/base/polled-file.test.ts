// Files that change while a process uses them: which content is live, after how many looks, and how often a file is
// read.
import assert from 'node:assert/strict';
import fs, { appendFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import {
  createLiveFile,
  isSameContent,
  type LiveFileOptions,
  readContent,
  readContentAsync,
} from '../../src/base/polled-file.ts';

const MAX_BYTES = 1_000_000;

function createPath(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatefold-live-file-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'file');
}

interface Bench {
  readonly file: ReturnType<typeof createLiveFile>;
  /** Every text that became live; `undefined` stands for no file. */
  readonly live: (string | undefined)[];
  readonly failures: string[];
}

/** Refuses the text `bad`, and a file that cannot be read. */
function start(t: TestContext, path: string, options: Partial<LiveFileOptions<string | undefined>> = {}): Bench {
  const live: (string | undefined)[] = [];
  const failures: string[] = [];
  const file = createLiveFile({
    paths: [path],
    maxBytes: MAX_BYTES,
    pollMs: 60_000,
    confirmations: 2,
    liveContent: readContent([path], MAX_BYTES),
    parse(content) {
      if (content.files === undefined && !content.isMissing) throw new Error(content.reason);
      const text = content.files?.join(' + ');
      if (text?.startsWith('bad')) throw new Error(text);
      return text;
    },
    onLive: (text) => void live.push(text),
    onFailure: (reason) => void failures.push(reason),
    ...options,
  });
  t.after(() => file.close());
  return { file, live, failures };
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 1));
}

/** Calls `then` after each call of a function of node:fs/promises with this path. */
function intercept(t: TestContext, name: 'open' | 'readFile' | 'stat', then: () => void, path: string): void {
  const original = fs.promises[name] as (...args: unknown[]) => Promise<unknown>;
  const replace = (value: unknown) => {
    Object.assign(fs.promises, { [name]: value });
    syncBuiltinESMExports();
  };
  replace(async (...args: unknown[]) => {
    const result = await original(...args);
    if (args[0] === path) then();
    return result;
  });
  t.after(() => replace(original));
}

/** Writes a file. For `undefined` there is no file, and for `null` there is a folder in its place. */
function put(path: string, text: string | undefined | null): void {
  rmSync(path, { recursive: true, force: true });
  if (text === null) mkdirSync(path);
  else if (text !== undefined) writeFileSync(path, text);
}

test('two contents are the same only if their bytes, or the reasons why there are none, are the same', (t) => {
  const path = createPath(t);
  const contents = ['', ' ', 'missing', '[]', 'x'.repeat(32), 'x'.repeat(33), undefined, null].map((text) => {
    put(path, text);
    const content = readContent([path], MAX_BYTES);
    assert.ok(isSameContent(content, readContent([path], MAX_BYTES)));
    return content;
  });
  put(path, 'a');
  assert.ok(readContent([path], 1).files !== undefined, 'a file may have as many bytes as the limit');
  contents.push(readContent([path, path], MAX_BYTES), readContent([path], 0));
  for (const [index, one] of contents.entries())
    for (const other of contents.slice(index + 1)) assert.ok(!isSameContent(one, other) && !isSameContent(other, one));
});

test('good content is live at once; a bad or missing file counts after two looks and is reported once', {
  concurrency: 16,
}, async (t) => {
  const torn = 'bad';
  const other = 'bad too';
  const rows: [name: string, texts: (string | undefined | null)[], live: (string | undefined)[], failures: string[]][] =
    [
      ['unchanged content', ['old', 'old'], [], []],
      ['new content', ['new'], ['new'], []],
      ['a file that is missing for one look', [undefined, 'old'], [], []],
      ['a file that is missing for one look, then has new content', [undefined, 'new'], ['new'], []],
      ['a file that stays missing', [undefined, undefined, undefined], [undefined], []],
      ['a file that goes missing and comes back', [undefined, undefined, 'old'], [undefined, 'old'], []],
      ['a file that is being written', [torn, other, torn, 'new'], ['new'], []],
      ['a torn file', [torn, torn, torn, torn], [], [torn]],
      ['two different torn texts', [torn, torn, other, other], [], [torn, other]],
      ['a file that is torn, good and torn again', [torn, torn, 'old', torn, torn], [], [torn, torn]],
      ['a torn file that gets its old content back', [torn, torn, 'old'], [], [torn]],
      ['a folder in place of the file for one look', [null, 'old'], [], []],
      ['a folder in place of the file', [null, null, null], [], ['it is not a regular file']],
    ];
  await Promise.all(
    rows.map(([name, texts, live, failures]) =>
      t.test(name, async (t) => {
        const path = createPath(t);
        put(path, 'old');
        const bench = start(t, path);
        for (const text of texts) {
          put(path, text);
          await bench.file.look();
        }
        assert.deepEqual([bench.live, bench.failures], [live, failures]);
        const { reloads, reloadFailures, lastFailure } = bench.file.status();
        const isBad = failures.length > 0 && texts.at(-1) !== 'old';
        assert.deepEqual(
          [reloads, reloadFailures, lastFailure],
          [live.length, failures.length, isBad ? failures.at(-1) : undefined],
        );
      }),
    ),
  );
});

test('files that never existed are not a failure, and their first content is not a reload', async (t) => {
  const path = createPath(t);
  const { file, live, failures } = start(t, path, { paths: [path, `${path}.key`], liveContent: undefined });
  const lookThrice = async () => {
    for (let count = 0; count < 3; count++) await file.look();
    return [live.length, failures.length, file.status().reloads];
  };
  assert.deepEqual(await lookThrice(), [0, 0, 0]);
  put(path, 'a');
  assert.deepEqual(await lookThrice(), [0, 0, 0]);
  mkdirSync(`${path}.key`);
  assert.deepEqual(await lookThrice(), [0, 1, 0]);
  put(`${path}.key`, 'b');
  assert.deepEqual(await lookThrice(), [1, 1, 0]);
  assert.deepEqual(live, ['a + b']);
  put(path, 'x'.repeat(MAX_BYTES + 1));
  assert.deepEqual(await lookThrice(), [1, 2, 0]);
  assert.equal(failures[1], 'it is larger than 1000000 bytes');
  put(path, 'c');
  assert.deepEqual(await lookThrice(), [2, 2, 1]);
});

test('a file that is replaced by a longer one while it is read is not live in part', async (t) => {
  const path = createPath(t);
  put(path, 'old');
  const { file, live } = start(t, path);
  put(path, 'new');
  intercept(t, 'stat', () => put(path, 'a longer text'), path);
  await file.look();
  assert.deepEqual(live, ['a longer text']);
});

test('a file with an old stat is read when the stat changes, and from time to time when the file is small', async (t) => {
  const path = createPath(t);
  let reads = 0;
  intercept(t, 'readFile', () => reads++, path);
  intercept(t, 'open', () => reads++, path);
  for (const [size, isSmall] of [
    [70_000, false],
    [100, true],
  ] as const) {
    put(path, 'x'.repeat(size));
    let now = 0;
    const { file } = start(t, path, { now: () => now });
    const readsAt = async (time: number) => {
      const before = reads;
      now = time;
      await file.look();
      return reads - before;
    };
    assert.deepEqual([await readsAt(100), await readsAt(200), await readsAt(250)], [1, 1, Number(isSmall)], `${size}`);
    assert.deepEqual(
      [await readsAt(2590), await readsAt(2600), await readsAt(2601)],
      [1, Number(isSmall), 0],
      `${size}`,
    );
    // The last read of a large file is later after the change than the clock step of any file system.
    await readsAt(6000);
    assert.equal(await readsAt(6100), 0);
    assert.equal(await readsAt(20_000), Number(isSmall));
    assert.equal(await readsAt(20_600), 0);
    assert.equal(await readsAt(20_700), Number(isSmall));
    appendFileSync(path, 'y');
    assert.equal(await readsAt(20_800), 1);
    file.close();
  }
});

test('a large file that was missing is live again, even with an unchanged stat', async (t) => {
  const folder = createPath(t);
  mkdirSync(folder);
  const text = 'x'.repeat(70_000);
  writeFileSync(join(folder, 'file'), text);
  const link = `${folder}.link`;
  symlinkSync(folder, link);
  let now = 0;
  const { file, live } = start(t, join(link, 'file'), { now: () => now });
  for (now of [100, 200, 6000]) await file.look();
  rmSync(link);
  for (now of [10_000, 11_000]) await file.look();
  symlinkSync(folder, link);
  now = 12_000;
  await file.look();
  assert.deepEqual(live, [undefined, text]);
});

test('a file of several reads is live whole, also when only its last byte has changed', async (t) => {
  const path = createPath(t);
  put(path, 'old');
  const { file, live } = start(t, path, { maxBytes: 16_000_000 });
  // The numbers make each part of the text another one.
  const text = Array.from({ length: 1_300_000 }, (_, index) => index.toString(36).padStart(7)).join('');
  for (const last of ['', 'x', 'y', 'y']) {
    put(path, `${text}${last}`);
    await file.lookNow();
  }
  assert.ok(text.length > 9_000_000 && live[0] === text && live[1] === `${text}x` && live[2] === `${text}y`);
  assert.equal(live.length, 3);
});

test('a small file is read to its end, whatever size its stat has', {
  skip: fs.existsSync('/proc/version') ? false : 'no /proc',
}, async () => {
  const paths = ['/proc/version'];
  assert.equal(fs.statSync('/proc/version').size, 0);
  assert.ok(isSameContent(await readContentAsync(paths, 1000), readContent(paths, 1000)));
});

test('a look waits until the look before it has parsed its content', async (t) => {
  const path = createPath(t);
  put(path, 'old');
  let markBegun = () => {};
  let release = () => {};
  const begun = new Promise<void>((resolve) => {
    markBegun = resolve;
  });
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { file, live } = start(t, path, {
    async parse(content) {
      const text = content.files?.join();
      if (text === 'slow') {
        markBegun();
        await released;
      }
      return text;
    },
  });
  put(path, 'slow');
  file.look();
  await begun;
  put(path, 'new');
  const second = file.look();
  // If the second look did not wait, it would make its content live now.
  await new Promise((resolve) => setTimeout(resolve, 60));
  release();
  await second;
  assert.deepEqual(live, ['slow', 'new']);
});

test('a poll never replaces the content of a later look, and close ends all reloads', async (t) => {
  const path = createPath(t);
  put(path, 'old');
  const { file, live } = start(t, path, { pollMs: 1 });
  for (let i = 0; i < 50; i++) {
    writeFileSync(path, `new ${i}`);
    await file.look();
    assert.equal(live.at(-1), `new ${i}`);
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 3));
    assert.equal(live.at(-1), `new ${i}`);
  }
  writeFileSync(path, 'polled');
  await until(() => live.at(-1) === 'polled');
  file.close();
  writeFileSync(path, 'newest');
  await file.look();
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(live.at(-1), 'polled');
});

test('all calls of look in one turn share one read, which begins after them', async (t) => {
  const path = createPath(t);
  put(path, '0');
  const { file, live } = start(t, path);
  writeFileSync(path, '1');
  const first = file.look();
  assert.equal(file.look(), first);
  await first;
  assert.deepEqual(live, ['1']);
  const second = file.look();
  assert.notEqual(second, first);
  writeFileSync(path, '2');
  assert.equal(file.look(), second);
  await second;
  assert.deepEqual(live, ['1', '2']);
});
