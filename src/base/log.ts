// What the log says and how a line looks: one JSON object a line. Where the bytes go is log-writer.ts.
// Nothing here ever sees a header value, a body, a query or a token; callers pass facts, by name.

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export type LogFields = Readonly<Record<string, unknown>>;

/** `event` is a stable kebab-case name (docs/OPERATING.md lists them); `fields` are JSON-safe facts. */
export interface Log {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
}

/** Takes whole lines, each with its line feed. */
export interface LineSink {
  write(line: string): void;
  /** Has what was written on its way before it returns; for warnings, errors and the end of the process. */
  flush(): void;
}

export interface LogOptions {
  readonly level: LogLevel;
  readonly sink: LineSink;
  readonly now?: () => Date;
}

export function createLog({ level, sink, now = () => new Date() }: LogOptions): Log {
  const threshold = LOG_LEVELS.indexOf(level);
  const at = (name: Exclude<LogLevel, 'silent'>) => {
    if (LOG_LEVELS.indexOf(name) < threshold) return () => {};
    const urgent = name === 'warn' || name === 'error';
    return (event: string, fields: LogFields = {}) => {
      sink.write(lineOf({ time: now().toISOString(), level: name, event, pid: process.pid }, fields));
      if (urgent) sink.flush();
    };
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

function lineOf(naming: LogFields, fields: LogFields): string {
  try {
    return `${JSON.stringify({ ...naming, ...fields })}\n`;
  } catch (error) {
    // A cycle, a BigInt, a toJSON that throws: the line says at least what happened.
    return `${JSON.stringify({ ...naming, unloggable: textOf(error).slice(0, 200) })}\n`;
  }
}

/**
 * What the log says of a thrown value: its message, where it was thrown, and what caused it. Never throws, whatever was
 * thrown.
 */
export function describeError(thrown: unknown): LogFields {
  const fields: Record<string, unknown> = { error: messageOf(thrown) };
  if (!isError(thrown)) return fields;
  fields.error_name = textOf(read(thrown, 'name')).slice(0, 100);
  const code = read(thrown, 'code');
  if (typeof code === 'string') fields.error_cause_code = code.slice(0, 100);
  const stack = read(thrown, 'stack');
  if (typeof stack === 'string') fields.stack = stack.slice(0, 4000);
  const cause = read(thrown, 'cause');
  if (cause !== undefined) fields.cause = messageOf(cause);
  return fields;
}

function messageOf(thrown: unknown): string {
  if (typeof thrown !== 'object' || thrown === null) return textOf(thrown).slice(0, 1000);
  // `throw { code: 7, message: 'no such user' }`, and an AggregateError of Node's network has nothing but a code.
  const text = [read(thrown, 'message'), isError(thrown) ? read(thrown, 'code') : undefined].find(
    (said) => said !== undefined && said !== '',
  );
  if (text !== undefined) return textOf(text).slice(0, 1000);
  if (isError(thrown)) return '';
  const whole = textOf(thrown);
  return (whole === '[object Object]' ? `an object with ${fieldNamesOf(thrown) || 'no fields'}` : whole).slice(0, 1000);
}

/** Their values may be secrets. */
function fieldNamesOf(object: object): string {
  try {
    return Object.keys(object).slice(0, 20).join(', ');
  } catch {
    return '';
  }
}

function isError(value: unknown): value is Error {
  try {
    return value instanceof Error;
  } catch {
    return false;
  }
}

/** A getter may throw, and a proxy may throw at anything. */
function read(object: object, name: string): unknown {
  try {
    return (object as Record<string, unknown>)[name];
  } catch {
    return NO_TEXT;
  }
}

const NO_TEXT = 'a thrown value that has no text';

function textOf(value: unknown): string {
  try {
    return String(value);
  } catch {
    return NO_TEXT;
  }
}
