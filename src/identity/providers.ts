// Keeps data/identity-providers.json live: polled, since file events do not reach mounted volumes; parsed and swapped whole; the
// last good list stays when the new text is bad. What a row means is provider-rows.ts.
import { type BigIntStats, readFileSync, statSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { describeError, type Log } from '../base/log.ts';
import { issuerSpellings } from './claims.ts';
import { type Provider, type ProviderRows, parseProviderRows, type RefusedRow } from './provider-rows.ts';

export interface ProvidersOptions {
  readonly path: string;
  readonly log: Log;
  /** Milliseconds between two looks at the file. */
  readonly pollMs?: number;
  readonly onChange?: (providers: readonly Provider[]) => void;
}

export interface Providers {
  readonly list: readonly Provider[];
  readonly refused: readonly RefusedRow[];
  /** By the exact text of a token's `iss`. */
  find(issuer: string): Provider | undefined;
  close(): void;
}

const MAX_FILE_BYTES = 1024 * 1024;
/** A file system's clock may tick this slowly: what was written within it may have changed again unseen. */
const SETTLED_MS = 2000;

/** @throws Error one line, when the file is there and cannot be read as a list of rows: better no start than no sign-in */
export function createProviders({ path, log, pollMs = 300, onChange = () => {} }: ProvidersOptions): Providers {
  let rows: ProviderRows = { providers: [], refused: [] };
  let byIssuer: ReadonlyMap<string, Provider> = new Map();
  /** `undefined`: there is no file. */
  let text: string | undefined;
  let fingerprint = '';
  let complaint = '';
  let missed = 0;
  let isClosed = false;

  readFirst();
  let isLooking = false;
  const timer = setInterval(() => {
    if (isLooking) return;
    isLooking = true;
    look().finally(() => {
      isLooking = false;
    });
  }, pollMs);
  timer.unref();

  return {
    get list() {
      return rows.providers;
    },
    get refused() {
      return rows.refused;
    },
    find: (issuer) => byIssuer.get(issuer),
    close() {
      isClosed = true;
      clearInterval(timer);
    },
  };

  function readFirst(): void {
    try {
      const stats = statSync(path, { bigint: true });
      checkSize(stats);
      const found = readFileSync(path, 'utf8');
      take(parseProviderRows(found));
      [text, fingerprint] = [found, fingerprintOf(stats)];
    } catch (error) {
      if (isMissing(error)) return;
      throw new Error(`Cannot read the identity providers: ${path}: ${(error as Error).message}`);
    }
  }

  /** Never rejects. */
  async function look(): Promise<void> {
    try {
      const stats = await stat(path, { bigint: true });
      missed = 0;
      const seen = fingerprintOf(stats);
      if (seen === fingerprint && Date.now() - Number(stats.ctimeMs) > SETTLED_MS) return;
      checkSize(stats);
      const found = await readFile(path, 'utf8');
      fingerprint = seen;
      if (found === text) complaint = ''; // Mended by putting the old text back.
      if (isClosed || found === text) return;
      swap(parseProviderRows(found), found);
    } catch (error) {
      if (!isMissing(error)) return complain(error);
      // Once may be the moment between two halves of a swap; twice is a file that is gone. An operator
      // removes it to close sign-in, so every provider goes. Damage is an accident: a bad text leaves the last good list.
      missed++;
      if (missed >= 2 && text !== undefined && !isClosed) swap({ providers: [], refused: [] }, undefined);
    }
  }

  function swap(next: ProviderRows, found: string | undefined): void {
    text = found;
    complaint = '';
    if (found === undefined) fingerprint = '';
    take(next);
    log.info('identity-providers-changed', { providers: next.providers.map((provider) => provider.name), refused: next.refused.length });
  }

  function take(next: ProviderRows): void {
    rows = next;
    byIssuer = new Map(next.providers.flatMap((row) => issuerSpellings(row.issuer).map((spelling) => [spelling, row] as const)));
    for (const { name, reason } of next.refused) log.warn('identity-provider-refused', { provider: name, reason });
    onChange(next.providers);
  }

  /** Once per fault, not once per look. */
  function complain(error: unknown): void {
    const { stack: _, ...facts } = describeError(error);
    if (complaint === facts.error) return;
    complaint = String(facts.error);
    log.warn('identity-providers-unreadable', { ...facts, keeping: rows.providers.length });
  }
}

/** The inode and ctime see what mtime alone does not: a rename, and a writer that sets mtime back. */
function fingerprintOf(stats: BigIntStats): string {
  return `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}:${stats.ctimeNs}`;
}

function checkSize(stats: BigIntStats): void {
  if (!stats.isFile()) throw new Error('it is not a file');
  if (stats.size > MAX_FILE_BYTES) throw new Error(`it is longer than ${MAX_FILE_BYTES} bytes`);
}

function isMissing(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 'ENOENT';
}
