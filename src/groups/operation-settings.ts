// Reads `static operations` of a controller, a row a property, and refuses what it does not know: a misspelt `access` that is
// ignored in silence would leave an operation open. It does not know what a setting brings about.
import { constants } from 'node:buffer';
import { parseRate, RATE_FORM } from '../base/rate.ts';
import type { OperationSettings } from '../controller/operations.ts';

/** Of an operation about which nothing is said. */
export const NO_SETTINGS: OperationSettings = Object.freeze({});

/** Each property: whether a value makes sense, and what it should have been. */
const PROPERTIES: Readonly<Record<keyof OperationSettings, readonly [isSound: (value: unknown) => boolean, expected: string]>> = {
  accepts: [
    (value) => Array.isArray(value) && value.length > 0 && value.every((type) => typeof type === 'string' && MEDIA_RANGE.test(type)),
    'a list of media types such as image/png or image/*',
  ],
  bodyLimit: [isWholeNumber(1, Number.MAX_SAFE_INTEGER), 'a number of bytes'],
  // Above 2^31 - 1 ms Node's timers fire at once.
  timeout: [isWholeNumber(1, 86_400_000), 'a number of milliseconds, a day at most'],
  access: [
    (value) => value === 'anyone' || value === 'application' || (isRecord(value) && hasOnly(value, 'scope') && isText(value.scope)),
    `'anyone', 'application' or { scope: '…' }`,
  ],
  limit: [(value) => typeof value === 'string' && parseRate(value) !== undefined, RATE_FORM],
  body: [(value) => value === 'stream' || isSchema(value), `a Standard Schema or 'stream'`],
  query: [isSchema, 'a Standard Schema'],
  result: [isSchema, 'a Standard Schema'],
  status: [(value) => isWholeNumber(200, 299)(value) && value !== 204 && value !== 205, 'a status from 200 to 299 whose answer has a body'],
  unchecked: [isBoolean, 'true or false'],
  summary: [isText, 'a text'],
  hidden: [isBoolean, 'true or false'],
};

const MEDIA_RANGE = /^(?:\*\/\*|[!#$%&'+.^_`|~0-9a-z-]+\/(?:\*|[!#$%&'+.^_`|~0-9a-z-]+))$/i;

/** What one class, or the object, says: operation → settings, `'*'` → those of all. */
type Declared = Readonly<Record<string, OperationSettings>>;

/**
 * @param levels what the group's class says, or the object, and after it each of its ancestors, as found there
 * @param names those of the group's operations
 * @param inherited whether an ancestor has such a method, exposed here or not
 * @returns what holds for an operation of that name
 * @throws Error one line
 */
export function readSettings(
  levels: readonly unknown[],
  names: ReadonlySet<string>,
  inherited: (name: string) => boolean,
): (name: string) => OperationSettings {
  const declared = levels.flatMap((level, i) => {
    if (level === undefined) return [];
    return [checkLevel(level, (name) => names.has(name) || (i > 0 && inherited(name)))];
  });
  if (declared.length === 0) return () => NO_SETTINGS;
  // The nearest class wins, and what is said of one operation over what is said of all.
  const order = declared.toReversed();
  return (name) => {
    const parts = [...order.map((level) => level['*']), ...order.map((level) => (Object.hasOwn(level, name) ? level[name] : undefined))];
    const said = parts.flatMap((part) => Object.entries(part ?? {}).filter(([, value]) => value !== undefined));
    const settings: OperationSettings = Object.fromEntries(said);
    checkTogether(name, settings);
    return Object.freeze(settings);
  };
}

function checkLevel(level: unknown, isOperation: (name: string) => boolean): Declared {
  if (!isRecord(level)) throw new Error('static operations: it must be an object, with the name of an operation for each key');
  for (const [name, settings] of Object.entries(level)) {
    const where = `static operations: ${JSON.stringify(name)}`;
    if (name !== '*' && !isOperation(name)) throw new Error(`${where} names no operation`);
    if (!isRecord(settings)) throw new Error(`${where} must be an object`);
    for (const [property, value] of Object.entries(settings)) {
      if (!Object.hasOwn(PROPERTIES, property))
        throw new Error(`${where} has the unknown property ${property}; there are ${Object.keys(PROPERTIES).join(', ')}`);
      const [isSound, expected] = PROPERTIES[property as keyof OperationSettings];
      if (value !== undefined && !isSound(value)) throw new Error(`${where}: ${property} must be ${expected}`);
    }
  }
  return level as Declared;
}

function checkTogether(name: string, { body, bodyLimit, accepts }: OperationSettings): void {
  // The text of a body has to fit into one string.
  if (bodyLimit !== undefined && bodyLimit > constants.MAX_STRING_LENGTH && body !== 'stream')
    throw new Error(`static operations: ${JSON.stringify(name)}: a bodyLimit over ${constants.MAX_STRING_LENGTH} needs body: 'stream'`);
  if (accepts !== undefined && isSchema(body))
    throw new Error(`static operations: ${JSON.stringify(name)}: what accepts lets in is a Blob, which no schema of a body checks`);
}

function isWholeNumber(min: number, max: number) {
  return (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;
}

function isBoolean(value: unknown): boolean {
  return typeof value === 'boolean';
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

/** Some libraries make their schemas functions. */
function isSchema(value: unknown): boolean {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  const standard: unknown = (value as Record<string, unknown>)['~standard'];
  return isRecord(standard) && typeof standard.validate === 'function';
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function hasOnly(value: object, key: string): boolean {
  return Object.keys(value).join() === key;
}
