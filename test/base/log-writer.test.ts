// The log writer never splits a line, holds a bounded number of bytes while nobody reads, and delays no end of the
// process. The pipes are real, because only a real pipe splits writes and blocks.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { pbkdf2 } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { createLog } from '../../src/base/log.ts';
import { cutLine } from '../../src/base/log-line.ts';
import { createLogWriter } from '../../src/base/log-writer.ts';
import { moduleUrl } from '../support/own-modules.ts';

/** The facts that each line of `operation-info` has. Such a line may have others, too. */
const REQUEST = { request_id: 'r-1', group: 'Test', operation: 'index', message: 'm' };
const PIPE_BUF = 4096;
const PIPE_CAPACITY = 65_536;

function tempFolder(test: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'gatefold-log-'));
  test.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** A pipe with both ends in this process. */
function openPipe(test: TestContext) {
  const path = join(tempFolder(test), 'pipe');
  execFileSync('mkfifo', [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const fd = openSync(path, constants.O_WRONLY);
  test.after(() => {
    closeSync(reader);
    closeSync(fd);
  });
  const chunk = Buffer.alloc(PIPE_CAPACITY);
  return {
    fd,
    /** Returns the bytes that are in the pipe, as text. */
    read(): string {
      try {
        return chunk.subarray(0, readSync(reader, chunk)).toString();
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return '';
        throw error;
      }
    },
  };
}

const parse = (text: string): Record<string, unknown>[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));

const manyFields = (value: () => unknown) =>
  Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`field${i}`, value()]));

describe('a log line', () => {
  const rows: { name: string; fields: Record<string, unknown>; keeps?: Record<string, unknown> }[] = [
    {
      name: 'a long path',
      fields: { path: `/api/${'x'.repeat(12_000)}`, status: 404, request_id: 'r-1' },
      keeps: { status: 404, request_id: 'r-1' },
    },
    {
      name: 'a stack and a cause, both long',
      fields: { stack: 'at a\n'.repeat(2000), cause: '"'.repeat(9000), error: 'e' },
      keeps: { error: 'e' },
    },
    { name: 'characters of more than one byte', fields: { error: 'ü→😀'.repeat(1500) } },
    {
      name: 'a long list',
      fields: { groups: Array.from({ length: 3000 }, (_, i) => ({ group: `G${i}`, error: 'broken' })), generation: 7 },
      keeps: { generation: 7 },
    },
    { name: 'very many fields', fields: Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`field${i}`, i])) },
    {
      name: 'very many fields with numbers as names',
      fields: Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [i, 'stock'])),
      keeps: { request_id: 'r-1', 0: 'stock' },
    },
    { name: 'a long name of a field', fields: { ['k'.repeat(9000)]: 1 } },
    { name: 'deeply nested lists', fields: { deep: JSON.parse(`${'['.repeat(2500)}${']'.repeat(2500)}`) } },
    {
      name: 'very many nested fields',
      fields: { deep: manyFields(() => manyFields(() => manyFields(() => 'x'.repeat(100)))) },
      keeps: { request_id: 'r-1' },
    },
  ];
  for (const { name, fields, keeps = {} } of rows) {
    it(`is cut to the size of an atomic write and stays JSON: ${name}`, (test) => {
      const { fd, read } = openPipe(test);
      const writer = createLogWriter(fd);
      createLog({ level: 'info', sink: writer }).info('operation-info', { ...REQUEST, ...fields });
      writer.close();
      const text = read();
      assert.ok(Buffer.byteLength(text) <= PIPE_BUF, `${Buffer.byteLength(text)} bytes`);
      const [line = {}, ...more] = parse(text);
      assert.deepEqual(more, []);
      assert.equal(line.event, 'operation-info');
      assert.equal(line.cut, true);
      for (const [field, value] of Object.entries(keeps)) assert.equal(line[field], value);
      if (name === 'a long list') assert.match(String((line.groups as unknown[]).at(-1)), /^… and \d+ more$/);
    });
  }

  it('is not cut when it fits into an atomic write', (test) => {
    const { fd, read } = openPipe(test);
    const writer = createLogWriter(fd);
    createLog({ level: 'info', sink: writer }).info('operation-info', { ...REQUEST, path: 'x'.repeat(3800) });
    writer.close();
    const [line = {}] = parse(read());
    assert.equal(String(line.path).length, 3800);
    assert.equal(line.cut, undefined);
  });
});

describe('cutLine', () => {
  const lineOf = (fields: object) => `${JSON.stringify(fields)}\n`;
  const head = { event: 'x', request_id: 'r-1' };

  it('keeps texts of 2000 characters and lists of 100 items, and cuts longer ones', () => {
    const text = 'a'.repeat(2000);
    const list = Array.from({ length: 100 }, (_, i) => i);
    const fitting = { ...head, text, list };
    assert.equal(cutLine(lineOf(fitting), 4096), lineOf({ ...fitting, cut: true }));
    assert.equal(
      cutLine(lineOf({ ...head, text: `${text}a`, list: [...list, 100, 101] }), 4096),
      lineOf({ ...head, text: `${text}…`, list: [...list, '… and 2 more'], cut: true }),
    );
  });

  it('keeps four levels of lists and objects', () => {
    const deep = (inner: unknown) => ({ ...head, a: { b: [{ c: inner }] }, list: [[['x', {}]]], none: null });
    const cut = { ...head, a: { b: [{ c: '…' }] }, list: [[['x', '…']]], none: null, cut: true };
    assert.equal(cutLine(lineOf(deep({ d: 1 })), 4096), lineOf(cut));
    assert.equal(cutLine(lineOf(deep(1)), 4096), lineOf({ ...cut, a: { b: [{ c: 1 }] } }));
  });

  it('uses all bytes of a line, and halves the texts for less', () => {
    const line = lineOf({ ...head, text: 'a'.repeat(3000) });
    const cutTo = (length: number) => lineOf({ ...head, text: `${'a'.repeat(length)}…`, cut: true });
    const bytes = Buffer.byteLength(cutTo(2000));
    assert.equal(cutLine(line, bytes), cutTo(2000));
    assert.equal(cutLine(line, bytes - 1), cutTo(1000));
    assert.equal(cutLine(line, 130), cutTo(62));
    assert.equal(cutLine(line, 100), lineOf({ ...head, cut: true }));
  });
});

describe('the log writer', () => {
  it('writes only whole lines to a pipe that is almost full', (test) => {
    const { fd, read } = openPipe(test);
    const writer = createLogWriter(fd);
    // The pipe has room for one write of PIPE_BUF bytes. It would split a longer write.
    for (let filled = 0; filled < PIPE_CAPACITY - PIPE_BUF; filled += PIPE_BUF) writeSync(fd, 'f'.repeat(PIPE_BUF));
    for (let i = 0; i < 60; i++) writer.write(`${JSON.stringify({ text: 'ü'.repeat(60), i })}\n`);
    writer.flush();
    const lines = parse(read().replace(/^f+/, ''));
    assert.ok(lines.length > 5);
    writer.close();
    assert.equal(lines.length + parse(read()).length, 60);
  });

  it('drops and counts lines while nobody reads, and logs the count once somebody reads', {
    timeout: 60_000,
  }, async (test) => {
    const { fd, read } = openPipe(test);
    const writer = createLogWriter(fd);
    const line = `${JSON.stringify({ text: 'x'.repeat(1000) })}\n`;
    const written = 20_000;
    for (let i = 0; i < written; i++) writer.write(line);
    const dropped = writer.droppedLines();
    assert.ok(dropped > 5000, `${dropped} lines dropped, so ${((written - dropped) * line.length) >> 20} MiB are held`);
    const received: string[] = [];
    // A search in all that was received would take long.
    for (let last = ''; !last.includes('log-lines-dropped'); await sleep(1)) {
      const text = read();
      received.push(text);
      last = last.slice(-100) + text;
    }
    writer.close();
    const lines = parse(received.join('') + read());
    const told = lines.filter(({ event }) => event === 'log-lines-dropped');
    assert.deepEqual(
      told.map(({ level, lines }) => [level, lines]),
      [['warn', dropped]],
    );
    assert.equal(lines.length - 1 + dropped, written);
    assert.equal(writer.droppedLines(), dropped);
  });

  it('writes held and new lines in order once the pipe is read', (test) => {
    const { fd, read } = openPipe(test);
    const writer = createLogWriter(fd);
    for (let i = 0; i < 2000; i++) writer.write(`{"i":${i},"text":"${'x'.repeat(100)}"}\n`);
    writer.flush();
    const held = read();
    assert.ok(held.length > PIPE_BUF);
    // The pipe was full, and is now empty.
    writer.write('{"i":2000}\n');
    writer.close();
    let received = held;
    for (let text = read(); text !== ''; text = read()) {
      received += text;
      writer.close();
    }
    assert.deepEqual(
      parse(received).map(({ i }) => i),
      Array.from({ length: 2001 }, (_, i) => i),
    );
  });

  const WRITER = JSON.stringify(moduleUrl('src/base/log-writer'));
  const stuck = `import { createLogWriter } from ${WRITER};
    const writer = createLogWriter(2);
    for (let i = 0; i < 500; i++) writer.write('x'.repeat(1000) + '\\n');
    writer.flush();
    setTimeout(() => { writer.close(); process.exit(7); }, 50);`;
  const child = (test: TestContext, stdio: Parameters<typeof spawn>[2]['stdio'], script = stuck) => {
    const started = spawn(
      process.execPath,
      [...process.execArgv.filter((arg) => arg !== '--test'), '--input-type=module', '-e', script],
      {
        stdio,
      },
    );
    test.after(() => started.kill('SIGKILL'));
    return started;
  };

  it('lets a process exit when nobody reads the pipe of its log', { timeout: 60_000 }, async (test) => {
    const { fd } = openPipe(test);
    const [code, signal] = await once(child(test, ['ignore', 'ignore', fd]), 'exit');
    assert.deepEqual([code, signal], [7, null]);
  });

  it('lets a process exit when the clock is set back while nobody reads its log', { timeout: 60_000 }, async (test) => {
    const { fd } = openPipe(test);
    const clock = 'let time = Date.now(); Date.now = () => (time -= 1000);';
    const [code, signal] = await once(child(test, ['ignore', 'ignore', fd], stuck + clock), 'exit');
    assert.deepEqual([code, signal], [7, null]);
  });

  it('lets a process exit when nobody reads the socket of its log', { timeout: 60_000 }, async (test) => {
    // Node's pipes between processes are sockets, and systemd's journal is a socket, too.
    const started = child(test, ['ignore', 'ignore', 'pipe']);
    const [code, signal] = await once(started, 'exit');
    assert.deepEqual([code, signal], [7, null]);
  });

  it('does not block on a socket that another process has set to blocking mode', { timeout: 60_000 }, async (test) => {
    // The start of a process that inherits the descriptor sets the socket to wait.
    const script = `import { spawnSync } from 'node:child_process';
      import { createLogWriter } from ${WRITER};
      const writer = createLogWriter(2);
      for (let i = 0; i < 500; i++) writer.write('x'.repeat(1000) + '\\n');
      writer.flush();
      spawnSync('true', { stdio: ['ignore', 'ignore', 'inherit'] });
      setTimeout(() => {
        spawnSync('true', { stdio: ['ignore', 'ignore', 'inherit'] });
        writer.close();
        process.exit(7);
      }, 50);`;
    const [code, signal] = await once(child(test, ['ignore', 'ignore', 'pipe'], script), 'exit');
    assert.deepEqual([code, signal], [7, null]);
  });

  it('restores the blocking mode of a shared socket for later writers', { timeout: 60_000 }, async (test) => {
    // The shell outlives the process that logs, and writes more than the socket holds.
    const script = `"$@"; head -c 3000000 /dev/zero | tr '\\0' x >&2; echo end >&2`;
    const log = `import { createLogWriter } from ${WRITER}; const log = createLogWriter(2); log.write('line\\n'); log.close();`;
    const node = [
      process.execPath,
      ...process.execArgv.filter((arg) => arg !== '--test'),
      '--input-type=module',
      '-e',
      log,
    ];
    const shell = spawn('sh', ['-c', script, 'sh', ...node], { stdio: ['ignore', 'ignore', 'pipe'] });
    test.after(() => shell.kill('SIGKILL'));
    const chunks: Buffer[] = [];
    for await (const chunk of shell.stderr) {
      chunks.push(chunk);
      await sleep(1);
    }
    const text = Buffer.concat(chunks).toString();
    assert.equal(text.length, 'line\n'.length + 3_000_000 + 'end\n'.length);
  });

  it('writes all lines whole and in order to a socket before the process exits', async (test) => {
    const script = `import { createLogWriter } from ${WRITER};
      const writer = createLogWriter(2);
      for (let i = 0; i < 3000; i++) writer.write(JSON.stringify({ i, text: 'ü'.repeat(i % 700) }) + '\\n');
      // This process, which reads, can pause for longer than \`close\` waits.
      performance.now = () => 0;
      writer.close();
      process.exit();`;
    let received = '';
    for await (const text of (child(test, ['ignore', 'ignore', 'pipe'], script).stderr as Readable).setEncoding('utf8'))
      received += text;
    assert.deepEqual(
      parse(received).map(({ i }) => i),
      Array.from({ length: 3000 }, (_, i) => i),
    );
  });

  it('drops its lines when the descriptor is closed', (test) => {
    const fd = openSync(join(tempFolder(test), 'log'), 'a');
    closeSync(fd);
    const writer = createLogWriter(fd);
    writer.write('line\n');
    writer.close();
  });

  it('writes all lines to a file before it closes', (test) => {
    const path = join(tempFolder(test), 'log');
    const fd = openSync(path, 'a');
    const writer = createLogWriter(fd);
    for (let i = 0; i < 5000; i++) writer.write(`{"i":${i}}\n`);
    writer.close();
    closeSync(fd);
    assert.equal(parse(readFileSync(path, 'utf8')).length, 5000);
  });

  it('keeps a batch whose write waits for a free thread when it closes', async (test) => {
    const path = join(tempFolder(test), 'log');
    const fd = openSync(path, 'a');
    test.after(() => closeSync(fd));
    const writer = createLogWriter(fd);
    const others = Array.from({ length: 8 }, () => promisify(pbkdf2)('', '', 50_000, 32, 'sha512'));
    for (let i = 0; i < 100; i++) writer.write(`{"i":${i},"text":"first"}\n`);
    writer.flush();
    for (let i = 100; i < 150; i++) writer.write(`{"i":${i},"text":"second"}\n`);
    writer.close();
    await Promise.all(others);
    for (let lines: unknown[] = []; lines.length < 150; await sleep(1)) lines = parse(readFileSync(path, 'utf8'));
    const numbers = parse(readFileSync(path, 'utf8')).map(({ i }) => Number(i));
    assert.deepEqual(
      numbers.sort((a, b) => a - b),
      Array.from({ length: 150 }, (_, i) => i),
    );
  });
});
