// A certificate and its key in files that may change at any time, in one step or two. A good pair is live within a
// second. A bad one leaves the last good pair live and is reported once. When the files are read is base/live-file.ts.
import { type Content, createLiveFile, type LiveFile, readContent } from '../../base/live-file.ts';
import type { Log } from '../../base/log.ts';
import { type CertificatePair, readPair } from '../pair.ts';

export interface LivePair extends LiveFile {
  current(): CertificatePair | undefined;
}

export interface LivePairOptions {
  readonly certPath: string;
  /** May be the same file. */
  readonly keyPath: string;
  /** There need not be a pair to begin with. */
  readonly mayComeLater: boolean;
  readonly log: Log;
  readonly onPair: (pair: CertificatePair) => void;
  readonly pollMs?: number;
}

const POLL_MS = 500;
/** Two files are seldom replaced in one moment. */
const CONFIRMATIONS = 3;
const MOST_BYTES = 1024 * 1024;

/** @throws Error one line, when there is no pair to begin with, unless it may come later */
export function createLivePair({
  certPath,
  keyPath,
  mayComeLater,
  log,
  onPair,
  pollMs = POLL_MS,
}: LivePairOptions): LivePair {
  let pair: CertificatePair | undefined;
  const paths = [...new Set([certPath, keyPath])];
  const first = readContent(paths, MOST_BYTES);
  try {
    onLive(parse(first), 0);
  } catch (error) {
    if (!mayComeLater) throw error;
  }
  const file = createLiveFile({
    paths,
    mostBytes: MOST_BYTES,
    pollMs,
    confirmations: CONFIRMATIONS,
    liveKey: pair && first.key,
    parse,
    onLive,
    onFailure(error) {
      const effect = pair === undefined ? 'nothing is served' : 'the last good one serves on';
      log.error('certificate-reload-failed', { error, effect });
    },
  });
  return { current: () => pair, ...file };

  function onLive(next: CertificatePair, reloads: number): void {
    pair = next;
    const { names, issuer, notAfter } = next.facts;
    log.info('certificate-loaded', {
      file: certPath,
      names,
      issuer,
      expires: new Date(notAfter).toISOString(),
      reloads,
    });
    onPair(next);
  }

  function parse(content: Content): CertificatePair {
    if (content.files === undefined) {
      throw new Error(`Cannot read ${content.isMissing ? paths.join(' and ') : content.path}: ${content.reason}`);
    }
    const [cert = '', key = cert] = content.files.map(String);
    try {
      return readPair(cert, key);
    } catch (error) {
      throw new Error(`Cannot use ${paths.join(' with ')}: ${(error as Error).message}`);
    }
  }
}
