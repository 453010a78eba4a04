// The built service with its operations port, and two clients of that port: a strict scraper and a probe.
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ServiceOptions, type SpawnedService, spawnService } from './cluster-server.ts';
import { type ParsedMetrics, parseMetrics } from './prometheus-text.ts';

/** The operations of the group `test`, which the tests of the operations port call. */
export const TEST = `
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
export default class {
  index() { return { pid: process.pid }; }
  async slow(data, { query }) { while (!existsSync(query.gate)) await sleep(20); return { pid: process.pid }; }
  loop() { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); }
  exit() { process.exit(5); }
}`;

export interface Watched extends SpawnedService {
  readonly port: number;
  readonly ops: number;
}

export async function startWatched(test: TestContext, options: ServiceOptions = {}): Promise<Watched> {
  const service = spawnService(test, {
    files: { 'TestController.js': TEST },
    ...options,
    env: { OPS_PORT: '0', ...options.env },
  });
  const { port } = await service.logged('operations-port-opened');
  return { ...service, port: await service.listening, ops: Number(port) };
}

export async function scrape(ops: number): Promise<ParsedMetrics> {
  const response = await fetch(`http://127.0.0.1:${ops}/metrics`);
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
  return parseMetrics(await response.text());
}

export async function readyz(ops: number): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(`http://127.0.0.1:${ops}/readyz`);
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

/** Repeats a request until the answer is as expected, because workers report only once a second. */
export async function until<T>(look: () => Promise<T>, isMeant: (seen: T) => boolean): Promise<T> {
  for (const end = Date.now() + 60_000; ; ) {
    const seen = await look();
    if (isMeant(seen)) return seen;
    assert.ok(Date.now() < end, `still ${JSON.stringify(seen instanceof Map ? [...seen] : seen).slice(0, 5000)}`);
    await sleep(50);
  }
}
