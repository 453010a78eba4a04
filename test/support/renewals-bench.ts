// Runs renewals with a fake ACME directory, which issues certificates for the requested key. The test controls the
// clock, and nothing uses the network.
import { createPublicKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { createKeyPair, createSelfSigned } from '../../src/operate/https/acme/certificate-writer.ts';
import type { AcmeClient, CertificateOrder, RenewalInfo } from '../../src/operate/https/acme/client.ts';
import { implicit, octetString, oid, readElements, sequence } from '../../src/operate/https/acme/der.ts';
import { createRenewals } from '../../src/operate/https/acme/renewals.ts';
import { AcmeError } from '../../src/operate/https/acme/request.ts';
import { createTlsFolder, type TlsFolder } from '../../src/operate/https/acme/tls-folder.ts';

export const START = Math.floor(Date.now() / 1000) * 1000;
const DIRECTORY = 'https://ca.example.com/dir';
export const ONE = ['a.example.com'];

const root = mkdtempSync(join(tmpdir(), 'gatefold-renewals-'));
after(() => rmSync(root, { recursive: true, force: true }));
let folders = 0;

/** The authority key identifier (RFC 5280, section 4.2.1.1). Renewal information needs it. */
const ISSUER = sequence(oid('2.5.29.35'), octetString(sequence(implicit(0, Buffer.from('issuer')))));

export interface Bench {
  readonly folder: TlsFolder;
  readonly events: Record<string, unknown>[];
  readonly orders: CertificateOrder[];
  /** Moves the clock, and runs the due timers. */
  advance(ms: number): Promise<void>;
  tick(): Promise<void>;
  readonly renewals: ReturnType<typeof createRenewals>;
  /** The outcomes of the next orders: each is a refusal or a certificate chain. */
  outcome: Error | typeof issue;
  information: RenewalInfo | Error | undefined;
  /** How often the renewal information was requested. */
  asked: number;
  skew: number;
  locked: boolean;
  /** Called before another process releases the lock. */
  onLock: () => void;
  /** The held locks. */
  held: number;
}

/** @param stored the names of a certificate that is already in the folder; empty when there is none */
export function createBench({ domains = ONE, directory = DIRECTORY, stored = [] as string[] } = {}): Bench {
  const folder = createTlsFolder(join(root, String(++folders)));
  if (stored.length > 0) store(folder, stored);
  const events: Record<string, unknown>[] = [];
  const orders: CertificateOrder[] = [];
  const log = createLog({
    level: 'debug',
    sink: { write: (line) => void events.push(JSON.parse(line)), flush: () => {} },
  });
  let passed = 0;
  const client: AcmeClient = {
    async order(order) {
      orders.push(order);
      if (bench.outcome instanceof Error) throw bench.outcome;
      return bench.outcome(order, START + passed);
    },
    async renewalInfo() {
      bench.asked++;
      if (bench.information instanceof Error) throw bench.information;
      return bench.information;
    },
    clockSkew: () => bench.skew,
  };
  const renewals = createRenewals({
    domains,
    directory,
    folder,
    client,
    challenges: { types: ['http-01', 'tls-alpn-01'], present: async () => () => {} },
    async tryLock() {
      if (bench.locked) return undefined;
      bench.onLock();
      bench.held++;
      return async () => void bench.held--;
    },
    onStored: () => {},
    log,
    now: () => START + passed,
    clock: () => passed,
    random: () => 0.5,
  });
  const bench: Bench = {
    folder,
    events,
    orders,
    renewals,
    outcome: new AcmeError('the directory refuses', { type: 'malformed' }),
    information: undefined,
    asked: 0,
    skew: 0,
    locked: false,
    onLock: () => {},
    held: 0,
    async tick() {
      renewals.checkDue();
      // All promises that the renewal waits for are resolved.
      for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    },
    advance(ms) {
      passed += ms;
      return bench.tick();
    },
  };
  return bench;
}

/**
 * Issues a certificate as a directory does: signed with the directory's own key, for the key of the request. RFC 2986
 * puts that key third in the signed part.
 */
export function issue({ domains, request }: CertificateOrder, now: number): string {
  const [content] = readElements(readElements(request)[0]?.content ?? Buffer.of());
  const requested = readElements(content?.content ?? Buffer.of())[2]?.content ?? Buffer.of();
  const publicKey = createPublicKey({ key: sequence(requested), format: 'der', type: 'spki' });
  const keys = { publicKey, privateKey: createKeyPair().privateKey };
  return createSelfSigned({ domains, extensions: [ISSUER], keys, now, days: 90 }).cert;
}

/** The validity: 91 days, from the day before the start. */
export function store(folder: TlsFolder, domains: readonly string[] = ONE): X509Certificate {
  const { cert, key } = createSelfSigned({
    domains,
    extensions: [ISSUER],
    keys: createKeyPair(),
    now: START,
    days: 90,
  });
  folder.writeCertificate(DIRECTORY, cert, key);
  return new X509Certificate(cert);
}
