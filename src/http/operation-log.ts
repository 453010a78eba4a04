// `params.log`: what a controller has to say, as lines of the service's own log that name the request.
import type { Log, LogFields } from '../base/log.ts';
import type { OperationLog } from '../controller.ts';
import type { Exchange } from './exchange.ts';

/** What the service says of a line is not a controller's to change. */
const RESERVED: ReadonlySet<string> = new Set([
  'time',
  'level',
  'event',
  'pid',
  'message',
  'request_id',
  'group',
  'operation',
]);

export function createOperationLog(log: Log, { requestId: request_id, group, operation }: Exchange): OperationLog {
  const line = (message: string, fields: LogFields | undefined) => ({
    message: textOf(message),
    request_id,
    group,
    operation,
    ...furtherOf(fields),
  });
  return {
    info: (message, fields) => log.info('operation-info', line(message, fields)),
    warn: (message, fields) => log.warn('operation-warning', line(message, fields)),
    error: (message, fields) => log.error('operation-error', line(message, fields)),
  };
}

/** Nothing that is logged may fail the request: an object without a prototype, such as a form, has no text. */
function textOf(message: unknown): string {
  try {
    return typeof message === 'object' && message !== null ? JSON.stringify(message) : String(message);
  } catch {
    return 'a message that has no text';
  }
}

/** A cycle, a BigInt or a getter that throws costs the fields, and not the line. */
function furtherOf(fields: LogFields | null | undefined): LogFields {
  try {
    const further = Object.fromEntries(
      Object.entries(fields ?? {}).flatMap(([name, value]) => (RESERVED.has(name) ? [] : [[name, fieldOf(value)]])),
    );
    JSON.stringify(further);
    return further;
  } catch (error) {
    return { fields_dropped: textOf(error instanceof Error ? error.message : error).split('\n')[0] };
  }
}

/** JSON makes `{}` of an error. */
function fieldOf(value: unknown): unknown {
  return value instanceof Error ? (value.stack ?? String(value)) : value;
}
