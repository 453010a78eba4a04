// Creates log lines: one JSON object a line. log-writer.ts writes the lines. No caller passes a header value, a body, a
// query or a token.
import type { ErrorFacts, LogEvents, RequestIds } from './events.ts';
import { attempt, FIRST_PLACE, isError as isAnyError } from './failure.ts';
import { withoutLoneSurrogates } from './json-text.ts';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export type LogFields = Readonly<Record<string, unknown>>;

/** The method of a level takes only the events that events.ts lists for this level, with the facts listed there. */
export interface Log {
  readonly debug: LogMethod<LogEvents['debug']>;
  readonly info: LogMethod<LogEvents['info']>;
  readonly warn: LogMethod<LogEvents['warn']>;
  readonly error: LogMethod<LogEvents['error']>;
}

type LogMethod<Events> = <Name extends keyof Events, Facts extends Events[Name]>(
  event: Name,
  facts: Facts & NoOther<Facts, Events[Name]>,
) => void;

/** Makes the compiler refuse a fact that events.ts does not list, also when the fact comes from a spread object. */
type NoOther<Facts, Allowed> = { readonly [Name in Exclude<keyof Facts, KeyOf<Allowed>>]: never };

/** The keys of all members of a union. */
type KeyOf<Union> = Union extends unknown ? keyof Union : never;

/** Takes whole lines, each with its line feed. */
export interface LineSink {
  write(line: string): void;
  /** Writes all waiting lines. Called after warnings and errors. Absent when `write` writes at once. */
  flush?(): void;
}

export function createLog({ level, sink }: { readonly level: LogLevel; readonly sink: LineSink }): Log {
  const threshold = LOG_LEVELS.indexOf(level);
  const methodFor = (eventLevel: Exclude<LogLevel, 'silent'>) => {
    if (LOG_LEVELS.indexOf(eventLevel) < threshold) return () => {};
    const isUrgent = eventLevel === 'warn' || eventLevel === 'error';
    return (event: string, facts: object) => {
      sink.write(lineOf({ time: new Date().toISOString(), level: eventLevel, event, pid: process.pid }, facts));
      if (isUrgent) sink.flush?.();
    };
  };
  return { debug: methodFor('debug'), info: methodFor('info'), warn: methodFor('warn'), error: methodFor('error') };
}

function lineOf(head: LogFields, facts: object): string {
  try {
    return `${withoutLoneSurrogates(JSON.stringify({ ...head, ...facts }))}\n`;
  } catch (error) {
    // The facts contain a cycle, a BigInt, or a toJSON that throws. The line keeps at least its event.
    return `${JSON.stringify({ ...head, unloggable: textOf(error).slice(0, 200) })}\n`;
  }
}

interface IdentifiedRequest {
  readonly requestId: string;
  readonly trace: { readonly traceId: string | undefined; readonly spanId: string | undefined } | undefined;
}

export function idsOf({ requestId, trace }: IdentifiedRequest): RequestIds {
  if (trace?.traceId === undefined) return { request_id: requestId };
  return { request_id: requestId, trace_id: trace.traceId, span_id: trace.spanId };
}

const MAX_MESSAGE_LENGTH = 1000;
const NO_TEXT = 'a value that cannot be converted to text';

/** Describes a thrown value. Never throws itself. */
export function describeError(thrown: unknown): ErrorFacts {
  const facts: ErrorFacts = { error: messageOf(thrown) };
  if (!isError(thrown)) return facts;
  facts.error_name = textOf(readField(thrown, 'name')).slice(0, 100);
  const code = readField(thrown, 'code');
  if (typeof code === 'string') facts.error_cause_code = code.slice(0, 100);
  const stack = readField(thrown, 'stack');
  if (typeof stack === 'string') facts.stack = shortStack(stack, MAX_STACK_MESSAGE_LENGTH);
  const causes = causesOf(thrown);
  if (causes.length > 0) facts.cause = causes.join(': ').slice(0, MAX_MESSAGE_LENGTH);
  return facts;
}

/** A cause can be its own cause. */
const MAX_CAUSES = 5;

/** Returns the messages of the causes: below `fetch failed` is the reason, such as `connect ECONNREFUSED`. */
function causesOf(error: Error): string[] {
  const messages: string[] = [];
  let cause: unknown = readField(error, 'cause');
  while (cause !== undefined && messages.length < MAX_CAUSES) {
    messages.push(messageOf(cause));
    cause = isError(cause) ? readField(cause, 'cause') : undefined;
  }
  return messages;
}

const MAX_STACK_LENGTH = 4000;
/** Characters of the message that a stack keeps. The fact `error` has more of it. */
const MAX_STACK_MESSAGE_LENGTH = 200;

/** Cuts the message at the beginning of a stack, so that the places after a long message, such as a query, are kept. */
function shortStack(stack: string, maxMessageLength: number, cause = ''): string {
  const start = stack.search(FIRST_PLACE);
  if (start < 0) return `${stack}${cause}`.slice(0, MAX_STACK_LENGTH);
  const message = start > maxMessageLength ? `${stack.slice(0, maxMessageLength)}…` : stack.slice(0, start);
  return `${message}${cause}${stack.slice(start)}`.slice(0, MAX_STACK_LENGTH);
}

/** Returns the message of an error, its cause and the places of its stack as one text. An error can have no stack. */
export function stackWithCause(error: Error): string {
  const { cause } = describeError(error);
  return shortStack(String(error.stack ?? error), MAX_MESSAGE_LENGTH, cause && `\n[cause] ${cause}`);
}

function messageOf(thrown: unknown): string {
  return fullMessageOf(thrown).slice(0, MAX_MESSAGE_LENGTH);
}

function fullMessageOf(thrown: unknown): string {
  if (typeof thrown !== 'object' || thrown === null) return textOf(thrown);
  // Code may also throw objects such as `{ code: 7, message: 'no such user' }`, so any object may have a message. An
  // AggregateError of Node's network modules has no message, so the code of an Error is the second choice.
  const text = [readField(thrown, 'message'), isError(thrown) ? readField(thrown, 'code') : undefined].find(
    (candidate) => candidate !== undefined && candidate !== '',
  );
  if (text !== undefined) return textOf(text);
  if (isError(thrown)) return '';
  const description = textOf(thrown);
  if (description !== '[object Object]') return description;
  // Only the names of the fields are logged, because the values may be secrets.
  const fields = attempt(() => Object.keys(thrown).slice(0, 20).join(', '), '');
  return `an object with ${fields || 'no fields'}`;
}

// A thrown value may be a proxy or have getters, so each access may throw.
const isError = (value: unknown): value is Error => attempt(() => isAnyError(value), false);

const readField = (object: object, name: string): unknown => attempt(() => Reflect.get(object, name), NO_TEXT);

/** Never throws, although `String()` throws for an object without a prototype. */
export const textOf = (value: unknown): string => attempt(() => String(value), NO_TEXT);
