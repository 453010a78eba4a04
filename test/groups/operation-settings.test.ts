// `static operations`: which forms are read, which setting applies to which operation, and which forms refuse the file.
import assert from 'node:assert/strict';
import { constants } from 'node:buffer';
import { describe, test } from 'node:test';
import { LoadRefusal } from '../../src/base/load-refusal.ts';
import { readMountSettings } from '../../src/groups/operation-settings.ts';
import { createGroup, instantiate } from '../../src/groups/operations.ts';

const groupOf = (exported: unknown) => createGroup('X', instantiate('X', { default: exported }), () => false);
const settingsOf = (exported: unknown, name: string) => groupOf(exported).operations.get(name)?.settings;
const schema = { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } };

describe('static operations', () => {
  test('are empty when the controller sets none', () => {
    assert.deepEqual(
      settingsOf(
        class {
          index() {}
        },
        'index',
      ),
      {},
    );
    assert.deepEqual(settingsOf({ index() {} }, 'index'), {});
  });

  test("override '*' for the operation that they name", () => {
    class X {
      static operations = {
        '*': { timeout: 5, access: 'application' },
        index: { timeout: 7 },
        'GET {id}': { body: schema },
      };
      index() {}
      created() {}
      'GET {id}'() {}
    }
    assert.deepEqual(settingsOf(X, 'index'), { timeout: 7, access: 'application' });
    assert.deepEqual(settingsOf(X, 'created'), { timeout: 5, access: 'application' });
    assert.deepEqual(settingsOf(X, 'GET {id}'), { timeout: 5, access: 'application', body: schema });
    assert.deepEqual(settingsOf(new X(), 'index'), { timeout: 7, access: 'application' });
  });

  test('are inherited from a base class unless the class overrides them', () => {
    class Base {
      static operations: object = {
        '*': { access: 'application' },
        created: { bodyLimit: 1 },
        helper: { hidden: true },
      };
      index() {}
      created() {}
      helper() {}
    }
    class X extends Base {
      static override operations = { index: { access: 'anyone' } };
    }
    assert.deepEqual(settingsOf(X, 'index'), { access: 'anyone' });
    assert.deepEqual(settingsOf(X, 'created'), { access: 'application', bodyLimit: 1 });
  });

  test('prefer the operation to the class, and the class to its ancestors', () => {
    class Base {
      static operations: object = { '*': { access: 'application', timeout: 5 }, created: { access: { scope: 'a' } } };
      index() {}
      created() {}
    }
    class X extends Base {
      static override operations: object = { '*': { access: 'anyone' } };
    }
    class Y extends X {
      static override operations = { created: { access: { scope: 'b' } } };
    }
    assert.deepEqual(settingsOf(X, 'index'), { access: 'anyone', timeout: 5 });
    assert.deepEqual(settingsOf(X, 'created'), { access: { scope: 'a' }, timeout: 5 });
    assert.deepEqual(settingsOf(Y, 'created'), { access: { scope: 'b' }, timeout: 5 });
  });

  test('can be a property of an object', () => {
    assert.deepEqual(settingsOf({ operations: { index: { status: 202 } }, index() {} }, 'index'), { status: 202 });
  });

  test('can be an imported module', async () => {
    const operations = await import(
      `data:text/javascript,${encodeURIComponent("export const index = { access: 'application' }")}`
    );
    assert.deepEqual(settingsOf({ operations, index() {} }, 'index'), { access: 'application' });
  });

  test('cannot change after the load', () => {
    const scope = { scope: 'a' };
    const accepts = ['image/*'];
    const operations: Record<string, object> = { index: { access: scope, accepts } };
    const settings = settingsOf({ operations, index() {} }, 'index');
    assert.throws(() => Object.assign(operations, { '*': { access: 'anyone' } }), TypeError);
    assert.throws(() => Object.assign(operations.index ?? {}, { access: 'anyone' }), TypeError);
    assert.throws(() => Object.assign(scope, { scope: 'b' }), TypeError);
    accepts.push('text/html');
    assert.deepEqual(settings, { access: { scope: 'a' }, accepts: ['image/*'] });
  });

  test('accept unchecked for one operation or for all', () => {
    const controller = {
      operations: { '*': { unchecked: true }, index: { unchecked: false } },
      index() {},
      created() {},
    };
    assert.deepEqual(settingsOf(controller, 'index'), { unchecked: false });
    assert.deepEqual(settingsOf(controller, 'created'), { unchecked: true });
  });

  test('accept a schema that is a function', () => {
    const callable = Object.assign(() => 1, schema);
    assert.equal(
      settingsOf({ operations: { index: { body: callable, query: callable, result: callable } }, index() {} }, 'index')
        ?.body,
      callable,
    );
  });

  const schemaForm = 'a Standard Schema or a JSON Schema';
  const duration = 'a number of milliseconds, a day at most';
  const rate = 'a rate such as 100/s, 5000/h, 20/15m or 100/s burst 500';
  const forms: Readonly<Record<string, readonly [wrong: unknown, form: string]>> = {
    accepts: ['image/png', 'a list of media types such as image/png or image/*'],
    bodyLimit: ['1MiB', 'a number of bytes'],
    timeout: ['1m', duration],
    bodyTimeout: ['1m', duration],
    access: [
      'admin',
      "'anyone', 'application', 'user', 'caller', { scope: '…' }, a function (params) => boolean, or a list of these",
    ],
    limit: [1, `${rate}, or { rate: '20/15m', by: (params) => text, count: 'failures' }, where by is not async`],
    body: [{}, "a Standard Schema, a JSON Schema or 'stream'"],
    query: [{}, schemaForm],
    path: ['stream', schemaForm],
    result: [[], schemaForm],
    results: ['all', "'declared'"],
    status: [204, 'a status from 200 to 299 whose answer has a body'],
    closed: ['yes', 'true or false'],
    unchecked: ['yes', 'true or false'],
    summary: ['', 'a text'],
    hidden: ['yes', 'true or false'],
    tool: ['a b', 'true, false, or the name of the tool: 1 to 64 letters, digits, _ and -'],
  };
  test('say which form each property has', () => {
    const read = (settings: object) => settingsOf({ operations: { index: settings }, index() {} }, 'index');
    for (const [property, [wrong, form]] of Object.entries(forms))
      assert.throws(
        () => read({ [property]: wrong }),
        new LoadRefusal('INVALID_SETTING', `static operations: "index": ${property} must be ${form}`),
      );
    const message = `static operations: "index" has the unknown property a; there are ${Object.keys(forms).join(', ')}`;
    assert.throws(() => read({ a: 1 }), new LoadRefusal('INVALID_SETTING', message));
  });
  test('of a mount say which form each property has', () => {
    for (const [kind, property, wrong, form] of [
      ['web', 'cors', 'all', "'own' or 'service'"],
      ['node', 'strip', 'yes', 'true or false'],
      ['node', 'upgrade', {}, 'a function (request, socket, head, params)'],
    ] as const)
      assert.throws(
        () => readMountSettings({ [property]: wrong }, kind),
        new LoadRefusal('INVALID_SETTING', `mount: ${property} must be ${form}`),
      );
    assert.throws(
      () => readMountSettings([], 'web'),
      new LoadRefusal('INVALID_SETTING', 'the settings of a mount must be a plain object'),
    );
    for (const [settings, message] of [
      [{ limit: undefined }, 'mount: limit is undefined: leave it out'],
      [
        Object.defineProperty({}, 'limit', { get: () => 1, enumerable: true }),
        'mount: limit is an accessor: write the value itself',
      ],
      [Object.defineProperty({}, 'limit', { value: 1 }), 'mount: limit is not enumerable: write it into the object'],
      [{ [Symbol('limit')]: 1 }, 'mount: Symbol(limit) is a symbol, which names nothing'],
    ] as const)
      assert.throws(() => readMountSettings(settings, 'web'), new LoadRefusal('INVALID_SETTING', message));
    const own = 'access, limit, timeout, bodyLimit, bodyTimeout, summary, hidden, unchecked, cors';
    assert.throws(
      () => readMountSettings({ strip: true }, 'web'),
      new LoadRefusal('INVALID_SETTING', `mount has the unknown property strip; there are ${own}`),
    );
  });

  const limits: [property: string, accepted: unknown[], refused: unknown[], message: RegExp][] = [
    [
      'bodyTimeout',
      [1, 86_400_000],
      [0, 86_400_001, '1m'],
      /bodyTimeout must be a number of milliseconds, a day at most/,
    ],
    ['bodyLimit', [1, constants.MAX_STRING_LENGTH], [0, 0.5, 2 ** 53], /bodyLimit must be a number of bytes$/],
    [
      'limit',
      ['1/s', { rate: '1/s' }, { rate: '1/s', by: () => 'a' }, { rate: '1/s', count: 'failures' }],
      [
        ...['1', {}, { by: () => 'a' }, { rate: '1' }, { rate: 1 }, { rate: '1/s', burst: 1 }],
        ...[
          { rate: '1/s', by: async () => 'a' },
          { rate: '1/s', by: 'ip' },
          { rate: '1/s', count: 'all' },
        ],
      ],
      /limit must be a rate such as/,
    ],
    ['timeout', [1, 86_400_000], [0, 0.5, 86_400_001], /timeout must be a number of milliseconds, a day at most/],
    ['status', [200, 299], [199, 204, 205, 300], /status must be a status from 200 to 299 whose answer has a body/],
    ['tool', ['t'.repeat(64)], ['', 't'.repeat(65), 't.t', 1], /tool must be true, false, or the name of the tool/],
    ['summary', ['a'], ['', 1], /summary must be a text/],
  ];
  for (const [property, accepted, refused, message] of limits)
    test(`accept ${property} up to its limits`, () => {
      const read = (value: unknown) =>
        settingsOf({ operations: { index: { [property]: value } }, index() {} }, 'index');
      for (const value of accepted) assert.deepEqual(read(value), { [property]: value });
      for (const value of refused) assert.throws(() => read(value), message, String(value));
    });

  const refused: [name: string, operations: unknown, message: RegExp][] = [
    ['a text', 'index', /must be a plain object/],
    ['a list', [], /must be a plain object/],
    ['null', null, /must be a plain object/],
    ['a key that names no operation', { find: {} }, /"find" names no operation/],
    ['a key that names a guard', { _before: {} }, /"_before" names no operation/],
    ['a setting that is not an object', { index: true }, /"index" must be a plain object/],
    [
      'an unknown property',
      { index: { acess: 'application' } },
      /unknown property acess; there are accepts, bodyLimit/,
    ],
    ['a property of Object', { index: { toString: 1 } }, /unknown property toString/],
    [
      'an unknown access',
      { index: { access: 'admin' } },
      /access must be 'anyone', 'application', 'user', 'caller', \{ scope: '…' \}/,
    ],
    ['access with an empty scope', { index: { access: { scope: '' } } }, /access must be/],
    ['access with more than a scope', { index: { access: { scope: 'a', role: 'b' } } }, /access must be/],
    ['accepts that is a text', { index: { accepts: 'image/png' } }, /accepts must be a list of media types/],
    ['accepts that is empty', { index: { accepts: [] } }, /accepts must be/],
    ['accepts without a media type', { index: { accepts: ['png'] } }, /accepts must be/],
    ['a body limit that is a text', { index: { bodyLimit: '1MiB' } }, /bodyLimit must be/],
    [
      'a body limit above the longest string',
      { index: { bodyLimit: constants.MAX_STRING_LENGTH + 1 } },
      /"index": a bodyLimit over \d+ needs body: 'stream'$/,
    ],
    [
      'a body that is not a schema',
      { index: { body: {} } },
      /body must be a Standard Schema, a JSON Schema or 'stream'/,
    ],
    ['a schema beside accepts', { index: { body: schema, accepts: ['image/*'] } }, /no schema of a body checks/],
    [
      'a schema beside accepts with a type that is not decoded',
      { index: { body: schema, accepts: ['application/json', 'image/png'] } },
      /no schema of a body checks/,
    ],
    ['unchecked that is a text', { index: { unchecked: 'yes' } }, /unchecked must be true or false/],
    ['hidden that is a text', { '*': { hidden: 'yes' } }, /"\*": hidden must be true or false/],
  ];
  for (const [name, operations, message] of refused) {
    test(`${name} refuses the file`, () => {
      class X {
        static operations = operations;
        _before() {}
        index() {}
      }
      assert.throws(() => groupOf(X), message);
    });
  }
});
