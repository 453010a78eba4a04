// The recipes of docs/RECIPES.md as services.
import assert from 'node:assert/strict';
import { readFileSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { TestContext } from 'node:test';
import { startTest } from '../../src/api/testing.ts';
import { makeProject } from './command-bench.ts';

const ROOT = resolve(import.meta.dirname, '../..');
export const TEXT = readFileSync(join(ROOT, 'docs/RECIPES.md'), 'utf8');
export const SOURCES = Array.from(
  TEXT.matchAll(/```ts\n\/\/ (\w+)\/([\w/.-]+)\n([\s\S]*?)```/g),
  ([, recipe, name, source]) => ({
    recipe,
    name: String(name),
    source: String(source),
  }),
);

/** @param more files that the recipe does not show, such as the stand-in for a database */
export async function startRecipe(t: TestContext, recipe: string, more: Readonly<Record<string, string>> = {}) {
  const own = SOURCES.filter((source) => source.recipe === recipe);
  assert.ok(own.length > 0, recipe);
  const files = [...own.map(({ name, source }): [string, string] => [name, source]), ...Object.entries(more)];
  const cwd = makeProject(t, {
    ...Object.fromEntries(files.map(([name, source]) => [`controllers/${name}`, source])),
    'node_modules/.keep': '',
  });
  symlinkSync(ROOT, join(cwd, 'node_modules/gatefold'));
  symlinkSync(join(ROOT, 'node_modules/postgres'), join(cwd, 'node_modules/postgres'));
  const service = await startTest({ controllers: `${cwd}/controllers` });
  t.after(() => service.close());
  const send = async (method: string, path: string, body?: object, headers: Record<string, string> = {}) => {
    const json = { 'content-type': 'application/json' };
    const response = await fetch(`http://127.0.0.1:${service.port}/api/${path}`, {
      method,
      headers: { ...(body && json), ...headers },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json');
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  };
  return { port: service.port, service, send };
}

/** Signs in as a form of a page of another site does. Returns the status. */
export async function sendForm(port: number, fields: Record<string, string>): Promise<number> {
  const headers = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' };
  const body = new URLSearchParams(fields);
  return (await fetch(`http://127.0.0.1:${port}/api/session`, { method: 'POST', headers, body })).status;
}
