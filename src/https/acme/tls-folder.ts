// The files of DATA_DIR/tls: the account's key, and the certificate with its own key in one file, so that both are
// replaced by one rename. Mode 0600, made durable before they are renamed into place; one supervisor at a time orders.
import type { KeyObject } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crypto } from '../../base/builtins.ts';
import { describeFailure, errorCode } from '../../base/failure.ts';
import { makeFolder } from '../../base/make-folder.ts';
import { syncFolder } from '../../base/sync-folder.ts';
import { createKeyPair } from './certificate-writer.ts';

export interface StoredCertificate {
  /** The ACME directory that it is from. */
  readonly directory: string | undefined;
  /** The whole file: key, certificate and chain. */
  readonly text: string;
}

export interface TlsFolder {
  readonly path: string;
  readonly certificatePath: string;
  /** Makes one where there is none. @throws Error one line */
  accountKey(renew: boolean): KeyObject;
  /** Undefined: there is none. @throws Error one line */
  readCertificate(): StoredCertificate | undefined;
  /** @param chain PEM; @param key PEM. @throws Error one line */
  writeCertificate(directory: string, chain: string, key: string): void;
  /** That there is room and permission to write, before anything is asked of a directory. @throws Error one line */
  checkWritable(): void;
}

export function createTlsFolder(dataDir: string): TlsFolder {
  const path = join(dataDir, 'tls');
  const certificatePath = join(path, 'certificate.pem');
  const accountPath = join(path, 'account.key');

  return {
    path,
    certificatePath,
    accountKey(renew) {
      if (!renew) {
        const text = readOrAbsent(accountPath);
        if (text !== undefined) return parseKey(accountPath, text);
      }
      const { privateKey } = createKeyPair();
      write(accountPath, privateKey.export({ type: 'pkcs8', format: 'pem' }) as string);
      return privateKey;
    },
    readCertificate() {
      const text = readOrAbsent(certificatePath);
      if (text === undefined) return undefined;
      // Text around the blocks is allowed in PEM files (RFC 7468, section 2).
      return { text, directory: /^Directory: (\S+)$/m.exec(text)?.[1] };
    },
    writeCertificate: (directory, chain, key) => write(certificatePath, `Directory: ${directory}\n${key}${chain}`),
    checkWritable() {
      const probe = join(path, '.probe');
      write(probe, 'x'.repeat(16_384));
      rmSync(probe, { force: true });
    },
  };

  function write(file: string, text: string): void {
    const draft = `${file}.${process.pid}.tmp`;
    try {
      makeFolder(path, 0o700);
      rmSync(draft, { force: true });
      const handle = openSync(draft, 'wx', 0o600);
      try {
        writeFileSync(handle, text);
        fsyncSync(handle);
      } finally {
        closeSync(handle);
      }
      renameSync(draft, file);
    } catch (error) {
      rmSync(draft, { force: true });
      throw new Error(`Cannot write ${file}: ${describeFailure(error)}`);
    }
    syncFolder(path);
  }
}

function readOrAbsent(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw new Error(`Cannot read ${file}: ${describeFailure(error)}`);
  }
}

function parseKey(file: string, text: string): KeyObject {
  try {
    return crypto().createPrivateKey(text);
  } catch {
    throw new Error(`Cannot read ${file}: it is no private key in PEM form; without the file a new account is made`);
  }
}
