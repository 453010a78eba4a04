// The examples of docs/CONTRACTS.md: the controller runs and gives the documented answer.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { CONSTRAINTS } from '../../src/contract/source/constraint-tags.ts';
import { FORMATS } from '../../src/contract/types/formats.ts';
import { startService } from '../support/service.ts';

const TEXT = readFileSync(new URL('../../docs/CONTRACTS.md', import.meta.url), 'utf8');

function block(language: string): string {
  return new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(TEXT)?.[1] ?? '';
}

test('the first controller of CONTRACTS.md gives the responses that the page shows', async () => {
  const service = await startService({ controllers: { 'UserController.ts': block('ts') } });
  try {
    const ask = async (body: string) => {
      const answer = await fetch(`${service.url}/api/user?dryRun=true`, {
        method: 'POST',
        body,
        headers: { 'Content-Type': 'application/json' },
      });
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
    };
    const said = JSON.parse(block('json')) as Record<string, unknown>;
    const refused = await ask('{"name":"","role":"root"}');
    assert.equal(refused.status, 422);
    assert.deepEqual({ ...refused.body, timestamp: 0, request_id: '' }, { ...said, timestamp: 0, request_id: '' });
    const user = { name: 'Ada', email: 'ada@example.com', role: 'admin' };
    assert.deepEqual(await ask(JSON.stringify({ ...user, isAdmin: true })), {
      status: 200,
      body: { user, dryRun: true },
    });
    assert.deepEqual(await (await fetch(`${service.url}/api/user?page=3`)).json(), { page: 3 });
  } finally {
    await service.close();
  }
});

test('CONTRACTS.md names every tag, every format and every alias', () => {
  const aliases = readFileSync(new URL('../../src/api/controller.ts', import.meta.url), 'utf8').matchAll(
    /^export type (\w+) = (?:string|number);/gm,
  );
  const names = [
    ...Object.keys(CONSTRAINTS).map((tag) => `@${tag}`),
    ...Object.keys(FORMATS),
    ...Array.from(aliases, ([, name]) => name as string),
  ];
  for (const name of names) assert.ok(TEXT.includes(`\`${name}\``), name);
});
