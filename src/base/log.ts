// Creates log lines: one JSON object a line. log-writer.ts writes them. Callers never pass a header value, a body, a
// query or a token.

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export type LogFields = Readonly<Record<string, unknown>>;

/** `event` is a stable kebab-case name from docs/OPERATING.md, and `fields` are its JSON-safe facts. */
export interface Log {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
}

/** Takes whole lines, each with its line feed. */
export interface LineSink {
  write(line: string): void;
  /** Writes all held lines at once: after warnings and errors, and at the end of the process. */
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
    const isUrgent = name === 'warn' || name === 'error';
    return (event: string, fields: LogFields = {}) => {
      sink.write(lineOf({ time: now().toISOString(), level: name, event, pid: process.pid }, fields));
      if (isUrgent) sink.flush();
    };
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

function lineOf(head: LogFields, fields: LogFields): string {
  try {
    return `${JSON.stringify({ ...head, ...fields })}\n`;
  } catch (error) {
    // The fields hold a cycle, a BigInt, or a toJSON that throws. The line keeps at least its event.
    return `${JSON.stringify({ ...head, unloggable: textOf(error).slice(0, 200) })}\n`;
  }
}

/** Returns the fields that describe a thrown value: its message, stack and cause. Never throws itself. */
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
  // Objects such as `{ code: 7, message: 'no such user' }` are thrown, too. An AggregateError of Node's network has
  // only a code.
  const text = [read(thrown, 'message'), isError(thrown) ? read(thrown, 'code') : undefined].find(
    (candidate) => candidate !== undefined && candidate !== '',
  );
  if (text !== undefined) return textOf(text).slice(0, 1000);
  if (isError(thrown)) return '';
  const description = textOf(thrown);
  if (description !== '[object Object]') return description.slice(0, 1000);
  return `an object with ${fieldNamesOf(thrown) || 'no fields'}`.slice(0, 1000);
}

/** Returns the names alone, because values may be secrets. */
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

/** Reads a field whose getter may throw. A proxy may throw at each access. */
function read(object: object, name: string): unknown {
  try {
    return (object as Record<string, unknown>)[name];
  } catch {
    return NO_TEXT;
  }
}

const NO_TEXT = 'a value that cannot be converted to text';

function textOf(value: unknown): string {
  try {
    return String(value);
  } catch {
    return NO_TEXT;
  }
}
