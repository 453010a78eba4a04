// The type of the second argument: `ControllerParams` is an interface like any other. A type derived from it is checked
// by its own path and query.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Service, startService } from '../support/service.ts';

const Q = "{ mode: 'fast' | 'slow'; page?: number }";
const HEAD = `import type { ControllerParams, Uuid } from 'gatefold';
import type { Pool } from 'pg';
import type { Params, Renamed, Mine } from './params.ts';
`;
const OTHER_FILE = {
  'params.ts': `import type { ControllerParams } from 'gatefold';
export { HttpError } from 'gatefold';
export type { ControllerParams as Renamed } from 'gatefold';
export interface Params extends ControllerParams { query: ${Q} }
export interface Mine { user: string; query: ${Q} }`,
};

/** Types by name. Each accepts `?mode=fast&page=2` and refuses `?mode=bad` and `?mode=fast&page=x`. */
const QUERIES: Readonly<Record<string, string>> = {
  Shape: `ControllerParams<{ query: ${Q} }>`,
  Omitted: `Omit<ControllerParams, 'query'> & { query: ${Q} }`,
  Both: `ControllerParams & { query: ${Q} }`,
  Picked: `Mine & Pick<ControllerParams, 'log'>`,
  Extended: 'Extended',
  ExtendedOmit: 'ExtendedOmit',
  Elsewhere: 'Params',
  Aliased: `Renamed<{ query: ${Q} }>`,
  Partly: `Partial<ControllerParams<{ query: ${Q} }>>`,
  Undefined: `ControllerParams<{ query: ${Q} | undefined }>`,
  Read: `Readonly<ControllerParams<{ query: ${Q} }>>`,
  Own: `{ query: ${Q}; signal: AbortSignal; pool: Pool }`,
  WithPool: `ControllerParams<{ query: ${Q} }> & { pool: Pool }`,
  Optional: `ControllerParams<{ query: ${Q} }> | undefined`,
};
const DECLARED = `interface Extended extends ControllerParams { query: ${Q} }
interface ExtendedOmit extends Omit<ControllerParams, 'query'> { query: ${Q} }
`;

let service: Service;
before(async () => {
  const groups = Object.entries(QUERIES).map(([name, type]): [string, string] => [
    `${name}Controller.ts`,
    `${HEAD}${DECLARED}export default class { index(_: unknown, params?: ${type}) { return { query: params?.query }; } }\nvoid 0;`,
  ]);
  const path = `${HEAD}interface P extends ControllerParams { path: { id: Uuid } }
export default class {
  'GET a/{id}'(_: unknown, params: P) { return params.path; }
  'GET b/{id}'(_: unknown, { path }: Omit<ControllerParams, 'path'> & { path: { id: 'a' | 'b' } }) { return path; }
  'GET c/{id}'(_: unknown, { path }: ControllerParams & { path: { id: number } }) { return path; }
}`;
  const named = `import type { Params } from './own.ts';
export type { HttpError } from 'gatefold';
export default class { created(data: Params) { return { data }; } }`;
  const own = { 'own.ts': 'export interface Params { n: number }', 'NamedController.ts': named };
  service = await startService({
    controllers: { ...OTHER_FILE, ...own, ...Object.fromEntries(groups), 'PathController.ts': path },
  });
});
after(() => service.close());

async function ask(path: string): Promise<[status: number, body: Record<string, unknown>]> {
  const response = await fetch(`${service.url}/api/${path}`);
  return [response.status, (await response.json()) as Record<string, unknown>];
}

describe('the query is checked by the params type', () => {
  for (const [name, type] of Object.entries(QUERIES)) {
    test(type, async () => {
      assert.deepEqual(await ask(`${name}?mode=fast&page=2&role=admin`), [200, { query: { mode: 'fast', page: 2 } }]);
      for (const query of ['mode=bad', 'mode=fast&page=x', ''])
        assert.equal((await ask(`${name}?${query}`))[0], 422, query);
    });
  }
});

test('the path is checked by the params type', async () => {
  const id = '0190c1a0-0000-7000-8000-000000000000';
  assert.deepEqual(await ask(`path/a/${id}`), [200, { id }]);
  assert.deepEqual(await ask('path/b/a'), [200, { id: 'a' }]);
  assert.deepEqual(await ask('path/c/7'), [200, { id: 7 }]);
  for (const path of ['a/x', 'b/c', 'c/x']) assert.equal((await ask(`path/${path}`))[0], 422, path);
});

test('a type that the project names Params is checked as data', async () => {
  const ask = (body: string) =>
    fetch(`${service.url}/api/named`, { method: 'POST', body, headers: { 'Content-Type': 'application/json' } });
  assert.equal((await ask('{"n":"text"}')).status, 422);
  assert.deepEqual(await (await ask('{"n":1}')).json(), { data: { n: 1 } });
});
