// Helpers for tests of credentials: a folder that is removed after the test, tables of rows, a log that keeps its
// lines, and processes.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Log, LogFields } from '../../src/base/log.ts';
import { generateToken, hashSecret } from '../../src/callers/credentials/token.ts';
import { LOADER, modulePath } from './own-modules.ts';

export function createFolder(test: { after(done: () => void): void }): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatefold-credentials-'));
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export interface TestRow {
  readonly token: string;
  readonly id: string;
  readonly row: Record<string, unknown>;
}

/** A row as in the file, and the token for it. */
export function makeRow(fields: Record<string, unknown> = {}): TestRow {
  const { id, secret, token } = generateToken();
  return {
    token,
    id,
    row: { id, name: `row ${id}`, hash: hashSecret(secret), created_at: '2026-01-01T00:00:00Z', ...fields },
  };
}

export function tableText(...rows: unknown[]): string {
  return JSON.stringify({ production: rows });
}

export function writeTable(folder: string, ...rows: unknown[]): void {
  writeFileSync(join(folder, 'production.json'), tableText(...rows));
}

export interface LogLine {
  readonly level: string;
  readonly event: string;
  readonly fields: LogFields;
}

export interface MemoryLog extends Log {
  readonly lines: LogLine[];
}

export function createMemoryLog(): MemoryLog {
  const lines: LogLine[] = [];
  const at =
    (level: string) =>
    (event: string, fields: LogFields = {}) => {
      lines.push({ level, event, fields });
    };
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** Resolves when `isTrue()` returns true. The time limit of the test ends an endless wait. */
export async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** Runs a script of test/fixtures in a new process, with the Node binary of this process. */
export function spawnFixture(name: string, words: readonly string[], env: Record<string, string> = {}): ChildProcess {
  return spawn(process.execPath, [...LOADER, modulePath(`test/fixtures/${name}`), ...words], {
    env: { ...process.env, NODE_OPTIONS: '', ...env },
  });
}
