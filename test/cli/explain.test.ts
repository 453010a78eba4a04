// `gatefold explain`: its verdict comes from the app itself. Here it is compared with the contract of each request.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { parseSettings } from '../../src/base/config.ts';
import { createInk } from '../../src/base/ink.ts';
import { createLog } from '../../src/base/log.ts';
import { askApp, type Question } from '../../src/cli/ask-app.ts';
import { type CommandIo, runCommand } from '../../src/cli/command.ts';
import { command, describeVerdict } from '../../src/cli/explain.ts';
import { type Inspection, inspectFolder } from '../../src/cli/inspection.ts';
import { createGroups } from '../../src/groups/registry.ts';
import { startTest } from '../../src/testing.ts';
import { makeProject, runHere } from '../support/command-bench.ts';

const HASH = `sha256:${'A'.repeat(43)}`;
const ROWS = [
  { id: 'live00000000', name: 'Live', hash: HASH, handler: 'a', methods: ['GET', 'POST'] },
  { id: 'old000000000', name: 'Old', hash: HASH, expires_at: '2020-01-01' },
  { id: 'gone00000000', name: 'Gone', hash: HASH, revoked_at: '2020-01-01' },
  { id: 'some00000000', name: 'Some', hash: HASH, groups: ['a'] },
  { id: 'lost00000000', name: 'Lost', hash: HASH, handler: 'Nowhere' },
  { name: 'Partner', authorization: 'Token partner', handler: 'a', methods: ['GET'] },
  { name: 'Käufer', authorization: 'Token für Käufer', groups: ['strict'] },
  { name: 'Former', authorization: 'Token former', revoked_at: '2020-01-01' },
];
const FILES = {
  'controllers/AController.mjs':
    'globalThis.called = false;\nexport default class {\n  index() { throw new Error("called") }\n  hello() { process.exit(1) }\n  _under() {}\n}\n',
  'controllers/BareController.mjs': "export default { 'PUT'() {}, 'GET'() {}, find() {} };",
  'controllers/StrictController.mjs': `export default class {
  index() {}
  pay() {}
  'GET {id}'() {}
  'POST {id}/pay'() {}
}
`,
  'controllers/GuardedController.mjs':
    'export default class {\n  _before() { throw new Error("called") }\n  index() {}\n}\n',
  'controllers/BadController.mjs': '\nthrow new Error("no luck");\n',
  'controllers/userController.mjs': 'export default {};\n',
  'controllers/user.controller.ts': 'export default {};\n',
  'data/production.json': JSON.stringify({ production: ROWS }),
};

const run: Parameters<typeof runHere>[0] = (argv, io) => runCommand(command, argv, io);
let cwd: string;
let inspection: Inspection;
let explain: (
  verb: string,
  target: string,
  authorization?: string,
) => Promise<{ text: string; json: Record<string, unknown>; code: number }>;
const cleanUp: (() => void)[] = [];
after(() => {
  for (const clean of cleanUp) clean();
});

before(async () => {
  cwd = makeProject({ after: (clean) => cleanUp.push(clean as () => void) }, FILES);
  const settings = parseSettings({ CONTROLLERS_DIR: join(cwd, 'controllers'), DATA_DIR: join(cwd, 'data') }, [], {
    cores: 1,
  });
  inspection = await inspectFolder(settings, { env: {}, cwd } as unknown as CommandIo);
  const log = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
  const groups = createGroups({ dir: settings.controllersDir, log });
  explain = async (verb, target, authorization) => {
    const question: Question = {
      verb,
      target,
      now: Date.parse('2026-01-01'),
      ...(authorization === undefined ? {} : { authorization }),
    };
    const verdict = await askApp(question, { settings, groups });
    const explained = { question, verdict, inspection, dir: settings.controllersDir, cwd };
    const { text, json, exitCode } = describeVerdict(explained, createInk({ isTTY: false, env: {} }));
    return { text, json: JSON.parse(JSON.stringify(json)), code: exitCode ?? 0 };
  };
});

interface Row {
  readonly ask: readonly [verb: string, target: string, authorization?: string];
  readonly called?: string;
  readonly refused?: string;
  readonly says?: readonly string[];
}

const GENERIC = 'row        any /api/{params} → gateway.index';

describe('explain', () => {
  const rows: Record<string, Row> = {
    'a route of a group': {
      ask: ['GET', '/api/strict/7'],
      called: 'GET {id}',
      says: ['operation  GET {id}, a route of the group'],
    },
    'a route of the bare group': {
      ask: ['PUT', '/api/bare'],
      called: 'PUT',
      says: ['operation  PUT, the route of the bare group'],
    },
    'a route of the bare group, asked by its name': {
      ask: ['POST', '/api/bare/PUT'],
      refused: '404 ROUTE_NOT_FOUND',
      says: [
        'all routes of Bare are of the bare group',
        "'PUT' is the route of the bare group, and no segment calls it",
      ],
    },
    'a named operation of a group with routes': {
      ask: ['POST', '/api/strict/pay'],
      called: 'pay',
      says: ['pay, named by the path'],
    },
    'a path that matches no route of the group': {
      ask: ['GET', '/api/strict/7/8'],
      refused: '404 ROUTE_NOT_FOUND',
      says: ['404 ROUTE_NOT_FOUND', 'the routes of Strict are GET {id}, POST {id}/pay'],
    },
    'a route, asked with another method': {
      ask: ['DELETE', '/api/strict/7/pay'],
      refused: '405 METHOD_NOT_ALLOWED',
    },
    'an operation chosen by the verb': {
      ask: ['GET', '/api/a'],
      called: 'index',
      says: [GENERIC, 'group      A, controllers/AController.mjs', 'index, chosen by the verb'],
    },
    'an operation of a group with _before, without a call of _before': {
      ask: ['GET', '/api/guarded'],
      called: 'index',
    },
    'an operation named by a slug': {
      ask: ['DELETE', '/api/a/hello?x=1'],
      called: 'hello',
      says: ['hello, named by the path'],
    },
    'a slug after an encoded slash': { ask: ['GET', '/api/a%2Fhello'], called: 'hello' },
    'an absolute URL': { ask: ['GET', 'http://localhost:3000/api/a'], called: 'index' },
    HEAD: { ask: ['HEAD', '/api/A'], called: 'index' },
    'a slug that names no operation': {
      ask: ['GET', '/api/a/b'],
      called: 'index',
      says: ['note       "b" names no operation of A, so the verb decides'],
    },
    'a method whose name begins with _': {
      ask: ['GET', '/api/a/_under'],
      called: 'index',
      says: ['_under is not an operation: its name begins with _'],
    },
    'a verb without an operation': {
      ask: ['PATCH', '/api/a'],
      refused: '500 OPERATION_NOT_FOUND',
      says: ['because    group A has no operation patch, which PATCH asks for'],
    },
    'a verb outside the verb table': { ask: ['PROPFIND', '/api/a'], refused: '405 METHOD_NOT_ALLOWED' },
    CONNECT: { ask: ['CONNECT', '/api/a'], refused: '405 METHOD_NOT_ALLOWED', says: ['row        none'] },
    'an explicit row': {
      ask: ['POST', '/api/register'],
      called: 'identity.register',
      says: [
        'row        POST /api/register → identity.register',
        'no identity provider is configured, so it answers 503',
      ],
    },
    'an explicit row that does not take the verb': {
      ask: ['GET', '/api/idp-signin'],
      refused: '404 GROUP_NOT_FOUND',
      says: [
        'there is no Idp-signinController.ts, .mjs or .js in controllers',
        'route POST /api/idp-signin → identity.signin matches the path but not the method GET',
      ],
    },
    'a group without a file': {
      ask: ['GET', '/api/nope'],
      refused: '404 GROUP_NOT_FOUND',
      says: ['none for "nope"'],
    },
    'HEAD of a group without a file': { ask: ['HEAD', '/api/nope'], refused: '404 GROUP_NOT_FOUND' },
    'a group with look-alike files only': {
      ask: ['GET', '/api/user'],
      refused: '404 GROUP_NOT_FOUND',
      says: [
        'user.controller.ts is not a controller: the name that counts is UserController.ts',
        'userController.mjs is not a controller: the name that counts is UserController.mjs',
      ],
    },
    'a group in other letter case': {
      ask: ['GET', '/api/BAD'],
      refused: '404 GROUP_NOT_FOUND',
      says: ['letter case counts: the group Bad answers bad'],
    },
    'a path without a group': {
      ask: ['GET', '/api/'],
      refused: '404 GROUP_NOT_FOUND',
      says: ['any /api/ → gateway.index', 'the path names no group'],
    },
    'a segment that cannot name a group': {
      ask: ['GET', '/api/..'],
      refused: '404 GROUP_NOT_FOUND',
      says: ['".." cannot name a group'],
    },
    'a group that does not load': {
      ask: ['GET', '/api/bad'],
      refused: '500 GROUP_NOT_LOADABLE',
      says: [
        'group      Bad, controllers/BadController.mjs',
        'because    controllers/BadController.mjs:2: Error: no luck',
      ],
    },
    'a path outside /api': { ask: ['GET', '/'], refused: '404 NOT_FOUND', says: ['row        none'] },
    'a path that cannot be decoded': { ask: ['GET', '/api/%zz'], refused: '400 MALFORMED_PATH' },
    'a path without a slash': { ask: ['GET', 'api/a'], refused: '400 MALFORMED_PATH' },
    'a path that is not ASCII': { ask: ['GET', '/api/é'], refused: '400 MALFORMED_PATH' },
    'OPTIONS with an Authorization header': {
      ask: ['OPTIONS', '/api/a', 'foreign'],
      refused: '500 OPERATION_NOT_FOUND',
    },
    'a foreign Authorization header on a group': { ask: ['GET', '/api/a', 'foreign'], called: 'index' },
    'a foreign Authorization header on a group without a file': {
      ask: ['GET', '/api/nope', 'foreign'],
      refused: '500 DELEGATED_GROUP_NOT_FOUND',
    },
    'a credential with a handler group': {
      ask: ['POST', '/api/hello/b', 'live00000000'],
      called: 'hello',
      says: ['hello, named by the path', 'the credential "Live" sends every request to the group a'],
    },
    'a credential for the group of the path': {
      ask: ['GET', '/api/a/hello', 'some00000000'],
      called: 'hello',
      says: ['hello, named by the path'],
    },
    'a credential for other groups': { ask: ['GET', '/api/nope', 'some00000000'], refused: '403 GROUP_NOT_ALLOWED' },
    'a credential that may not use the verb': {
      ask: ['PUT', '/api/a', 'live00000000'],
      refused: '405 METHOD_NOT_ALLOWED',
      says: ['group      not looked for'],
    },
    'a credential whose handler group has no file': {
      ask: ['GET', '/api/a', 'lost00000000'],
      refused: '500 DELEGATED_GROUP_NOT_FOUND',
      says: ['there is no NowhereController.ts'],
    },
    'an expired credential': {
      ask: ['GET', '/api/a', 'old000000000'],
      refused: '401 INVALID_CREDENTIAL',
      says: ['its row has expired'],
    },
    'a revoked credential': {
      ask: ['GET', '/api/a', 'gone00000000'],
      refused: '401 INVALID_CREDENTIAL',
      says: ['its row is revoked'],
    },
    'an unknown credential': {
      ask: ['GET', '/api/a', 'nobody000000'],
      refused: '401 INVALID_CREDENTIAL',
      says: ['no row has its id'],
    },
    'a literal credential, given by its name': {
      ask: ['POST', '/api/a', 'Partner'],
      refused: '405 METHOD_NOT_ALLOWED',
    },
    'a header value that is no credential id': {
      ask: ['GET', '/api/a', 'Token abc'],
      called: 'index',
      says: ['note       no credential has this id, so --authorization is used as the value of the header'],
    },
  };
  for (const [name, { ask, called, refused, says = [] }] of Object.entries(rows)) {
    test(name, async () => {
      const { text, json, code } = await explain(...ask);
      assert.equal(json.outcome, called === undefined ? 'refused' : 'called', text);
      if (called !== undefined) assert.equal(json.operation, called, text);
      else assert.equal(`${json.status} ${json.error_code}`, refused, text);
      assert.equal(code, called === undefined ? 1 : 0);
      assert.ok(text.startsWith(`${ask[0]} ${ask[1]}\n`));
      for (const line of says) assert.ok(text.includes(line), `${line}\nis not in\n${text}`);
    });
  }

  test('describeVerdict returns the answer of the service for each header value', async (t) => {
    const api = await startTest({
      controllers: join(cwd, 'controllers'),
      data: join(cwd, 'data'),
      expectedErrors: ['group-not-loadable', 'request-failed'],
    });
    t.after(() => api.close());
    const values = [
      'Token abc',
      'nobody',
      'Basic YTpi',
      'Token partner',
      ' Token partner',
      'Token Partner',
      'Token für Käufer',
      'Token former',
    ];
    for (const value of [...values, 'Token gfk_abc', 'Token gfsabc']) {
      for (const path of ['/api/strict/7', '/api/absent']) {
        const headers = { authorization: Buffer.from(value).toString('latin1') };
        const { status, body } = await new Promise<{ status: number; body: string }>((done, failed) => {
          get(`${api.url}${path}`, { headers }, async (answer) =>
            done({ status: answer.statusCode ?? 0, body: await text(answer) }),
          ).on('error', failed);
        });
        const { json } = await explain('GET', path, value.trim());
        // The operation of A throws when it is called.
        const answer = status < 400 ? 'called' : `${status} ${JSON.parse(body).error_code}`;
        const expected = answer === '500 INTERNAL_ERROR' ? 'called' : answer;
        assert.equal(
          json.outcome === 'called' ? 'called' : `${json.status} ${json.error_code}`,
          expected,
          `${value} ${path}`,
        );
      }
    }
  });

  for (const target of ['/api/a', '/api', '*']) {
    test(`OPTIONS ${target} without a header is a preflight`, async () => {
      const { text, json, code } = await explain('OPTIONS', target);
      assert.deepEqual([json.outcome, json.status, code], ['preflight', 200, 0]);
      assert.ok(text.includes('200, a CORS preflight: no operation is called'));
    });
  }
});

describe('gatefold explain', () => {
  test('loads the controllers and prints the verdict as JSON', async () => {
    const { code, out, err } = await runHere(run, ['get', '/api/a/hello', '--json'], { cwd });
    assert.deepEqual([code, err], [0, '']);
    assert.deepEqual(JSON.parse(out), {
      verb: 'GET',
      target: '/api/a/hello',
      outcome: 'called',
      route: { methods: 'any', path: '/api/{params}', target: 'gateway.index' },
      group: 'A',
      operation: 'hello',
      file: join(cwd, 'controllers/AController.mjs'),
      because: [],
    });
  });

  test('prints colours on a terminal, and none with NO_COLOR', async () => {
    const { code, out } = await runHere(run, ['PATCH', '/api/a'], { cwd, isTTY: true });
    assert.equal(code, 1);
    assert.ok(out.includes('\u001b[31m500 OPERATION_NOT_FOUND'));
    const quiet = await runHere(run, ['PATCH', '/api/a'], { cwd, isTTY: true, env: { NO_COLOR: '1' } });
    assert.ok(!quiet.out.includes('\u001b'));
  });

  test('refuses a credentials table that it cannot read', async (t) => {
    const broken = makeProject(t, { 'data/production.json': '{"production":"hunter2"}' });
    const { code, out, err } = await runHere(run, ['GET', '/api/a', '--authorization', 'x'], { cwd: broken });
    assert.deepEqual([code, out], [1, '']);
    assert.match(err, /^gatefold explain: Cannot read .*production\.json: it has no list "production"\n$/);
  });

  test('prints a verdict although the identity providers cannot be read', async (t) => {
    const broken = makeProject(t, { 'data/identity-providers.json': '{' });
    const { code, out } = await runHere(run, ['POST', '/api/register'], { cwd: broken });
    assert.equal(code, 0);
    assert.match(out, /operation {2}identity\.register\n/);
  });

  test('notes that --user has no effect without authenticate', async () => {
    const { out } = await runHere(run, ['GET', '/api/strict/7', '--user', '7'], { cwd });
    assert.match(out, /note {7}no service file has authenticate, so --user changes nothing\n/);
  });

  const wrong: Record<string, [argv: string[], message: RegExp]> = {
    'a call without a verb': [[], /missing VERB and PATH; see gatefold explain --help/],
    'an unknown verb': [['FETCH', '/api'], /"FETCH" is not an HTTP method/],
    'a path with a space': [['GET', '/api/a HTTP/1.1'], /PATH: it is empty, or has a space or a control character/],
    'a path with a line feed': [['GET', '/api\r\nx: y'], /PATH: /],
    'an empty path': [['GET', ''], /PATH: /],
    'a header value with a line feed': [
      ['GET', '/', '--authorization', 'Token a\nb'],
      /--authorization: it has a control character/,
    ],
    'an origin with a space': [['GET', '/', '--origin', 'https://a b'], /--origin: it has a space or is not ASCII/],
    'an empty user id': [['GET', '/', '--user', ''], /--user: the id is missing/],
    'a header value of spaces': [['GET', '/', '--authorization', ' '], /--authorization: the value is missing/],
    'an empty header value': [['GET', '/', '--authorization', ''], /--authorization: the value is missing/],
    'a token in the place of its id': [
      ['GET', '/', '--authorization', 'gfk_secretsecret_x'],
      /^(?!.*secretsecret).*the value is a token/,
    ],
    'a header value with a secret': [
      ['GET', '/', '--authorization=Bearer secretsecret'],
      /^(?!.*secretsecret).*the value is a token/,
    ],
  };
  for (const [name, [argv, message]] of Object.entries(wrong)) {
    test(`refuses ${name}`, async () => {
      const { code, out, err } = await runHere(run, argv, { cwd });
      assert.deepEqual([code, out], [2, '']);
      assert.match(err, message);
      assert.equal(err.trimEnd().split('\n').length, 1);
    });
  }
});

test('explain reports a look-alike in a subfolder, and none in a deep subfolder', async () => {
  mkdirSync(join(cwd, 'controllers/a/b/c/d'), { recursive: true });
  writeFileSync(join(cwd, 'controllers/a/b/c/d/DeepController.ts'), '');
  writeFileSync(join(cwd, 'controllers/a/b/NearController.ts'), '');
  assert.ok(
    (await explain('GET', '/api/near')).text.includes(
      'a/b/NearController.ts is not a controller: it is in a subfolder',
    ),
  );
  assert.ok(!(await explain('GET', '/api/deep')).text.includes('DeepController.ts is'));
});
