// Turns an error into the content of an answer, by the usual error envelope or by `formatError` of the service file.
// This file also logs the cause of the error. response.ts sends the answer.

import type { ServiceOptions } from '../../api/controller/service.ts';
import { envelope, JSON_TYPE, rawRefusal } from '../../base/envelope.ts';
import { type HttpError, isHttpError } from '../../base/errors.ts';
import { servingPage } from '../../base/group-name.ts';
import { describeError, idsOf, type Log } from '../../base/log.ts';
import { isErrorStatus } from '../../base/values.ts';
import type { Exchange } from '../exchange.ts';
import { failEvent } from '../request-event.ts';
import { type HeaderSet, NO_LINES, NO_STORE } from './answer-headers.ts';
import { allowedErrorHeaders, createErrorFormat, type ErrorBody, type FormatError } from './error-body.ts';

export type Refusals = ReturnType<typeof createRefusals>;

export function createRefusals({ log, showsCauses }: { log: Log; showsCauses: boolean }) {
  let format: FormatError | undefined;

  /** @param thrown the value for which `error` was made; often `error` itself */
  function answerTo(exchange: Exchange, error: HttpError, thrown: unknown): ErrorBody {
    const { requestId } = exchange;
    // The status is read first, because formatError gets the error itself as the cause and may change it.
    const { status } = error;
    const errorHeaders =
      error.headers === undefined ? NO_LINES : allowedErrorHeaders(error.headers, error.code, exchange, log);
    const detail = showsCauses ? { step: stepOf(exchange), ...causeFacts(error) } : undefined;
    const formatted = (exchange.answer.formatRefusal ?? format)?.(error, requestId, exchange, thrown);
    const content =
      formatted === undefined
        ? { status, text: envelope(error, requestId, detail), contentType: undefined, headers: errorHeaders }
        : { ...formatted, headers: [...formatted.headers, ...errorHeaders] };
    if (content.status >= 500) failEvent(exchange, thrown);
    exchange.answer.isClientFault = isClientFault(exchange, error);
    if (error.cause !== undefined) logCause(exchange, error, content.status);
    return content;
  }

  function logCause(exchange: Exchange, error: HttpError, status: number): void {
    const facts = {
      ...requestFacts(exchange),
      ...(exchange.caller.credentialId !== '' && { credential: exchange.caller.credentialId }),
      status,
      error_code: error.code,
    };
    if (status >= 500 && !exchange.answer.isClientFault)
      log.error('request-failed', { ...facts, ...describeError(error.cause) });
    else log.info('request-refused', { ...facts, reason: describeError(error.cause).error });
  }

  return {
    answerTo,
    /** Returns the text of an answer to bytes that are no request. @param extra alternating header names and values */
    rawAnswer(error: HttpError, requestId: string, set: HeaderSet, extra = NO_LINES): string {
      const formatted = format?.(error, requestId, undefined, error);
      const type = ['Content-Type', formatted?.contentType ?? JSON_TYPE];
      const lines = set.addTo([...type, ...NO_STORE, ...(formatted?.headers ?? NO_LINES), ...extra]);
      return rawRefusal(error, requestId, lines, formatted);
    },
    /** Uses this `formatError` from now on; undefined for the usual error envelope. */
    useFormat(formatError: ServiceOptions['formatError']): void {
      format = formatError && createErrorFormat(formatError, log);
    },
  };
}

/** Key: the name of the function of a step in steps.ts. Value: the name of the step in CONTROLLERS.md. */
const STEP_NAMES: Readonly<Record<string, string>> = {
  checkOrigin: 'origin',
  identifyAuthorization: 'key',
  identifyByEitherHeader: 'key',
  checkRate: 'rate',
  checkRights: 'rights',
  findOperation: 'group and operation',
  timedStep: 'access',
  checkLimit: 'limit',
  readData: 'body',
  checkTypes: 'types',
  callGuardedOperation: 'operation',
};

/** Returns the step that began last. `request` comes before all steps, and `row` is the search for the route. */
function stepOf({ steps, stepsBegun, resolvedPath }: Exchange): string {
  // The build may have added digits to the name of a function: `readData2` for `readData`.
  const names = steps.slice(0, stepsBegun).flatMap(({ name }) => STEP_NAMES[name.replace(/\d+$/, '')] ?? []);
  return names.at(-1) ?? (resolvedPath === undefined ? 'request' : 'row');
}

/** Returns the error that caused a refusal, with its stack if the refusal is a 5xx. */
function causeFacts({ status, cause }: HttpError): object {
  if (cause === undefined) return {};
  const facts = describeError(cause);
  return status >= 500 ? facts : { error: facts.error };
}

export function logBrokenStream(log: Log, exchange: Exchange, error: unknown): void {
  const facts = { ...requestFacts(exchange), ...describeError(error) };
  // A stream that is made from the request's body fails with the refusal of that body, such as 413. STORE_AWAY is no
  // failure of the stream: the event `store-too-old` reports the cause.
  if (isHttpError(error) && (error.status < 500 || error.code === 'STORE_AWAY')) log.info('stream-ended-early', facts);
  else log.error('stream-failed', facts);
}

export function requestFacts(exchange: Exchange) {
  return { ...idsOf(exchange), page: servingPage(exchange), operation: exchange.operation };
}

/** Says whether an HttpError has usable fields. The object may come from another version of Gatefold. */
export function isAnswerable(thrown: unknown): thrown is HttpError {
  if (!isHttpError(thrown)) return false;
  const { status, code, message } = thrown;
  if (typeof code !== 'string' || typeof message !== 'string') return false;
  return isErrorStatus(status);
}

/** Recognises a 500 that docs/REFERENCE.md prescribes, although the request caused it by naming something unknown. */
function isClientFault({ caller }: Exchange, { code }: HttpError): boolean {
  // With a valid credential, not the request but the row of the credential has named the missing group.
  return code === 'OPERATION_NOT_FOUND' || (code === 'DELEGATED_GROUP_NOT_FOUND' && caller.row === undefined);
}
