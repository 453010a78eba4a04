// Parses the requests of /api/idp-signin and /api/register. A wrong request gets a 400 that names the mistake.
// id-token.ts verifies the ID token, the field `credential`.

import { type HttpError, refusal } from '../base/errors.ts';
import { type Fields, isObject } from '../base/values.ts';
import type { ControllerParams } from '../controller.ts';
import { isSameSecret } from './claims.ts';

const MAX_NAME_LENGTH = 100;
const MAX_DESCRIPTION_LENGTH = 500;
const MAX_NONCE_LENGTH = 255;
/** Control characters, line separators and marks of text direction, because terminals and pages show the name. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\u2028\u2029\u200E\u200F\u202A-\u202E\u2066-\u2069]/u;

export interface IdentityRequest {
  readonly credential: string;
  readonly nonce: string | undefined;
}

export interface SignInRequest extends IdentityRequest {
  /** The id or name of the application to sign in to. */
  readonly application: string | undefined;
}

export interface RegisterRequest extends IdentityRequest {
  readonly name: string;
  readonly description: string | undefined;
}

/** @throws HttpError INVALID_REQUEST_DATA or CSRF_TOKEN_MISMATCH */
export function parseSignIn(data: unknown, params: ControllerParams): SignInRequest {
  const fields = parseFields(data);
  const label = 'application, the id or name of one of your applications,';
  const application = parseText(fields.application, label, MAX_NAME_LENGTH);
  const request = { ...parseCredential(fields), application };
  checkDoubleSubmit(fields, params);
  return request;
}

/** @throws HttpError INVALID_REQUEST_DATA or CSRF_TOKEN_MISMATCH */
export function parseRegister(data: unknown, params: ControllerParams): RegisterRequest {
  const fields = parseFields(data);
  const application = parseApplication(fields.application);
  const request = { ...parseCredential(fields), ...application };
  checkDoubleSubmit(fields, params);
  return request;
}

function parseFields(data: unknown): Fields {
  if (!isObject(data)) throw invalidData('The body must be an object or a form');
  return data;
}

function parseCredential({ credential, nonce }: Fields): IdentityRequest {
  // A repeated form field arrives as an array.
  if (typeof credential !== 'string' || credential === '') throw invalidData('credential must be an ID token, as text');
  if (nonce !== undefined && (typeof nonce !== 'string' || nonce === '' || nonce.length > MAX_NONCE_LENGTH)) {
    throw invalidData(`nonce must be a text of 1 to ${MAX_NONCE_LENGTH} characters`);
  }
  return { credential, nonce };
}

/** Reads `{name, description?}`, or a text: a form has no objects, so its field has only the name. */
function parseApplication(value: unknown): { name: string; description: string | undefined } {
  const fields: { name?: unknown; description?: unknown } = isObject(value) ? value : { name: value };
  const name = parseText(fields.name, 'application.name', MAX_NAME_LENGTH);
  if (name === undefined) throw invalidData('application must be an object with a name');
  return { name, description: parseText(fields.description, 'application.description', MAX_DESCRIPTION_LENGTH) };
}

function parseText(value: unknown, label: string, max: number): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw invalidData(`${label} must be a text`);
  const text = value.normalize('NFC').trim();
  if (text === '' || text.length > max) throw invalidData(`${label} must have 1 to ${max} characters`);
  if (UNPRINTABLE.test(text)) throw invalidData(`${label} has characters that cannot be printed`);
  return text;
}

/**
 * Compares the token that Google Identity Services has put both into the form and into a cookie. A foreign page can
 * post a form to this site, but cannot read or set its cookies. A body of JSON cannot come from a foreign page.
 */
function checkDoubleSubmit(fields: Fields, { request }: ControllerParams): void {
  if (!isForm(request.headers['content-type'])) return;
  const cookies = readCookies(request.headers.cookie, 'g_csrf_token');
  const token = fields.g_csrf_token;
  // When there are two cookies with this name, another subdomain can have set one of them.
  const [cookie = ''] = cookies.length === 1 ? cookies : [];
  const isSame = typeof token === 'string' && token !== '' && isSameSecret(cookie, token);
  if (!isSame) throw refusal('CSRF_TOKEN_MISMATCH');
}

function isForm(contentType: string | undefined): boolean {
  const [mediaType = ''] = (contentType ?? '').split(';', 1);
  return ['application/x-www-form-urlencoded', 'multipart/form-data'].includes(mediaType.trim().toLowerCase());
}

function readCookies(header: string | undefined, name: string): string[] {
  const pairs = (header ?? '').split(';').map((pair) => pair.trim());
  return pairs.filter((pair) => pair.startsWith(`${name}=`)).map((pair) => pair.slice(name.length + 1));
}

function invalidData(message: string): HttpError {
  return refusal('INVALID_REQUEST_DATA', message);
}
