// The log for people: how a terminal shows the lines of JSON.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { createInk } from '../../src/base/ink.ts';
import { describeError } from '../../src/base/log.ts';
import { createPrettyWriter, prettyLine } from '../../src/base/pretty.ts';
import { modulePath } from '../support/own-modules.ts';

const time = '2026-01-02T03:04:05.000Z';
const clock = new Date(time).toTimeString().slice(0, 8);
const options = { ink: createInk({ isTTY: false, env: {} }), cwd: '/srv/app' };
const show = (line: object, given = options) =>
  prettyLine(`${JSON.stringify({ time, level: 'info', pid: 7, ...line })}\n`, given);

function sourceFile(test: TestContext, text: string): string {
  const dir = mkdtempSync(join(tmpdir(), 'gatefold-pretty-'));
  test.after(() => rmSync(dir, { recursive: true, force: true }));
  writeFileSync(join(dir, 'UserController.ts'), text);
  return dir;
}

describe('prettyLine', () => {
  it('shows a request with time, method, path, status, milliseconds and credential', () => {
    const line = {
      event: 'request',
      method: 'GET',
      path: '/api/user',
      status: 200,
      duration_ms: 1.234,
      credential: 'w7EPrzg3j0Uj',
    };
    assert.match(show(line), new RegExp(`^${clock}  GET     /api/user +200 +1\\.2 ms  w7EPrzg3j0Uj\\n$`));
    assert.match(show({ ...line, credential: '' }), /1\.2 ms\n$/);
  });

  it('replaces control characters in the fields that a controller logs, and shows any object', () => {
    const said = { event: 'operation-info', message: 'paid', group: 'Order', operation: 'pay', request_id: 'r-1' };
    assert.match(
      show({ ...said, 'a\u001b[2J': 'b\u001b[2J' }),
      /info {4}operation-info {2}message paid {2}.* {2}request_id r-1 {2}a\ufffd\[2J b\ufffd\[2J\n$/,
    );
    for (const [name, value] of Object.entries({ error: { toString: 1, valueOf: 1 }, error_name: { toString: 1 } }))
      assert.match(show({ ...said, error: 'e', [name]: value }), /"toString":1/, name);
  });

  it('colours the status by its class', () => {
    const ink = createInk({ isTTY: true, env: {} });
    const painted = (status: number) =>
      show({ event: 'request', method: 'GET', path: '/', status, duration_ms: 1 }, { ...options, ink });
    for (const [status, code] of [
      [200, 32],
      [304, 32],
      [399, 32],
      [400, 33],
      [404, 33],
      [500, 31],
    ] as const)
      assert.ok(painted(status).includes(`\u001b[${code}m${status}`), String(status));
  });

  it('colours the level of any other event', () => {
    const ink = createInk({ isTTY: true, env: {} });
    for (const [level, code] of [
      ['error', 31],
      ['warn', 33],
      ['info', 2],
      ['debug', 2],
    ] as const)
      assert.ok(
        show({ event: 'stopped', level }, { ...options, ink }).includes(`\u001b[${code}m${level.padEnd(7)}`),
        level,
      );
  });

  it('shows the places of a stack that are in the code of the author, and counts the others', () => {
    const own = modulePath('src/request/app');
    const places = [
      '    at query (/srv/app/node_modules/db/index.js:1:2)',
      '    at load (file:///srv/app/controllers/UserController.ts:6:9)',
      '    at UserController.index (/srv/app/controllers/UserController.ts:2:20)',
      `    at run (${own}:10:5)`,
      '    at process.processTicksAndRejections (node:internal/process/task_queues:105:5)',
    ];
    const shown = (lines: readonly string[], more: object = {}) => {
      const error = { error: 'no such user', error_name: 'TypeError', stack: ['TypeError: x', ...lines].join('\n') };
      return show({ event: 'request-failed', level: 'error', page: 'user', request_id: 'r-1', ...error, ...more });
    };
    assert.deepEqual(shown(places, { cause: 'connect ECONNREFUSED' }).split('\n'), [
      `${clock}  error   request-failed  page user  request_id r-1  cause connect ECONNREFUSED`,
      '          TypeError: no such user',
      '          at load (controllers/UserController.ts:6:9)',
      '          at UserController.index (controllers/UserController.ts:2:20)',
      '          … and 3 more of Node and packages',
      '',
    ]);
    const [query = '', , , run = '', tick = ''] = places;
    assert.deepEqual(shown([query, run, tick, tick], { error_name: 'Error' }).split('\n').slice(1), [
      '          no such user',
      '          at query (node_modules/db/index.js:1:2)',
      `          ${run.trim()}`,
      `          ${tick.trim()}`,
      '          … and 1 more of Node and packages',
      '',
    ]);
    assert.deepEqual(
      shown(places.slice(1, 2), { error: 'outer\n    at inner (/srv/app/a.ts:1:1)' }).split('\n').slice(1),
      [
        '          TypeError: outer',
        '              at inner (/srv/app/a.ts:1:1)',
        '          at load (controllers/UserController.ts:6:9)',
        '',
      ],
    );
    const stack = ['TypeError: logged', ...places].join('\n');
    assert.deepEqual(show({ event: 'operation-error', level: 'error', message: 'no', err: stack }).split('\n'), [
      `${clock}  error   operation-error  message no`,
      '          TypeError: logged',
      '          at load (controllers/UserController.ts:6:9)',
      '          at UserController.index (controllers/UserController.ts:2:20)',
      '          … and 3 more of Node and packages',
      '',
    ]);
    assert.match(shown([tick], { error: undefined }), /r-1\n {10}at process\.processTicks/);
  });

  it('shows the place and the source line of a mistake, with a caret', (test) => {
    const dir = sourceFile(test, 'export default class UserController {\n  index() {\n\treturn { a: 1 ;\n  }\n}\n');
    const refused = {
      event: 'generation-rejected',
      level: 'error',
      effect: 'generation 1 serves on',
      error: 'SyntaxError: Unexpected token',
      at: join(dir, 'UserController.ts:3'),
      column: 16,
    };
    assert.deepEqual(show(refused, { ...options, cwd: dir }).split('\n'), [
      `${clock}  error   generation-rejected  effect generation 1 serves on`,
      '          SyntaxError: Unexpected token',
      '          UserController.ts:3:16',
      '           return { a: 1 ;',
      '                         ^',
      '',
    ]);
    // Without a column, the caret is at the beginning of the line. Without a place or a file, no source is shown.
    assert.match(show({ ...refused, column: undefined }), /UserController\.ts:3\n {11}return [^\n]*\n {11}\^\n/);
    assert.doesNotMatch(show({ ...refused, at: undefined }), /\^/);
    // A controller may log any number as `column`.
    assert.doesNotMatch(show({ ...refused, column: -5 }), /\^/);
    assert.match(show({ ...refused, at: '/gone:3' }), /\n {10}\/gone:3:16\n$/);
  });

  it('cuts the source to the width of the terminal, and omits a caret beyond the width', (test) => {
    const wide = `\tx = 'a'; a(.b); /* ${'y'.repeat(300)} */ c(.d);`;
    const dir = sourceFile(test, `class A {\n${wide}\n}\n`);
    const failure = { event: 'group-not-loadable', error: 'no', at: join(dir, 'UserController.ts:2') };
    const linesOf = (mark: string, columns: number | undefined) => {
      const given = { ...options, columns: () => columns };
      return show({ ...failure, column: wide.indexOf(mark) + 1 }, given)
        .split('\n')
        .slice(3, -1);
    };
    for (const columns of [40, 80, 400, undefined]) {
      const [source = '', caret = '', ...more] = linesOf('.b', columns);
      assert.equal(source.length, Math.min(columns ?? 160, 160));
      assert.equal(source[caret.indexOf('^')], '.');
      assert.deepEqual(more, []);
      assert.equal(linesOf('.d', columns).length, 1);
    }
    assert.deepEqual(linesOf('.b', 3), [' '.repeat(10)]);
    assert.deepEqual([linesOf('.b', 22).length, linesOf('.b', 23).length], [1, 2]);
  });

  it('shows any other event with its level, its name and its facts', () => {
    const line = {
      event: 'worker-died',
      level: 'error',
      worker: 12,
      reason: 'it was ended by SIGKILL',
      list: [1],
      page: '',
    };
    assert.equal(show(line), `${clock}  error   worker-died  worker 12  reason it was ended by SIGKILL  list [1]\n`);
    assert.match(
      show({ event: 'x', ...describeError(new RangeError('too far')) }),
      /\n {10}RangeError: too far\n {10}at .*pretty\.test\.ts/,
    );
  });

  it('hides the first load of the credentials, and shows a reload', () => {
    assert.equal(show({ event: 'credentials-loaded', rows: 1, reloads: 0 }), '');
    assert.match(show({ event: 'credentials-loaded', rows: 1, reloads: 1 }), /credentials-loaded {2}rows 1/);
  });

  it('shows no control characters, whichever field of an event has them', () => {
    const evil = '\u001b[2J\u009b\u202e';
    const lines = [
      { event: evil, reason: evil, error: evil, stack: `x\n    at ${evil}` },
      { event: 'request', method: 'GET', path: evil, status: 200, duration_ms: 1, credential: evil },
      { event: 'request-failed', page: evil, operation: evil, error_code: evil, request_id: evil, error: evil },
      { event: 'group-not-loadable', file: evil, error: evil, at: evil },
      { event: 'generation-serving', cause: evil, groups: 1, took_ms: 1 },
    ];
    for (const line of lines) assert.doesNotMatch(show(line).replaceAll('\n', ''), /\p{C}/u);
  });

  it('leaves a line that is not JSON unchanged', () => assert.equal(prettyLine('a list\n', options), 'a list\n'));
});

describe('createPrettyWriter', () => {
  function makeWriter() {
    const calls: [method: string, text?: string][] = [];
    const sink = {
      write: (line: string) => void calls.push(['write', line]),
      pass: (lines: string) => void calls.push(['pass', lines]),
      isShared: true,
      flush: () => void calls.push(['flush']),
      close: () => void calls.push(['close']),
      droppedLines: () => 3,
    };
    return { calls, writer: createPrettyWriter(sink, options) };
  }
  const line = `${JSON.stringify({ time, level: 'info', event: 'stopped' })}\n`;

  it('formats a line, and passes every other call to its sink', () => {
    const { calls, writer } = makeWriter();
    writer.write(line);
    writer.flush();
    writer.close();
    assert.deepEqual(calls, [['pass', `${clock}  info    stopped\n`], ['flush'], ['close']]);
    assert.deepEqual([writer.droppedLines(), writer.isShared], [3, true]);
  });

  it('passes the lines of other processes unchanged, because those processes format their lines', () => {
    const { calls, writer } = makeWriter();
    // A line that looks like JSON stays as it is, too.
    const texts = [`${clock}  stopped\n          a second line of text\n`, line, `${line}${line}`];
    for (const text of texts) writer.pass(text);
    assert.deepEqual(
      calls,
      texts.map((text) => ['pass', text]),
    );
  });
});
