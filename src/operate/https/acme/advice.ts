// The advice of the log about a failed order: a row for each error type (RFC 8555, section 6.7) that an operator can do
// something about. Three are no types of the RFC: client.ts throws `noChallenge`, challenges.ts `noPort`, and
// renewals.ts `dueAgain`.
import { AcmeError } from './request.ts';

const ADVICE: Readonly<Record<string, string>> = {
  dns: 'check the DNS records of the name: it must have an A or AAAA record that leads to this machine',
  connection:
    'check the firewall and the A and AAAA records: the directory must reach this machine on port 80 (http-01) or 443 (tls-alpn-01)',
  tls: 'something other than this service answers on port 443 of that name',
  unauthorized: 'another server answers for that name: check its A and AAAA records, and any proxy in front',
  incorrectResponse: 'another server answers for that name: check its A and AAAA records, and any proxy in front',
  noChallenge: 'set HTTP_PORT to 80 for http-01, or to off for tls-alpn-01, whichever the directory offers',
  noPort:
    'tls-alpn-01 needs PORT, which something else has, or which this user may not have: free it, or set HTTP_PORT to 80',
  dueAgain: 'compare the clock of this machine and DOMAINS with the certificate (gatefold doctor): it serves meanwhile',
  caa: "the name's CAA record forbids this certificate authority: change the record or ACME_DIRECTORY",
  rateLimited:
    'nothing, unless it repeats: the next attempt waits as long as the directory asks; try things out with its staging directory',
  rejectedIdentifier: 'the directory issues no certificates for such a name: correct DOMAINS',
  unsupportedIdentifier: 'the directory issues no certificates for such a name: correct DOMAINS',
  invalidContact: 'correct ACME_CONTACT',
  unsupportedContact: 'correct ACME_CONTACT',
  externalAccountRequired:
    'this directory wants accounts made elsewhere (external account binding), which is not supported: choose another ACME_DIRECTORY',
  userActionRequired: 'read the terms that the directory names',
};

/** The advice for an error without a type: the request got no answer, or an answer that describes nothing. */
const NO_ANSWER =
  'check that this machine reaches ACME_DIRECTORY (network, DNS, clock) and trusts its certificate (NODE_EXTRA_CA_CERTS)';
const OTHER_TYPE = 'read the error of the directory; docs/OPERATING.md, "A certificate is not renewed", has the steps';

export function adviceFor(error: unknown): string {
  if (!(error instanceof AcmeError))
    return 'correct what the error says: the files in DATA_DIR/tls must be readable and writable';
  return error.type === undefined ? NO_ANSWER : (ADVICE[error.type] ?? OTHER_TYPE);
}
