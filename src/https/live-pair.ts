// A certificate and its key in files that may change at any time: by rename, by a swapped symbolic link, in a mounted
// secret, in one step or two. What fits goes live within a second; what does not leaves the last good pair and is told once.
import { readFileSync, statSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { describeFailure, errorCode } from '../base/failure.ts';
import type { Log } from '../base/log.ts';
import { type CertificatePair, readPair } from './pair.ts';

export interface LivePair {
  current(): CertificatePair | undefined;
  /** Why the files as they stand are not live; undefined when they are. */
  failure(): string | undefined;
  readonly reloads: number;
  readonly reloadFailures: number;
  /** Reads at once, and not only at the next look. */
  readNow(): void;
  close(): void;
}

export interface LivePairOptions {
  readonly certPath: string;
  /** May be the same file. */
  readonly keyPath: string;
  /** There need not be a pair to begin with. */
  readonly mayComeLater: boolean;
  readonly log: Log;
  readonly onPair: (pair: CertificatePair) => void;
  readonly intervalMs?: number;
}

/** Reading two small files costs less than to know of every file system whether its times can be trusted. */
const INTERVAL = 500;
/** Looks that find the same bad files before they are told of: whoever replaces two files takes a moment between them. */
const CONFIRMATIONS = 3;
const MOST_BYTES = 1024 * 1024;

interface Texts {
  readonly cert: string;
  readonly key: string;
}

/** @throws Error one line, when there is no pair to begin with, unless it may come later */
export function createLivePair({ certPath, keyPath, mayComeLater, log, onPair, intervalMs = INTERVAL }: LivePairOptions): LivePair {
  let pair: CertificatePair | undefined;
  let liveKey: string | undefined;
  let suspectKey: string | undefined;
  let seen = 0;
  let failure: string | undefined;
  let reloads = 0;
  let reloadFailures = 0;
  let closed = false;

  const first = readSync();
  const why = take(first);
  if (why !== undefined && !mayComeLater) throw new Error(why);
  let timer = setTimeout(look, intervalMs).unref();

  async function look(): Promise<void> {
    const texts = await read();
    if (closed) return;
    consider(texts);
    timer = setTimeout(look, intervalMs).unref();
  }

  /** Texts, or one line that says why there are none. */
  function consider(texts: Texts | string): void {
    const key = keyOf(texts);
    if (key === liveKey) {
      suspectKey = failure = undefined;
      return;
    }
    seen = key === suspectKey ? seen + 1 : 1;
    suspectKey = key;
    // What has been found bad stays bad until it changes.
    if (seen > CONFIRMATIONS) return;
    const reason = take(texts);
    if (reason === undefined || seen < CONFIRMATIONS) return;
    if (texts === MISSING && mayComeLater && pair === undefined) return;
    failure = reason;
    reloadFailures++;
    log.error('certificate-reload-failed', {
      error: reason,
      effect: pair === undefined ? 'nothing is served' : 'the last good one serves on',
    });
  }

  /** Makes them live; otherwise says why not. */
  function take(texts: Texts | string): string | undefined {
    const result = evaluate(texts);
    if (typeof result === 'string') return result;
    if (pair !== undefined) reloads++;
    pair = result;
    liveKey = keyOf(texts);
    suspectKey = failure = undefined;
    const { names, issuer, notAfter } = result.facts;
    log.info('certificate-loaded', { file: certPath, names, issuer, expires: new Date(notAfter).toISOString(), reloads });
    onPair(result);
    return undefined;
  }

  function evaluate(texts: Texts | string): CertificatePair | string {
    if (typeof texts === 'string') return texts === MISSING ? `Cannot read ${certPath} and ${keyPath}: ${MISSING}` : texts;
    try {
      return readPair(texts.cert, texts.key);
    } catch (error) {
      return `Cannot use ${certPath}${keyPath === certPath ? '' : ` with ${keyPath}`}: ${(error as Error).message}`;
    }
  }

  function readSync(): Texts | string {
    try {
      const [cert = '', key = ''] = [certPath, keyPath].map((path) => {
        checkSize(path, statSync(path));
        return readFileSync(path, 'utf8');
      });
      return { cert, key };
    } catch (error) {
      return describe(error);
    }
  }

  async function read(): Promise<Texts | string> {
    try {
      const [cert = '', key = ''] = await Promise.all(
        [certPath, keyPath].map(async (path) => {
          checkSize(path, await stat(path));
          return readFile(path, 'utf8');
        }),
      );
      return { cert, key };
    } catch (error) {
      return describe(error);
    }
  }

  /** To open a FIFO would wait for its writer for ever. */
  function checkSize(path: string, stats: { isFile(): boolean; size: number }): void {
    if (!stats.isFile()) throw new Error(`Cannot read ${path}: it is not a regular file`);
    if (stats.size > MOST_BYTES) throw new Error(`Cannot read ${path}: it is longer than ${MOST_BYTES} bytes`);
  }

  function describe(error: unknown): string {
    const code = errorCode(error);
    if (code === undefined) return (error as Error).message;
    if (code === 'ENOENT') return MISSING;
    return `Cannot read ${(error as NodeJS.ErrnoException).path ?? certPath}: ${describeFailure(error)}`;
  }

  return {
    current: () => pair,
    failure: () => failure,
    get reloads() {
      return reloads;
    },
    get reloadFailures() {
      return reloadFailures;
    },
    readNow: () => consider(readSync()),
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

const MISSING = 'there is no such file';

function keyOf(texts: Texts | string): string {
  return typeof texts === 'string' ? texts : `${texts.cert}\0${texts.key}`;
}
