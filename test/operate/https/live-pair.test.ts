// Certificate files that change: which pairs are used, which are refused, and what is logged. The files are real, and
// the poll is faster than the shipped one.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { createLog } from '../../../src/base/log.ts';
import { createLivePair, type LivePair } from '../../../src/operate/https/live-pair.ts';
import { makePair, type TestPair } from '../../support/tls.ts';

const root = mkdtempSync(join(tmpdir(), 'gatefold-pair-'));
const open: LivePair[] = [];
// A watch keeps no process alive.
const alive = setInterval(() => {}, 1000);
after(() => {
  clearInterval(alive);
  for (const pair of open) pair.close();
  rmSync(root, { recursive: true, force: true });
});

let folders = 0;

/** Creates a folder with this pair, a live pair of it, and a way to wait for each event in its log. */
function watch(first: TestPair | undefined, { mayComeLater = false, linked = false, pollMs = 20 } = {}) {
  const folder = join(root, String(++folders));
  mkdirSync(join(folder, 'a'), { recursive: true });
  if (first !== undefined) put(join(folder, 'a'), first);
  if (linked) symlinkSync('a', join(folder, 'live'));
  const at = linked ? join(folder, 'live') : join(folder, 'a');
  const events: Record<string, unknown>[] = [];
  const waiting: [event: string, told: () => void][] = [];
  const write = (line: string) => {
    const event = JSON.parse(line) as Record<string, unknown>;
    events.push(event);
    for (const [name, told] of waiting) if (name === event.event) told();
  };
  const pair = createLivePair({
    certPath: join(at, 'cert.pem'),
    keyPath: join(at, 'key.pem'),
    mayComeLater,
    log: createLog({ level: 'debug', sink: { write, flush: () => {} } }),
    onPair: () => {},
    pollMs,
  });
  open.push(pair);
  const next = (event: string) => new Promise<void>((told) => waiting.push([event, told]));
  return { folder, at, pair, events, next, name: () => pair.current()?.facts.names[0] };
}

function put(folder: string, { cert, key }: TestPair): void {
  writeFileSync(join(folder, 'cert.pem'), cert);
  writeFileSync(join(folder, 'key.pem'), key);
}

const old = makePair('old.example.com');
const anew = makePair('new.example.com');

describe('createLivePair takes a new pair', () => {
  test('written in place', async () => {
    const { at, next, name, events } = watch(old);
    const loaded = next('certificate-loaded');
    put(at, anew);
    await loaded;
    assert.equal(name(), 'new.example.com');
    assert.equal(events.filter(({ level }) => level === 'error').length, 0);
  });

  test('by a swapped symbolic link, as a mounted secret comes', async () => {
    const { folder, next, name } = watch(old, { linked: true });
    mkdirSync(join(folder, 'b'));
    put(join(folder, 'b'), anew);
    symlinkSync('b', join(folder, 'next'));
    const loaded = next('certificate-loaded');
    renameSync(join(folder, 'next'), join(folder, 'live'));
    await loaded;
    assert.equal(name(), 'new.example.com');
  });

  test('in the place of a damaged one, with mayComeLater', async () => {
    const { at, next, name } = watch({ ...old, cert: old.cert.slice(0, 99) }, { mayComeLater: true });
    assert.equal(name(), undefined);
    const loaded = next('certificate-loaded');
    put(at, anew);
    await loaded;
    assert.equal(name(), 'new.example.com');
  });

  test('in an empty folder, with mayComeLater', async () => {
    const { at, next, name, pair } = watch(undefined, { mayComeLater: true });
    assert.deepEqual([name(), pair.status().lastFailure], [undefined, undefined]);
    const loaded = next('certificate-loaded');
    put(at, anew);
    await loaded;
    assert.equal(name(), 'new.example.com');
  });
});

describe('createLivePair keeps the last good pair, and logs the reason once', () => {
  const rows: [what: string, spoil: (at: string) => void, reason: RegExp][] = [
    [
      'a certificate without its key',
      (at) => writeFileSync(join(at, 'cert.pem'), anew.cert),
      /the key does not belong to the certificate$/,
    ],
    [
      'a torn certificate',
      (at) => writeFileSync(join(at, 'cert.pem'), anew.cert.slice(0, 200)),
      /the certificate is damaged or incomplete$/,
    ],
    ['an empty file', (at) => writeFileSync(join(at, 'key.pem'), ''), /the file has no private key in PEM form$/],
    ['a file that is gone', (at) => rmSync(join(at, 'key.pem')), /there is no such file$/],
    [
      'a folder in the place of the key',
      (at) => {
        rmSync(join(at, 'key.pem'));
        mkdirSync(join(at, 'key.pem'));
      },
      /it is not a regular file$/,
    ],
    [
      'a file that is too large',
      (at) => writeFileSync(join(at, 'cert.pem'), 'x'.repeat(2_000_000)),
      /it is larger than 1048576 bytes$/,
    ],
  ];
  for (const [what, spoil, reason] of rows) {
    test(what, async () => {
      const { at, next, name, events, pair } = watch(old);
      const failed = next('certificate-reload-failed');
      spoil(at);
      await failed;
      assert.equal(name(), 'old.example.com');
      assert.match(String(pair.status().lastFailure), reason);
      for (const key of [old.key, anew.key]) assert.ok(!JSON.stringify(events).includes(key.split('\n')[1] as string));
      rmSync(join(at, 'key.pem'), { recursive: true, force: true });
      const loaded = next('certificate-loaded');
      put(at, anew);
      await loaded;
      assert.deepEqual([name(), pair.status().lastFailure, pair.status().reloads], ['new.example.com', undefined, 1]);
      assert.equal(events.filter(({ event }) => event === 'certificate-reload-failed').length, 1);
    });
  }

  test('a pair that does not fit is a failure only after three looks, because two files are not replaced at once', async () => {
    const { at, pair } = watch(old, { pollMs: 60_000 });
    writeFileSync(join(at, 'cert.pem'), anew.cert);
    const failures: number[] = [];
    while (failures.length < 4) {
      await pair.look();
      failures.push(pair.status().reloadFailures);
    }
    assert.deepEqual(failures, [0, 0, 1, 1]);
  });

  test('an absent pair with mayComeLater is not a failure', async () => {
    const { pair, events } = watch(undefined, { mayComeLater: true, pollMs: 60_000 });
    for (let look = 0; look < 5; look++) await pair.look();
    assert.deepEqual([pair.status().reloadFailures, pair.status().lastFailure, events], [0, undefined, []]);
  });

  test('a failure is forgotten when the old files are back', async () => {
    const { at, next, pair } = watch(old);
    const failed = next('certificate-reload-failed');
    writeFileSync(join(at, 'key.pem'), '');
    await failed;
    put(at, old);
    await pair.look();
    assert.deepEqual(
      [pair.status().lastFailure, pair.status().reloads, pair.status().reloadFailures],
      [undefined, 0, 1],
    );
  });
});

describe('createLivePair refuses to start', () => {
  const rows: [what: string, pair: TestPair | undefined, mayComeLater: boolean, reason: RegExp][] = [
    ['without a pair', undefined, false, /there is no such file$/],
    ['with a damaged pair', { ...old, cert: old.cert.slice(0, 99) }, false, /the certificate is damaged/],
  ];
  for (const [what, pair, mayComeLater, reason] of rows) {
    test(what, () => {
      assert.throws(() => watch(pair, { mayComeLater }), reason);
    });
  }
});
