// The properties of a service file, and the line of each mistake. No misspelt protection is ignored.
import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { defineService } from '../../../src/api/controller/service.ts';
import { createLog } from '../../../src/base/log.ts';
import { outlineAccess } from '../../../src/callers/access/access.ts';
import { DefinitionError, readDefinition } from '../../../src/callers/access/definition.ts';
import { createGroups, type ServiceState } from '../../../src/live/load/registry.ts';
import { controller, createFolder, write } from '../../support/folder.ts';
import { GATEFOLD, startService } from '../../support/service.ts';

const user = () => ({ id: '1' });

const refused: readonly (readonly [options: unknown, error: RegExp])[] = [
  [undefined, /takes a plain object/],
  [[], /takes a plain object/],
  [new (class Options {})(), /takes a plain object/],
  [{ authentikate: user }, /authentikate is no property of a service; there are strict, /],
  [{ strict: undefined }, /strict is undefined: leave it out/],
  [{ authenticate: 'user' }, /authenticate must be a function/],
  [{ authenticate: class {} }, /authenticate must be a function/],
  [{ *authenticate() {} }, /authenticate must be a function/],
  [{ authenticate: { async *user() {} }.user }, /authenticate must be a function/],
  [{ access: class {} }, /access must be 'anyone'/],
  [{ access: [function* rule() {}] }, /access must be 'anyone'/],
  [{ access: 'users' }, /access must be 'anyone', 'application', 'user', /],
  [{ access: [] }, /access must be 'anyone'/],
  [{ access: { scope: 'a b' } }, /access must be 'anyone'/],
  [{ access: { scope: 'a', scopes: ['b'] } }, /access must be 'anyone'/],
  [{ access: 'user' }, /access needs a user, and there is no authenticate/],
  [{ access: ['application', 'user'] }, /access needs a user, and there is no authenticate/],
  [{ formatError: async () => ({}) }, /formatError is async: it must return the body itself/],
  ...[{}, 'next', null, class {}, { *around() {} }.around, { async *around() {} }.around, [() => 1]].map(
    (around) => [{ around }, /around must be a function \(next, params\) => result/] as const,
  ),
  [{ arround: (next: () => unknown) => next() }, /arround is no property of a service; there are .*around/],
  [
    {
      get strict() {
        return true;
      },
    },
    /strict is an accessor/,
  ],
  [
    Object.defineProperty({}, 'access', { value: 'application', enumerable: false }),
    /access is an accessor or not enumerable: write the value itself/,
  ],
  [{ cors: { origin: '*' } }, /cors: origin is no property; there are origins, /],
  [{ cors: { origins: 'https://a.example' } }, /cors: origins must be '\*' or a list/],
  [{ cors: { origins: { test: () => true } } }, /cors: origins must be '\*' or a list of origins, or a function/],
  [{ cors: { origins: class {} } }, /cors: origins must be '\*' or a list of origins, or a function/],
  [{ cors: { *origins() {} } }, /cors: origins must be '\*' or a list of origins, or a function/],
  [{ cors: { origins: async () => true } }, /cors: origins returned a promise: it must return true or false itself/],
  [{ cors: { origins: () => Promise.reject(new Error('x')) } }, /origins returned a promise/],
  [{ cors: { origins: () => undefined } }, /origins returned undefined and not true or false/],
  [{ cors: { origins: (origin: string) => /a/.exec(origin) } }, /origins returned object and not true or false/],
  [{ cors: { origins: () => 'yes' } }, /origins returned string and not/],
  [
    { cors: { origins: () => true, credentials: true } },
    /allows https:\/\/gatefold\.invalid, so with credentials every page/,
  ],
  [{ cors: { methods: 'GET' } }, /cors: methods must be a list of GET, POST, /],
  [{ cors: { methods: [] } }, /methods must be a list/],
  [{ cors: { methods: ['get'] } }, /methods must be a list/],
  [{ cors: { methods: ['GET\r\nX: y'] } }, /methods must be a list/],
  [{ cors: { preflightStatus: 201 } }, /preflightStatus must be 200 or 204/],
  [{ cors: { preflightStatus: '204' } }, /preflightStatus must be 200 or 204/],
  [{ cors: { origins: ['https://a.example/'] } }, /"https:\/\/a\.example\/" is no origin/],
  [{ cors: { origins: ['https://A.example'] } }, /is no origin/],
  [{ cors: { origins: ['a.example'] } }, /is no origin/],
  [{ cors: { origins: [/a/] } }, /an origin must be a text/],
  [{ cors: { origins: ['null'] } }, /is no origin/],
  [{ cors: { origins: ['http://*.a.example'] } }, /is no origin/],
  [{ cors: { origins: ['https://a*.example'] } }, /is no origin/],
  [{ cors: { origins: ['https://*.'] } }, /is no origin/],
  [{ cors: { origins: ['https://*.:8443'] } }, /is no origin/],
  [{ cors: { credentials: true } }, /credentials needs a list of origins/],
  [{ cors: { origins: ['https://a.example'], credentials: 1 } }, /credentials must be true or false/],
  [{ cors: { origins: ['https://a.example'], credentials: true, exposeHeaders: ['*'] } }, /is no wildcard/],
  [{ cors: { maxAge: -1 } }, /maxAge must be a number of seconds/],
  [{ cors: { allowHeaders: 'X-A' } }, /allowHeaders must be a list of header names/],
  [{ cors: { exposeHeaders: ['X A'] } }, /^cors: exposeHeaders must be a list of header names$/],
  [{ securitySchemes: { token: 'bearer' } }, /token: it must be an object/],
  [{ securitySchemes: { token: { type: 'http' } } }, /token: scheme must be a text/],
  [{ securitySchemes: { token: { type: 'http', scheme: 'a b' } } }, /the name of an HTTP authentication scheme/],
  [
    { securitySchemes: { token: { type: 'bearer' } } },
    /^securitySchemes: token: type must be one of http, apiKey, oauth2, openIdConnect$/,
  ],
  [{ securitySchemes: { token: { type: 'apiKey', in: 'body', name: 'a' } } }, /token: in must be/],
  [{ securitySchemes: { token: { type: 'http', scheme: 'bearer', sheme: 'x' } } }, /sheme is no field/],
  [{ securitySchemes: { application: { type: 'http', scheme: 'bearer' } } }, /choose another/],
  [{ securitySchemes: { applicationKey: { type: 'http', scheme: 'bearer' } } }, /choose another/],
  [{ securitySchemes: { token: { type: 'openIdConnect' } } }, /token: openIdConnectUrl must be a text/],
  [{ securitySchemes: { token: { type: 'apiKey', in: 'query' } } }, /token: name must be a text/],
  [{ securitySchemes: { 'a b': { type: 'http', scheme: 'bearer' } } }, /a name has letters/],
  [{ keyHeader: 'X Api Key' }, /keyHeader: /],
  [{ keyHeader: 'Authorization' }, /keyHeader: Authorization has another meaning/],
  [{ keyHeader: 'Cookie' }, /keyHeader: Cookie has another meaning/],
  [{ keyHeader: 'Host' }, /keyHeader: Host has another meaning: choose a header of its own, such as X-Api-Key/],
  [{ keyHeader: 'Connection' }, /keyHeader: Connection has another meaning/],
  [{ headers: { 'X-Request-Id': '1' } }, /X-Request-Id belongs to the server/],
  [{ headers: { 'Access-Control-Allow-Origin': '*' } }, /belongs to the server/],
  [{ headers: { 'Cache-Control': 'public' } }, /belongs to the server or to a single answer/],
  [{ headers: { 'X-A': '1\r\nX-B: 2' } }, /headers: /],
  [{ headers: { 'X-A': '1', 'x-a': '2' } }, /headers: x-a is there twice/],
  [{ headers: { 'x-a': '1', 'X-A': '2' } }, /headers: X-A is there twice/],
  [{ securitySchemes: { token: { type: 'constructor' } } }, /token: type must be one of http, apiKey, /],
  [{ securitySchemes: { token: { type: 'oauth2', flows: 'x' } } }, /token: flows must be an object/],
  [{ headers: { 'X-A': 1 } }, /X-A must be a text/],
  [{ headers: { 'X A': '1' } }, /headers: /],
  [{ public: { headers: async () => ({}) } }, /public.headers is async: it must return the headers themselves/],
];

describe('the definition of a service', () => {
  for (const [options, error] of refused) {
    it(`refuses ${describeOptions(options)}`, () => {
      assert.throws(
        () => readDefinition(defineService(options as never)),
        (thrown: unknown) => {
          assert.ok(thrown instanceof DefinitionError, String(thrown));
          assert.match(thrown.message, error);
          return true;
        },
      );
    });
  }

  const FORMS = {
    strict: 'true or false',
    folders: 'true or false',
    authenticate: 'a function (params) => user',
    access:
      "'anyone', 'application', 'user', 'caller', { scope: '…' }, a function (params) => boolean, or a list of these",
    around: 'a function (next, params) => result',
    formatError: 'a function (refusal) => body',
    fallback: 'mount(handler) or mount.node(handler)',
    cors: "an object such as { origins: ['https://app.example.com'] }",
    securitySchemes: 'an object of OpenAPI security schemes, by name',
    keyHeader: "the name of a header, such as 'X-Api-Key'",
    headers: 'an object of header names and values',
    public: 'an object { headers: (path) => ({ … }) }',
    unchecked: "'refuse'",
    results: "'declared'",
    close: 'a function',
    start: 'a function ({ signal, log }) => stop',
    background: 'an object of tasks, by name',
  };
  for (const [name, form] of Object.entries(FORMS))
    it(`says what ${name} must be`, () => {
      const error = { property: name, message: `${name} must be ${form}` };
      assert.throws(() => readDefinition(defineService({ [name]: null } as never)), error);
    });

  it('refuses an export that defineService did not make', () => {
    const copy = { ...defineService({}), access: 'application' };
    for (const exported of [
      undefined,
      null,
      {},
      { strict: true },
      () => {},
      class {},
      copy,
      Object.freeze({ ...copy }),
    ])
      assert.throws(() => readDefinition(exported), /is not made by defineService/);
  });

  it('accepts every property', () => {
    const definition = readDefinition(
      defineService({
        strict: true,
        folders: true,
        authenticate: user,
        access: ['user', () => true],
        formatError: () => ({}),
        cors: {
          origins: ['https://a.example', 'https://*.b.example'],
          credentials: true,
          maxAge: 5,
          allowHeaders: ['X-A', 'X-B'],
        },
        securitySchemes: {
          token: { type: 'apiKey', in: 'header', name: 'Authorization' },
          query: { type: 'apiKey', in: 'query', name: 'key', 'x-own': 1 },
          cookie: { type: 'apiKey', in: 'cookie', name: 'sid', description: 'A session' },
          bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
          flows: { type: 'oauth2', flows: {} },
          'open.id_1-': { type: 'openIdConnect', openIdConnectUrl: 'https://a.example' },
        } as never,
        keyHeader: 'X-Api-Key',
        headers: { 'Strict-Transport-Security': 'max-age=1' },
        unchecked: 'refuse',
        close: () => {},
      }),
    );
    assert.equal(definition.keyHeader, 'x-api-key');
    assert.equal(definition.cors?.allowHeaders, 'X-A, X-B');
    assert.deepEqual(definition.headers, ['Strict-Transport-Security', 'max-age=1']);
  });

  it('accepts a method whose name begins with "class"', () => {
    const rules = {
      class() {
        return true;
      },
      classify() {
        return {};
      },
    };
    readDefinition(defineService({ access: rules.class, formatError: rules.classify }));
  });
});

/** Writes an operation whose params have this user. */
const withUser = (user: string, id = 'user.id') =>
  `index(_: undefined, { user }: ControllerParams<{ ${user} }>) { return { id: ${id} }; }`;

const refusedGroups: readonly (readonly [service: string, controller: string, error: RegExp])[] = [
  ['', "static operations = { index: { access: 'user' } }; index() { return {}; }", /no service file has authenticate/],
  [
    'authenticate: () => undefined',
    withUser('user: { id: string }'),
    /have a user that is always there: write access: 'user', or user\?:/,
  ],
  [
    'authenticate: () => undefined',
    withUser('user: import("pg").PoolClient', 'user'),
    /have a user that is always there/,
  ],
  ['', withUser('user: { id: string }'), /have a user that is always there/],
  ...['ControllerParams & { user: { id: string } }', "Omit<ControllerParams, 'user'> & { user: { id: string } }"].map(
    (params) =>
      [
        'authenticate: () => undefined',
        `index(_: undefined, { user }: ${params}) { return { id: user.id }; }`,
        /have a user that is always there/,
      ] as const,
  ),
  ["unchecked: 'refuse'", "'POST'(data: any) { return {}; }", /nothing checks its data/],
  ["unchecked: 'refuse'", 'publish(data: unknown) { return {}; }', /nothing checks its data/],
  ["unchecked: 'refuse'", "'POST'(data: any = {}) { return data; }", /nothing checks its data/],
  ["unchecked: 'refuse'", "'POST'(...all: any[]) { return all[0]; }", /nothing checks its data/],
  [
    "unchecked: 'refuse'",
    "'GET {id}'(_: undefined, { path }: ControllerParams) { return path; }",
    /has \{id\} without a type/,
  ],
  ['', 'static operations = { index: { access: [] } }; index() { return {}; }', /access must be 'anyone'/],
];

const acceptedGroups: readonly (readonly [service: string, controller: string])[] = [
  [
    '',
    'index(_: undefined, params: { user: import("pg").PoolClient; page: string }) { return { page: params.page }; }',
  ],
  ['authenticate: () => undefined', withUser('user: { id: string } | undefined', 'user?.id ?? 0')],
  ['authenticate: () => undefined', withUser('user?: { id: string }', 'user?.id ?? null')],
  [
    '',
    "index(_: undefined, params: Omit<ControllerParams, 'page'> & { page: string }) { return { page: params.page }; }",
  ],
  ["authenticate: () => undefined, access: 'user'", withUser('user: { id: string }')],
  [
    "unchecked: 'refuse'",
    'static operations = { publish: { unchecked: true } }; publish(data: unknown) { return {}; } index() { return {}; }',
  ],
  ["unchecked: 'refuse'", "index(data: unknown) { return {}; } 'POST leave'() { return {}; }"],
];

describe('a controller under a service file', () => {
  const run = async (options: string, body: string) => {
    const service = await startService({
      controllers: {
        'service.ts': `import { defineService } from '${GATEFOLD}';\nexport default defineService({ ${options} });\n`,
        'XController.ts': `import type { ControllerParams } from 'gatefold';\nexport default class XController { ${body} }\n`,
      },
      expectedErrors: ['request-failed', 'group-not-loadable'],
    });
    const response = await fetch(`${service.url}/api/x`);
    const reasons = service.lines.flatMap(({ error }) => (typeof error === 'string' ? [error] : []));
    await response.text();
    await service.close();
    return { status: response.status, reasons };
  };

  for (const [options, body, error] of refusedGroups)
    it(`is refused: ${body.slice(0, 70)}`, async () => {
      const { status, reasons } = await run(options, body);
      assert.equal(status, 500);
      assert.ok(
        reasons.some((reason) => error.test(reason)),
        reasons.join('\n'),
      );
    });
  for (const [options, body] of acceptedGroups)
    it(`is accepted: ${body.slice(0, 70)}`, async () => {
      const { status, reasons } = await run(options, body);
      assert.notEqual(status, 500, reasons.join('\n'));
    });
});

describe('an entry of the controllers folder', () => {
  const stateOf = async (dir: string, needsService = false, skip = new Map<string, string>()) => {
    const kinds: ServiceState['kind'][] = [];
    const log = createLog({ level: 'error', sink: { write: () => {} } });
    const groups = createGroups({ dir, log, onService: ({ kind }) => kinds.push(kind) });
    await groups.loadAll({ skip, needsService, onLoading: () => {} });
    return kinds;
  };

  it('is a broken service file when its import has already ended a process', async (t) => {
    const dir = createFolder(t as TestContext, { 'service.mjs': 'process.exit(1);' });
    assert.deepEqual(await stateOf(dir, false, new Map([['service.mjs', 'its import ended a process']])), ['broken']);
  });

  it('is a broken service file when service.ts is a folder or a dangling link', async (t) => {
    const linked = createFolder(t as TestContext, { 'XController.mjs': controller('x') });
    symlinkSync('/nowhere/service.ts', join(linked, 'service.ts'));
    assert.deepEqual(await stateOf(linked), ['broken']);
    const folder = createFolder(t as TestContext, { 'XController.mjs': controller('x') });
    mkdirSync(join(folder, 'service.ts'));
    assert.deepEqual(await stateOf(folder), ['broken']);
  });

  for (const property of ['access', 'close', 'folders', 'securitySchemes', 'unchecked'])
    it(`is a broken service file when it exports ${property} beside its default export`, async (t) => {
      const dir = createFolder(t as TestContext, {
        'service.mjs': `import { defineService } from '${GATEFOLD}';
          export default defineService({});
          export const ${property} = 'refuse';`,
      });
      assert.deepEqual(await stateOf(dir), ['broken']);
    });

  const RULES = "import { defineService } from 'gatefold';\nexport default defineService({ access: 'user' });\n";
  /** A file beside the controllers, and its text. */
  const strays: readonly (readonly [file: string, text?: string])[] = [
    ...['Service.ts', 'services.ts', 'service.cts', 'service.tsx', 'service.TS', 'serivce.ts', 'config.ts'].map(
      (name) => [name] as const,
    ),
    ['ServiceController.ts'],
    ['.service.ts'],
    ['service .ts'],
    ['service.ts.ts'],
    ['rules.js', "import { defineService as d } from 'gatefold';\nexport default d({});"],
    ['rules.js', "import * as gatefold from 'gatefold';\nexport default gatefold.defineService({});"],
    ['rules.cjs', "const { defineService } = require('gatefold');\nmodule.exports = defineService({});"],
    ['broken.ts', "import { defineService } from 'gatefold';\nexport default defineService({"],
    ['broken.ts', "export { defineService } from 'gatefold';\nexport default {"],
    ['unread.ts', "import a from 'a'; import { defineService } from 'gatefold'; @@@"],
    ['rules.ts', "const { defineService } = await import(/* rules */ 'gatefold');\nexport default defineService({});"],
    ['rules.ts', "export { defineService } from 'gatefold';"],
    ['rules.ts', "export { defineService as default } from 'gatefold';"],
  ];
  for (const [file, text = RULES] of strays)
    it(`is broken by rules that nothing applies: ${JSON.stringify(file)} with ${text.slice(0, 30)}…`, async (t) => {
      const dir = createFolder(t as TestContext, { 'AController.mjs': controller('a'), [file]: text });
      assert.deepEqual(await stateOf(dir), ['broken']);
    });

  const harmless: readonly (readonly [file: string, text?: string])[] = [
    ['service.ts~'],
    ['.service.ts.swp'],
    ['service.test.ts'],
    ['service.d.ts'],
    ['service.ts.bak'],
    ['lib/service.ts'],
    ['services.ts', 'export const service = 1;'],
    [
      'HintController.ts',
      "import { HttpError } from 'gatefold';\n// See defineService({}) in service.ts.\nexport default class {}",
    ],
    [
      'types.ts',
      "import type { defineService } from 'gatefold';\nexport type Rules = Parameters<typeof defineService>;",
    ],
    [
      'types.ts',
      "import { HttpError, type defineService } from 'gatefold';\nexport type Rules = typeof defineService;",
    ],
    ['types.ts', "export type { defineService } from 'gatefold';"],
    ['types.ts', "export type Rules = typeof import('gatefold').defineService;"],
    [
      'whole.ts',
      "import * as gatefold from 'gatefold';\n// See defineService.\nexport const { HttpError } = gatefold;",
    ],
    // Each line could begin an import, and none does. It once took minutes.
    ['long.ts', `${'const gatefold = defineService\n'.repeat(2000)}({`],
    ['own.ts', "import { defineService } from './lib/own.ts';\ndefineService({});\nexport const gatefold = 1;"],
  ];
  for (const [file, text = RULES] of harmless)
    it(`is not missed because of ${file}`, async (t) => {
      const dir = createFolder(t as TestContext, { 'AController.mjs': controller('a'), [file]: text });
      assert.deepEqual(await stateOf(dir), ['none']);
    });

  for (const [own, first, state] of [
    ['defineService({ folders: true })', 'AController.mjs', 'broken'],
    ['defineService({ folders: true })', 'a.mjs', 'loaded'],
    ['defineService({})', 'AController.mjs', 'loaded'],
  ] as const)
    it(`is ${state} with ${own} beside v2/service.ts and v2/${first}`, async (t) => {
      const dir = createFolder(t as TestContext, {
        'service.mjs': `import { defineService } from '${GATEFOLD}';\nexport default ${own};`,
        'v2/service.ts': RULES,
        [`v2/${first}`]: controller('a'),
      });
      assert.deepEqual(await stateOf(dir), [state]);
    });

  it('can import another file that uses defineService', async (t) => {
    const dir = createFolder(t as TestContext, {
      'service.mjs': "export { default } from './rules.mjs';",
      'rules.mjs': `import { defineService } from '${GATEFOLD}';\nexport default defineService({});`,
    });
    assert.deepEqual(await stateOf(dir), ['loaded']);
  });

  for (const [second, other] of [
    ['service.mjs', 'service.ts'],
    ['service.mts', 'service.ts'],
    ['service.js', 'service.mjs'],
  ] as const)
    it(`is broken by ${second} beside ${other}, and names both`, async (t) => {
      const dir = createFolder(t as TestContext, { 'AController.mjs': controller('a') });
      for (const name of [second, other])
        write(dir, name, `import { defineService } from '${GATEFOLD}';\nexport default defineService({});`);
      const log = createLog({ level: 'error', sink: { write: () => {} } });
      const loads = await createGroups({ dir, log }).loadAll({ skip: new Map(), onLoading: () => {} });
      const [service] = loads.filter(({ group }) => group === 'service');
      assert.deepEqual([service?.file, service?.ok], [second, false]);
      assert.match(String(service?.error), new RegExp(`${second}.*${other}|${other}.*${second}`));
    });

  it('can import a second file with the name of a service file', async (t) => {
    const dir = createFolder(t as TestContext, {
      'service.mjs': "export { default } from './service.js';",
      'service.js': `import { defineService } from '${GATEFOLD}';\nexport default defineService({});`,
    });
    assert.deepEqual(await stateOf(dir), ['loaded']);
  });

  it('gives its own mistake, not that of a file that it would import', async (t) => {
    const dir = createFolder(t as TestContext, {
      'service.mjs': "export { default } from './rules.mjs';\nexport const = 1;",
      'rules.mjs': RULES,
    });
    const log = createLog({ level: 'error', sink: { write: () => {} } });
    const [load] = await createGroups({ dir, log }).loadAll({ skip: new Map(), onLoading: () => {} });
    assert.deepEqual([load?.group, load?.file, load?.ok], ['service', 'service.mjs', false]);
  });

  it('is broken when it is absent although the service needs it', async (t) => {
    const dir = createFolder(t as TestContext, { 'AController.mjs': controller('a') });
    assert.deepEqual(await stateOf(dir, true), ['broken']);
  });
});

function describeOptions(options: unknown): string {
  return JSON.stringify(options, (_, value) => (typeof value === 'function' ? '() => …' : value)) ?? 'undefined';
}

it('outlineAccess describes each rule of an access, and says nothing of anyone', () => {
  const rows: [access: Parameters<typeof outlineAccess>[0], text: string | undefined][] = [
    [undefined, undefined],
    ['anyone', undefined],
    [['anyone'], undefined],
    ['user', 'user'],
    [() => true, 'a function'],
    [{ scope: 'notes:write' }, 'scope notes:write'],
    [['application', { scope: 'notes:write' }, () => true], 'application and scope notes:write and a function'],
  ];
  for (const [access, text] of rows) assert.equal(outlineAccess(access), text);
});
