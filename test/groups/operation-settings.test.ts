// `static operations`: which forms are read, which setting applies to which operation, and which forms refuse the file.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createGroup, instantiate } from '../../src/groups/operations.ts';

const groupOf = (exported: unknown) => createGroup('X', instantiate('X', { default: exported }), () => false);
const settingsOf = (exported: unknown, name: string) => groupOf(exported).operations.get(name)?.settings;
const schema = { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } };

describe('static operations', () => {
  test('nothing said is nothing set', () => {
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

  test('of one operation wins over those of all', () => {
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

  test('what a base class says holds until a class says otherwise', () => {
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

  test('a class comes before its ancestors, and an operation before all of them', () => {
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

  test('of an object they are its property', () => {
    assert.deepEqual(settingsOf({ operations: { index: { status: 202 } }, index() {} }, 'index'), { status: 202 });
  });

  test('a module may hold them', async () => {
    const operations = await import(
      `data:text/javascript,${encodeURIComponent("export const index = { access: 'application' }")}`
    );
    assert.deepEqual(settingsOf({ operations, index() {} }, 'index'), { access: 'application' });
  });

  test('what was checked is what holds: a change that comes later is an error', () => {
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

  test('unchecked says aloud that types are not checked, for one operation or for all', () => {
    const controller = {
      operations: { '*': { unchecked: true }, index: { unchecked: false } },
      index() {},
      created() {},
    };
    assert.deepEqual(settingsOf(controller, 'index'), { unchecked: false });
    assert.deepEqual(settingsOf(controller, 'created'), { unchecked: true });
  });

  test('a schema may be a function', () => {
    const callable = Object.assign(() => 1, schema);
    assert.equal(
      settingsOf({ operations: { index: { body: callable, query: callable, result: callable } }, index() {} }, 'index')
        ?.body,
      callable,
    );
  });

  const refused: [name: string, operations: unknown, message: RegExp][] = [
    ['no object', 'index', /must be a plain object/],
    ['a list', [], /must be a plain object/],
    ['null', null, /must be a plain object/],
    ['a key that names no operation', { find: {} }, /"find" names no operation/],
    ['a key that names what is no operation', { _before: {} }, /"_before" names no operation/],
    ['settings that are no object', { index: true }, /"index" must be a plain object/],
    [
      'an unknown property',
      { index: { acess: 'application' } },
      /unknown property acess; there are accepts, bodyLimit/,
    ],
    ['a property of Object', { index: { toString: 1 } }, /unknown property toString/],
    [
      'access that is none',
      { index: { access: 'admin' } },
      /access must be 'anyone', 'application', 'user', 'caller', \{ scope: '…' \}/,
    ],
    ['access with an empty scope', { index: { access: { scope: '' } } }, /access must be/],
    ['access with more than a scope', { index: { access: { scope: 'a', role: 'b' } } }, /access must be/],
    ['accepts that is a text', { index: { accepts: 'image/png' } }, /accepts must be a list of media types/],
    ['accepts that is empty', { index: { accepts: [] } }, /accepts must be/],
    ['accepts that is no type', { index: { accepts: ['png'] } }, /accepts must be/],
    ['a limit of 0', { index: { bodyLimit: 0 } }, /bodyLimit must be a number of bytes/],
    ['a limit as a text', { index: { bodyLimit: '1MiB' } }, /bodyLimit must be/],
    ['a limit that no string can hold', { index: { bodyLimit: 2 ** 40 } }, /needs body: 'stream'/],
    ['a time limit of half a millisecond', { index: { timeout: 0.5 } }, /timeout must be a number of milliseconds/],
    ['a time limit that no timer takes', { index: { timeout: 2 ** 31 } }, /timeout must be/],
    ['a body that is no schema', { index: { body: {} } }, /body must be a Standard Schema or 'stream'/],
    ['a schema beside accepts', { index: { body: schema, accepts: ['image/*'] } }, /no schema of a body checks/],
    ['a status of an error', { index: { status: 404 } }, /status must be/],
    ['a status without a body', { index: { status: 204 } }, /status must be/],
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
