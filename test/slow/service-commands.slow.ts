// `gatefold explain`, `routes` and `doctor` under a service file. None of them calls a function of its author.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { runCommand } from '../../src/cli/command.ts';
import { command as doctor, type Finding } from '../../src/cli/doctor.ts';
import { command as explain } from '../../src/cli/explain.ts';
import { command as openapi } from '../../src/cli/openapi.ts';
import { command as routes } from '../../src/cli/routes.ts';
import { makeProject, runHere } from '../support/command-bench.ts';
import { GATEFOLD } from '../support/service.ts';

/** Each function of the author writes a file when it is called. */
const SERVICE = (called: string) => `
import { writeFileSync } from 'node:fs';
import { defineService } from '${GATEFOLD}';
const call = (name: string) => writeFileSync(${JSON.stringify(called)}, name);
export default defineService({
  strict: true,
  access: 'user',
  cors: { origins: ['https://app.example.com'], credentials: true },
  authenticate: () => call('authenticate'),
  formatError: () => { call('formatError'); return {}; },
  close: () => call('close'),
});
`;
const NOTE = (called: string) => `
import { writeFileSync } from 'node:fs';
export default class NoteController {
  static operations = {
    index: { access: 'anyone' },
    pay: { access: ['user', () => { writeFileSync(${JSON.stringify(called)}, 'access'); return true; }], limit: '1/h' },
    keyed: { access: { scope: 'notes' } },
  };
  _before() { writeFileSync(${JSON.stringify(called)}, '_before'); }
  index() { writeFileSync(${JSON.stringify(called)}, 'index'); }
  created(data: { text: string }) { return data; }
  pay() {}
  keyed() {}
}
`;
const TAG = `export default { 'GET {name}'() {} };`;

let cwd: string;
let called: string;
const cleanUp: (() => void)[] = [];
before(() => {
  cwd = makeProject({ after: (clean) => cleanUp.push(clean) }, {});
  called = join(cwd, 'called');
  cwd = makeProject(
    { after: (clean) => cleanUp.push(clean) },
    {
      'controllers/service.ts': SERVICE(called),
      'controllers/NoteController.ts': NOTE(called),
      'controllers/TagController.mjs': TAG,
    },
  );
});
after(() => {
  for (const clean of cleanUp) clean();
});

const run = (command: typeof explain, argv: readonly string[], dir = cwd) =>
  runHere((given, io) => runCommand(command, given, io), argv, { cwd: dir });

test('doctor and explain accept a controller in a subfolder under folders: true', async (t) => {
  const dir = makeProject(t, {
    'controllers/service.mjs': `import { defineService } from '${GATEFOLD}';\nexport default defineService({ folders: true });\n`,
    'controllers/v2/TagController.mjs': TAG,
  });
  const { out } = await run(doctor, [], dir);
  assert.doesNotMatch(out, /not a controller/);
  const { out: explained } = await run(explain, ['GET', '/api/tag'], dir);
  assert.match(explained, /404 GROUP_NOT_FOUND/);
  assert.doesNotMatch(explained, /not a controller/);
});

describe('gatefold explain names the step at which a request ends', () => {
  const rows: readonly [title: string, argv: readonly string[], answer: string, says: readonly string[]][] = [
    [
      'an anonymous request with a body of the wrong type',
      ['POST', '/api/note', '--data', '{"text":1}'],
      '401 USER_REQUIRED',
      [
        'operation  created',
        'access     user',
        'step       access, after request, row, key, rate, rights, group and operation, origin',
        'nobody is signed in: ask with --user ID',
        'authenticate is not called here',
        'formatError makes the body',
      ],
    ],
    [
      'a user with a body of the wrong type',
      ['POST', '/api/note', '--user', 'ann', '--data', '{"text":1}'],
      '422 INVALID_DATA',
      ['step       types', 'body /text must be a string'],
    ],
    [
      'a user with a valid body',
      ['POST', '/api/note', '--user', 'ann', '--data', '{"text":"a"}'],
      'the operation is called',
      ['access     user'],
    ],
    [
      'an operation with access: anyone',
      ['GET', '/api/note'],
      'the operation is called',
      ['authenticate is not called here'],
    ],
    [
      'a function in access',
      ['POST', '/api/note/pay', '--user', 'ann'],
      'the operation is called',
      ['access     user and a function', 'access has a function, which is not called here'],
    ],
    [
      'a scope in access',
      ['POST', '/api/note/keyed'],
      '401 CREDENTIAL_REQUIRED',
      ['access     scope notes', 'step       access'],
    ],
    [
      'a path with the name of an operation in a strict group',
      ['GET', '/api/note/index'],
      '404 ROUTE_NOT_FOUND',
      ['step       group and operation', 'Note is strict because service.ts says so'],
    ],
    [
      'an absent group with a token',
      ['GET', '/api/nope', '--authorization', 'Token x'],
      '404 GROUP_NOT_FOUND',
      ['step       group and operation'],
    ],
    [
      'an origin that is not listed',
      ['POST', '/api/note', '--origin', 'https://evil.example'],
      '403 ORIGIN_NOT_ALLOWED',
      ['step       origin', 'operation  created'],
    ],
    [
      'a listed origin',
      ['POST', '/api/note/keyed', '--origin', 'https://app.example.com'],
      '401 CREDENTIAL_REQUIRED',
      [],
    ],
    ['a path outside /api', ['GET', '/other'], '404 NOT_FOUND', ['step       row']],
    ['a malformed path', ['GET', '/api/%zz'], '400 MALFORMED_PATH', ['step       request']],
  ];
  for (const [title, argv, answer, says] of rows)
    test(title, async () => {
      const { out, err } = await run(explain, argv);
      assert.equal(err, '');
      assert.ok(out.includes(`answer     ${answer}`), out);
      for (const line of says) assert.ok(out.includes(line), `${line}\nis not in\n${out}`);
    });

  test('without a call of any function in the controller or service file', async () => {
    await run(explain, ['POST', '/api/note/pay', '--user', 'ann']);
    await run(explain, ['POST', '/api/note/pay']);
    assert.equal(existsSync(called), false);
  });

  test('in the output of --json', async () => {
    const { out } = await run(explain, ['POST', '/api/note', '--json']);
    const { step, access, operation, status } = JSON.parse(out) as Record<string, unknown>;
    assert.deepEqual([step, access, operation, status], ['access', 'user', 'created', 401]);
  });
});

test('gatefold routes shows the access of each operation and the groups that service.ts makes strict', async () => {
  const { code, out } = await run(routes, []);
  assert.equal(code, 0, out);
  assert.match(out, /^POST +\/api\/note +created +user +controllers\/NoteController\.ts/m);
  assert.match(out, /^POST +\/api\/note\/pay +pay +user and a function +controllers/m);
  assert.match(out, /^GET,HEAD +\/api\/note +index +controllers/m);
  assert.doesNotMatch(out, /\/api\/note\/(?:index|created)/);
  assert.match(out, /\n\nStrict because of service\.ts: Note\n$/);
  const { routes: listed } = JSON.parse((await run(routes, ['--json'])).out) as { routes: Record<string, unknown>[] };
  const pay = listed.find(({ operation }) => operation === 'pay');
  assert.deepEqual([pay?.methods, pay?.access, pay?.strict], [['POST'], 'user and a function', 'service']);
  const tag = listed.find(({ group }) => group === 'Tag');
  assert.deepEqual([tag?.access, tag && 'strict' in tag], ['user', false]);
  assert.equal(
    listed.some(({ group }) => group === 'service'),
    false,
  );
});

const findingsOf = async (dir: string) => {
  const { code, out } = await run(doctor, ['--json'], dir);
  const { findings } = JSON.parse(out) as { findings: Finding[] };
  return { code, findings };
};

test('gatefold doctor lists the properties that the service file sets', async () => {
  const { code, findings } = await findingsOf(cwd);
  assert.equal(code, 0, JSON.stringify(findings));
  const [first, second, ...others] = findings.filter(({ topic }) => topic === 'service');
  assert.equal(first?.at, join(cwd, 'controllers/service.ts'));
  assert.equal(first?.message, 'strict, authenticate, access: user, formatError, cors with credentials, close');
  assert.match(second?.message ?? '', /without securitySchemes/);
  assert.deepEqual(others, []);
  assert.ok(findings.some(({ message }) => message.endsWith('has 2 controllers')));
});

describe('a service file that does not load', () => {
  let broken: string;
  before(() => {
    broken = makeProject(
      { after: (clean) => cleanUp.push(clean) },
      {
        'controllers/service.ts': `import { defineService } from '${GATEFOLD}';\n\nexport default defineService({\n  strict: 'yes' as never,\n});\n`,
        'controllers/TagController.mjs': TAG,
      },
    );
  });
  const PLACE = /controllers\/service\.ts:4/;

  test('is reported by doctor with its line', async () => {
    const { code, findings } = await findingsOf(broken);
    assert.equal(code, 1);
    const [found] = findings.filter(({ level }) => level === 'wrong');
    assert.equal(found?.topic, 'service');
    assert.match(found?.at ?? '', PLACE);
    assert.match(found?.message ?? '', /every request is a 500: service\.ts:4: strict must be true or false/);
  });

  test('makes routes and openapi fail with its line', async () => {
    for (const command of [routes, openapi]) {
      const { code, err } = await run(command, [], broken);
      assert.equal(code, 1);
      assert.match(err, PLACE);
    }
  });

  test('is the reason that explain gives for a 500', async () => {
    const { code, out } = await run(explain, ['GET', '/api/tag/a'], broken);
    assert.equal(code, 1);
    assert.match(out, /answer +500 SERVICE_NOT_LOADABLE/);
    assert.match(out, /because +controllers\/service\.ts:4: service\.ts:4: strict must be true or false/);
  });
});
