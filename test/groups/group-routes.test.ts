// Routes of a group: names that are one, names that refuse the file, first fit, and what can never be reached.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkReachable, fitRoute, type GroupRoute, parseRouteName, verbsOf } from '../../src/groups/group-routes.ts';

const routes = (...names: string[]): GroupRoute[] => names.map((name) => parseRouteName(name) as GroupRoute);

describe('parseRouteName', () => {
  for (const name of [
    'index',
    'find_all',
    '_before',
    'GET',
    'a b',
    'find {id}',
    '/items',
    '{id}',
    'with-dash',
    'GET/items',
  ])
    test(`${name} is none`, () => assert.equal(parseRouteName(name), undefined));

  const refused: [name: string, reason: RegExp][] = [
    ['get {id}', /in capitals/],
    ['TRACE {id}', /must begin with one of GET, HEAD/],
    ['GET ', /a segment of it is empty/],
    ['GET /{id}', /without a slash/],
    ['GET a//b', /a segment of it is empty/],
    ['GET a/', /a segment of it is empty/],
    ['GET  a', /neither \{name\}/],
    ['GET {id}.csv', /"\{id\}\.csv" is neither/],
    ['GET {id', /is neither/],
    ['GET {}', /is neither/],
    ['GET {__proto__}', /is neither/],
    ['GET *', /is neither/],
    ['GET a?b', /is neither/],
    ['GET %41', /is neither/],
    ['GET {a}/{a}', /has \{a\} twice/],
    ['GET {a*}/b', /must be last/],
  ];
  for (const [name, reason] of refused)
    test(`${name} refuses the file`, () => assert.throws(() => parseRouteName(name), reason));
});

describe('fitRoute', () => {
  const table = routes(
    'GET export.csv',
    'GET {id}',
    'GET {id}/items/{item}',
    'HEAD {id}/items/{item}',
    'POST {id}/pay',
    'GET files/{path*}',
    'GET é',
  );
  const rows: [verb: string, path: string[], name: string | undefined, captured?: Record<string, string>][] = [
    ['GET', ['export.csv'], 'GET export.csv', {}],
    ['GET', ['EXPORT.csv'], 'GET {id}', { id: 'EXPORT.csv' }],
    ['GET', ['7'], 'GET {id}', { id: '7' }],
    ['HEAD', ['7'], 'GET {id}', { id: '7' }],
    ['HEAD', ['7', 'items', '3'], 'HEAD {id}/items/{item}', { id: '7', item: '3' }],
    ['GET', ['7', 'items', 'a/b'], 'GET {id}/items/{item}', { id: '7', item: 'a/b' }],
    ['GET', ['7', 'items'], undefined],
    ['POST', ['7', 'pay'], 'POST {id}/pay', { id: '7' }],
    ['POST', ['7'], undefined],
    ['GET', ['files'], 'GET {id}', { id: 'files' }],
    ['GET', ['files', 'a'], 'GET files/{path*}', { path: 'a' }],
    ['GET', ['files', 'a', 'b', 'c'], 'GET files/{path*}', { path: 'a/b/c' }],
    ['GET', ['constructor'], 'GET {id}', { id: 'constructor' }],
  ];
  for (const [verb, path, name, captured] of rows) {
    test(`${verb} ${path.join(' / ')} → ${name}`, () => {
      const fit = fitRoute(table, verb, path);
      assert.equal(fit?.route.name, name);
      assert.deepEqual(fit?.path, captured);
    });
  }

  test('verbsOf names the methods under which a path exists', () => {
    assert.deepEqual([...verbsOf(table, ['7', 'pay'])], ['POST']);
    assert.deepEqual([...verbsOf(table, ['7'])], ['GET', 'HEAD']);
    assert.deepEqual([...verbsOf(table, ['7', 'a', 'b', 'c'])], []);
  });
});

describe('checkReachable', () => {
  const refused: [names: string[], posted: string[], message: RegExp][] = [
    [['GET {id}', 'GET export.csv'], [], /'GET export\.csv' can never be reached: 'GET \{id\}' stands above it/],
    [['GET {id}', 'GET {name}'], [], /'GET \{name\}' can never be reached/],
    [['GET {all*}', 'GET a/{b}/c'], [], /'GET a\/\{b\}\/c' can never be reached/],
    [['GET {all*}', 'GET a/{b*}'], [], /'GET a\/\{b\*\}' can never be reached/],
    [['POST {id}', 'POST pay'], ['pay'], /'POST pay' can never be reached/],
    [['POST pay/{id}'], ['pay'], /'POST pay\/\{id\}' can never be reached: the operation pay/],
  ];
  for (const [names, posted, message] of refused)
    test(names.join(', '), () => assert.throws(() => checkReachable(routes(...names), posted), message));

  const sound: [names: string[], posted: string[]][] = [
    [['GET export.csv', 'GET {id}'], []],
    [['GET {id}', 'POST {id}', 'HEAD {id}', 'GET {id}/a'], []],
    [['GET a/{b}', 'GET {a}/b'], []],
    [['GET {a}/{b}', 'GET {all*}'], []],
    [['GET {id}', 'GET {path*}'], []],
    [['GET a/{b*}', 'GET {all*}'], []],
    [['GET pay', 'POST {id}/pay'], ['pay']],
  ];
  for (const [names, posted] of sound)
    test(`${names.join(', ')} can all be reached`, () => checkReachable(routes(...names), posted));
});
