// The findings of `gatefold doctor` about the certificate with which a start would serve.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { checkHttps } from '../../../src/operate/cli/doctor-https.ts';
import type { Installation } from '../../../src/operate/cli/finding.ts';
import { createKeyPair, createSelfSigned } from '../../../src/operate/https/acme/certificate-writer.ts';
import { makePair, type TestPair } from '../../support/tls.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const root = mkdtempSync(join(tmpdir(), 'gatefold-doctor-'));
after(() => rmSync(root, { recursive: true, force: true }));
let folders = 0;

function examine(settings: Record<string, unknown>): string[] {
  const lines: string[] = [];
  const installation = {
    settings: { domains: [], dataDir: root, ...settings },
    now: NOW,
  } as unknown as Installation;
  checkHttps(installation, (level, message, at) => {
    lines.push(`${level} ${at === undefined ? '' : `${at.split('/').at(-1)}: `}${message}`);
  });
  return lines;
}

function files({ cert, key }: TestPair, mode = 0o600): Record<string, string> {
  const folder = join(root, String(++folders));
  mkdirSync(folder);
  const [tlsCert, tlsKey] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  writeFileSync(tlsCert, cert);
  writeFileSync(tlsKey, key);
  chmodSync(tlsKey, mode);
  return { tlsCert, tlsKey };
}

function pipe(): string {
  const path = join(root, 'pipe');
  execFileSync('mkfifo', [path]);
  return path;
}

function ordered(pair: TestPair | undefined, ...domains: string[]): Record<string, unknown> {
  const dataDir = join(root, String(++folders));
  mkdirSync(join(dataDir, 'tls'), { recursive: true });
  if (pair !== undefined)
    writeFileSync(join(dataDir, 'tls/certificate.pem'), `${pair.key}${pair.cert}`, { mode: 0o600 });
  return { dataDir, domains };
}

const sound = makePair('a.example.com', { now: NOW, days: 90 });

describe('doctor on HTTPS', () => {
  const rows: [what: string, settings: Record<string, unknown>, lines: RegExp[]][] = [
    ['reports nothing without HTTPS', {}, []],
    ['reports nothing about a sound certificate', files(sound), []],
    [
      'warns about a certificate that expires in 10 days',
      files(makePair('a.example.com', { now: NOW - 80 * 86_400_000, days: 90 })),
      [
        /^warning cert\.pem: certificate for a\.example\.com \(CN=gatefold \w+\), by CN=gatefold \w+: 10 days left, until 2026-01-11$/,
      ],
    ],
    [
      'warns about a certificate of two names that expires in exactly 14 days',
      files(
        createSelfSigned({
          ...{ domains: ['a.example.com', 'b.example.com'], keys: createKeyPair() },
          ...{ now: NOW - 76 * 86_400_000, days: 90 },
        }),
      ),
      [/certificate for a\.example\.com, b\.example\.com \(.*: 14 days left, until 2026-01-15$/],
    ],
    [
      'reports nothing about a certificate that expires a second later',
      files(makePair('a.example.com', { now: NOW - 76 * 86_400_000 + 1000, days: 90 })),
      [],
    ],
    [
      'reports a certificate as wrong from the second of its end on',
      files(makePair('a.example.com', { now: NOW, days: 0 })),
      [/: expired on 2026-01-01$/],
    ],
    [
      'reports nothing about a certificate in the first second of its validity',
      files(makePair('a.example.com', { now: NOW + 86_400_000 })),
      [],
    ],
    [
      'warns about a certificate without a host name',
      files(createSelfSigned({ domains: [], keys: createKeyPair(), now: NOW, days: 90 })),
      [/^warning cert\.pem: it names no host as clients read it/],
    ],
    [
      'warns about a certificate that expires in one day',
      files(makePair('a.example.com', { now: NOW - 88.5 * 86_400_000, days: 90 })),
      [/: 1 day left, until 2026-01-02$/],
    ],
    [
      'reports an expired certificate without a host name as wrong',
      files(createSelfSigned({ domains: [], keys: createKeyPair(), now: NOW, days: -1 })),
      [
        /^wrong cert\.pem: certificate for no host \(CN=gatefold \w+\), by .*: expired on 2025-12-31$/,
        /^warning cert\.pem: it names/,
      ],
    ],
    [
      'reports an expired certificate as wrong',
      files(makePair('a.example.com', { now: NOW, days: -1 })),
      [/^wrong cert\.pem: .*: expired on 2025-12-31$/],
    ],
    [
      'reports a certificate that is not valid yet as wrong',
      files(makePair('a.example.com', { now: NOW + 9 * 86_400_000 })),
      [/^wrong cert\.pem: .*: not valid before .*; is the clock right\?$/],
    ],
    [
      'reports a key of another certificate as wrong',
      files({ ...sound, key: makePair('b.example.com').key }),
      [/^wrong cert\.pem: the key does not belong to the certificate$/],
    ],
    [
      'warns about a private key that every user can read',
      files(sound, 0o644),
      [/^warning key\.pem: every user of this machine can read the private key in it$/],
    ],
    [
      'reports missing certificate and key files as wrong',
      { tlsCert: '/nowhere/c.pem', tlsKey: '/nowhere/k.pem' },
      [/^wrong c\.pem: it cannot be read: there is no such file$/, /^wrong k\.pem/],
    ],
    [
      'reports a certificate out of a pipe as wrong, and does not wait for its writer',
      { ...files(sound), tlsCert: pipe() },
      [/^wrong pipe: it cannot be read: it is not a regular file$/],
    ],
    [
      'warns about a domain without an ordered certificate',
      ordered(undefined, 'a.example.com'),
      [/^warning there is no certificate for a\.example\.com yet/],
    ],
    ['reports nothing about a sound ordered certificate', ordered(sound, 'a.example.com'), []],
    [
      'warns about a domain that the ordered certificate lacks',
      ordered(sound, 'a.example.com', 'b.example.com'),
      [/^warning certificate\.pem: it is not for b\.example\.com: a start orders another one$/],
    ],
  ];
  for (const [what, settings, expected] of rows) {
    test(what, () => {
      const lines = examine(settings);
      assert.equal(lines.length, expected.length, lines.join('\n'));
      for (const [i, line] of expected.entries()) assert.match(lines[i] ?? '', line);
    });
  }
});
