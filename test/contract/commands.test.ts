// Contracts in the commands: `routes` and `doctor` report each operation.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { runCommand } from '../../src/operate/cli/command.ts';
import { command as doctor } from '../../src/operate/cli/doctor.ts';
import { command as routes } from '../../src/operate/cli/routes.ts';
import { makeProject, runHere } from '../support/command-bench.ts';

const FILES = {
  'controllers/UserController.ts': `import type { ControllerParams, Int } from 'gatefold';
import type { Row } from 'database';
interface NewUser { name: string; age?: Int }
type Nested = Nested[];
export default class UserController {
  index(query: { page?: Int }): Row[] { return [query as never]; }
  created(user: NewUser, params: ControllerParams<{ query: { dryRun?: boolean } }>) { return [user, params]; }
  red(data: unknown) { return data; }
  patch(data: any) { return data; }
  options(pair: [string, number]) { return pair; }
  nest(lists: Nested) { return lists; }
}
`,
};

const cleanUp: (() => void)[] = [];
let cwd: string;
before(() => {
  cwd = makeProject({ after: (clean) => cleanUp.push(clean as () => void) }, FILES);
});
after(() => {
  for (const clean of cleanUp) clean();
});

const ask = async (command: Parameters<typeof runCommand>[0], argv: string[]) => {
  const { code, out } = await runHere((args, io) => runCommand(command, args, io), [...argv, '--json'], { cwd });
  return { code, json: JSON.parse(out) as Record<string, unknown> };
};

test('routes lists the checked data of each operation, or the reason for no check', async () => {
  const { json } = await ask(routes, []);
  const told = (
    json.routes as { operation: string; path: string; contract?: { checked: string; unchecked?: string } }[]
  )
    .filter(({ path }) => path.startsWith('/api/user'))
    .map(({ operation, contract }) => [operation, contract?.checked || contract?.unchecked]);
  assert.deepEqual(Object.fromEntries(told), {
    index: 'data { page? }',
    created: 'data { name, age? }, query { dryRun? }',
    red: 'its type is unknown or any',
    patch: 'its type is unknown or any',
    options: 'data list',
    nest: 'data list of list of list',
  });
});

test('doctor reports unchecked data and undocumented results', async () => {
  const { json } = await ask(doctor, []);
  const notes = (json.findings as { topic: string; message: string }[])
    .filter(({ topic }) => topic === 'controllers')
    .map(({ message }) => message);
  assert.deepEqual(notes, [
    'index: not documented: Row comes from a package, whose types are not read; write the type out',
    'created, red, patch, options, nest: not documented: its result has no type in the source, so it is unknown: annotate it, or write a schema as result',
    'red, patch: the data is not checked: its type is unknown or any',
  ]);
});
