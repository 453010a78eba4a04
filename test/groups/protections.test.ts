// Every form in which an author may write settings and guards, over a socket. Each protection holds, or the file is
// refused with the cure. None is ignored.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { moduleUrl } from '../support/own-modules.ts';
import { type Service, startService } from '../support/service.ts';

const GATEFOLD = moduleUrl('src/api/controller');
const HEAD = `import { HttpError } from ${JSON.stringify(GATEFOLD)};
const refuse = () => { throw new HttpError(403, 'NO', 'no') };
const settings = { created: { access: 'application' } };
`;
const RAN = 'created() { return { ran: 1 } }';
const klass = (members: string, rest = '') => `${rest}export default class X { ${members} ${RAN} }`;

/**
 * `held`: the request is refused with 401 or 403. `gone`: there is no such operation. `runs`: the operation answers,
 * because nothing protects it. A pattern: the file is refused for this reason.
 */
const PROXY =
  /it exports a Proxy, or what inherits from one, whose traps no operation passes: export the object itself$/m;
type Outcome = 'held' | 'gone' | 'runs' | RegExp;

const SETTINGS: Readonly<Record<string, readonly [source: string, outcome: Outcome]>> = {
  'a static property': [klass('static operations = settings;'), 'held'],
  'a static property of a base class': [
    `class B { static operations = { '*': { access: 'application' } } }
    export default class X extends B { ${RAN} }`,
    'held',
  ],
  'a static property of a mixin': [
    `const M = (B) => class extends B { static operations = { '*': { access: 'application' } } };
    export default class X extends M(Object) { ${RAN} }`,
    'held',
  ],
  'a static property set after the class': [
    `class X { static operations; ${RAN} } X.operations = settings; export default X`,
    'held',
  ],
  'a static property of an exported instance': [
    `class X { static operations = settings; ${RAN} } export default new X()`,
    'held',
  ],
  'a property of an object': [`export default { operations: settings, ${RAN} }`, 'held'],
  'a property of an object that inherits its operation': [
    `const base = { ${RAN} };
    export default { __proto__: base, operations: { '*': { access: 'application' } }, index() {} }`,
    'held',
  ],
  'a static property of a base class linked only by prototype': [
    `class B { static operations = { '*': { access: 'application' } }; ${RAN} }
    class X { index() {} } Object.setPrototypeOf(X.prototype, B.prototype); export default X`,
    'held',
  ],
  'a static property of a base class linked only by class': [
    `class S { static operations = { '*': { access: 'application' } } } class X { ${RAN} } Object.setPrototypeOf(X, S); export default X`,
    'held',
  ],
  'a frozen object': [
    klass('static operations = Object.freeze({ created: Object.freeze({ access: "application" }) });'),
    'held',
  ],
  'an object without prototype': [
    klass(`static operations = { __proto__: null, created: { access: 'application' } };`),
    'held',
  ],
  'a static property and an export': [
    `export const operations = settings;\n${klass('static operations = operations;')}`,
    'held',
  ],
  'a static accessor': [
    klass('static get operations() { return settings }'),
    /static operations is an accessor: write static operations = \{ … \}/,
  ],
  'a static accessor of a base class': [
    `class B { static get operations() { return settings } }
    export default class X extends B { ${RAN} }`,
    /static operations is an accessor/,
  ],
  'a static setter': [klass('static set operations(value) {}'), /static operations is an accessor/],
  'a static method': [
    klass('static operations() { return settings }'),
    /static operations is a method: write static operations = \{ … \}/,
  ],
  'a static arrow function': [klass('static operations = () => settings;'), /static operations is a method/],
  'a field': [
    klass('operations = settings;'),
    /operations is a field of the instance: write static operations = \{ … \}/,
  ],
  'a field of a base class': [
    `class B { operations = settings } export default class X extends B { ${RAN} }`,
    /operations is a field/,
  ],
  'a field of an exported instance': [
    `class X { operations = settings; ${RAN} } export default new X()`,
    /operations is a field/,
  ],
  'a property set in the constructor': [klass('constructor() { this.operations = settings }'), /operations is a field/],
  'a property assigned to an exported instance': [
    `class X { ${RAN} } export default Object.assign(new X(), { operations: settings })`,
    /operations is a field/,
  ],
  'an accessor of the instance': [
    klass('get operations() { return settings }'),
    /operations is an accessor: write static operations = \{ … \}/,
  ],
  'a method of the instance': [
    klass('operations() { return settings }'),
    /operations is a method: write static operations = \{ … \}/,
  ],
  'a value on the prototype': [
    `class X { ${RAN} } Object.assign(X.prototype, { operations: settings }); export default X`,
    /operations is a value on the prototype: write static operations/,
  ],
  'an accessor of an object': [
    `export default { get operations() { return settings }, ${RAN} }`,
    /operations is an accessor: write operations: \{ … \}/,
  ],
  'a method of an object': [
    `export default { operations() { return settings }, ${RAN} }`,
    /operations is a method: write operations: \{ … \}/,
  ],
  'a property of the prototype of an object': [
    `const base = { operations: settings, ${RAN} }; export default { __proto__: base, index() {} }`,
    /operations is inherited by the object: write operations: \{ … \}/,
  ],
  'a property of an object and of its prototype': [
    `const base = { operations: settings, ${RAN} };
    export default { __proto__: base, operations: { index: {} }, index() {} }`,
    /operations is inherited by the object/,
  ],
  'a static property of the class of a prototype': [
    `class X { static operations = settings; ${RAN} }
    export default Object.assign(Object.create(new X()), { index() {} })`,
    /operations is inherited by the object/,
  ],
  'an export beside a class': [
    `export const operations = settings;\n${klass('')}`,
    /operations is exported beside the group: write static operations = \{ … \}/,
  ],
  'an export beside an object': [
    `export const operations = settings; export default { ${RAN} }`,
    /operations is exported beside the group: write operations: \{ … \}/,
  ],
  'a symbol': [klass(`static [Symbol.for('operations')] = settings;`), /Symbol\(operations\) says nothing/],
  'a private static field': [
    klass('static #operations = settings;'),
    /#operations is used nowhere: write static operations/,
  ],
  'an empty static property': [klass('static operations;'), /static operations: it must be a plain object/],
  'an undefined property of an object': [
    `export default { operations: undefined, ${RAN} }`,
    /operations: it must be a plain object/,
  ],
  'a Map': [
    klass(`static operations = new Map([['created', { access: 'application' }]]);`),
    /it must be a plain object/,
  ],
  'an object with a prototype': [klass('static operations = Object.create(settings);'), /it must be a plain object/],
  'an object of a class': [
    klass('static operations = new (class { created = { access: "application" } })();'),
    /it must be a plain object/,
  ],
  'a Proxy': [
    klass('static operations = new Proxy({}, { get: () => ({ access: "application" }) });'),
    /it must be a plain object/,
  ],
  'an object with an instance of a class for an operation': [
    klass('static operations = { created: new (class { get access() { return "application" } })() };'),
    /"created" must be a plain object/,
  ],
  'an object with a Proxy for an operation': [
    klass('static operations = { created: new Proxy({}, { get: () => "application" }) };'),
    /"created" must be a plain object/,
  ],
  'an object with a list for an operation': [
    klass(`static operations = { created: ['application'] };`),
    /"created" must be a plain object/,
  ],
  'an object with undefined for an operation': [
    klass('static operations = { created: undefined };'),
    /"created" is undefined: leave it out/,
  ],
  'access that is undefined': [
    klass('static operations = { created: { access: undefined } };'),
    /"created": access is undefined: leave it out/,
  ],
  'access by an accessor': [
    klass('static operations = { created: { get access() { return "application" } } };'),
    /"created": access is an accessor: write the value itself/,
  ],
  'an operation by an accessor': [
    klass('static operations = { get created() { return { access: "application" } } };'),
    /"created" is an accessor/,
  ],
  'access that is not enumerable': [
    klass(`static operations = { created: Object.defineProperty({}, 'access', { value: 'application' }) };`),
    /"created": access is not enumerable/,
  ],
  'an operation by a symbol': [
    klass(`static operations = { [Symbol('created')]: { access: 'application' } };`),
    /Symbol\(created\) is a symbol/,
  ],
  'access by a symbol': [
    klass(`static operations = { created: { [Symbol('access')]: 'application' } };`),
    /"created": Symbol\(access\) is a symbol/,
  ],
  'a scope by an accessor': [
    klass(`static operations = { created: { access: { get scope() { return 'a' } } } };`),
    /access: scope is an accessor/,
  ],
  'two scopes in one': [klass(`static operations = { created: { access: { scope: 'a b' } } };`), /access must be/],
  'access in another case': [klass(`static operations = { created: { access: 'Application' } };`), /access must be/],
  'access as a list': [klass(`static operations = { created: { access: ['application'] } };`), 'held'],
  'access as an empty list': [klass('static operations = { created: { access: [] } };'), /access must be/],
  'a list with a rule in another case': [
    klass(`static operations = { created: { access: ['anyone', 'Application'] } };`),
    /access must be/,
  ],
  'access with the property scopes': [
    klass(`static operations = { created: { access: { scopes: ['a'] } } };`),
    /access must be/,
  ],
  'a misspelt property': [
    klass(`static operations = { created: { acces: 'application' } };`),
    /unknown property acces;/,
  ],
  'a misspelt operation': [
    klass(`static operations = { create: { access: 'application' } };`),
    /"create" names no operation/,
  ],
  'a misspelt name': [klass('static operation = settings;'), /static operation says nothing: rename it to operations/],
  'a misspelt name of an accessor': [
    klass('static get Operations() { return settings }'),
    /static Operations says nothing/,
  ],
  'a misspelt name of an object': [
    `export default { opertions: settings, ${RAN} }`,
    /opertions says nothing: rename it to operations/,
  ],
  'a misspelt name of a field': [
    klass(`_operations = { '*': { access: 'application' } };`),
    /_operations says nothing/,
  ],
  'a misspelt name of an export': [`export const Operations = settings;\n${klass('')}`, /Operations says nothing/],
  'a static access of the class': [
    klass(`static access = 'application';`),
    /static access says nothing: write static operations = \{ '\*': \{ access: … \} \}/,
  ],
  'access by an accessor of the class': [
    klass(`static get access() { return { scope: 'a' } }`),
    /static access says nothing/,
  ],
  'access as a field': [klass(`access = 'application';`), /access says nothing/],
  'an accessor of the instance, which could have effects': [
    klass(`get access() { throw new Error('it was called') }`),
    'runs',
  ],
  'a static accessor with a name of its own': [
    klass(`static get other() { throw new Error('it was called') }`),
    'runs',
  ],
  'access of an object': [
    `export default { access: 'application', ${RAN} }`,
    /access says nothing: write operations: \{ '\*': \{ access: … \} \}/,
  ],
  'access as an export': [`export const access = 'application';\n${klass('')}`, /access says nothing/],
  'access by operation': [
    klass(`static access = { created: 'application' };`),
    /static access says nothing: write static operations = \{ "created": \{ access: … \} \}, or rename it/,
  ],
  'a name unlike operations': [
    klass(`static permissions = { '*': { access: 'application' } };`),
    /static permissions says nothing: rename it to operations/,
  ],
  'a limit with a name unlike operations': [
    `export default { settings: { created: { limit: '1/h' } }, ${RAN} }`,
    /settings says nothing: rename it to operations/,
  ],
  'constants that operations are built from': [
    klass(
      'static defaults = settings; static access = { created: "application" }; static operations = { ...X.defaults };',
      'export const exported = settings;',
    ),
    'held',
  ],
  'a static limit of the class': [klass(`static limit = '1/h';`), /static limit says nothing/],
  'another object from the constructor': [
    `export default class X { static operations = settings; constructor() { return { ${RAN} } } }`,
    /its constructor returns another object/,
  ],
  'a Proxy from the constructor': [klass('constructor() { return new Proxy(this, { get: () => refuse }) }'), PROXY],
  'a Proxy of an object': [`export default new Proxy({ ${RAN} }, { get: () => refuse })`, PROXY],
  'a Proxy of the class, which has the settings': [
    `class X { ${RAN} } export default new Proxy(X, { get: (x, key) => key === 'operations' ? settings : x[key] })`,
    PROXY,
  ],
  'a Proxy of an instance': [`class X { ${RAN} } export default new Proxy(new X(), { get: () => refuse })`, PROXY],
  'a Proxy of the prototype': [
    `class B { ${RAN} } class X { index() {} }
    Object.setPrototypeOf(X.prototype, new Proxy(B.prototype, { get: () => refuse })); export default X`,
    PROXY,
  ],
  'an operation named operations, listed in static operations': [
    klass('static operations = { operations: {} }; operations() {}'),
    'runs',
  ],
  'constants named like settings, which protect nothing': [
    klass('static limit = 100; static access = new Map(); static timeout = 5; access = { key: 1 }; limit = 7;'),
    'runs',
  ],
  'names unlike operations, which protect nothing': [
    klass(
      'static options = { created: {}, "*": { access: "admin", limit: 5 }, other: { access: "user" } }; static access = { created: ["admin"], other: "user" }; operators = [1]; operation = 1; static operation(name) {}',
    ),
    'runs',
  ],
};

const REPLACED: Readonly<Record<string, readonly [source: string, outcome: Outcome]>> = {
  'by the constructor': [
    klass('constructor() { const { created } = this; this.created = () => { refuse(); return created() } }'),
    'held',
  ],
  'by a field': [klass('created = refuse;'), 'held'],
  'by its bound function': [klass('constructor() { this.created = this.created.bind(this) }'), 'runs'],
  'by undefined in a field': [`class B { ${RAN} } export default class X extends B { created = undefined }`, 'gone'],
  'by null on the prototype': [
    `class B { ${RAN} } class X extends B {} X.prototype.created = null; export default X`,
    'gone',
  ],
  'by an accessor of the instance': [
    klass(`constructor() { Object.defineProperty(this, 'created', { get: () => refuse }) }`),
    /created was read as an operation, but the loaded class has none/,
  ],
  'by an accessor of the class': [
    `class B { ${RAN} } export default class X extends B { get created() { return refuse } }`,
    'gone',
  ],
  'by a function on the prototype': [`class X { ${RAN} } X.prototype.created = refuse; export default X`, 'held'],
};

const GUARDS: Readonly<Record<string, readonly [source: string, outcome: Outcome]>> = {
  'a method': [klass('_before() { refuse() }'), 'held'],
  'an asynchronous method': [klass('async _before() { refuse() }'), 'held'],
  'a method of a base class': [
    `class B { async _before() { refuse() } } export default class X extends B { ${RAN} }`,
    'held',
  ],
  'a field': [klass('_before = () => refuse();'), 'held'],
  'a property of an object': [`export default { _before: refuse, ${RAN} }`, 'held'],
  'a method of the prototype of an object': [
    `const base = { _before() { refuse() } }; export default { __proto__: base, ${RAN} }`,
    'held',
  ],
  'a property and an export': [`export const _before = refuse; export default { _before, ${RAN} }`, 'held'],
  'a method set on the prototype after the class': [
    `class X { ${RAN} } X.prototype._before = refuse; export default X`,
    'held',
  ],
  'a method _after': [klass('_after() { refuse() }'), 'held'],
  'a static method': [
    klass('static _before() { refuse() }'),
    /static _before is no guard: write it as a method, _before\(data, params\) \{ … \}/,
  ],
  'a static method of a base class': [
    `class B { static async _after() { refuse() } } export default class X extends B { ${RAN} }`,
    /static _after is no guard/,
  ],
  'a static field': [klass('static _before = refuse;'), /static _before is no guard/],
  'an accessor': [klass('get _before() { return refuse }'), /_before is an accessor: write it as a method/],
  'an accessor of an object': [
    `export default { get _after() { return refuse }, ${RAN} }`,
    /_after is an accessor: write it as a method/,
  ],
  'a generator': [klass('*_before() { refuse() }'), /_before is a generator: write it as a method/],
  'an asynchronous generator': [klass('async *_after() { refuse() }'), /_after is a generator/],
  'a class': [
    klass('_before = class { constructor() { refuse() } };'),
    /_before is a guard of the group, so it must be a method/,
  ],
  'a text': [klass(`_before = 'application';`), /_before is a guard of the group, so it must be a method/],
  'a list': [`export default { _before: [refuse], ${RAN} }`, /_before is a guard of the group, so it must be a method/],
  undefined: [
    `export default { _before: undefined, ${RAN} }`,
    /_before is a guard of the group, so it must be a method/,
  ],
  null: [`export default { _before: null, ${RAN} }`, /_before is a guard of the group, so it must be a method/],
  'a field that hides the method of a base class': [
    `class B { _before() { refuse() } } export default class X extends B { _before = () => {}; ${RAN} }`,
    /_before is a field and a method: keep one of them/,
  ],
  'a field of the base class that hides a method': [
    `class B { _before = () => {} } export default class X extends B { _before() { refuse() } ${RAN} }`,
    /_before is a field and a method: keep one of them/,
  ],
  'a symbol': [klass(`[Symbol('_before')]() { refuse() }`), /Symbol\(_before\) is no guard: rename it to _before/],
  'an export': [
    `export function _before() { refuse() }\n${klass('')}`,
    /_before is exported beside the group: write it as a method/,
  ],
  'a private method': [
    klass('#before() { refuse() }'),
    /#before is used nowhere: write it as a method, _before\(data, params\) \{ … \}/,
  ],
  'a private field': [klass('#_after = refuse;'), /#_after is used nowhere: write it as a method, _after\(/],
  'a method without the underscore': [
    klass('before() { refuse() }'),
    /before is no guard: rename it to _before; where it is an operation, name it in static operations/,
  ],
  'a method of a base class without the underscore': [
    `class B { after() { refuse() } } export default class X extends B { ${RAN} }`,
    /after is no guard: rename it to _after/,
  ],
  'a field without the underscore': [klass('before = refuse;'), /before is no guard/],
  'a static method without the underscore': [klass('static before() { refuse() }'), /static before is no guard/],
  'a list without the underscore': [`export default { before: [refuse], ${RAN} }`, /before is no guard/],
  'an export without the underscore': [`export function before() { refuse() }\n${klass('')}`, /before is no guard/],
  ...Object.fromEntries(
    [
      '_beforeEach',
      'beforeEach',
      '_Before',
      '__before',
      '_before_',
      '_befor',
      '_befroe',
      '_beforre',
      '_bfore',
      '_bfoer',
      'BEFORE',
      '_beforeAll',
      'before_each',
    ].map((name) => [name, [klass(`${name}() { refuse() }`), new RegExp(`${name} is no guard: rename it to _before`)]]),
  ),
  ...Object.fromEntries(
    ['_afterEach', 'afterAll', '_After', '__after', '_afer', '_atfer', '_afterr', '_aftr'].map((name) => [
      name,
      [`export default { ${name}() { refuse() }, ${RAN} }`, new RegExp(`${name} is no guard: rename it to _after`)],
    ]),
  ),
  'names unlike before and after, which protect nothing': [
    klass(`_format() {} _filter() {} _alter() {} _later() {} _enter() {} _meter() {} _core() {} _store() {} _restore() {} _ignore() {} _more() {} _other() {}
      alter() {} afters = 1; before = new Date(); static AFTER = 5; beforehand() {} aftermath() {} #before() {} first() { this.#before() } #core = 1;`),
    'runs',
  ],
  'operations named before and after, listed in static operations': [
    klass('static operations = { before: {}, after: {} }; before() {} after() {}'),
    'runs',
  ],
};

/** The rows of GUARDS that spell `before`, for `_around`. */
const AROUND = Object.fromEntries(
  Object.entries(GUARDS)
    .filter(([name, [source]]) => source.includes('before') && !/unlike|listed/.test(name))
    .map(([name, [source, outcome]]): [string, readonly [string, Outcome]] => [
      name.replaceAll('before', 'around'),
      [
        source.replaceAll('before', 'around'),
        outcome instanceof RegExp
          ? new RegExp(outcome.source.replaceAll('before', 'around').replace('(data', '(next, data'))
          : outcome,
      ],
    ]),
);

const CHAINS: typeof GUARDS = {
  'of a class with one of its own': [
    `class B { _before() { refuse() } } export default class X extends B { _before() {} ${RAN} }`,
    'held',
  ],
  'two classes up': [
    `class A { _around() { refuse() } } class B extends A { _around(next) { return next() } }
     export default class X extends B { _around(next) { return next() } ${RAN} }`,
    'held',
  ],
  'of a prototype whose object has one, too': [
    `const base = { _before() { refuse() } }; export default { __proto__: base, _before() {}, ${RAN} }`,
    'held',
  ],
  'that super calls once more': [
    `class B { _before() {} } export default class X extends B { _before() { return super._before() } ${RAN} }`,
    /_before calls super\._before, which runs by itself: leave the call out/,
  ],
  'that super calls inside of _around': [
    `class B { _around(next) { return next() } }
     export default class X extends B { _around(next) { return super . _around(next) } ${RAN} }`,
    /_around calls super\._around, which runs by itself/,
  ],
  'that a comment names': [
    `class B { _before() {} } export default class X extends B { _before() { /* super._before runs */ } // super._before
     ${RAN} }`,
    'runs',
  ],
  'that no parent has': [klass('_before() { super._before?.() }'), 'runs'],
  'beside names unlike around, which protect nothing': [
    klass(
      '_round() {} _ground() {} _rounds() {} _bound() {} _found() {} around = 1; _sound() {} surround() {} arounds() {}',
    ),
    'runs',
  ],
  'beside an operation around, listed in static operations': [
    klass('static operations = { around: {} }; around() {}'),
    'runs',
  ],
  ...Object.fromEntries(
    ['_aroundEach', 'aroundAll', '_Around', '__around', '_arround', '_aroud', '_aruond', 'AROUND'].map((name) => [
      `beside ${name}`,
      [klass(`${name}() { refuse() }`), new RegExp(`${name} is no guard: rename it to _around`)],
    ]),
  ),
};

describe('each form of a protection works or refuses the file', { concurrency: 16 }, () => {
  const controllers = new Map<string, string>();
  const tables = {
    'settings as': SETTINGS,
    'a guard as': GUARDS,
    'a guard around as': AROUND,
    'a guard of a parent': CHAINS,
    'a method replaced': REPLACED,
  };
  const forms = Object.entries(tables).flatMap(([topic, table]) =>
    Object.entries(table).map(([name, row]) => [`${topic} ${name}`, ...row] as const),
  );
  const rows = forms.map(([name, source, outcome], index) => {
    controllers.set(`C${index}Controller.mjs`, HEAD + source);
    return { name, path: `/api/c${index}`, outcome, group: `C${index}` };
  });
  let service: Service;
  before(async () => {
    service = await startService({
      controllers: Object.fromEntries(controllers),
      expectedErrors: ['group-not-loadable', 'request-failed'],
    });
  });
  after(() => service.close());

  for (const { name, path, outcome, group } of rows) {
    test(name, async () => {
      const response = await fetch(service.url + path, { method: 'POST' });
      const body = (await response.json()) as { ran?: number; error_code?: string };
      if (outcome === 'runs') assert.deepEqual(body, { ran: 1 });
      else if (outcome === 'gone') assert.equal(body.error_code, 'OPERATION_NOT_FOUND', JSON.stringify(body));
      else if (outcome === 'held') assert.ok(response.status === 401 || response.status === 403, JSON.stringify(body));
      else {
        assert.equal(body.error_code, 'GROUP_NOT_LOADABLE', JSON.stringify(body));
        const line = service.lines.find(({ event, group: of }) => event === 'group-not-loadable' && of === group);
        assert.match(String(line?.error), outcome);
      }
    });
  }
});
