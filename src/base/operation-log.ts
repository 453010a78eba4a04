// `params.log`: writes the messages of a controller to the service's log. Each line names its request.

import type { OperationLog } from '../api/controller.ts';
import type { Exchange } from '../request/exchange.ts';
import { attempt, isError } from './failure.ts';
import { describeError, idsOf, type Log, type LogFields, stackWithCause } from './log.ts';

const RESERVED_FIELDS: ReadonlySet<string> = new Set(
  'time level event pid message request_id trace_id span_id group operation'.split(' '),
);

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
  return attempt(() => {
    if (isError(message)) return stackWithCause(message);
    return isObject ? JSON.stringify(message, stackInsteadOfError) : String(message);
  }, 'a message that has no text');
}

/** Renames reserved fields. If a field has no JSON form (a cycle, a BigInt), the reason replaces all fields. */
function safeFields(fields: LogFields | null | undefined): LogFields {
  try {
    // JSON has no functions. A function with the name `toJSON` would replace the whole line of the service.
    const entries = Object.entries(namedFields(fields ?? {}))
      .filter(([, value]) => typeof value !== 'function')
      .map(([name, value]) => [RESERVED_FIELDS.has(name) ? `field_${name}` : name, value]);
    return JSON.parse(JSON.stringify(Object.fromEntries(entries), stackInsteadOfError));
  } catch (error) {
    return { fields_dropped: describeError(error).error.split('\n')[0] };
  }
}

/** JavaScript may pass an error or a text in the place of the fields, as to `console.error`. */
function namedFields(fields: unknown): object {
  if (isError(fields)) return { error: fields };
  return typeof fields === 'object' ? (fields as object) : { value: fields };
}

/** Replaces an error at any depth by its stack, because JSON would make `{}` of the error. */
function stackInsteadOfError(this: Record<string, unknown>, name: string, value: unknown): unknown {
  // An error of a library can have a method `toJSON`, whose result is `value`.
  const original = this[name];
  return isError(original) ? stackWithCause(original) : value;
}
