// Checks of values whose type is not known: parsed JSON, and the exports of controllers and of libraries.
import { isProxy } from 'node:util/types';
import { attempt } from './failure.ts';

export type Fields = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Returns whether the value is an object literal, or a module (`import * as operations`). Other objects can get
 * properties from a class or a prototype, and the properties of a proxy could change after a check.
 */
export function isPlainObject(value: unknown): value is Fields {
  if (typeof value !== 'object' || value === null || isProxy(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

export function isBoolean(value: unknown): boolean {
  return typeof value === 'boolean';
}

/** Returns whether the value is a whole number from `min` to `max`, such as a status of HTTP. */
export function isBetween(value: unknown, min: number, max: number): value is number {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}

export const isErrorStatus = (status: unknown): status is number => isBetween(status, 400, 599);

export const isReplyStatus = (status: unknown): status is number => isBetween(status, 200, 399);

/** Shows a wrong status in a message. A text has quotes, because `the status is 404` would seem right. */
export const showStatus = (status: unknown): string => (typeof status === 'string' ? `"${status}"` : String(status));

/** Whether a call of the value runs its code. A class needs `new`, and a generator function returns an iterator. */
export function isPlainFunction(value: unknown): boolean {
  if (typeof value !== 'function' || Object.prototype.toString.call(value).endsWith('GeneratorFunction]')) return false;
  return !isClass(value);
}

/** The result of such a function is a promise. */
export const isAsyncFunction = (value: unknown): boolean =>
  Object.prototype.toString.call(value) === '[object AsyncFunction]';

export function isClass(value: unknown): value is new () => object {
  // The prototype of a class is read-only. That of a function is writable, and arrow functions and methods have none.
  return typeof value === 'function' && Object.getOwnPropertyDescriptor(value, 'prototype')?.writable === false;
}

export function isNonEmptyText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

/** Returns whether a text is a token of RFC 9110, 5.6.2, such as the name of a header. */
export function isToken(text: string): boolean {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(text);
}

/**
 * Returns whether a text is an origin such as `https://example.com:8443`. The text `null` is not accepted. Browsers
 * send `null` for every page in a sandbox, and any page can put itself into a sandbox.
 */
export function isOrigin(text: string): boolean {
  // The URL parser accepts `*` in a host name.
  return URL.canParse(text) && new URL(text).origin === text && !text.includes('*');
}

/** Removes the brackets that an IPv6 address has in a URL: `[::1]` becomes `::1`. */
export function withoutBrackets(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1');
}

/** Removes the spaces and tabs around a text. With the expression `[ \t]+$`, 16 KiB of tabs within a text take 1 s. */
export function trimBlanks(text: string): string {
  const isBlank = (index: number) => text[index] === ' ' || text[index] === '\t';
  let start = 0;
  let end = text.length;
  while (isBlank(start)) start++;
  while (end > start && isBlank(end - 1)) end--;
  return text.slice(start, end);
}

/** Returns whether a value is a scope of RFC 6749, 3.3: printable ASCII without space, quote and backslash. */
export function isScope(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/.test(value);
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}

/** The class of what async functions return, also where zone.js or bluebird has replaced the global. */
const AsyncPromise = (async () => {})().constructor as PromiseConstructor;
export const isPromise = <T>(value: T | Promise<T>): value is Promise<T> =>
  value instanceof AsyncPromise || value instanceof Promise;

export function parseObject(text: string): Fields | undefined {
  const value: unknown = attempt(() => JSON.parse(text), undefined);
  return isObject(value) ? value : undefined;
}
