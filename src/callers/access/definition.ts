// Checks the default export of a service file, and turns it into the definition that a worker uses. Each mistake is an
// error that names the property and says how to correct it. So a misspelt protection is never ignored in silence.

import { isMount } from '../../api/controller/mount.ts';
import { isService, type SecurityScheme, type ServiceOptions } from '../../api/controller/service.ts';
import { validateHeaderName, validateHeaderValue } from '../../base/builtins.ts';
import { isOnEveryAnswer, isReservedHeader } from '../../base/server-headers.ts';
import {
  isAsyncFunction,
  isBoolean,
  isNonEmptyText,
  isPlainFunction,
  isPlainObject,
  isToken,
} from '../../base/values.ts';
import { ACCESS_FORM, BEARER_SCHEME, isAccess, KEY_HEADER_SCHEME, requiresUser } from './access.ts';
import { createCorsPolicy } from './cors.ts';

/** The options of a service file after the check. ServiceOptions explains them. */
export type ServiceDefinition = ReturnType<typeof readDefinition>;

/** Thrown for a mistake in a service file. groups/service-file.ts finds the line of the file that has the property. */
export class DefinitionError extends Error {
  readonly property: string | undefined;
  constructor(message: string, property?: string) {
    super(message);
    this.property = property;
  }
}

type PropertyRule = readonly [isValid: (value: unknown) => boolean, validValues: string];
const PROPERTIES: Readonly<Record<keyof ServiceOptions, PropertyRule>> = {
  strict: [isBoolean, 'true or false'],
  folders: [isBoolean, 'true or false'],
  authenticate: [isPlainFunction, 'a function (params) => user'],
  access: [isAccess, ACCESS_FORM],
  around: [isPlainFunction, 'a function (next, params) => result'],
  formatError: [isPlainFunction, 'a function (refusal) => body'],
  fallback: [isMount, 'mount(handler) or mount.node(handler)'],
  cors: [isPlainObject, "an object such as { origins: ['https://app.example.com'] }"],
  securitySchemes: [isPlainObject, 'an object of OpenAPI security schemes, by name'],
  keyHeader: [isNonEmptyText, "the name of a header, such as 'X-Api-Key'"],
  headers: [isPlainObject, 'an object of header names and values'],
  public: [isPublic, 'an object { headers: (path) => ({ … }) }'],
  unchecked: [(value) => value === 'refuse', "'refuse'"],
  results: [(value) => value === 'declared', "'declared'"],
  close: [isPlainFunction, 'a function'],
  start: [isPlainFunction, 'a function ({ signal, log }) => stop'],
  background: [isPlainObject, 'an object of tasks, by name'],
};

function isPublic(value: unknown): boolean {
  return isPlainObject(value) && Object.keys(value).join() === 'headers' && isPlainFunction(value.headers);
}

export function isServiceProperty(name: string): boolean {
  return Object.hasOwn(PROPERTIES, name);
}

/** @param exported the default export of the file. @throws DefinitionError */
export function readDefinition(exported: unknown) {
  if (!isService(exported))
    throw new DefinitionError(
      'it is the service file and its default export is not made by defineService({ … }): write that, or rename it',
    );
  const options = readOptions(exported.options);
  const { strict, folders, unchecked, results, access = 'anyone', cors, securitySchemes = {}, ...others } = options;
  const { keyHeader, headers = {}, public: files, ...hooks } = others;
  const { authenticate, formatError } = hooks;
  if (isAsyncFunction(formatError))
    throw new DefinitionError('formatError is async: it must return the body itself', 'formatError');
  if (isAsyncFunction(files?.headers))
    throw new DefinitionError('public.headers is async: it must return the headers themselves', 'public');
  if (authenticate === undefined && requiresUser(access))
    throw new DefinitionError('access needs a user, and there is no authenticate: write authenticate, too', 'access');
  return Object.freeze({
    /** Whether the service file sets nothing: `defineService({})`. */
    isEmpty: Object.keys(options).length === 0,
    strict: strict === true,
    folders: folders === true,
    /** Whether a file does not load when the data of one of its operations is not checked. */
    refusesUnchecked: unchecked === 'refuse',
    /** Whether results are sent without the fields that their types do not declare. */
    sendsDeclared: results === 'declared',
    access,
    /** The rules for pages of other origins; undefined when pages of any origin may read answers. */
    cors: cors === undefined ? undefined : nameInErrors('cors', () => createCorsPolicy(cors)),
    securitySchemes: readSchemes(securitySchemes),
    /** The name, in lower case, of the header that may have a credential; undefined when only `Authorization` may. */
    keyHeader: keyHeader === undefined ? undefined : readKeyHeader(keyHeader),
    /** The headers of every answer: names and values in turn. */
    headers: readHeaders(headers),
    fileHeaders: files?.headers,
    // Only a service with tasks loads the check of `background` (task.ts).
    ...hooks,
  });
}

function readOptions(options: unknown): ServiceOptions {
  if (!isPlainObject(options)) throw new DefinitionError('defineService takes a plain object: defineService({ … })');
  for (const key of Reflect.ownKeys(options)) {
    const name = String(key);
    if (typeof key === 'symbol' || !isServiceProperty(key))
      throw new DefinitionError(
        `${name} is no property of a service; there are ${Object.keys(PROPERTIES).join(', ')}`,
        name,
      );
    // A getter could return another value after this check. `{ ...options }` drops properties that are not enumerable.
    const { value, get, enumerable } = Object.getOwnPropertyDescriptor(options, key) as PropertyDescriptor;
    if (get !== undefined || !enumerable)
      throw new DefinitionError(`${name} is an accessor or not enumerable: write the value itself`, name);
    const [isValid, validValues] = PROPERTIES[key as keyof ServiceOptions];
    if (value === undefined) throw new DefinitionError(`${name} is undefined: leave it out`, name);
    if (!isValid(value)) throw new DefinitionError(`${name} must be ${validValues}`, name);
  }
  return { ...options } as ServiceOptions;
}

/** Runs `check`, and turns an error of `check` into a DefinitionError that names the property. */
function nameInErrors<T>(property: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw new DefinitionError(`${property}: ${(error as Error).message}`, property);
  }
}

/** The required fields of each type of security scheme. */
const SCHEME_FIELDS: Readonly<Record<string, readonly string[]>> = {
  http: ['scheme'],
  apiKey: ['in', 'name'],
  oauth2: ['flows'],
  openIdConnect: ['openIdConnectUrl'],
};

function readSchemes(schemes: Readonly<Record<string, SecurityScheme>>): Readonly<Record<string, SecurityScheme>> {
  for (const [name, scheme] of Object.entries(schemes)) {
    const fail = (mistake: string): never => {
      throw new DefinitionError(`securitySchemes: ${name}: ${mistake}`, name);
    };
    if (!/^[A-Za-z0-9._-]+$/.test(name)) fail('a name has letters, digits, ".", "_" and "-" alone');
    if (name === BEARER_SCHEME || name === KEY_HEADER_SCHEME)
      fail('this name is that of the credentials of Gatefold: choose another');
    if (!isPlainObject(scheme)) fail('it must be an object');
    const fields = Object.hasOwn(SCHEME_FIELDS, scheme.type) ? SCHEME_FIELDS[scheme.type] : undefined;
    if (fields === undefined) return fail(`type must be one of ${Object.keys(SCHEME_FIELDS).join(', ')}`);
    const knownFields = new Set(['type', 'description', 'bearerFormat', ...fields]);
    const unknownField = Object.keys(scheme).find((field) => !knownFields.has(field) && !field.startsWith('x-'));
    if (unknownField !== undefined) fail(`${unknownField} is no field of a scheme of type ${scheme.type}`);
    for (const field of fields) {
      const value: unknown = Reflect.get(scheme, field);
      const isObjectWanted = field === 'flows';
      if (isObjectWanted ? !isPlainObject(value) : !isNonEmptyText(value))
        fail(`${field} must be ${isObjectWanted ? 'an object' : 'a text'}`);
    }
    if (scheme.type === 'http' && !isToken(scheme.scheme))
      fail('scheme must be the name of an HTTP authentication scheme, such as bearer');
    if (scheme.type === 'apiKey' && !['header', 'query', 'cookie'].includes(scheme.in))
      fail("in must be 'header', 'query' or 'cookie'");
  }
  return Object.freeze({ ...schemes });
}

function readKeyHeader(name: string): string {
  const lower = name.toLowerCase();
  return nameInErrors('keyHeader', () => {
    validateHeaderName(name);
    if (lower === 'authorization' || lower === 'cookie' || lower === 'host' || isReservedHeader(lower))
      throw new Error(`${name} has another meaning: choose a header of its own, such as X-Api-Key`);
    return lower;
  });
}

/** One value of such a header would be wrong for most answers. */
const HEADERS_OF_ONE_ANSWER: ReadonlySet<string> = new Set(
  'content-type content-encoding cache-control date vary allow www-authenticate retry-after etag location'.split(' '),
);

function readHeaders(headers: Readonly<Record<string, unknown>>): readonly string[] {
  const namesSoFar = new Set<string>();
  return Object.entries(headers).flatMap(([name, value]) => {
    const lower = name.toLowerCase();
    if (namesSoFar.has(lower)) throw new DefinitionError(`headers: ${name} is there twice`, name);
    namesSoFar.add(lower);
    if (isReservedHeader(lower) || isOnEveryAnswer(lower) || HEADERS_OF_ONE_ANSWER.has(lower))
      throw new DefinitionError(`headers: ${name} belongs to the server or to a single answer`, name);
    if (!isNonEmptyText(value)) throw new DefinitionError(`headers: ${name} must be a text`, name);
    nameInErrors('headers', () => {
      validateHeaderName(name);
      validateHeaderValue(name, value as string);
    });
    return [name, value as string];
  });
}
