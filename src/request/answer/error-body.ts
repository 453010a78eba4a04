// Makes the body of a refusal with the function `formatError` of the service file. When that function fails, the
// failure is logged and the answer has the usual envelope.

import type { ReplyHeaders } from '../../api/controller/reply.ts';
import { isErrorReply, type Refusal, type ServiceOptions, type ServiceUser } from '../../api/controller/service.ts';
import { validateHeaderName, validateHeaderValue } from '../../base/builtins.ts';
import { JSON_TYPE } from '../../base/envelope.ts';
import type { HttpError } from '../../base/errors.ts';
import { describeError, idsOf, type Log } from '../../base/log.ts';
import { isOnEveryAnswer, isReservedHeader } from '../../base/server-headers.ts';
import { isErrorStatus, isThenable } from '../../base/values.ts';
import type { Exchange } from '../exchange.ts';
import { describeLostObject, isJson, nameKind } from './json.ts';

export interface ErrorBody {
  readonly status: number;
  readonly text: string;
  /** The media type of the text; undefined when the text is the usual error envelope. */
  readonly contentType: string | undefined;
  /** Alternating names and values. */
  readonly headers: readonly string[];
}

/**
 * @param exchange the request; undefined when Node's parser refused the request
 * @param thrown the value for which `error` was made; often `error` itself
 * @returns undefined when the usual error envelope must be sent
 */
export type FormatError = (
  error: HttpError,
  requestId: string,
  exchange: Exchange | undefined,
  thrown: unknown,
) => ErrorBody | undefined;

type Subject = Pick<Exchange, 'requestId' | 'trace'>;

export function createErrorFormat(format: NonNullable<ServiceOptions['formatError']>, log: Log): FormatError {
  return (error, requestId, exchange, thrown) => {
    const subject = exchange ?? { requestId, trace: undefined };
    try {
      const { status } = error;
      return bodyOf(format(refusalOf(error, requestId, exchange, thrown)), status, error, subject, log);
    } catch (failure) {
      log.error('error-format-failed', { ...idsOf(subject), error_code: error.code, ...describeError(failure) });
      return undefined;
    }
  };
}

function refusalOf(...[error, requestId, exchange, thrown]: Parameters<FormatError>): Refusal<ServiceUser> {
  const { status, code, message, details: errors } = error;
  const { groupInUrl: page, operation: method, verb, request, caller } = exchange ?? {};
  const refusal = {
    ...{ status, code, message, requestId },
    ...(errors !== undefined && { errors }),
    ...(page && { page }),
    ...(method && { method }),
    ...(verb && { path: String(request?.url).replace(/[?#].*$/s, ''), verb }),
  };
  // Fields that are not enumerable are not sent by JSON.stringify(refusal).
  return Object.defineProperties(refusal, {
    cause: { value: thrown },
    request: { value: request },
    user: { value: caller?.user },
  });
}

function bodyOf(result: unknown, usualStatus: number, error: HttpError, subject: Subject, log: Log): ErrorBody {
  if (isThenable(result)) {
    // Without a listener, a rejection of the promise would be an uncaught exception.
    Promise.resolve(result).catch(() => {});
    throw new TypeError('formatError returned a promise: it must return the body itself');
  }
  const reply = isErrorReply(result) ? result : undefined;
  const status = reply?.status ?? usualStatus;
  if (!isErrorStatus(status)) throw new TypeError(`the status is ${status}`);
  const body = reply === undefined ? result : reply.body;
  if (body === undefined || body === null) throw new TypeError('formatError returned nothing: return the body');
  const replyHeaders = Object.entries(reply?.headers ?? {});
  const ownType = replyHeaders.find(([name]) => name.toLowerCase() === 'content-type')?.[1];
  const [contentType = JSON_TYPE, ...otherTypes] = ownType === undefined ? [] : [ownType].flat();
  if (otherTypes.length > 0) throw new TypeError('the Content-Type is a list: write one');
  validateHeaderValue('Content-Type', contentType);
  const isText = typeof body === 'string' && !/^application\/(?:[\w.-]+\+)?json\b/i.test(contentType);
  const text = isText ? (body as string) : JSON.stringify(body);
  if (typeof text !== 'string') throw new TypeError('formatError returned what JSON cannot express');
  if (typeof body === 'object' && !isJson(body))
    throw new TypeError(`formatError returned ${nameKind(body)}: return an object, or an ErrorReply with one`);
  const lostObject = describeLostObject(body, text);
  if (lostObject !== undefined) throw new TypeError(`the body of formatError has ${lostObject}`);
  // A header of the refusal itself, such as `Allow`, is not replaced. Cookies of both are sent.
  const takenNames = new Set(Object.keys(error.headers ?? {}).map((name) => name.toLowerCase())).add('content-type');
  takenNames.delete('set-cookie');
  const headers = Object.fromEntries(replyHeaders.filter(([name]) => !takenNames.has(name.toLowerCase())));
  return { status, text, contentType, headers: allowedErrorHeaders(headers, error.code, subject, log) };
}

/** Returns alternating names and values. Omits headers that all answers have. Logs others that no error may set. */
export function allowedErrorHeaders(headers: ReplyHeaders, errorCode: string, subject: Subject, log: Log): string[] {
  const allowedLines: string[] = [];
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    if (isOnEveryAnswer(lower)) continue;
    try {
      const lines = [value].flat();
      validateHeaderName(name);
      for (const line of lines) validateHeaderValue(name, line);
      // The server sends the envelope of an error, so it also sets the type and the caching of that envelope.
      if (isReservedHeader(lower) || lower === 'content-type' || lower === 'cache-control')
        throw new Error('it belongs to the server');
      for (const line of lines) allowedLines.push(name, String(line));
    } catch (invalid) {
      log.warn('header-dropped', {
        ...idsOf(subject),
        header: name.slice(0, 100),
        error_code: errorCode,
        reason: (invalid as Error).message,
      });
    }
  }
  return allowedLines;
}
