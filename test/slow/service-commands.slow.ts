// `gatefold routes` and `doctor` under a service file. Neither calls a function of its author.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { runCommand } from '../../src/operate/cli/command.ts';
import { command as doctor } from '../../src/operate/cli/doctor.ts';
import type { Finding } from '../../src/operate/cli/finding.ts';
import { command as openapi } from '../../src/operate/cli/openapi.ts';
import { command as routes } from '../../src/operate/cli/routes.ts';
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

const run = (command: typeof doctor, argv: readonly string[], dir = cwd) =>
  runHere((given, io) => runCommand(command, given, io), argv, { cwd: dir });

test('doctor accepts a controller in a subfolder under folders: true', async (t) => {
  const dir = makeProject(t, {
    'controllers/service.mjs': `import { defineService } from '${GATEFOLD}';\nexport default defineService({ folders: true });\n`,
    'controllers/v2/TagController.mjs': TAG,
  });
  const { out } = await run(doctor, [], dir);
  assert.doesNotMatch(out, /not a controller/);
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

test('gatefold doctor finds nothing wrong in a service file, and calls no function of its author', async () => {
  const { code, findings } = await findingsOf(cwd);
  assert.equal(code, 0, JSON.stringify(findings));
  assert.equal(existsSync(called), false);
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
});
