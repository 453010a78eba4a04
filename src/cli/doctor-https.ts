// The doctor's check of HTTPS. The check reads the certificate with which the service would start, and uses the same
// code as the service.
import { readFileSync, statSync } from 'node:fs';
import { describeFailure, errorCode } from '../base/failure.ts';
import { modeOf } from '../base/system.ts';
import { warningPeriod } from '../https/acme/renewal-times.ts';
import { createTlsFolder } from '../https/acme/tls-folder.ts';
import { type CertificateFacts, readPair } from '../https/pair.ts';
import type { Installation, Report } from './doctor.ts';

const DAY = 86_400_000;

export function checkHttps({ settings, io }: Installation, report: Report): void {
  const { tlsCert, tlsKey, domains, dataDir } = settings;
  const now = (io.now ?? Date.now)();
  if (domains.length > 0)
    return checkOrderedCertificate(domains, createTlsFolder(dataDir).certificatePath, now, report);
  if (tlsCert === undefined || tlsKey === undefined) return;
  const [cert, key] = [tlsCert, tlsKey].map((path) => readOrReport(path, report));
  if (cert === undefined || key === undefined) return;
  checkKeyReaders(tlsKey, report);
  reportPair(cert, key, tlsCert, now, report);
}

function checkOrderedCertificate(domains: readonly string[], path: string, now: number, report: Report): void {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) {
    return report(
      'warning',
      `there is no certificate for ${domains.join(', ')} yet: a start orders one, and serves when it has come`,
    );
  }
  const text = readOrReport(path, report);
  if (text === undefined) return;
  checkKeyReaders(path, report);
  const facts = reportPair(text, text, path, now, report);
  const missing = domains.filter((domain) => facts !== undefined && !facts.names.includes(domain));
  if (missing.length > 0) report('warning', `it is not for ${missing.join(', ')}: a start orders another one`, path);
}

function reportPair(
  cert: string,
  key: string,
  path: string,
  now: number,
  report: Report,
): CertificateFacts | undefined {
  try {
    const { facts } = readPair(cert, key);
    const { subject, names, issuer, notBefore, notAfter } = facts;
    const days = Math.floor((notAfter - now) / DAY);
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
    else {
      const isSoon = notAfter - now <= warningPeriod(facts);
      report(
        isSoon ? 'warning' : 'note',
        `${certificate}: ${days} ${days === 1 ? 'day' : 'days'} left, until ${lastDay}`,
        path,
      );
    }
    if (names.length === 0) report('warning', 'it names no host as clients read it (subjectAltName)', path);
    return facts;
  } catch (error) {
    report('wrong', (error as Error).message, path);
    return undefined;
  }
}

function readOrReport(path: string, report: Report): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    report(
      'wrong',
      errorCode(error) === undefined ? 'it cannot be read' : `it cannot be read: ${describeFailure(error)}`,
      path,
    );
    return undefined;
  }
}

function checkKeyReaders(path: string, report: Report): void {
  if ((modeOf(statSync(path)) & 0o004) !== 0)
    report('warning', 'every user of this machine can read the private key in it', path);
}
