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
    const ids = { trace_id: '4bf9', span_id: '00f0' };
    assert.match(show({ ...line, ...ids }), /w7EPrzg3j0Uj {2}trace_id 4bf9 {2}span_id 00f0\n$/);
    const failed = {
      event: 'request-failed',
      page: 'user',
      operation: 'index',
      error_code: 'X',
      request_id: 'r',
      ...ids,
    };
    assert.match(show(failed), /request r {2}trace_id 4bf9 {2}span_id 00f0\n/);
  });

  it('replaces control characters in the fields that a controller logs, and shows any object', () => {
    const said = { event: 'operation-info', message: 'paid', group: 'Order', operation: 'pay', request_id: 'r-1' };
    assert.match(
      show({ ...said, 'a\u001b[2J': 'b\u001b[2J' }),
      /info {4}paid {2}a\ufffd\[2J b\ufffd\[2J {2}Order\.pay {2}request r-1\n$/,
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
      [404, 33],
      [500, 31],
    ] as const)
      assert.ok(painted(status).includes(`\u001b[${code}m${status}`), String(status));
  });

  it('shows the frames of the controller first in a stack, and hides the frames of Node and Gatefold', () => {
    const own = modulePath('src/http/app');
    const stack = [
      'TypeError: no such user',
      '    at query (/srv/app/node_modules/db/index.js:1:2)',
      '    at load (file:///srv/app/controllers/UserController.ts:6:9)',
      '    at UserController.index (/srv/app/controllers/UserController.ts:2:20)',
      `    at run (${own}:10:5)`,
      '    at process.processTicksAndRejections (node:internal/process/task_queues:105:5)',
    ].join('\n');
    const line = {
      event: 'request-failed',
      level: 'error',
      page: 'user',
      operation: 'index',
      error_code: 'INTERNAL_ERROR',
      request_id: 'r-1',
    };
    assert.deepEqual(show({ ...line, error: 'no such user', error_name: 'TypeError', stack }).split('\n'), [
      `${clock}  error   user.index  INTERNAL_ERROR  request r-1`,
      '          TypeError: no such user',
      '          at load (controllers/UserController.ts:6:9)',
      '          at UserController.index (controllers/UserController.ts:2:20)',
      '          at query (node_modules/db/index.js:1:2)',
      '          … and 2 more of Node and packages',
      '',
    ]);
  });

  it('shows why a group does not load in the event of the group, and not in its failed requests', () => {
    const why = 'the group has no operations';
    const event = { event: 'group-not-loadable', level: 'error', file: 'UserController.ts', error: why };
    assert.deepEqual(show(event).split('\n'), [
      `${clock}  error   UserController.ts does not load, and answers 500`,
      '          UserController.ts',
      `          ${why}`,
      '',
    ]);
    const line = {
      event: 'request-failed',
      page: 'user',
      operation: 'index',
      error_code: 'GROUP_NOT_LOADABLE',
      request_id: 'r-1',
      error: why,
      cause: 'a cause',
      stack: 'Error: x\n    at load (/srv/app/controllers/UserController.ts:6:9)',
    };
    assert.equal(show(line), `${clock}  error   user.index  GROUP_NOT_LOADABLE  request r-1\n`);
    assert.equal(show({ ...line, page: '', operation: '' }), `${clock}  error   GROUP_NOT_LOADABLE  request r-1\n`);
    assert.deepEqual(
      show({ ...line, error_code: 'INTERNAL_ERROR' })
        .split('\n')
        .slice(1),
      [`          ${why}`, '          because a cause', '          at load (controllers/UserController.ts:6:9)', ''],
    );
  });

  it('shows the source of a file that does not load, with a caret at the error', (test) => {
    const dir = sourceFile(test, 'export default class UserController {\n  index() {\n\treturn { a: 1 ;\n  }\n}\n');
    const failure = {
      group: 'User',
      file: 'UserController.ts',
      error: 'SyntaxError: Unexpected token',
      at: join(dir, 'UserController.ts:3'),
    };
    const refused = {
      event: 'generation-rejected',
      level: 'error',
      generation: 2,
      effect: 'generation 1 serves on',
      ...failure,
      column: 16,
    };
    assert.deepEqual(show(refused, { ...options, cwd: dir }).split('\n'), [
      `${clock}  refused generation 1 serves on`,
      '          UserController.ts:3:16',
      '          SyntaxError: Unexpected token',
      '            1 │ export default class UserController {',
      '            2 │   index() {',
      '          > 3 │  return { a: 1 ;',
      '              │                ^',
      '            4 │   }',
      '',
    ]);
    // Without a column, the mark is at the beginning of the line. Without a place or a file, no source is shown.
    const never = show({ event: 'group-not-loadable', ...failure }, { ...options, cwd: dir });
    assert.match(
      never,
      /UserController\.ts does not load, and answers 500\n(?:.*\n)*.*> 3 │ {2}return [^\n]*\n +│ {2}\^\n/,
    );
    assert.doesNotMatch(show({ event: 'group-not-loadable', ...failure, at: undefined }), /│/);
    assert.doesNotMatch(show({ event: 'group-not-loadable', ...failure, at: '/gone:3' }), /│/);
  });

  it('cuts the source to the width of the terminal, and omits a caret beyond the width', (test) => {
    const wide = `\tx = 'a'; a(.b); /* ${'y'.repeat(300)} */ c(.d);`;
    const dir = sourceFile(test, `class A {\n${wide}\n}\n`);
    const failure = {
      event: 'group-not-loadable',
      file: 'UserController.ts',
      error: 'no',
      at: join(dir, 'UserController.ts:2'),
    };
    const frameOf = (mark: string, columns: number) => {
      const shown = show({ ...failure, column: wide.indexOf(mark) + 1 }, {
        ...options,
        columns: () => columns,
      } as typeof options);
      assert.ok(shown.includes(`UserController.ts:2:${wide.indexOf(mark) + 1}\n`));
      return shown.split('\n').filter((line) => line.includes('│'));
    };
    for (const columns of [40, 80, 400]) {
      const [, source = '', caret = '', ...more] = frameOf('.b', columns);
      assert.equal(source.length, Math.min(columns, 160 + '          > 2 │ '.length));
      assert.equal(source[caret.indexOf('^')], '.');
      assert.equal(more.length, 1);
      assert.equal(frameOf('.d', columns).length, 3);
    }
    const [, source = ''] = frameOf('.b', 3);
    assert.equal(source, '          > 2 │ ');
  });

  it('shows the cause of an error, and a stack that a controller logs as an error', () => {
    const line = { level: 'error', page: 'user', operation: 'index', error_code: 'INTERNAL_ERROR', request_id: 'r-1' };
    const stack =
      'Error: query failed\n    at load (/srv/app/controllers/UserController.ts:6:9)\n    at run (node:internal/x:1:2)';
    assert.deepEqual(
      show({ event: 'request-failed', ...line, error: 'query failed', cause: 'connect ECONNREFUSED', stack })
        .split('\n')
        .slice(1),
      [
        '          query failed',
        '          because connect ECONNREFUSED',
        '          at load (controllers/UserController.ts:6:9)',
        '          … and 1 more of Node and packages',
        '',
      ],
    );
    assert.deepEqual(show({ event: 'operation-error', message: 'no', error: stack }).split('\n').slice(1), [
      '          Error: query failed',
      '          at load (controllers/UserController.ts:6:9)',
      '          … and 1 more of Node and packages',
      '',
    ]);
    assert.match(
      show({ event: 'group-not-loadable', at: '/srv/app/A.ts:2', error: 'A.ts:2: no' }),
      /\n {10}A\.ts:2\n {10}no\n$/,
    );
    assert.match(show({ event: 'x', cause: 'a change' }), /cause a change\n$/);
  });

  it('shows the cause and the duration of a new generation', () => {
    const line = { event: 'generation-serving', generation: 2, groups: 1, took_ms: 85 };
    assert.equal(show({ ...line, cause: 'start' }), `${clock}  live    1 group, in 85 ms\n`);
    assert.equal(
      show({ ...line, cause: '/srv/app/controllers/UserController.ts' }),
      `${clock}  live    controllers/UserController.ts, in 85 ms\n`,
    );
    assert.equal(
      show({ event: 'generation-rejected', error: 'no worker starts', effect: 'generation 1 serves on' }),
      `${clock}  refused generation 1 serves on\n          no worker starts\n`,
    );
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
    assert.deepEqual(calls, [['write', `${clock}  stopped\n`], ['flush'], ['close']]);
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
