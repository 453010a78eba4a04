// Parses what a client sends to /api/idp-signin and /api/register, or refuses it with a 400 that says what is wrong.
// The form post of Google Identity Services is checked against its cookie. Tokens are not verified here.

import { type HttpError, refusal } from '../base/errors.ts';
import type { ControllerParams } from '../controller.ts';
import { isSameSecret } from './claims.ts';

const MAX_NAME = 100;
const MAX_DESCRIPTION = 500;
const MAX_NONCE = 255;
/**
 * Control characters, line separators and the marks that turn text around: a name ends up in terminals and on pages.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\u2028\u2029\u200E\u200F\u202A-\u202E\u2066-\u2069]/u;

export interface IdentityRequest {
  readonly credential: string;
  readonly nonce: string | undefined;
}

export interface SignInRequest extends IdentityRequest {
  /** The id or name of the application that the session is wanted for. */
  readonly application: string | undefined;
}

export interface RegisterRequest extends IdentityRequest {
  readonly name: string;
  readonly description: string | undefined;
}

/** @throws HttpError INVALID_REQUEST_DATA or CSRF_TOKEN_MISMATCH */
export function parseSignIn(data: unknown, params: ControllerParams): SignInRequest {
  const fields = parseFields(data);
  const application = parseText(
    fields.application,
    'application, the id or name of one of your applications,',
    MAX_NAME,
  );
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

function parseFields(data: unknown): Record<string, unknown> {
  if (typeof data !== 'object' || data === null || Array.isArray(data))
    throw nonsense('The body must be an object or a form');
  return data as Record<string, unknown>;
}

function parseCredential({ credential, nonce }: Record<string, unknown>): IdentityRequest {
  // Whether the text is a token at all is the verifier's to say; a repeated form field is an array, and no text.
  if (typeof credential !== 'string' || credential === '') throw nonsense('credential must be an ID token, as text');
  if (nonce !== undefined && (typeof nonce !== 'string' || nonce === '' || nonce.length > MAX_NONCE)) {
    throw nonsense(`nonce must be a text of 1 to ${MAX_NONCE} characters`);
  }
  return { credential, nonce };
}

/** `{name, description?}`; a form has no objects, there the field is the name. */
function parseApplication(value: unknown): { name: string; description: string | undefined } {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  const fields: { name?: unknown; description?: unknown } = isObject ? value : { name: value };
  const name = parseText(fields.name, 'application.name', MAX_NAME);
  if (name === undefined) throw nonsense('application must be an object with a name');
  return { name, description: parseText(fields.description, 'application.description', MAX_DESCRIPTION) };
}

function parseText(value: unknown, what: string, max: number): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw nonsense(`${what} must be a text`);
  const text = value.normalize('NFC').trim();
  if (text === '' || text.length > max) throw nonsense(`${what} must have 1 to ${max} characters`);
  if (UNPRINTABLE.test(text)) throw nonsense(`${what} has characters that cannot be printed`);
  return text;
}

/**
 * Google's double submit: a page of somebody else can post a form here, but can neither read nor set our cookies, so it
 * cannot make the two agree. A form post without the token is refused; JSON cannot come from a foreign form.
 */
function checkDoubleSubmit(fields: Record<string, unknown>, { request }: ControllerParams): void {
  if (!isForm(request.headers['content-type'])) return;
  const cookies = readCookies(request.headers.cookie, 'g_csrf_token');
  const token = fields.g_csrf_token;
  // Two cookies of the name: one of them may have been tossed in by a neighbouring subdomain.
  const [cookie] = cookies;
  const agree = typeof token === 'string' && token !== '' && cookie !== undefined && isSameSecret(cookie, token);
  if (!agree || cookies.length > 1) throw refusal('CSRF_TOKEN_MISMATCH');
}

function isForm(contentType: string | undefined): boolean {
  const [mediaType = ''] = (contentType ?? '').split(';', 1);
  return ['application/x-www-form-urlencoded', 'multipart/form-data'].includes(mediaType.trim().toLowerCase());
}

function readCookies(header: string | undefined, name: string): string[] {
  const pairs = (header ?? '').split(';').map((pair) => pair.trim());
  return pairs.filter((pair) => pair.startsWith(`${name}=`)).map((pair) => pair.slice(name.length + 1));
}

function nonsense(message: string): HttpError {
  return refusal('INVALID_REQUEST_DATA', message);
}
