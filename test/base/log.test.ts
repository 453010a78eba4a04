// What the log says of whatever is thrown or logged: always a line, never a second error.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createLog, describeError } from '../../src/base/log.ts';

const throwing = (property: string) =>
  Object.defineProperty(new Error('hidden'), property, {
    get() {
      throw new Error('a getter');
    },
  });
const cycle: Record<string, unknown> = {};
cycle.self = cycle;

describe('describeError', () => {
  const rows: [name: string, thrown: unknown, error: string][] = [
    ['an error', new Error('plain'), 'plain'],
    ['a text', 'text', 'text'],
    ['nothing', undefined, 'undefined'],
    ['a symbol', Symbol('s'), 'Symbol(s)'],
    ['an object with a message', { message: 'no such user', code: 7 }, 'no such user'],
    [
      'an object with fields, whose values may be secrets',
      { code: 7, password: 'hidden' },
      'an object with code, password',
    ],
    ['an object without fields', {}, 'an object with no fields'],
    ['an object with a text of its own', { toString: () => 'its own' }, 'its own'],
    ['a list', [1, 2], '1,2'],
    [
      'an error of the network that has a code alone',
      Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }),
      'ECONNREFUSED',
    ],
    ['an error that says nothing', new Error(), ''],
    ['an object without prototype', Object.create(null), 'a value that cannot be converted to text'],
    ['a message that throws', throwing('message'), 'a value that cannot be converted to text'],
    ['a stack that throws', throwing('stack'), 'hidden'],
    ['a cause that throws', throwing('cause'), 'hidden'],
    ['a name that is a BigInt', Object.assign(new Error('odd'), { name: 1n }), 'odd'],
    ['a name that is a cycle', Object.assign(new Error('odd'), { name: cycle }), 'odd'],
    ['a message that is a BigInt', Object.assign(new Error(), { message: 2n }), '2'],
    [
      'a proxy that throws at everything',
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

  it('names the cause, the code and the place', () => {
    const error = Object.assign(new Error('outer', { cause: new Error('inner') }), { code: 'E_CODE' });
    const { cause, error_cause_code, error_name, stack } = describeError(error);
    assert.deepEqual([cause, error_cause_code, error_name], ['inner', 'E_CODE', 'Error']);
    assert.match(String(stack), /log\.test\.ts/);
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
    it(`writes a line for fields that have no JSON: ${name}`, () => {
      const lines: string[] = [];
      createLog({ level: 'info', sink: { write: (line) => void lines.push(line), flush: () => {} } }).error(
        'something',
        fields,
      );
      const [line] = lines.map((text) => JSON.parse(text));
      assert.equal(line.event, 'something');
      assert.equal(typeof line.unloggable, 'string');
    });
  }
});
