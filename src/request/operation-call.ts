// Two steps of a request: the check of its types, and the operation with its guards. Both
// steps run within the time limit of the operation.

import { refusal } from '../base/errors.ts';
import { describeError, idsOf } from '../base/log.ts';
import { isObject, isPromise, isThenable } from '../base/values.ts';
import type { RequestCheck } from '../contract/check/request-check.ts';
import type { Problem } from '../contract/contract.ts';
import { discardResult } from './answer/replies.ts';
import type { Responder } from './answer/response.ts';
import type { ProcessLimits } from './body/body.ts';
import type { Query } from './body/form.ts';
import type { Exchange, Outcome, RequestInput, Step } from './exchange.ts';
import type { ExchangeContexts } from './exchange-contexts.ts';
import { perform } from './guarded-call.ts';
import { handOver as handOverRequest } from './node-mount.ts';
import { Params, type ParamsParts } from './params.ts';
import { type TimeLimit, TimeLimits } from './time-limits.ts';
import { handOver as handOverSocket } from './upgrade.ts';

export interface CallOptions extends ParamsParts {
  /** OPERATION_TIMEOUT in milliseconds. */
  readonly operationTimeout: number;
  readonly contexts: ExchangeContexts;
  readonly respond: Responder;
  readonly bodyLimit: number;
  readonly processLimits: ProcessLimits;
}

export function createCallSteps(options: CallOptions) {
  const { respond, log, operationTimeout, contexts } = options;
  const timeLimits = new TimeLimits((exchange, limit) => {
    const cause = new Error(`it ran longer than ${limit} ms`);
    respond.fail(exchange, refusal('OPERATION_TIMEOUT', undefined, { cause }));
    exchange.abort(new Error('the operation is out of time'));
  });

  function checkTypes(exchange: Exchange): Outcome {
    const { check, contract } = exchange.choice.operation;
    if (check === undefined) return undefined;
    const input = exchange.input as RequestInput;
    if (contract?.headers !== undefined)
      input.headers = readHeaders(exchange.request.rawHeaders, contract.headers.properties ?? {});
    // The schemas of a library are code of the author. The check of types is not, so it does not pay for a context.
    const problems = contract?.runsAuthorsCode
      ? (contexts.run(exchange, () => runCheck(check, input, exchange)) as ReturnType<RequestCheck>)
      : runCheck(check, input, exchange);
    if (!isThenable(problems)) return throwOrTakePath(exchange, input, problems);
    // The schema of a validation library can be asynchronous. The operation's time limit covers the check, too.
    const checkResult = Promise.resolve(problems).then((resolved) => throwOrTakePath(exchange, input, resolved));
    return withinTimeLimit(exchange, checkResult);
  }

  function callOperation(answer: Responder['result']): Step {
    return function callGuardedOperation(exchange): Outcome {
      if (exchange.choice.operation.mount?.kind === 'node') return callNodeMount(exchange);
      const result = callWithInput(exchange);
      if (isThenable(result)) {
        startTimeLimit(exchange);
        result.then(
          (value) => answerUnlessLate(exchange, value, answer),
          (error) => (exchange.answer.isComplete ? logLateEnd(exchange, error) : respond.fail(exchange, error)),
        );
        return 'later';
      }
      answer(exchange, result);
      // Without an answer yet, the result is a stream whose first byte has not come. The time limit covers the wait.
      if (!exchange.answer.isComplete) startTimeLimit(exchange);
      return undefined;
    };
  }

  /** Calls the handler of a mount that writes its answer itself. */
  function callNodeMount(exchange: Exchange): Outcome {
    startTimeLimit(exchange);
    const handOver = exchange.opensSocket ? handOverSocket : handOverRequest;
    contexts.run(exchange, () => handOver(exchange, options));
    return 'later';
  }

  /**
   * Calls the operation with the input of the request. From then on, only the operation keeps the input in memory. The
   * closures of one function keep the variables of all of them. So inside callOperation(), the closures that wait for
   * the result would keep the input, too.
   */
  function callWithInput(exchange: Exchange): unknown {
    const { operation } = exchange.choice;
    const { data, query, bytes } = exchange.input as RequestInput;
    exchange.input = undefined;
    const params = new Params(exchange, query as Query, options, bytes);
    return contexts.run(exchange, () => perform(operation, data, params, exchange));
  }

  function answerUnlessLate(exchange: Exchange, result: unknown, answer: Responder['result']): void {
    if (exchange.answer.isComplete) {
      discardResult(result);
      logLateEnd(exchange);
      return;
    }
    try {
      answer(exchange, result);
    } catch (error) {
      respond.fail(exchange, error);
    }
  }

  /** Starts the time limit. The answer, or the first byte of a streamed answer, ends it. */
  function startTimeLimit(exchange: Exchange): void {
    if (exchange.timeLimit !== undefined) return;
    timeLimits.start(exchange, exchange.choice.operation.settings.timeout ?? operationTimeout, exchange.timeLeft);
  }

  /** Ends the time limit after a step before the body, whose arrival does not count. Notes the time that is left. */
  function pauseTimeLimit(exchange: Exchange): void {
    const timeLimit = exchange.timeLimit as TimeLimit;
    timeLimit.end();
    exchange.timeLeft = Math.max(1, timeLimit.deadline - performance.now());
  }

  /** Wraps a step that runs before the body is read, so that the operation's time limit also covers the step. */
  function createTimedStep(step: Step): Step {
    return function timedStep(exchange): Outcome {
      const outcome = step(exchange);
      return isPromise(outcome) ? withinTimeLimit(exchange, outcome, pauseTimeLimit) : outcome;
    };
  }

  /**
   * Starts the time limit, which answers the request when `work` takes too long. The end of `work` is then only logged.
   *
   * @param succeed called when `work` resolves in time
   */
  function withinTimeLimit(exchange: Exchange, work: Promise<undefined>, succeed?: (exchange: Exchange) => void) {
    startTimeLimit(exchange);
    return work.then(
      () => (exchange.answer.isComplete ? logLateEnd(exchange) : void succeed?.(exchange)),
      (error) => {
        if (!exchange.answer.isComplete) throw error;
        return logLateEnd(exchange, error);
      },
    );
  }

  /** Called for an operation, and for an asynchronous step before the operation. */
  function logLateEnd(exchange: Exchange, error?: unknown): undefined {
    const facts = { ...idsOf(exchange), group: exchange.group, operation: exchange.operation };
    if (error === undefined) log.debug('operation-finished-late', facts);
    else log.warn('operation-failed-late', { ...facts, ...describeError(error) });
  }

  return { createTimedStep, checkTypes, callOperation };
}

/** Reads the declared headers. A header that was sent several times is a list, like a repeated name in a query. */
function readHeaders(rawHeaders: readonly string[], declared: object): Record<string, unknown> {
  const headers: Record<string, unknown> = Object.create(null);
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] as string).toLowerCase();
    if (!Object.hasOwn(declared, name)) continue;
    const values = headers[name];
    headers[name] = values === undefined ? rawHeaders[i + 1] : [values, rawHeaders[i + 1]].flat();
  }
  return headers;
}

function runCheck(check: RequestCheck, input: RequestInput, { verb }: Exchange): ReturnType<RequestCheck> {
  return check(input, dataSourceOf(input), verb);
}

/** The values of the path and the headers are taken from `input`, because the check may have converted them. */
function throwOrTakePath(exchange: Exchange, input: RequestInput, problems: readonly Problem[] | undefined): undefined {
  if (problems !== undefined) throw invalidData(problems, isJsonByAnotherName(exchange, input));
  exchange.path = input.path as Exchange['path'];
  exchange.headers = input.headers as Exchange['headers'];
}

function invalidData(problems: readonly Problem[], isMislabelled: boolean): Error {
  const count =
    problems.length === 1 ? 'A field of the request is wrong' : `${problems.length} fields of the request are wrong`;
  const message = isMislabelled ? `${count}. A JSON body needs the header Content-Type: application/json` : count;
  return refusal('INVALID_DATA', message, { details: problems.map((problem) => ({ ...problem })) });
}

/** Without a header of the caller, `curl -d` sends JSON as a form, and `fetch` sends it as a text. */
function isJsonByAnotherName({ head }: Exchange, { bytes }: RequestInput): boolean {
  if (!/^(?:text\/plain|application\/x-www-form-urlencoded)\b/i.test(head.contentType ?? '')) return false;
  return bytes?.[0] === '{'.charCodeAt(0) || bytes?.[0] === '['.charCodeAt(0);
}

/** Returns where the data of the request came from. The check reads the texts of a query or a form as their types. */
function dataSourceOf({ data, query, bytes }: RequestInput): 'query' | 'nothing' | 'form' | 'body' {
  if (data === query) return 'query';
  if (bytes === undefined || bytes.length === 0) return 'nothing';
  // Only a form is decoded to an object without a prototype.
  return isObject(data) && Object.getPrototypeOf(data) === null ? 'form' : 'body';
}
