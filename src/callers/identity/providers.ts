// Keeps the providers equal to data/identity-providers.json. A valid text replaces the whole list. An invalid text is
// logged, and the last valid list stays live.

import type { Log } from '../../base/log.ts';
import { bytesOf, type Content, createLiveFile, readContent } from '../../base/polled-file.ts';
import { issuerSpellings } from './claims.ts';
import { type Provider, type ProviderRows, parseProviderRows, type RefusedRow } from './provider-rows.ts';

export interface ProvidersOptions {
  readonly path: string;
  readonly log: Log;
  readonly pollMs?: number;
  readonly onChange?: (providers: readonly Provider[]) => void;
}

const MAX_FILE_BYTES = 1024 * 1024;

/** @throws Error of one line, when the file exists and is not a list of rows */
export function createProviders({ path, log, pollMs = 300, onChange = () => {} }: ProvidersOptions) {
  let rows: ProviderRows = { providers: [], refused: [] };
  const firstContent = readContent([path], MAX_FILE_BYTES);
  try {
    apply(parseContent(firstContent));
  } catch (error) {
    throw new Error(`Cannot read the identity providers: ${path}: ${(error as Error).message}`);
  }
  const { close } = createLiveFile({
    paths: [path],
    maxBytes: MAX_FILE_BYTES,
    pollMs,
    // A missing or invalid file may be in the middle of a replacement, so two polls in a row must find it.
    confirmations: 2,
    liveContent: firstContent,
    parse: parseContent,
    onLive(next) {
      apply(next);
      log.info('identity-providers-changed', {
        providers: rows.providers.map(({ name }) => name),
        refused: rows.refused.length,
      });
    },
    onFailure: (error) => log.warn('identity-providers-unreadable', { error, keeping: rows.providers.length }),
  });

  return {
    get list(): readonly Provider[] {
      return rows.providers;
    },
    get refused(): readonly RefusedRow[] {
      return rows.refused;
    },
    find: (iss: string) => rows.providers.find(({ issuer }) => issuerSpellings(issuer).includes(iss)),
    close,
  };

  function apply(next: ProviderRows): void {
    rows = next;
    for (const { name, reason } of rows.refused) log.warn('identity-provider-refused', { provider: name, reason });
    onChange(rows.providers);
  }
}

/** @returns an empty list for a missing file, because an operator may remove the file to end sign-in */
function parseContent(content: Content): ProviderRows {
  const bytes = bytesOf(content);
  return bytes === undefined ? { providers: [], refused: [] } : parseProviderRows(String(bytes));
}
