// `params.log`: writes the messages of a controller to the service's log. Each line names its request.

import type { OperationLog } from '../api/controller.ts';
import type { Exchange } from '../request/exchange.ts';
import { attempt, isError } from './failure.ts';
import { describeError, idsOf, type Log, type LogFields } from './log.ts';

/** The fields of a log line that only the service may set. */
const RESERVED_FIELDS: ReadonlySet<string> = new Set(
  'time level event pid message request_id trace_id span_id group operation'.split(' '),
);

/** The log of a task of the service file. */
export function createTaskLog(log: Log, task: string): OperationLog {
  const lineFields = (message: string, fields?: LogFields) => {
    return { ...safeFields(fields), message: messageText(message), task };
  };
  return {
    info: (message, fields) => log.info('task-info', lineFields(message, fields)),
    warn: (message, fields) => log.warn('task-warning', lineFields(message, fields)),
    error: (message, fields) => log.error('task-error', lineFields(message, fields)),
  };
}

export function createOperationLog(log: Log, exchange: Exchange): OperationLog {
  const { group, operation } = exchange;
  const lineFields = (message: string, fields: LogFields | undefined) => ({
    message: messageText(message),
    ...idsOf(exchange),
    group,
    operation,
    ...safeFields(fields),
  });
  return {
    info: (message, fields) => log.info('operation-info', lineFields(message, fields)),
    warn: (message, fields) => log.warn('operation-warning', lineFields(message, fields)),
    error: (message, fields) => log.error('operation-error', lineFields(message, fields)),
  };
}

/** Makes a text of any value, and never throws, although String() throws for a form: an object without a prototype. */
function messageText(message: unknown): string {
  const isObject = typeof message === 'object' && message !== null;
  return attempt(() => (isObject ? JSON.stringify(message) : String(message)), 'a message that has no text');
}

/** Drops reserved fields. If a field has no JSON form (a cycle, a BigInt), the reason replaces all fields. */
function safeFields(fields: LogFields | null | undefined): LogFields {
  try {
    const entries = Object.entries(fields ?? {}).filter(([name]) => !RESERVED_FIELDS.has(name));
    const controllerFields = Object.fromEntries(entries.map(([name, value]) => [name, fieldValue(value)]));
    JSON.stringify(controllerFields);
    return controllerFields;
  } catch (error) {
    return { fields_dropped: describeError(error).error.split('\n')[0] };
  }
}

/** Replaces an error by its stack, because JSON would make `{}` of the error. An error can have no stack. */
function fieldValue(value: unknown): unknown {
  return isError(value) ? (value.stack ?? String(value)) : value;
}
