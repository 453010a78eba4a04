// Routes of a group: names that are routes, names that refuse the file, and routes that no request reaches. The requests
// of request/routes.test.ts are matched over a socket.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createRoutes, fitRoute, type GroupRoute, parseRouteName, verbsOf } from '../../src/groups/group-routes.ts';

describe('parseRouteName', () => {
  for (const name of [
    'index',
    'find_all',
    '_before',
    'get',
    'Put',
    'TRACE',
    'GETS',
    'a b',
    'find {id}',
    '/items',
    '{id}',
    'with-dash',
    'GET/items',
  ])
    test(`${name} is not a route`, () => assert.equal(parseRouteName(name), undefined));

  const refused: [name: string, reason: RegExp][] = [
    ['get {id}', /in capitals/],
    ['TRACE {id}', /must begin with one of GET, HEAD/],
    ['GET ', /a segment of it is empty; the bare group is 'GET' without a space/],
    ['GET /{id}', /without a slash/],
    ['GET a//b', /a segment of it is empty/],
    ['GET a/', /a segment of it is empty/],
    ['GET  a', /neither \{name\}/],
    ['GET {id}.c%v', /is neither/],
    ['GET x{id}', /is neither/],
    ['GET {id', /is neither/],
    ['GET {}', /is neither/],
    ['GET {__proto__}', /is neither/],
    ['GET *', /is neither/],
    ['GET a?b', /is neither/],
    ['GET a/:id', /:id is a literal here; a segment with a name is \{id\}$/],
    ['GET [id]', /a segment with a name is \{id\}$/],
    ['GET <id>', /a segment with a name is \{id\}$/],
    ['GET [[...path]]', /a segment with a name is \{path\*\}$/],
    ['GET <int:id>', /a segment with a name is \{id\}$/],
    ['GET :id.json', /a segment with a name is \{id\}$/],
    ['GET %41', /is neither/],
    ['GET {a}/{a}', /has \{a\} twice/],
    ['GET {a*}/b', /: \{a\*\} takes the rest, so it must be last$/],
  ];
  for (const [name, reason] of refused)
    test(`${name} refuses the file`, () => assert.throws(() => parseRouteName(name), reason));
});

test('verbsOf returns the methods of a path', () => {
  const table = createRoutes(['GET {id}', 'GET {id}/items/{item}', 'HEAD {id}/items/{item}', 'POST {id}/pay']);
  assert.deepEqual([...verbsOf(table, ['7', 'pay'])], ['POST']);
  assert.deepEqual([...verbsOf(table, ['7'])], ['GET', 'HEAD']);
  assert.deepEqual([...verbsOf(table, ['7', 'a', 'b', 'c'])], []);
});

describe('createRoutes', () => {
  const refused: [names: string[], message: RegExp][] = [
    [['GET {id}', 'GET {name}'], /'GET \{name\}' can never be reached: 'GET \{id\}' takes all of its paths/],
    [['GET a/{b}/{c*}', 'GET a/{x}/{y*}'], /'GET a\/\{x\}\/\{y\*\}' can never be reached/],
    [['GET {a}', 'GET {a}/{b*}', 'GET {all*}'], /'GET \{all\*\}' .*: 'GET \{a\}' and 'GET \{a\}\/\{b\*\}' take all/],
    [['HEAD {all*}', 'GET {a}', 'GET {a}/{b*}'], /'HEAD \{all\*\}' can never be reached/],
    [['POST pay', 'pay', 'POST {id}'], /'POST pay' can never be reached: the operation pay takes all of its paths/],
    [['POST pay/{id}', 'pay'], /'POST pay\/\{id\}' can never be reached: the operation pay/],
    [['GET', 'index'], /'GET' and index are both the operation of GET on the bare group: keep one of them/],
    [['POST', 'created'], /'POST' and created are both/],
    [['PUT', 'red'], /'PUT' and red are both/],
    [['PATCH', 'patch'], /'PATCH' and patch are both/],
    [['DELETE', 'deleted'], /'DELETE' and deleted are both/],
    [['OPTIONS', 'options'], /'OPTIONS' and options are both/],
    [['HEAD', 'index'], /'HEAD' and index are both .*: rename index to 'GET'/],
  ];
  for (const [names, message] of refused)
    test(`${names.join(', ')} refuse the file`, () => assert.throws(() => createRoutes(names), message));

  const sound: string[][] = [
    ['GET export.csv', 'GET {id}'],
    ['GET {id}', 'GET export.csv'],
    ['GET {id}', 'POST {id}', 'HEAD {id}', 'GET {id}/a'],
    ['GET {all*}', 'GET a/{b*}', 'GET a/{b}/c', 'GET {a}/b'],
    ['GET {a}/{b}', 'GET {all*}'],
    ['GET pay', 'POST {id}/pay', 'pay'],
    ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
    ['index', 'PUT', 'updated'],
  ];
  for (const names of sound)
    test(`${names.join(', ')} can all be reached`, () => assert.ok(createRoutes(names).length));

  test('a group without quoted names has no routes', () =>
    assert.deepEqual(createRoutes(['index', 'created', 'find']), []));

  test('every route of a random table is reached by a path, or the table is refused', () => {
    const texts = ['a', 'b', '{x}', '{x}', '{x*}'];
    let seed = 7;
    const pick = (most: number) => {
      seed = (seed * 1103515245 + 12345) % 2 ** 31;
      return Math.floor((seed / 2 ** 31) * most);
    };
    const samples = ['a', 'b', 'z'].flatMap((one) => [
      [one],
      ...['a', 'b', 'z'].flatMap((two) => [
        [one, two],
        ...['a', 'b', 'z'].flatMap((three) => [
          [one, two, three],
          [one, two, three, 'z'],
          [one, two, three, 'z', 'z'],
        ]),
      ]),
    ]);
    for (let round = 0; round < 600; round++) {
      const names = Array.from({ length: 2 + pick(4) }, () => {
        const parts = Array.from({ length: 1 + pick(3) }, () => texts[pick(texts.length)] as string);
        const rest = parts.findIndex((part) => part.endsWith('*}'));
        const pattern = parts.slice(0, rest < 0 ? undefined : rest + 1).map((part, i) => part.replace('x', `x${i}`));
        return `${pick(4) === 0 ? 'HEAD' : 'GET'} ${pattern.join('/')}`;
      });
      const unique = [...new Set(names)];
      let table: readonly GroupRoute[] = [];
      try {
        table = createRoutes(unique);
      } catch (error) {
        assert.match(String(error), /can never be reached/);
        const all = unique.map((name) => parseRouteName(name) as GroupRoute);
        const dead = all.find(({ name }) => String(error).includes(`route '${name}' can never`)) as GroupRoute;
        const others = all.filter((route) => route !== dead);
        const taken = samples.filter((path) => fitRoute([dead], dead.verb, path) !== undefined);
        assert.ok(
          taken.every((path) => fitRoute(others, dead.verb, path) !== undefined),
          `${dead.name} was refused, but ${unique} leaves it a path`,
        );
        continue;
      }
      for (const { name, verb } of table)
        assert.ok(
          samples.some((path) => fitRoute(table, verb, path)?.route.name === name),
          `no path reaches ${name} in ${unique}`,
        );
    }
  });
});

test('the most literal route is chosen, in any order of the routes', () => {
  const names = [
    'GET {a*}',
    'GET {x}/{y}',
    'GET {x}/b',
    'GET {x}',
    'GET lit/{y}',
    'GET lit',
    'HEAD {x}',
    'GET lit/b/c',
  ];
  const rows: [verb: string, path: string[], name: string][] = [
    ['GET', ['lit'], 'GET lit'],
    ['GET', ['other'], 'GET {x}'],
    ['GET', ['lit', 'b'], 'GET lit/{y}'],
    ['GET', ['other', 'b'], 'GET {x}/b'],
    ['GET', ['other', 'c'], 'GET {x}/{y}'],
    ['GET', ['lit', 'b', 'c'], 'GET lit/b/c'],
    ['GET', ['lit', 'b', 'd'], 'GET {a*}'],
    ['HEAD', ['lit'], 'GET lit'],
    ['HEAD', ['other'], 'HEAD {x}'],
    ['HEAD', ['other', 'b'], 'GET {x}/b'],
  ];
  for (const order of [names, names.toReversed(), names.toSorted()])
    for (const [verb, path, name] of rows)
      assert.equal(fitRoute(createRoutes(order), verb, path)?.route.name, name, `${verb} ${path.join('/')}`);
});

test('a path falls back to a less literal route that matches', () => {
  const table = createRoutes(['GET lit/b', 'GET {x}/{y}', 'GET lit/{z*}', 'HEAD lit/{y}/end']);
  assert.equal(fitRoute(table, 'GET', ['lit', 'b'])?.route.name, 'GET lit/b');
  assert.equal(fitRoute(table, 'GET', ['lit', 'c'])?.route.name, 'GET lit/{z*}');
  assert.equal(fitRoute(createRoutes(['GET lit/b', 'GET {x}/{y}']), 'GET', ['lit', 'c'])?.route.name, 'GET {x}/{y}');
});
