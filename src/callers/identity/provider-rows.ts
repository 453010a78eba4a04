// Parses data/identity-providers.json. A row with a mistake is refused as a whole: half of a rule protects nothing.

import { repeatedKeys } from '../../base/json-keys.ts';
import { isObject } from '../../base/values.ts';
import { isIssuer, isKeyAddress } from './addresses.ts';
import { ALGORITHMS, DEFAULT_ALGORITHMS } from './algorithms.ts';
import { issuerSpellings, type VerifiedIdentity } from './claims.ts';

/** The people who may register. The default is `closed`, because anybody can get an account at a public provider. */
export type Registration = 'open' | 'closed' | RegistrationRules;

/** A person who matches an entry of one of the lists may register. ASCII letters in the entries are in lower case. */
export interface RegistrationRules {
  readonly hostedDomains: readonly string[];
  readonly emails: readonly string[];
}

export interface Provider {
  readonly name: string;
  readonly issuer: string;
  readonly clientIds: readonly string[];
  readonly jwksUri: string | undefined;
  readonly algorithms: readonly string[];
  readonly registration: Registration;
}

export interface RefusedRow {
  /** The row's name, or `row 3` for the third row. */
  readonly name: string;
  readonly reason: string;
}

export interface ProviderRows {
  readonly providers: readonly Provider[];
  readonly refused: readonly RefusedRow[];
}

const KNOWN_FIELDS = ['name', 'issuer', 'client_ids', 'jwks_uri', 'algorithms', 'registration'];
const MAX_ROWS = 100;
const MAX_TEXT_LENGTH = 255;

export function parseProviderRows(text: string): ProviderRows {
  const rows = parseJsonList(text);
  if (rows.length > MAX_ROWS) throw new Error(`it has ${rows.length} rows, the limit is ${MAX_ROWS}`);
  const providers: Provider[] = [];
  const refused: RefusedRow[] = [];
  rows.forEach((row, index) => {
    try {
      const provider = parseRow(row);
      checkUnique(provider, providers);
      providers.push(provider);
    } catch (error) {
      refused.push({ name: readName(row) ?? `row ${index + 1}`, reason: (error as Error).message });
    }
  });
  return { providers, refused };
}

export function mayRegister({ registration }: Provider, identity: VerifiedIdentity): boolean {
  if (typeof registration === 'string') return registration === 'open';
  const { hostedDomain, email, emailVerified } = identity;
  if (hostedDomain !== undefined && registration.hostedDomains.includes(lowerCase(hostedDomain))) return true;
  // Anybody can claim an address that the provider has not verified.
  return email !== undefined && emailVerified === true && registration.emails.includes(lowerCase(email));
}

function parseJsonList(text: string): unknown[] {
  let value: unknown;
  try {
    // Some editors write a byte order mark, which JSON.parse would refuse.
    value = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch {
    throw new Error('it is not JSON');
  }
  if (!Array.isArray(value)) throw new Error('it is not a list of rows: [{"name": …, "issuer": …, "client_ids": […]}]');
  const [repeated] = repeatedKeys(text, value);
  if (repeated !== undefined)
    throw new Error(`one of its rows has the field ${JSON.stringify(repeated.key.slice(0, 100))} twice`);
  return value;
}

function parseRow(row: unknown): Provider {
  if (!isObject(row)) throw new Error('it is not an object');
  const name = readName(row);
  if (name === undefined) throw new Error('its name is not a text of 1 to 100 printable characters');
  const unknownField = Object.keys(row).find((field) => !KNOWN_FIELDS.includes(field));
  // An unknown field could be a misspelled rule that the author relies on.
  if (unknownField !== undefined)
    throw new Error(
      `it has an unknown field, ${JSON.stringify(unknownField.slice(0, 100))}; its fields are ${KNOWN_FIELDS.join(', ')}`,
    );
  const { issuer, jwks_uri: jwksUri } = row;
  if (!isIssuer(issuer))
    throw new Error('its issuer is not an https address (http: on loopback alone) without query or fragment');
  if (jwksUri !== undefined && !isKeyAddress(jwksUri, issuer)) throw new Error('its jwks_uri is not an https address');
  return {
    name,
    issuer,
    clientIds: parseStrings(row.client_ids, 'its client_ids'),
    jwksUri,
    algorithms: parseAlgorithms(row.algorithms),
    registration: parseRegistration(row.registration),
  };
}

function readName(row: unknown): string | undefined {
  const name = isObject(row) ? row.name : undefined;
  return typeof name === 'string' && name.trim() !== '' && name.length <= 100 && !/\p{Cc}/u.test(name)
    ? name
    : undefined;
}

function parseStrings(value: unknown, label: string): string[] {
  const isText = (item: unknown): item is string =>
    typeof item === 'string' && item !== '' && item.length <= MAX_TEXT_LENGTH;
  if (!Array.isArray(value) || value.length === 0 || !value.every(isText))
    throw new Error(`${label} is not a list of texts`);
  return value;
}

function parseAlgorithms(value: unknown): readonly string[] {
  if (value === undefined) return DEFAULT_ALGORITHMS;
  const names = parseStrings(value, 'its algorithms');
  const unsupported = names.find((name) => !ALGORITHMS.has(name));
  if (unsupported !== undefined)
    throw new Error(`its algorithms have an unsupported one: choose from ${[...ALGORITHMS.keys()].join(', ')}`);
  return names;
}

function parseRegistration(value: unknown): Registration {
  if (value === undefined) return 'closed';
  if (value === 'open' || value === 'closed') return value;
  const { hosted_domains: domains, emails, ...rest } = isObject(value) ? value : {};
  if ((domains === undefined && emails === undefined) || Object.keys(rest).length > 0)
    throw new Error('its registration is not "open", "closed", or an object of hosted_domains and emails');
  const hostedDomains = domains === undefined ? [] : parseStrings(domains, 'hosted_domains').map(lowerCase);
  const addresses = emails === undefined ? [] : parseStrings(emails, 'emails').map(lowerCase);
  // An entry only matches the equal address. The author of `*@example.com` or `example.com` expects more.
  if (!addresses.every((email) => /^[^\s*@]+@[^\s*@]+$/.test(email)))
    throw new Error('emails has an entry that is not a complete address');
  if (!hostedDomains.every((domain) => /^[^\s*@]+$/.test(domain)))
    throw new Error('hosted_domains has an entry that is not a domain');
  return { hostedDomains, emails: addresses };
}

/** Refuses a second row of a name or of an issuer. The `iss` of a token must select one row. */
function checkUnique(provider: Provider, others: readonly Provider[]): void {
  if (others.some((other) => other.name === provider.name)) throw new Error('a row above has the same name');
  const spellings = issuerSpellings(provider.issuer);
  const sameIssuer = others.find((other) =>
    issuerSpellings(other.issuer).some((spelling) => spellings.includes(spelling)),
  );
  if (sameIssuer !== undefined) throw new Error(`a row above, ${JSON.stringify(sameIssuer.name)}, has the same issuer`);
}

/** Changes only ASCII letters. `toLowerCase` turns U+212A into k, so two different addresses could become equal. */
function lowerCase(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
