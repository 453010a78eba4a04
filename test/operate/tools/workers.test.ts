// The tools of a service with two workers. Any worker may answer any message, a revoked key ends on all workers, and
// the workers share the rates.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { runGatefold } from '../../../src/operate/cli/commands.ts';
import { createFolder, startService } from '../../support/cluster-server.ts';
import { runHere } from '../../support/command-bench.ts';

const DESK = `export default class DeskController {
  static operations = { '*': { tool: true, access: 'application' }, 'POST seldom': { limit: '200/h' } };
  'GET pid'() { return { pid: process.pid }; }
  'POST seldom'() { return {}; }
}`;

test('two workers answer messages without a session, share rates, and refuse a revoked key', async (t) => {
  const dir = createFolder(t, { 'DeskController.mjs': DESK });
  const data = join(dirname(dir), 'data');
  mkdirSync(data);
  const env = { WORKERS: '2', MCP: 'application' };
  const service = await startService(t, { dir, env });
  const command = async (...words: string[]) => {
    const { out } = await runHere(runGatefold, ['credentials', ...words, '--json'], {
      cwd: dirname(dir),
      env: { CONTROLLERS_DIR: dir, DATA_DIR: data },
    });
    return JSON.parse(out) as { id: string; token: string };
  };
  const { id, token } = await command('issue', '--name', 'agent', '--groups', 'desk');
  // Each request has a new connection, so that both workers answer.
  const agents = Array.from({ length: 8 }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  t.after(() => {
    for (const agent of agents) agent.destroy();
  });

  const send = (agent: Agent, method: string, params: object = {}) =>
    new Promise<{ status: number; body: { result?: object; error?: object } }>((answered, failed) => {
      const headers = {
        Authorization: `Bearer ${token}`,
        'Content-Type': 'application/json',
        'MCP-Protocol-Version': '2025-11-25',
      };
      const message = request(
        { host: '127.0.0.1', port: service.port, path: '/api/mcp', method: 'POST', agent, headers },
        async (answer) => answered({ status: answer.statusCode ?? 0, body: JSON.parse(await text(answer)) }),
      );
      message.on('error', failed);
      message.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
    });
  const call = async (agent: Agent, name: string) =>
    (await send(agent, 'tools/call', { name, arguments: {} })).body.result as {
      structuredContent?: { pid: number };
      isError?: boolean;
    };
  const all = <Result>(ask: (agent: Agent) => Promise<Result>) => Promise.all(agents.map(ask));
  const until = async (what: string, isTrue: () => Promise<boolean>) => {
    for (const end = Date.now() + service.patience(); Date.now() < end; await sleep(20)) if (await isTrue()) return;
    assert.fail(`${what}: this did not happen in time`);
  };

  const isSeenByAll = async (status: number) =>
    (await all((agent) => send(agent, 'tools/list'))).every((answer) => answer.status === status);
  await until('all workers accept the key', () => isSeenByAll(200));

  // No worker has seen an initialize of this client.
  const pids = new Set<unknown>();
  await until('both workers have run a call', async () => {
    for (const agent of agents) {
      agent.destroy();
      pids.add((await call(agent, 'desk_GET_pid')).structuredContent?.pid);
    }
    return pids.size === 2;
  });

  // If the workers did not share the rate, 400 requests would pass.
  const calls: boolean[] = [];
  for (let i = 0; i < 50; i++)
    calls.push(...(await all(async (agent) => (await call(agent, 'desk_POST_seldom')).isError === true)));
  const passed = calls.filter((isRefused) => !isRefused).length;
  assert.ok(passed >= 180 && passed <= 300, `${passed} of 400 calls passed a rate of 200`);

  await command('revoke', id);
  await until('all workers refuse the key', () => isSeenByAll(401));
});
