// Reads and writes the files of DATA_DIR/tls: the account's key, and the certificate with its key in one file, so that
// one rename replaces both. Each function throws an Error of one line. order-lock.ts keeps other supervisors out.
import type { KeyObject } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { crypto } from '../../../base/builtins.ts';
import { attempt, explainFailure, unlessMissing } from '../../../base/failure.ts';
import { makeFolder } from '../../../base/make-folder.ts';
import { writeWholeFile } from '../../../base/whole-file.ts';
import { createKeyPair } from './certificate-writer.ts';

export type TlsFolder = ReturnType<typeof createTlsFolder>;

export function createTlsFolder(dataDir: string) {
  const path = join(dataDir, 'tls');
  const certificatePath = join(path, 'certificate.pem');
  const accountPath = join(path, 'account.key');

  return {
    path,
    certificatePath,
    /** Reads the account's key. Creates a new key when there is none, or with `mustRenew`. */
    accountKey(mustRenew: boolean): KeyObject {
      if (!mustRenew) {
        const text = readIfExists(accountPath);
        if (text !== undefined) return parseKey(accountPath, text);
      }
      const { privateKey } = createKeyPair();
      write(accountPath, privateKey.export({ type: 'pkcs8', format: 'pem' }) as string);
      return privateKey;
    },
    /** In the result, `directoryUrl` is the URL of the ACME server; undefined when the file does not say it. */
    readCertificate() {
      const text = readIfExists(certificatePath);
      if (text === undefined) return undefined;
      // A line `Directory: https://…` comes before the PEM blocks. PEM allows text around them (RFC 7468, section 2).
      return { text, directoryUrl: /^Directory: (\S+)$/m.exec(text)?.[1] };
    },
    writeCertificate: (directoryUrl: string, chain: string, key: string) =>
      write(certificatePath, `Directory: ${directoryUrl}\n${key}${chain}`),
    /** Tests, before an order begins, that files can be written and that the disk has room. */
    checkWritable(): void {
      const testFile = join(path, '.probe');
      write(testFile, 'x'.repeat(16_384));
      rmSync(testFile, { force: true });
    },
  };

  function write(file: string, text: string): void {
    explainFailure(`Cannot write ${file}`, () => {
      makeFolder(path, 0o700);
      writeWholeFile(file, text);
    });
  }
}

function readIfExists(file: string): string | undefined {
  return explainFailure(`Cannot read ${file}`, () => unlessMissing(() => readFileSync(file, 'utf8'), undefined));
}

function parseKey(file: string, text: string): KeyObject {
  const key = attempt(() => crypto().createPrivateKey(text), undefined);
  const cure = 'it is not a private key in PEM form. Remove it, and the next order creates a new account';
  if (key === undefined) throw new Error(`Cannot read ${file}: ${cure}`);
  return key;
}
