// Helpers for tests of identity: a data folder with providers, credentials in memory, controller params, and a log that
// keeps its lines.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createParams } from '../../src/api/controller/create-params.ts';
import type { ControllerParams } from '../../src/api/controller.ts';
import { refusal } from '../../src/base/errors.ts';
import { createLog, type Log } from '../../src/base/log.ts';
import type { Owner } from '../../src/callers/credentials/table/row.ts';
import type { Accounts, OwnedRow } from '../../src/callers/identity/handler.ts';

export interface RememberedLog extends Log {
  readonly lines: string[];
  events(): string[];
}

export function rememberLog(): RememberedLog {
  const lines: string[] = [];
  const log = createLog({ level: 'debug', sink: { write: (line) => lines.push(line), flush: () => {} } });
  return { ...log, lines, events: () => lines.map((line) => (JSON.parse(line) as { event: string }).event) };
}

export interface DataFolder {
  readonly dir: string;
  readonly file: string;
  write(rows: unknown): void;
  remove(): void;
}

export function makeDataFolder(rows?: unknown): DataFolder {
  const dir = mkdtempSync(join(tmpdir(), 'gatefold-identity-'));
  const file = join(dir, 'identity-providers.json');
  const write = (value: unknown) => writeFileSync(file, typeof value === 'string' ? value : JSON.stringify(value));
  if (rows !== undefined) write(rows);
  return { dir, file, write, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

export function makeParams(headers: Record<string, string> = { 'content-type': 'application/json' }): ControllerParams {
  const request = { headers } as unknown as IncomingMessage;
  return createParams({ page: 'idp-signin', method: 'signin', verb: 'POST', requestId: 'test-1', request });
}

/** Credentials in memory, with the interface of the room `credentials`. */
export function makeAccounts(): Accounts & { readonly sessions: string[] } {
  const rows: (OwnedRow & { owner: Owner })[] = [];
  const sessions: string[] = [];
  const isOf = (owner: Owner) => (row: { owner: Owner }) =>
    row.owner.issuer === owner.issuer && row.owner.subject === owner.subject;
  return {
    sessions,
    issueSession(rowId) {
      sessions.push(rowId);
      return { token: `gfs_for_${rowId}`, expiresAt: 1_780_003_600 };
    },
    findByOwner: async (owner) => rows.filter(isOf(owner)).map(({ id, application }) => ({ id, application })),
    async register({ owner, name }) {
      if (rows.some((row) => isOf(owner)(row) && row.application.name === name)) throw refusal('ALREADY_REGISTERED');
      const id = `row${rows.length + 1}`;
      // Real rows have more fields than the interface names. These must not reach the client.
      const row = { id, application: { id, name, description: 'kept on the row', owner }, owner };
      rows.push(row);
      return { row: { id, application: row.application }, token: `gfk_${id}` };
    },
  };
}
