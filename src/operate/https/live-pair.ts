// Reloads a certificate and its key, whose files may change together or one by one. A valid pair is live within a
// second. An invalid pair is logged once, and the last valid pair stays live.

import { explainFailure } from '../../base/failure.ts';
import type { Log } from '../../base/log.ts';
import { type Content, createLiveFile, readContent } from '../../base/polled-file.ts';
import { type CertificatePair, readPair } from './pair.ts';

export type LivePair = ReturnType<typeof createLivePair>;

export interface LivePairOptions {
  readonly certPath: string;
  /** The path of the private key. The file may be the same as that of the certificate. */
  readonly keyPath: string;
  /** Whether to start without a pair when the files contain none yet. */
  readonly mayComeLater: boolean;
  readonly log: Log;
  readonly onPair: (pair: CertificatePair) => void;
  readonly pollMs?: number;
}

const POLL_MS = 500;
/** Polls that must read the same invalid pair: two files are seldom replaced at the same time. */
const CONFIRMATIONS = 3;
/** Bytes of the largest file of a certificate or a key. */
export const MAX_BYTES = 1024 * 1024;

/** @throws Error with a message of one line, when the files contain no valid pair and `mayComeLater` is false */
export function createLivePair(options: LivePairOptions) {
  const { certPath, keyPath, mayComeLater, log, onPair, pollMs = POLL_MS } = options;
  let pair: CertificatePair | undefined;
  const paths = [...new Set([certPath, keyPath])];
  const firstContent = readContent(paths, MAX_BYTES);
  try {
    onLive(parse(firstContent), 0);
  } catch (error) {
    if (!mayComeLater) throw error;
  }
  const file = createLiveFile({
    ...{ paths, maxBytes: MAX_BYTES, pollMs, confirmations: CONFIRMATIONS, parse, onLive },
    liveContent: pair && firstContent,
    onFailure(error) {
      const effect = pair === undefined ? 'no request is served' : 'the last valid certificate stays in use';
      log.error('certificate-reload-failed', { error, effect });
    },
  });
  /** Returns the pair that is in use; undefined until the files contain a valid pair. */
  const current = (): CertificatePair | undefined => pair;
  return { current, ...file };

  function onLive(next: CertificatePair, reloads: number): void {
    pair = next;
    const { names, issuer, notAfter } = next.facts;
    const expires = new Date(notAfter).toISOString();
    log.info('certificate-loaded', { file: certPath, names, issuer, expires, reloads });
    onPair(next);
  }

  function parse(content: Content): CertificatePair {
    if (content.files === undefined)
      throw new Error(`Cannot read ${content.isMissing ? paths.join(' and ') : content.path}: ${content.reason}`);
    const [cert = '', key = cert] = content.files.map(String);
    return explainFailure(`Cannot use ${paths.join(' with ')}`, () => readPair(cert, key));
  }
}
