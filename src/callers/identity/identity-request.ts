// Parses the requests of /api/idp-signin and /api/register. A wrong request gets a 400 that names the mistake.
// id-token.ts verifies the ID token, the field `credential`.

import type { ControllerParams } from '../../api/controller.ts';
import { type HttpError, refusal } from '../../base/errors.ts';
import { type Fields, isObject } from '../../base/values.ts';
import { isSameSecret } from './claims.ts';

const MAX_NAME_LENGTH = 100;
const MAX_DESCRIPTION_LENGTH = 500;
const MAX_NONCE_LENGTH = 255;
/** Characters that can make a terminal or a page show a false text: controls, surrogates, marks of direction. */
const DECEPTIVE_CHARACTER = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/u;

export interface IdentityRequest {
  readonly credential: string;
  readonly nonce: string | undefined;
}

/** @throws HttpError INVALID_REQUEST_DATA or CSRF_TOKEN_MISMATCH */
export function parseSignIn(data: unknown, params: ControllerParams) {
  const subject = 'application, the id or name of one of your applications,';
  return parse(data, params, (value) => ({ application: parseText(value, subject, MAX_NAME_LENGTH) }));
}

/** @throws HttpError INVALID_REQUEST_DATA or CSRF_TOKEN_MISMATCH */
export function parseRegister(data: unknown, params: ControllerParams) {
  return parse(data, params, parseApplication);
}

function parse<T extends object>(data: unknown, params: ControllerParams, readApplication: (value: unknown) => T) {
  if (!isObject(data)) throw invalidData('The body must be an object or a form');
  const application = readApplication(data.application);
  const request = { ...parseTokenFields(data), ...application };
  checkDoubleSubmit(data, params);
  return request;
}

function parseTokenFields({ credential, nonce }: Fields): IdentityRequest {
  // A repeated form field arrives as an array.
  if (typeof credential !== 'string' || credential === '') throw invalidData('credential must be an ID token, as text');
  if (nonce !== undefined && (typeof nonce !== 'string' || nonce === '' || nonce.length > MAX_NONCE_LENGTH))
    throw invalidData(`nonce must be a text of 1 to ${MAX_NONCE_LENGTH} characters`);
  return { credential, nonce };
}

/** Parses `{name, description?}`, or only the name as text, because a field of a form cannot have an object. */
function parseApplication(value: unknown): { name: string; description: string | undefined } {
  const fields: { name?: unknown; description?: unknown } = isObject(value) ? value : { name: value };
  const name = parseText(fields.name, 'application.name', MAX_NAME_LENGTH);
  if (name === undefined) throw invalidData('application must be an object with a name, or the name as text');
  return { name, description: parseText(fields.description, 'application.description', MAX_DESCRIPTION_LENGTH) };
}

/** @returns undefined when there is no value. @throws HttpError whose message begins with `subject` */
function parseText(value: unknown, subject: string, max: number): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw invalidData(`${subject} must be a text`);
  // `normalize` takes minutes for a megabyte of accents. It makes one character of four at most.
  const text = value.length > 4 * max ? '' : value.normalize('NFC').trim();
  if (text === '' || text.length > max) throw invalidData(`${subject} must have 1 to ${max} characters`);
  if (DECEPTIVE_CHARACTER.test(text)) throw invalidData(`${subject} has characters that cannot be printed`);
  return text;
}

/**
 * Compares the token that Google Identity Services has put both into the form and into a cookie. Foreign pages can make
 * a browser post a form or an untyped body with the cookies of this site, but cannot read the cookies. A browser sends
 * a body of the type JSON with cookies only after it has asked this server (CORS preflight).
 */
function checkDoubleSubmit(fields: Fields, { request: { headers } }: ControllerParams): void {
  const { 'content-type': contentType, cookie: cookieHeader, origin } = headers;
  // Browsers send `Origin` with each POST of a foreign page. Programs that send neither need no Content-Type.
  if (contentType === undefined && cookieHeader === undefined && origin === undefined) return;
  const [mediaType = ''] = (contentType ?? '').split(';', 1);
  if (/[/+]json$/i.test(mediaType.trim())) return;
  const cookies = readCookies(cookieHeader, 'g_csrf_token');
  const token = fields.g_csrf_token;
  // When there are two cookies with this name, another subdomain can have set one of them.
  const [cookie = ''] = cookies.length === 1 ? cookies : [];
  const isSame = typeof token === 'string' && token !== '' && isSameSecret(cookie, token);
  const cure = contentType === undefined ? 'Send a Content-Type: application/json, or that of the form' : undefined;
  if (!isSame) throw refusal('CSRF_TOKEN_MISMATCH', cure);
}

function readCookies(header: string | undefined, name: string): string[] {
  const pairs = (header ?? '').split(';').map((pair) => pair.trim());
  return pairs.filter((pair) => pair.startsWith(`${name}=`)).map((pair) => pair.slice(name.length + 1));
}

function invalidData(message: string): HttpError {
  return refusal('INVALID_REQUEST_DATA', message);
}
