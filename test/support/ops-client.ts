// The built service with its operations port on, and whoever watches it: a scraper that reads strictly, and a probe.
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ServiceOptions, type SpawnedService, spawnService } from './cluster-server.ts';
import { type ParsedMetrics, parseMetrics } from './prometheus-text.ts';

/** What the tests of the operations port ask for; each is an operation of the group `test`. */
export const TEST = `
import { setTimeout as sleep } from 'node:timers/promises';
export default class {
  index() { return { pid: process.pid }; }
  async slow() { await sleep(1500); return { pid: process.pid }; }
  loop() { for (;;); }
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

/** Asks again and again until the answer is as it should be: workers report once a second. */
export async function until<T>(look: () => Promise<T>, isMeant: (seen: T) => boolean): Promise<T> {
  for (const end = Date.now() + 15_000; ; ) {
    const seen = await look();
    if (isMeant(seen)) return seen;
    assert.ok(Date.now() < end, `still ${JSON.stringify(seen instanceof Map ? [...seen] : seen).slice(0, 5000)}`);
    await sleep(20);
  }
}
