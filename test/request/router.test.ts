// The ordered array of routes: which row matches first, what a row captures, and tables that are refused at the start.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createRouter, takesMethod } from '../../src/request/router.ts';
import { ROUTES, type Route } from '../../src/request/routes.ts';

const row = (methods: Route['methods'], path: string): Route => ({ methods, path, target: 'gateway.index' });

test('the shipped route table has the explicit rows first and the three generic rows last', () => {
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
    ['/api/x/!~%20%7E%C2%A0', 'GET', '/api/{params} page=x slugs=!~ ~\u00a0'],
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

  test('a resolved path is cached until a flood of other paths evicts it', () => {
    const first = router.resolve('/api/kept');
    assert.equal(router.resolve('/api/kept'), first);
    for (let i = 0; i < 2000; i++) router.resolve(`/api/flood${i}`);
    assert.notEqual(router.resolve('/api/kept'), first);
  });

  test('a path of more than 1,000 segments is refused', () => {
    assert.equal(router.resolve('/a'.repeat(1000)).path.segments.length, 1000);
    assert.throws(() => router.resolve('/a'.repeat(1001)), { code: 'MALFORMED_PATH' });
  });

  test('the cached paths occupy a bounded number of bytes', async () => {
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
      flooded.resolve(`/api/${i}${'/aaaaaaaa'.repeat(900)}`);
    }
    collect();
    const grown = process.memoryUsage().heapUsed - before;
    assert.ok(grown < 12_000_000, `${grown} bytes`);
    assert.equal(flooded.resolve('/api/a/b').matches.length, 1);
  });
});

describe('createRouter', () => {
  const rows: [name: string, table: Route[], message: RegExp | undefined][] = [
    ['accepts the shipped table', [...ROUTES], undefined],
    [
      'refuses a specific row below the generic one',
      [row('any', '/api/{params}'), row(['POST'], '/api/x')],
      /POST \/api\/x can never be reached: any \/api\/\{params\}/,
    ],
    ['refuses the same row twice', [row(['GET'], '/a'), row(['GET'], '/a')], /GET \/a can never be reached: GET \/a/],
    [
      'refuses a row below two rows that together match all its methods',
      [row(['GET'], '/a'), row(['POST'], '/a'), row(['GET', 'POST'], '/a')],
      /GET, POST \/a can never be reached/,
    ],
    ['accepts any method below one method', [row(['GET'], '/a'), row('any', '/a')], undefined],
    ['refuses one method below any method', [row('any', '/a'), row(['GET'], '/a')], /any \/a is above/],
    ['accepts two methods of one path', [row(['GET'], '/a'), row(['POST'], '/a')], undefined],
    ['accepts {params} below a literal segment', [row('any', '/a/b'), row('any', '/a/{params}')], undefined],
    ['refuses {params} twice', [row('any', '/a/{params}'), row('any', '/a/{params}')], /can never be reached/],
    [
      'refuses {params} below a shorter {params}',
      [row('any', '/a/{params}'), row('any', '/a/b/{params}')],
      /can never be reached/,
    ],
    ['accepts the root with and without a slash at the end', [row('any', '/api'), row('any', '/api/')], undefined],
    ['accepts a shorter literal path below a longer one', [row('any', '/a/b'), row('any', '/a')], undefined],
    [
      'refuses a parameter in the middle of a path',
      [row('any', '/a/{params}/b')],
      /\{params\} is not a literal segment/,
    ],
  ];
  for (const [name, table, message] of rows) {
    test(name, () => {
      if (message === undefined) createRouter(table);
      else assert.throws(() => createRouter(table), message);
    });
  }
});
