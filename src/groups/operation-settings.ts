// Reads the settings of operations, which are in `static operations` of a controller. A table has a row for each
// property. A file with an unknown property does not load: if a misspelt `access` were ignored, anybody could call the
// operation. The effects of a setting are not in this file.
import { constants } from 'node:buffer';
import { isModuleNamespaceObject } from 'node:util/types';
import type { NodeMountSettings } from '../api/controller/mount.ts';
import type { OperationSettings } from '../api/controller/operations.ts';
import { LoadRefusal } from '../base/load-refusal.ts';
import { isBuiltInType } from '../base/media-kinds.ts';
import { parseRate, RATE_FORM } from '../base/rate.ts';
import {
  isAsyncFunction,
  isBetween,
  isBoolean,
  isNonEmptyText,
  isPlainFunction,
  isPlainObject,
} from '../base/values.ts';
import { ACCESS_FORM, isAccess } from '../callers/access/access.ts';

/** The settings of an operation that `static operations` does not name. */
export const NO_SETTINGS: OperationSettings = Object.freeze({});

type Rule = readonly [isValid: (value: unknown) => boolean, expected: string];

/** By property: a function that checks its value, and the description of a valid value for the error. */
const PROPERTIES: Readonly<Record<keyof OperationSettings, Rule>> = {
  accepts: [
    (value) =>
      Array.isArray(value) &&
      value.length > 0 &&
      value.every((type) => typeof type === 'string' && MEDIA_RANGE.test(type)),
    'a list of media types such as image/png or image/*',
  ],
  bodyLimit: [(value) => isBetween(value, 1, Number.MAX_SAFE_INTEGER), 'a number of bytes'],
  timeout: [isDuration, 'a number of milliseconds, a day at most'],
  bodyTimeout: [isDuration, 'a number of milliseconds, a day at most'],
  access: [isAccess, ACCESS_FORM],
  limit: [
    isLimit,
    `${RATE_FORM}, or { rate: '20/15m', by: (params) => text, count: 'failures' }, where by is not async`,
  ],
  body: [(value) => value === 'stream' || isSchema(value), `a Standard Schema, a JSON Schema or 'stream'`],
  query: [isSchema, 'a Standard Schema or a JSON Schema'],
  path: [isSchema, 'a Standard Schema or a JSON Schema'],
  result: [isSchema, 'a Standard Schema or a JSON Schema'],
  results: [(value) => value === 'declared', "'declared'"],
  status: [
    (value) => isBetween(value, 200, 299) && value !== 204 && value !== 205,
    'a status from 200 to 299 whose answer has a body',
  ],
  closed: [isBoolean, 'true or false'],
  unchecked: [isBoolean, 'true or false'],
  summary: [isNonEmptyText, 'a text'],
  hidden: [isBoolean, 'true or false'],
  tool: [
    (value) => isBoolean(value) || (typeof value === 'string' && TOOL_NAME.test(value)),
    'true, false, or the name of the tool: 1 to 64 letters, digits, _ and -',
  ],
};

const { access, limit, timeout, bodyLimit, bodyTimeout, summary, hidden, unchecked } = PROPERTIES;
const WEB_MOUNT: Readonly<Record<string, Rule>> = {
  ...{ access, limit, timeout, bodyLimit, bodyTimeout, summary, hidden, unchecked },
  cors: [(value) => value === 'own' || value === 'service', "'own' or 'service'"],
};
const NODE_MOUNT: typeof WEB_MOUNT = {
  ...WEB_MOUNT,
  strip: [isBoolean, 'true or false'],
  upgrade: [isPlainFunction, 'a function (request, socket, head, params)'],
};

export const isMountSetting = (name: string): boolean => Object.hasOwn(NODE_MOUNT, name);

export function readMountSettings(value: unknown, kind: 'web' | 'node'): NodeMountSettings {
  if (!isPlainObject(value)) refuse('the settings of a mount must be a plain object');
  const rules = kind === 'web' ? WEB_MOUNT : NODE_MOUNT;
  return Object.fromEntries(
    entriesOf(value, 'mount:').map(([property, own]) => [property, readValue(property, own, 'mount', rules)]),
  );
}

/** The names that every client of the Model Context Protocol accepts. */
export const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/;

const MEDIA_RANGE = /^(?:\*\/\*|[!#$%&'+.^_`|~0-9a-z-]+\/(?:\*|[!#$%&'+.^_`|~0-9a-z-]+))$/i;

export function isValidSetting(property: keyof OperationSettings, value: unknown): boolean {
  return PROPERTIES[property][0](value);
}

/**
 * @param properties the property `operations` of the group's class or object and of each parent class, nearest first
 * @param names the names of the group's operations
 * @param hasMember says whether the controller has a member of this name. Settings in a parent class can also name a
 *   member that is no operation in the child class
 */
export function readSettings(
  properties: readonly (PropertyDescriptor | undefined)[],
  names: ReadonlySet<string>,
  hasMember: (name: string) => boolean,
): (name: string) => OperationSettings {
  const declared = properties.flatMap((property, i) => {
    const isOperation = (name: string) => names.has(name) || (i > 0 && hasMember(name));
    return property === undefined ? [] : [readDeclared(property.value, isOperation)];
  });
  if (declared.length === 0) return () => NO_SETTINGS;
  // The settings in a class replace those in its parent classes. The settings of one operation replace those of `'*'`.
  const ancestorsFirst = declared.toReversed();
  return (name) => {
    const chain = ['*', name].flatMap((key) => ancestorsFirst.map((settings) => settings.get(key)));
    const merged: OperationSettings = Object.assign({}, ...chain);
    checkCombination(name, merged);
    return Object.freeze(merged);
  };
}

function readDeclared(value: unknown, isOperation: (name: string) => boolean): ReadonlyMap<string, OperationSettings> {
  if (!isPlainObject(value))
    refuse('static operations: it must be a plain object, with the name of an operation for each key');
  const operations = entriesOf(value, 'static operations:').map(([name, settings]): [string, OperationSettings] => {
    const prefix = `static operations: ${JSON.stringify(name)}`;
    if (name !== '*' && !isOperation(name)) refuse(`${prefix} names no operation`);
    if (!isPlainObject(settings)) refuse(`${prefix} must be a plain object`);
    const values = entriesOf(settings, `${prefix}:`).map(([property, propertyValue]) => [
      property,
      readValue(property, propertyValue, prefix, PROPERTIES),
    ]);
    return [name, Object.fromEntries(values)];
  });
  return new Map(operations);
}

function readValue(property: string, value: unknown, prefix: string, rules: Readonly<Record<string, Rule>>): unknown {
  const rule = Object.hasOwn(rules, property) ? rules[property] : undefined;
  if (rule === undefined)
    return refuse(`${prefix} has the unknown property ${property}; there are ${Object.keys(rules).join(', ')}`);
  const [isValid, expected] = rule;
  const isPart = /^(?:body|query|path|result)$/.test(property);
  const copy = isPart ? value : copyOf(value, `${prefix}: ${property}:`);
  if (!isValid(copy)) refuse(`${prefix}: ${property} must be ${expected}`);
  return copy;
}

/** Copies and freezes a value, so that a later change has no effect. A schema is not copied. */
function copyOf(value: unknown, prefix: string): unknown {
  if (Array.isArray(value)) return Object.freeze(value.map((item) => copyOf(item, prefix)));
  return isPlainObject(value) ? Object.freeze(Object.fromEntries(entriesOf(value, prefix))) : value;
}

/** Freezes a plain object, and returns its properties. @throws LoadRefusal for one that is ignored or can change */
function entriesOf(object: object, prefix: string): [string, unknown][] {
  const entries = Reflect.ownKeys(object).flatMap((key): [string, unknown][] => {
    const { value, enumerable, get, set } = Object.getOwnPropertyDescriptor(object, key) as PropertyDescriptor;
    const label = `${prefix} ${prefix.endsWith('operations:') && typeof key === 'string' ? JSON.stringify(key) : String(key)}`;
    if (typeof key === 'symbol') {
      if (key === Symbol.toStringTag && isModuleNamespaceObject(object)) return [];
      refuse(`${label} is a symbol, which names nothing`);
    }
    if (get !== undefined || set !== undefined) refuse(`${label} is an accessor: write the value itself`);
    if (!enumerable) refuse(`${label} is not enumerable: write it into the object`);
    if (value === undefined) refuse(`${label} is undefined: leave it out`);
    return [[key, value]];
  });
  if (!isModuleNamespaceObject(object)) Object.freeze(object);
  return entries;
}

function checkCombination(name: string, { body, bodyLimit, accepts }: OperationSettings): void {
  const prefix = `static operations: ${JSON.stringify(name)}:`;
  // A body that is not a stream becomes one string.
  if (bodyLimit !== undefined && bodyLimit > constants.MAX_STRING_LENGTH && body !== 'stream')
    refuse(`${prefix} a bodyLimit over ${constants.MAX_STRING_LENGTH} needs body: 'stream'`);
  if (accepts?.every(isBuiltInType) === false && isSchema(body))
    refuse(`${prefix} what accepts lets in is a Blob, which no schema of a body checks`);
}

function refuse(message: string): never {
  throw new LoadRefusal('INVALID_SETTING', message);
}

/** A longer time than a day is probably a mistake, and above 2^31 - 1 ms, Node's timers would fire at once. */
function isDuration(value: unknown): boolean {
  return isBetween(value, 1, 86_400_000);
}

function isLimit(value: unknown): boolean {
  if (typeof value === 'string') return parseRate(value) !== undefined;
  if (!isPlainObject(value)) return false;
  const { rate, by, count, ...others } = value;
  if (typeof rate !== 'string' || parseRate(rate) === undefined || Object.keys(others).length > 0) return false;
  return (
    (by === undefined || (isPlainFunction(by) && !isAsyncFunction(by))) && (count === undefined || count === 'failures')
  );
}

/** Says whether a value is a Standard Schema, which can be a function, or may be a JSON Schema. */
function isSchema(value: unknown): boolean {
  const standard: unknown = Object(value)['~standard'];
  return standard === undefined
    ? isPlainObject(value) && Object.keys(value).length > 0
    : typeof Object(standard).validate === 'function';
}
