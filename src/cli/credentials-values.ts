// What the values of the command's flags mean, each narrowed once. It knows neither the words around them nor the table.

import { METHODS } from '../base/builtins.ts';
import { parseSpan, parseTime } from '../credentials/instant.ts';
import { isHandlerName } from '../credentials/table.ts';

/** Called wrongly: exit 2. */
export class UsageError extends Error {}

export function plainText(text: string, flag: string): string {
  if (text.trim() === '') throw new UsageError(`${flag}: the value is empty`);
  if (text.length > 200) throw new UsageError(`${flag}: the value has ${text.length} characters, the limit is 200`);
  if (/\p{Cc}/u.test(text)) throw new UsageError(`${flag}: the value has control characters`);
  return text;
}

export function handlerOf(text: string): string {
  if (!isHandlerName(text)) throw new UsageError(`--handler: ${JSON.stringify(text)} is not the name of a handler group`);
  return text;
}

export function methodsOf(text: string): string[] {
  const methods = text.split(',').map((method) => method.trim().toUpperCase());
  const unknown = methods.find((method) => !METHODS.includes(method));
  if (unknown !== undefined) throw new UsageError(`--methods: ${JSON.stringify(unknown)} is not an HTTP method`);
  return [...new Set(methods)];
}

export function expiryOf(text: string, now: number): number {
  const span = parseSpan(text);
  const time = span === undefined ? parseTime(text) : now + span;
  if (time === undefined) throw new UsageError(`--expires: ${JSON.stringify(text)} is not a time such as 2030-01-31 or 90d`);
  if (time <= now) throw new UsageError(`--expires: ${text} is over already`);
  return time;
}

export function overlapOf(text: string): number {
  const span = parseSpan(text);
  if (span === undefined) throw new UsageError(`--overlap: ${JSON.stringify(text)} is not a span such as 12h, 7d or 2w`);
  return span;
}
