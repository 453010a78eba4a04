// The check of the certificate for `gatefold doctor`, from TLS_CERT and TLS_KEY, or from the file for DOMAINS.
import { statSync } from 'node:fs';
import { readContent } from '../../base/polled-file.ts';
import { trustedMode } from '../../base/system.ts';
import { warningPeriod } from '../https/acme/renewal-times.ts';
import { createTlsFolder } from '../https/acme/tls-folder.ts';
import { MAX_BYTES } from '../https/live-pair.ts';
import { type CertificateFacts, readPair } from '../https/pair.ts';
import type { Installation, Report } from './finding.ts';

const DAY_MS = 86_400_000;

export function checkHttps({ settings, now }: Installation, report: Report): void {
  const { tlsCert, tlsKey, domains, dataDir } = settings;
  if (domains.length > 0)
    return checkOrderedCertificate(domains, createTlsFolder(dataDir).certificatePath, now, report);
  if (tlsCert === undefined || tlsKey === undefined) return;
  const [cert, key] = [tlsCert, tlsKey].map((path) => readOrReport(path, report));
  if (cert === undefined || key === undefined) return;
  checkKeyPermissions(tlsKey, report);
  checkPair(cert, key, tlsCert, now, report);
}

function checkOrderedCertificate(domains: readonly string[], path: string, now: number, report: Report): void {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) {
    const effect = 'a start orders one, and serves when it has come';
    return report('warning', `there is no certificate for ${domains.join(', ')} yet: ${effect}`);
  }
  // The file has both the certificate and its key.
  const text = readOrReport(path, report);
  if (text === undefined) return;
  checkKeyPermissions(path, report);
  const facts = checkPair(text, text, path, now, report);
  const missing = domains.filter((domain) => facts !== undefined && !facts.names.includes(domain));
  if (missing.length > 0) report('warning', `it is not for ${missing.join(', ')}: a start orders another one`, path);
}

function checkPair(cert: string, key: string, path: string, now: number, report: Report): CertificateFacts | undefined {
  try {
    const { facts } = readPair(cert, key);
    const { subject, names, issuer, notBefore, notAfter } = facts;
    const days = Math.floor((notAfter - now) / DAY_MS);
    // Many certificate authorities leave the subject empty, and name the hosts only in the extension subjectAltName.
    const certificate = `certificate for ${names.join(', ') || 'no host'}${subject === '' ? '' : ` (${subject})`}, by ${issuer}`;
    const lastDay = new Date(notAfter).toISOString().slice(0, 10);
    if (now < notBefore)
      report(
        'wrong',
        `${certificate}: not valid before ${new Date(notBefore).toISOString()}; is the clock right?`,
        path,
      );
    else if (now >= notAfter) report('wrong', `${certificate}: expired on ${lastDay}`, path);
    else if (notAfter - now <= warningPeriod(facts))
      report('warning', `${certificate}: ${days} ${days === 1 ? 'day' : 'days'} left, until ${lastDay}`, path);
    if (names.length === 0) report('warning', 'it names no host as clients read it (subjectAltName)', path);
    return facts;
  } catch (error) {
    report('wrong', (error as Error).message, path);
    return undefined;
  }
}

/** Reads a file as the service does, which does not wait for the writer of a pipe. */
function readOrReport(path: string, report: Report): string | undefined {
  const { files, reason } = readContent([path], MAX_BYTES);
  if (files === undefined) report('wrong', `it cannot be read: ${reason}`, path);
  return files?.[0]?.toString();
}

function checkKeyPermissions(path: string, report: Report): void {
  if ((trustedMode(statSync(path)) & 0o004) !== 0)
    report('warning', 'every user of this machine can read the private key in it', path);
}
