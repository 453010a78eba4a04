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

/** Takes also lines that are facts only as yet. */
export interface DeferringSink extends LineSink {
  /** `compose` is called once: before anything else is written, and soon at the latest. */
  defer(compose: (write: (line: string) => void) => void): void;
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
      sink.write(`${JSON.stringify({ time: now().toISOString(), level: name, event, pid: process.pid, ...fields })}\n`);
      if (urgent) sink.flush();
    };
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** What the log says of a thrown value: its message, where it was thrown, and what caused it, each cut to a sane length. */
export function describeError(thrown: unknown): LogFields {
  if (!(thrown instanceof Error)) return { error: safeString(thrown) };
  const fields: Record<string, unknown> = { error: safeString(thrown.message), error_name: thrown.name };
  const code = (thrown as { code?: unknown }).code;
  if (typeof code === 'string') fields.error_cause_code = code;
  if (typeof thrown.stack === 'string') fields.stack = thrown.stack.slice(0, 4000);
  if (thrown.cause !== undefined) {
    fields.cause = thrown.cause instanceof Error ? safeString(thrown.cause.message) : safeString(thrown.cause);
  }
  return fields;
}

function safeString(value: unknown): string {
  try {
    return String(value).slice(0, 1000);
  } catch {
    return 'a thrown value that has no text';
  }
}
