// Parses data/identity-providers.json: providers, and the invalid rows by name. A row is accepted whole or not at all.
// Reading the file and reloading it is providers.ts.
import { repeatedKeys } from '../base/json-keys.ts';
import { isIssuer, isKeyAddress } from './addresses.ts';
import { ALGORITHMS, DEFAULT_ALGORITHMS } from './algorithms.ts';
import { issuerSpellings, type VerifiedIdentity } from './claims.ts';

/** `closed` unless the row says otherwise: whoever can sign in at a public provider is everybody. */
export type Registration = 'open' | 'closed' | RegistrationRules;

/** Lower case in ASCII. One match is enough. */
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
  /** The row's name, or its place in the file. */
  readonly name: string;
  readonly reason: string;
}

export interface ProviderRows {
  readonly providers: readonly Provider[];
  readonly refused: readonly RefusedRow[];
}

const KNOWN_FIELDS = ['name', 'issuer', 'client_ids', 'jwks_uri', 'algorithms', 'registration'];
const MAX_ROWS = 100;
const MAX_TEXT = 255;

/** @throws Error when the text as a whole is not a list of rows */
export function parseProviderRows(text: string): ProviderRows {
  const rows = parseJsonList(text);
  if (rows.length > MAX_ROWS) throw new Error(`it has ${rows.length} rows, the limit is ${MAX_ROWS}`);
  const providers: Provider[] = [];
  const refused: RefusedRow[] = [];
  rows.forEach((row, index) => {
    try {
      const provider = parseRow(row);
      checkUnlike(provider, providers);
      providers.push(provider);
    } catch (error) {
      refused.push({ name: nameOf(row) ?? `row ${index + 1}`, reason: (error as Error).message });
    }
  });
  return { providers, refused };
}

/** Whether the provider's row lets this identity register. */
export function mayRegister({ registration }: Provider, identity: VerifiedIdentity): boolean {
  if (typeof registration === 'string') return registration === 'open';
  const { hostedDomain, email, emailVerified } = identity;
  if (hostedDomain !== undefined && registration.hostedDomains.includes(lowerCase(hostedDomain))) return true;
  // An address that the provider has not verified is an address that anybody may claim.
  return email !== undefined && emailVerified === true && registration.emails.includes(lowerCase(email));
}

function parseJsonList(text: string): unknown[] {
  let value: unknown;
  try {
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

function parseRow(value: unknown): Provider {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('it is not an object');
  const row = value as Record<string, unknown>;
  const name = nameOf(row);
  if (name === undefined) throw new Error('its name is not a text of 1 to 100 printable characters');
  const unknown = Object.keys(row).find((field) => !KNOWN_FIELDS.includes(field));
  // A rule that is misspelled would be a rule that does not hold.
  if (unknown !== undefined)
    throw new Error(`it has a field that is not known: ${JSON.stringify(unknown.slice(0, 100))}`);
  const { issuer, jwks_uri: jwksUri } = row;
  if (!isIssuer(issuer))
    throw new Error('its issuer is not an https address (http: on loopback alone) without query or fragment');
  if (jwksUri !== undefined && !isKeyAddress(jwksUri, issuer)) throw new Error('its jwks_uri is not an https address');
  return {
    name,
    issuer,
    clientIds: parseTexts(row.client_ids, 'its client_ids'),
    jwksUri,
    algorithms: parseAlgorithms(row.algorithms),
    registration: parseRegistration(row.registration),
  };
}

function nameOf(row: unknown): string | undefined {
  const name = typeof row === 'object' && row !== null ? (row as { name?: unknown }).name : undefined;
  return typeof name === 'string' && name.trim() !== '' && name.length <= 100 && !/\p{Cc}/u.test(name)
    ? name
    : undefined;
}

function parseTexts(value: unknown, what: string): string[] {
  const isText = (item: unknown): item is string => typeof item === 'string' && item !== '' && item.length <= MAX_TEXT;
  if (!Array.isArray(value) || value.length === 0 || !value.every(isText))
    throw new Error(`${what} is not a list of texts`);
  return value;
}

function parseAlgorithms(value: unknown): readonly string[] {
  if (value === undefined) return DEFAULT_ALGORITHMS;
  const names = parseTexts(value, 'its algorithms');
  const unknown = names.find((name) => !ALGORITHMS.has(name));
  if (unknown !== undefined)
    throw new Error(`its algorithms have one that is not in ${[...ALGORITHMS.keys()].join(', ')}`);
  return names;
}

function parseRegistration(value: unknown): Registration {
  if (value === undefined) return 'closed';
  if (value === 'open' || value === 'closed') return value;
  const rules =
    typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
  const { hosted_domains: domains, emails, ...rest } = rules;
  if ((domains === undefined && emails === undefined) || Object.keys(rest).length > 0) {
    throw new Error('its registration is not "open", "closed", or an object of hosted_domains and emails');
  }
  const hostedDomains = domains === undefined ? [] : parseTexts(domains, 'hosted_domains').map(lowerCase);
  const addresses = emails === undefined ? [] : parseTexts(emails, 'emails').map(lowerCase);
  // `*@example.com` or `example.com` would match nobody, and somebody would wonder.
  if (!addresses.every((email) => /^[^\s*@]+@[^\s*@]+$/.test(email)))
    throw new Error('emails has one that is not a whole address');
  if (!hostedDomains.every((domain) => /^[^\s*@]+$/.test(domain)))
    throw new Error('hosted_domains has one that is not a domain');
  return { hostedDomains, emails: addresses };
}

/** One issuer, one row: the token's `iss` must lead to one set of keys. */
function checkUnlike(provider: Provider, others: readonly Provider[]): void {
  if (others.some((other) => other.name === provider.name)) throw new Error('a row above has the same name');
  const spellings = issuerSpellings(provider.issuer);
  const twin = others.find((other) => issuerSpellings(other.issuer).some((spelling) => spellings.includes(spelling)));
  if (twin !== undefined) throw new Error(`a row above, ${JSON.stringify(twin.name)}, has the same issuer`);
}

/** ASCII alone: to the letter-case rules of Unicode a Kelvin sign is a k, and two people are one. */
function lowerCase(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
