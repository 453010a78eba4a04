// Runs the Conduit in the process of a test file, with a new PostgreSQL.
import { after } from 'node:test';
import { startTest, type TestApi, type TestRequest } from 'gatefold/testing';
import { startPostgres } from './postgres.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: the tests look at it
  readonly body: any;
}

export interface Conduit {
  readonly api: TestApi;
  /** @param token undefined when nobody is signed in */
  ask(verb: string, path: string, token?: string, json?: unknown, init?: TestRequest): Promise<Answer>;
  /** Registers a user. Returns the token. */
  register(username: string): Promise<string>;
}

export async function startConduit(): Promise<Conduit> {
  const postgres = await startPostgres();
  process.once('beforeExit', () => void postgres.close());
  Object.assign(process.env, { DATABASE_URL: postgres.url, TOKEN_SECRET: 'of the tests' });
  const { migrate } = await import('../lib/migrate.ts');
  await migrate();
  const api = await startTest({ controllers: './controllers' });
  after(() => api.close());

  async function ask(
    verb: string,
    path: string,
    token?: string,
    json?: unknown,
    init: TestRequest = {},
  ): Promise<Answer> {
    const headers = { ...(token !== undefined && { authorization: `Token ${token}` }), ...init.headers };
    const answer = await api.fetch(path, { ...init, method: verb, headers, ...(json !== undefined && { json }) });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, body: text === '' ? undefined : JSON.parse(text) };
  }

  async function register(username: string): Promise<string> {
    const user = { username, email: `${username}@example.com`, password: 'secret' };
    return (await ask('POST', '/users', undefined, { user })).body.user.token;
  }

  return { api, ask, register };
}
