// Parses the flags of `gatefold credentials issue` and `rotate`. An invalid value is a UsageError that names its flag.
import { METHODS } from '../../base/builtins.ts';
import { parseRate, RATE_FORM } from '../../base/rate.ts';
import { isScope } from '../../base/values.ts';
import { parseSpan, parseTime } from '../../callers/credentials/table/instant.ts';
import { isHandlerName } from '../../callers/credentials/table/table.ts';
import type { NewRow } from '../../callers/credentials/write/changes.ts';
import { type CommandCall, UsageError } from './command.ts';

/** @param now Unix milliseconds. `--expires 90d` is 90 days after this time. */
export function parseIssueFlags(flagValues: CommandCall['flagValues'], now: number): NewRow {
  const { name, description, groups, handler, scopes, methods, limit, expires } = flagValues;
  if (name === undefined) throw new UsageError('--name is missing');
  if (groups !== undefined && handler !== undefined) throw new UsageError('--groups and --handler exclude each other');
  return {
    name: parseText(name, '--name'),
    description: description === undefined ? undefined : parseText(description, '--description'),
    groups: groups === undefined || groups === '*' ? groups : parseList(groups, '--groups', parseGroup),
    handler: handler === undefined ? undefined : parseGroup(handler, '--handler'),
    scopes: scopes === undefined ? undefined : parseList(scopes, '--scopes', parseScope),
    methods: methods === undefined ? undefined : parseList(methods, '--methods', parseMethod),
    limit: limit === undefined ? undefined : parseLimit(limit),
    expiresAt: expires === undefined ? undefined : parseExpiry(expires, now),
  };
}

/** Returns the milliseconds that the old secret stays valid: 0 when `--overlap` is not given. */
export function parseOverlap(text: string | undefined): number {
  const span = text === undefined ? 0 : parseSpan(text);
  if (span === undefined)
    throw new UsageError(`--overlap: ${JSON.stringify(text)} is not a span such as 30m, 12h or 7d`);
  return span;
}

/** Returns Unix milliseconds. @param text a time, or a span that ends at `now` */
export function parseRevokedBefore(text: string | undefined, now: number): number {
  if (text === undefined) throw new UsageError('--revoked-before is missing');
  const span = parseSpan(text);
  const time = span === undefined ? parseTime(text) : now - span;
  if (time === undefined || time > now)
    throw new UsageError(
      `--revoked-before: ${JSON.stringify(text)} is not a time in the past such as 2026-01-31 or 90d`,
    );
  return time;
}

function parseText(text: string, flag: string): string {
  if (text.trim() === '') throw new UsageError(`${flag}: the value is empty`);
  if (text.length > 200) throw new UsageError(`${flag}: the value has ${text.length} characters, the limit is 200`);
  if (/\p{Cc}/u.test(text)) throw new UsageError(`${flag}: the value has control characters`);
  return text;
}

type Parser = (text: string, flag: string) => string;

function parseList(text: string, flag: string, parse: Parser): string[] {
  return [...new Set(text.split(',').map((item) => parse(item.trim(), flag)))];
}

function createParser(isValid: (text: string) => boolean, description: string): Parser {
  return (text, flag) => {
    if (!isValid(text)) throw new UsageError(`${flag}: ${JSON.stringify(text)} is not ${description}`);
    return text;
  };
}

const parseGroup = createParser(isHandlerName, 'the name of a handler group');
const parseScope = createParser(isScope, 'a scope such as orders:write');
const checkMethod = createParser((text) => METHODS.includes(text), 'an HTTP method');
const parseMethod: Parser = (text, flag) => checkMethod(text.toUpperCase(), flag);

function parseLimit(text: string): string {
  if (parseRate(text) === undefined) throw new UsageError(`--limit must be ${RATE_FORM}`);
  return text;
}

/** Returns Unix milliseconds. @param text a time, or a span that begins at `now` */
function parseExpiry(text: string, now: number): number {
  const span = parseSpan(text);
  const time = span === undefined ? parseTime(text) : now + span;
  if (time === undefined)
    throw new UsageError(`--expires: ${JSON.stringify(text)} is not a time such as 2030-01-31 or 90d`);
  if (time <= now) throw new UsageError(`--expires: ${text} is in the past`);
  return time;
}
