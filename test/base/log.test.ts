// For any thrown or logged value, the log has one line, and logging itself never fails.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createLog, describeError } from '../../src/base/log.ts';
import { cutLine } from '../../src/base/log-line.ts';
import { createTaskLog } from '../../src/base/operation-log.ts';
import { createMemoryLog } from '../support/memory-log.ts';

/** The facts that each line of `operation-error` has. Such a line may have others, too. */
const REQUEST = { request_id: 'r-1', group: 'Test', operation: 'index', message: 'm' };

const throwing = (property: string) =>
  Object.defineProperty(new Error('hidden'), property, {
    get() {
      throw new Error('a getter');
    },
  });
const cycle: Record<string, unknown> = {};
cycle.self = cycle;

describe('a log', () => {
  it('accepts only the events of a level with their facts, and the compiler refuses all others', () => {
    const log = createLog({ level: 'silent', sink: { write() {} } });
    const load = {
      group: 'User',
      file: 'UserController.ts',
      code: undefined,
      error: 'e',
      at: undefined,
      column: undefined,
    };
    log.error('group-not-loadable', load);
    log.error('group-not-loadable', { ...load, error: undefined });
    // @ts-expect-error: no such event
    log.error('group-not-loaded', load);
    // @ts-expect-error: an event of another level
    log.warn('group-not-loadable', load);
    // @ts-expect-error: a fact that is missing
    log.error('group-not-loadable', { group: 'User' });
    // @ts-expect-error: a fact of another type
    log.error('group-not-loadable', { ...load, column: '1' });
    // @ts-expect-error: a fact that the event does not have
    log.error('group-not-loadable', { ...load, hung: true });
    const more = { ...load, hung: true };
    // @ts-expect-error: the same in a value that has more than the event takes
    log.error('group-not-loadable', more);
    // @ts-expect-error: the same in a spread value
    log.error('group-not-loadable', { ...more, column: 1 });
    log.error('clock-wrong', { seconds: 1, by: 'x', to_do: 'y' });
    // @ts-expect-error: facts of two forms of one event, and neither is complete
    log.error('clock-wrong', { seconds: 1, valid_from: 'x', to_do: 'y' });
  });
});

describe('describeError', () => {
  const rows: [name: string, thrown: unknown, error: string][] = [
    ['an error', new Error('plain'), 'plain'],
    ['a text', 'text', 'text'],
    ['undefined', undefined, 'undefined'],
    ['a symbol', Symbol('s'), 'Symbol(s)'],
    ['an object with a message', { message: 'no such user', code: 7 }, 'no such user'],
    [
      'an object by its field names, without the values',
      { code: 7, password: 'hidden' },
      'an object with code, password',
    ],
    ['an object without fields', {}, 'an object with no fields'],
    ['an object with its own toString', { toString: () => 'its own' }, 'its own'],
    ['a list', [1, 2], '1,2'],
    [
      'a network error that has only a code',
      Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }),
      'ECONNREFUSED',
    ],
    ['an error without a message', new Error(), ''],
    ['an object without prototype', Object.create(null), 'a value that cannot be converted to text'],
    ['an error whose message throws', throwing('message'), 'a value that cannot be converted to text'],
    ['an error whose stack throws', throwing('stack'), 'hidden'],
    ['an error whose cause throws', throwing('cause'), 'hidden'],
    ['an error whose name is a BigInt', Object.assign(new Error('odd'), { name: 1n }), 'odd'],
    ['an error whose name is a cycle', Object.assign(new Error('odd'), { name: cycle }), 'odd'],
    ['an error whose message is a BigInt', Object.assign(new Error(), { message: 2n }), '2'],
    [
      'a proxy whose traps throw',
      new Proxy(new Error('never seen'), {
        get: () => {
          throw new Error('a trap');
        },
        getPrototypeOf: () => {
          throw new Error('a trap');
        },
      }),
      'a value that cannot be converted to text',
    ],
  ];
  for (const [name, thrown, error] of rows) {
    it(`describes ${name}`, () => {
      const fields = describeError(thrown);
      assert.equal(fields.error, error);
      assert.equal(JSON.parse(JSON.stringify(fields)).error, error);
    });
  }

  it('cuts long texts, and names the first fields of an object', () => {
    const long = 'x'.repeat(5000);
    const error = Object.assign(new Error(long, { cause: long }), { name: long, code: long, stack: long });
    const lengths = Object.entries(describeError(error)).map(([name, text]) => [name, String(text).length]);
    assert.deepEqual(Object.fromEntries(lengths), {
      ...{ error: 1000, cause: 1000, error_name: 100, error_cause_code: 100, stack: 4000 },
    });
    const query = describeError(new Error(`SELECT ${'x, '.repeat(2000)}`));
    assert.match(String(query.stack), /^Error: SELECT x, .{1,200}…\n {4}at .*log\.test\.ts/);
    const names = Array.from({ length: 21 }, (_, i) => `f${i}`);
    const { error: described } = describeError(Object.fromEntries(names.map((name) => [name, 1])));
    assert.equal(described, `an object with ${names.slice(0, 20).join(', ')}`);
  });

  // A client may have sent the message. To look for the places from each line break would take hours.
  it('shortens a message of a million line breaks', () => {
    const { stack } = describeError(new Error(`${'\n'.repeat(1_000_000)}x`));
    assert.match(String(stack), /^Error: \n+…\n {4}at .*log\.test\.ts/);
  });

  it('returns the cause, its code, the name and the stack', () => {
    const error = Object.assign(new Error('outer', { cause: new Error('inner') }), { code: 'E_CODE' });
    const { cause, error_cause_code, error_name, stack } = describeError(error);
    assert.deepEqual([cause, error_cause_code, error_name], ['inner', 'E_CODE', 'Error']);
    assert.match(String(stack), /log\.test\.ts/);
    const refused = new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED', { cause: 7 }) });
    assert.equal(
      describeError(new Error('no stock', { cause: refused })).cause,
      'fetch failed: connect ECONNREFUSED: 7',
    );
    const circle = Object.assign(new Error('circle'), { cause: error });
    error.cause = circle;
    assert.equal(describeError(circle).cause, 'outer: circle: outer: circle: outer');
  });
});

describe('createLog', () => {
  const rows: [name: string, fields: Record<string, unknown>][] = [
    ['a cycle', { cycle }],
    ['a BigInt', { big: 1n }],
    [
      'a toJSON that throws',
      {
        odd: {
          toJSON() {
            throw new Error('no');
          },
        },
      },
    ],
  ];
  for (const [name, fields] of rows) {
    it(`logs an event whose fields cannot be written as JSON: ${name}`, () => {
      const lines: string[] = [];
      createLog({ level: 'info', sink: { write: (line) => void lines.push(line) } }).error('operation-error', {
        ...REQUEST,
        ...fields,
      });
      const [line] = lines.map((text) => JSON.parse(text));
      assert.equal(line.event, 'operation-error');
      assert.equal(typeof line.unloggable, 'string');
    });
  }

  it('replaces a lone surrogate, which some readers of JSON refuse, and no other text', () => {
    const lines: string[] = [];
    const write = (line: string) => void lines.push(line);
    const facts = { ...REQUEST, message: 'a\ud83d b\udc00', '\ud800': '😀', text: '\\ud800 \\\\ud800\u0000' };
    createLog({ level: 'info', sink: { write } }).info('operation-info', facts);
    const line = JSON.parse(lines.join());
    assert.deepEqual([line.message, line['\ufffd'], line.text], ['a\ufffd b\ufffd', '😀', '\\ud800 \\\\ud800\u0000']);
    assert.doesNotMatch(cutLine(`${JSON.stringify({ text: 'a'.repeat(1999) + '😀'.repeat(2000) })}\n`, 4096), /\\ud/);
  });

  it('says why a line has no fields in 200 characters at most', () => {
    const lines: string[] = [];
    const toJSON = () => {
      throw new Error('x'.repeat(300));
    };
    createLog({ level: 'info', sink: { write: (line) => void lines.push(line) } }).error('operation-error', {
      ...{ ...REQUEST, odd: { toJSON } },
    });
    assert.equal(JSON.parse(lines.join()).unloggable, `Error: ${'x'.repeat(193)}`);
  });

  it('writes the events of its level and of the levels above, and flushes after warnings and errors', () => {
    for (const [level, expected] of [
      ['debug', 'debug info warn flush error flush'],
      ['info', 'info warn flush error flush'],
      ['warn', 'warn flush error flush'],
      ['error', 'error flush'],
      ['silent', ''],
    ] as const) {
      const calls: string[] = [];
      const sink = {
        write: (line: string) => void calls.push(JSON.parse(line).level),
        flush: () => void calls.push('flush'),
      };
      const log = createLog({ level, sink });
      log.debug('identity-keys-loaded', { provider: 'p', keys: 1 });
      log.info('operation-info', REQUEST);
      log.warn('operation-warning', REQUEST);
      log.error('operation-error', REQUEST);
      assert.equal(calls.join(' '), expected, level);
    }
  });
});

it('the log of a task names the task in each line, also when the fields do', () => {
  const { log, lines } = createMemoryLog();
  const own = createTaskLog(log, 'clean');
  own.info('a', { task: 'other', n: 1 });
  own.warn('b');
  own.error('c');
  assert.deepEqual(lines, [
    { event: 'task-info', message: 'a', task: 'clean', n: 1 },
    { event: 'task-warning', message: 'b', task: 'clean' },
    { event: 'task-error', message: 'c', task: 'clean' },
  ]);
});
