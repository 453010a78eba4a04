// `params.log`: what a controller has to say, as lines of the service's own log that name the request.
import type { Log, LogFields } from '../base/log.ts';
import type { OperationLog } from '../controller.ts';
import type { Exchange } from './exchange.ts';

/** What the service says of a line is not a controller's to change. */
const RESERVED: ReadonlySet<string> = new Set(['time', 'level', 'event', 'pid', 'message', 'request_id', 'group', 'operation']);

export function createOperationLog(log: Log, { requestId: request_id, group, operation }: Exchange): OperationLog {
  const line = (message: string, fields: LogFields) => ({
    message: String(message),
    request_id,
    group,
    operation,
    ...furtherOf(fields),
  });
  return {
    info: (message, fields = {}) => log.info('operation-info', line(message, fields)),
    warn: (message, fields = {}) => log.warn('operation-warning', line(message, fields)),
    error: (message, fields = {}) => log.error('operation-error', line(message, fields)),
  };
}

/** A cycle or a BigInt costs the fields, and not the line. */
function furtherOf(fields: LogFields): LogFields {
  const further = Object.fromEntries(Object.entries(fields).filter(([name]) => !RESERVED.has(name)));
  try {
    JSON.stringify(further);
    return further;
  } catch (error) {
    return { fields_dropped: (error as Error).message.split('\n')[0] };
  }
}
