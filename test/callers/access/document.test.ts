// The OpenAPI document under a service file: how users and keys authenticate, and the bodies that formatError makes.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { startTest } from '../../../src/api/testing.ts';
import { runCommand } from '../../../src/operate/cli/command.ts';
import { command } from '../../../src/operate/cli/openapi.ts';
import { makeProject, runHere } from '../../support/command-bench.ts';
import { createFolder } from '../../support/folder.ts';
import { GATEFOLD } from '../../support/service.ts';

const USERS = `authenticate: ({ authorization }) => (authorization === 'Token ann' ? { id: 'ann' } : undefined),`;
const SCHEMES = `securitySchemes: {
  token: { type: 'apiKey', in: 'header', name: 'Authorization', description: 'Token …' },
  session: { type: 'apiKey', in: 'cookie', name: 'session' },
},`;
const serviceFile = (options: string) => `
import { defineService, ErrorReply as Formatted } from '${GATEFOLD}';
import type { ErrorReply } from 'gatefold';
import type { Problem } from './problem.ts';
export default defineService({ ${options} });
`;
const PROBLEM = `
/** A problem. */
export interface Problem { title: string; causes: Cause[] }
interface Cause { at: string }
`;
const NOTES = `
import type { ControllerParams, Int } from 'gatefold';
export default class NoteController {
  static operations = {
    'GET user': { access: 'user' },
    'GET both': { access: ['user', 'application'] },
    'GET caller': { access: 'caller' },
    'GET scope': { access: { scope: 'notes' } },
    'GET function': { access: () => true },
    'GET mine': { access: ['user', () => true] },
    'GET twice': { access: ['user', 'caller'] },
    'GET anyone': { access: 'anyone' },
  };
  'GET user'() {}
  'GET both'() {}
  'GET caller'() {}
  'GET scope'() {}
  'GET function'() {}
  'GET mine'() {}
  'GET twice'() {}
  'GET anyone'() {}
  'GET {id}'(_: unknown, { path }: ControllerParams<{ path: { id: Int } }>) { return path; }
}
`;

interface Operation {
  readonly security?: readonly object[];
  readonly responses: Readonly<Record<string, { readonly $ref: string }>>;
}
interface Document {
  readonly security: readonly object[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, object>>;
    readonly responses: Readonly<
      Record<string, { description: string; content: Record<string, { schema: { $ref?: string } }> }>
    >;
    readonly securitySchemes: Readonly<Record<string, object>>;
  };
}

type Test = { after(done: () => void): void };

function projectOf(t: Test, options: string): string {
  const files = { 'service.ts': serviceFile(options), 'problem.ts': PROBLEM, 'NoteController.ts': NOTES };
  return makeProject(t, Object.fromEntries(Object.entries(files).map(([name, text]) => [`controllers/${name}`, text])));
}

/** The document as a client receives it. */
async function documentOf(t: Test, options: string, cwd = projectOf(t, options)): Promise<Document> {
  const api = await startTest({ controllers: `${cwd}/controllers` });
  try {
    return (await (await api.fetch('/openapi.json')).json()) as Document;
  } finally {
    await api.close();
  }
}

test('gatefold openapi prints the document of a service file with users, schemes and formatError', async (t) => {
  const options = `${USERS} ${SCHEMES} formatError: ({ message }): Problem => ({ title: message, causes: [] }),`;
  const cwd = projectOf(t, options);
  const printed = await runHere((argv, io) => runCommand(command, argv, io), ['--json'], { cwd });
  assert.deepEqual(JSON.parse(printed.out), await documentOf(t, options, cwd));
});

const operationOf = ({ paths }: Document, name: string) => paths[`/api/note/${name}`]?.get as Operation;
const securityOf = (document: Document, name: string) => operationOf(document, name).security;

describe('the access of an operation in the OpenAPI document', () => {
  test('lists the user schemes of the service file and the application keys as alternatives', async (t) => {
    const document = await documentOf(t, `${USERS} ${SCHEMES}`);
    const users = [{ token: [] }, { session: [] }];
    assert.deepEqual(securityOf(document, 'user'), users);
    assert.deepEqual(securityOf(document, 'mine'), users);
    assert.deepEqual(securityOf(document, 'both'), [
      { token: [], application: [] },
      { session: [], application: [] },
    ]);
    assert.deepEqual(securityOf(document, 'caller'), [...users, { application: [] }]);
    assert.deepEqual(securityOf(document, 'scope'), [{ application: ['notes'] }]);
    assert.equal(securityOf(document, 'anyone'), undefined);
    assert.deepEqual(document.security, [{}, { application: [] }, ...users]);
    assert.deepEqual(document.components.securitySchemes.token, {
      type: 'apiKey',
      in: 'header',
      name: 'Authorization',
      description: 'Token …',
    });
  });

  test('adds a 401 response for users and a 403 response for functions', async (t) => {
    const document = await documentOf(t, `${USERS} ${SCHEMES}`);
    const refusals = (name: string) =>
      ['401', '403'].map((status) => operationOf(document, name).responses[status]?.$ref.split('/').at(-1));
    assert.deepEqual(refusals('user'), ['UserRequired', undefined]);
    assert.deepEqual(refusals('caller'), ['UserRequired', undefined]);
    assert.deepEqual(refusals('scope'), ['CredentialRequired', 'ScopeMissing']);
    assert.deepEqual(refusals('function'), [undefined, 'AccessDenied']);
    assert.deepEqual(refusals('mine'), ['UserRequired', 'AccessDenied']);
    for (const name of ['UserRequired', 'AccessDenied']) assert.ok(name in document.components.responses, name);
  });

  test('comes from the service file when the operation sets none', async (t) => {
    const document = await documentOf(t, `${USERS} ${SCHEMES} access: 'user',`);
    assert.deepEqual(securityOf(document, '{id}'), [{ token: [] }, { session: [] }]);
    assert.ok(operationOf(document, '{id}').responses[401]);
    assert.equal(securityOf(document, 'anyone'), undefined);
  });

  test('has a 401 response without a scheme when the service file has no securitySchemes', async (t) => {
    const document = await documentOf(t, USERS);
    assert.equal(securityOf(document, 'user'), undefined);
    assert.ok(operationOf(document, 'user').responses[401]);
    assert.deepEqual(securityOf(document, 'both'), [{ application: [] }]);
    assert.equal(
      securityOf(document, 'twice'),
      undefined,
      'an application key alone must not be listed: the operation needs a user',
    );
  });

  test('lists keys in keyHeader beside keys in Authorization', async (t) => {
    const document = await documentOf(t, `${USERS} ${SCHEMES} keyHeader: 'X-Api-Key',`);
    const { type, in: place, name } = document.components.securitySchemes.applicationKey as Record<string, unknown>;
    assert.deepEqual([type, place, name], ['apiKey', 'header', 'x-api-key']);
    assert.deepEqual(securityOf(document, 'scope'), [{ application: ['notes'] }, { applicationKey: ['notes'] }]);
    assert.equal(securityOf(document, 'both')?.length, 4);
  });
});

test('a group that the service file makes strict documents its other operations only under POST', async (t) => {
  const files = { 'service.ts': serviceFile('strict: true,'), 'problem.ts': PROBLEM };
  const controllers = createFolder(t, { ...files, 'TagController.mjs': 'export default { index() {}, find() {} };' });
  const api = await startTest({ controllers });
  t.after(() => api.close());
  const { paths } = (await (await api.fetch('/openapi.json')).json()) as Document;
  assert.deepEqual(
    Object.entries(paths).map(([path, methods]) => [path, ...Object.keys(methods)].join(' ')),
    ['/api/tag get', '/api/tag/find post'],
  );
});

describe('the error responses in the OpenAPI document', () => {
  const schemaOf = ({ components }: Document, name: string) => components.responses[name]?.content;

  test('have the return type of formatError', async (t) => {
    const document = await documentOf(
      t,
      `${USERS} formatError: ({ message }): Problem => ({ title: message, causes: [] }),`,
    );
    const json = { 'application/json': { schema: { $ref: '#/components/schemas/Problem' } } };
    assert.deepEqual(schemaOf(document, 'Refused'), json);
    assert.deepEqual(schemaOf(document, 'InvalidData'), json);
    assert.deepEqual(schemaOf(document, 'UserRequired'), json);
    assert.deepEqual(Object.keys(document.components.schemas), ['Cause', 'Problem']);
    assert.equal(operationOf(document, '{id}').responses[422]?.$ref, '#/components/responses/InvalidData');
    assert.match(document.components.responses.Refused?.description ?? '', /may send another status/);
  });

  test('have the media type that an ErrorReply names', async (t) => {
    const document = await documentOf(
      t,
      `${USERS} formatError({ status, message }): ErrorReply<Problem> {
        return new Formatted(status, { title: message, causes: [] }, { 'Content-Type': 'application/problem+json; a=b' });
      },`,
    );
    assert.deepEqual(schemaOf(document, 'Refused'), {
      'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } },
    });
  });

  test('have a body of any type when formatError has no return type', async (t) => {
    const document = await documentOf(t, `${USERS} formatError: ({ message }) => ({ title: message }),`);
    assert.deepEqual(schemaOf(document, 'Refused'), { 'application/json': { schema: {} } });
    assert.deepEqual(document.components.schemas, {});
  });

  test('have the default envelope without formatError', async (t) => {
    const document = await documentOf(t, USERS);
    assert.deepEqual(schemaOf(document, 'Refused'), {
      'application/json': { schema: { $ref: '#/components/schemas/Error' } },
    });
  });
});

test('DOCS=application accepts a key in keyHeader, and the docs page names that header', async (t) => {
  const controllers = createFolder(t, {
    'service.ts': serviceFile(`${USERS} keyHeader: 'X-Api-Key',`),
    'NoteController.ts': NOTES,
    'problem.ts': PROBLEM,
  });
  const api = await startTest({ controllers, env: { DOCS: 'application' } });
  t.after(() => api.close());
  const key = await issueKey(api);
  const statusOf = async (headers: Record<string, string>) => (await api.fetch('/openapi.json', { headers })).status;
  assert.equal(await statusOf({}), 401);
  assert.equal(await statusOf({ 'x-api-key': 'nothing' }), 401);
  assert.equal(await statusOf({ 'x-api-key': key }), 200);
  assert.equal(await statusOf({ 'x-api-key': key, authorization: 'Token ann' }), 200);
  const page = await api.fetch('/docs');
  assert.equal(page.status, 401);
  assert.match(await page.text(), /id="caller" data-key-header="x-api-key"/);
});

/** `as` sends its own credential in Authorization. The test needs the same one as a text. */
async function issueKey(api: Awaited<ReturnType<typeof startTest>>): Promise<string> {
  const { fetch: real } = globalThis;
  let key = '';
  globalThis.fetch = async (url, init) => {
    key = new Headers(init?.headers).get('authorization')?.replace('Bearer ', '') ?? '';
    return real(url, init);
  };
  try {
    await api.as({ application: { name: 'tool' } }).fetch('/note/anyone');
  } finally {
    globalThis.fetch = real;
  }
  return key;
}
