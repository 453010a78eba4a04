// The ordered array of routes: which row matches first, what a row captures, and tables that are refused at the start.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createRouter, takesMethod } from '../../src/http/router.ts';
import { ROUTES, type Route } from '../../src/http/routes.ts';

const row = (methods: Route['methods'], path: string): Route => ({ methods, path, target: 'gateway.index' });

test('the shipped table is the reference’s: explicit rows first, the three generic ones last', () => {
  assert.deepEqual(
    ROUTES.map(({ methods, path }) => `${methods === 'any' ? 'any' : methods.join()} ${path}`),
    [
      'POST /api/idp-signin',
      'POST /api/register',
      'GET,HEAD /api/openapi.json',
      'GET,HEAD /api/docs',
      'any /api/mcp',
      'any /api',
      'any /api/',
      'any /api/{params}',
    ],
  );
});

describe('resolve', () => {
  const rows: [path: string, verb: string, expected: string | undefined][] = [
    ['/api', 'GET', '/api page= slugs='],
    ['/api/', 'GET', '/api/ page= slugs='],
    ['//api//', 'GET', '/api/ page= slugs='],
    ['/api/x', 'GET', '/api/{params} page=x slugs='],
    ['/api/x/y/z', 'GET', '/api/{params} page=x slugs=y|z'],
    ['/api/x%2Fy', 'GET', '/api/{params} page=x slugs=y'],
    ['/api/x%2Fy%2Fz/a', 'GET', '/api/{params} page=x slugs=y/z|a'],
    ['/api/x/y%2Fz', 'GET', '/api/{params} page=x slugs=y/z'],
    ['/api/x%252Fy', 'GET', '/api/{params} page=x%2Fy slugs='],
    ['/api/%2Fx', 'GET', '/api/{params} page= slugs=x'],
    ['/api/register', 'POST', '/api/register page=register slugs='],
    ['/api/register/', 'POST', '/api/register page=register slugs='],
    ['/api/register', 'GET', '/api/{params} page=register slugs='],
    ['/api/register/x', 'POST', '/api/{params} page=register slugs=x'],
    ['/api/docs', 'GET', '/api/docs page=docs slugs='],
    ['/api/docs', 'POST', '/api/{params} page=docs slugs='],
    ['/api/docs/x', 'GET', '/api/{params} page=docs slugs=x'],
    ['/api/openapi.json', 'HEAD', '/api/openapi.json page=openapi.json slugs='],
    ['/', 'GET', undefined],
    ['/x/api', 'GET', undefined],
  ];
  const router = createRouter(ROUTES);
  for (const [path, verb, expected] of rows) {
    test(`${verb} ${path}`, () => {
      const found = router.resolve(path).matches.find(({ route }) => takesMethod(route, verb));
      assert.equal(found && `${found.route.path} page=${found.groupInUrl} slugs=${found.slugs.join('|')}`, expected);
    });
  }

  test('the same path is resolved once, and a flood of paths stays bounded', () => {
    const first = router.resolve('/api/kept');
    assert.equal(router.resolve('/api/kept'), first);
    for (let i = 0; i < 2000; i++) router.resolve(`/api/flood${i}`);
    assert.notEqual(router.resolve('/api/kept'), first);
  });

  test('what made-up paths leave behind is bounded in bytes, too', async () => {
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    const flooded = createRouter(ROUTES);
    // A first run, so that the memory of compiled code is not counted.
    flooded.resolve('/api/a/b');
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < 2000; i++) {
      const target = `/api/x${i}${'/a'.repeat(60)}?${'q'.repeat(16_000)}`;
      flooded.resolve(target.slice(0, target.indexOf('?')));
      flooded.resolve(`/api/${i}${'/a'.repeat(4000)}`);
    }
    collect();
    const grown = process.memoryUsage().heapUsed - before;
    assert.ok(grown < 12_000_000, `${grown} bytes`);
    assert.equal(flooded.resolve('/api/a/b').matches.length, 1);
  });
});

describe('createRouter refuses a row that can never be reached, naming both', () => {
  const rows: [name: string, table: Route[], message: RegExp | undefined][] = [
    ['the shipped table', [...ROUTES], undefined],
    [
      'a specific row below the generic one',
      [row('any', '/api/{params}'), row(['POST'], '/api/x')],
      /POST \/api\/x can never be reached: any \/api\/\{params\}/,
    ],
    ['the same row twice', [row(['GET'], '/a'), row(['GET'], '/a')], /GET \/a can never be reached: GET \/a/],
    [
      'two rows that together take all methods',
      [row(['GET'], '/a'), row(['POST'], '/a'), row(['GET', 'POST'], '/a')],
      /GET, POST \/a can never be reached/,
    ],
    ['any below one method', [row(['GET'], '/a'), row('any', '/a')], undefined],
    ['one method below any', [row('any', '/a'), row(['GET'], '/a')], /any \/a is above/],
    ['another method', [row(['GET'], '/a'), row(['POST'], '/a')], undefined],
    ['{params} below a literal', [row('any', '/a/b'), row('any', '/a/{params}')], undefined],
    ['{params} twice', [row('any', '/a/{params}'), row('any', '/a/{params}')], /can never be reached/],
    ['a deeper {params}', [row('any', '/a/{params}'), row('any', '/a/b/{params}')], /can never be reached/],
    ['the two spellings of the root', [row('any', '/api'), row('any', '/api/')], undefined],
    ['a shorter literal', [row('any', '/a/b'), row('any', '/a')], undefined],
    ['a parameter in the middle', [row('any', '/a/{params}/b')], /\{params\} is not a literal segment/],
  ];
  for (const [name, table, message] of rows) {
    test(name, () => {
      if (message === undefined) createRouter(table);
      else assert.throws(() => createRouter(table), message);
    });
  }
});
