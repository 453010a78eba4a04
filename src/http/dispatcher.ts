// The dispatcher (the reference's `nodeApiControllerData`): chooses the operation of a handler group, gets it its
// request data, calls it with a time limit, and hands what comes of it to the response.

import { refusal } from '../base/errors.ts';
import { describeError, type Log } from '../base/log.ts';
import type { RequestCheck, RequestParts } from '../contract/check/request-check.ts';
import type { Problem } from '../contract/contract.ts';
import type { ControllerParams } from '../controller.ts';
import type { Group, Operation } from '../groups/operations.ts';
import type { Admission } from './admission.ts';
import { letGo } from './answer/replies.ts';
import type { Responder } from './answer/response.ts';
import { type DataSink, type Intake, readBody } from './body/body.ts';
import { parseQuery, type Query, withoutPrototype } from './body/form.ts';
import { checkAccepted } from './body/media-type.ts';
import { streamBody } from './body/stream.ts';
import { checkAccess, checkOperation } from './credential-rights.ts';
import type { RequestAtHand } from './current-exchange.ts';
import type { Exchange } from './exchange.ts';
import { perform } from './guards.ts';
import { chooseOperation } from './operation-choice.ts';
import { Params, type ParamsParts } from './params.ts';

export interface DispatcherOptions {
  readonly respond: Responder;
  readonly log: Log;
  readonly bodyLimit: number;
  readonly intake: Intake;
  readonly admission: Admission;
  /** Milliseconds. */
  readonly operationTimeout: number;
  readonly atHand: RequestAtHand;
  readonly params: ParamsParts;
}

/** What is called, and how its result becomes an answer. */
export interface Call {
  readonly operation: Operation;
  /** A segment named it, and not a route or the verb. */
  readonly byName: boolean;
  readonly answer: (exchange: Exchange, result: unknown) => void;
}

export interface Dispatcher {
  /**
   * @param second names an operation if the first of the exchange's slugs does not
   * @throws HttpError METHOD_NOT_ALLOWED, OPERATION_NOT_FOUND, ROUTE_NOT_FOUND, CREDENTIAL_REQUIRED, SCOPE_MISSING,
   *   RATE_LIMITED, and the
   *   refusals of the request data
   */
  dispatch(exchange: Exchange, group: Group, second?: string): void;
  call(exchange: Exchange, call: Call): void;
}

export function createDispatcher(options: DispatcherOptions): Dispatcher {
  const { respond, log, bodyLimit, intake, admission, operationTimeout, atHand, params: paramsParts } = options;

  function dispatch(exchange: Exchange, group: Group, second?: string): void {
    exchange.group = group.name;
    const { operation, path, byName } = chooseOperation(exchange.verb, group, exchange.slugs, second);
    const { access, limit, status } = operation.settings;
    if (exchange.caller !== undefined) checkOperation(exchange.caller, operation.name);
    exchange.operation = operation.name;
    exchange.path = path;
    if (access !== undefined) checkAccess(exchange.application, access);
    if (limit !== undefined) admission.operation(exchange, limit);
    if (status !== undefined) exchange.status = status;
    call(exchange, { operation, byName, answer: respond.result });
  }

  /** The query is always parsed; the body only where there is one, and then the operation runs when it has arrived. */
  function call(exchange: Exchange, work: Call): void {
    const { settings } = work.operation;
    if (settings.body === 'stream') return callWithStream(exchange, work);
    if (!exchange.hasBody) {
      const query = parseQuery(exchange.queryText);
      return run(exchange, work, dataWithoutBody(exchange, work, query), query, undefined);
    }
    const rules = { limit: settings.bodyLimit ?? bodyLimit, accepts: settings.accepts };
    readBody(exchange, rules, intake, sink, { work, query: parseQuery(exchange.queryText, withoutPrototype()) });
  }

  function callWithStream(exchange: Exchange, work: Call): void {
    const { bodyLimit: limit = bodyLimit, accepts } = work.operation.settings;
    if (accepts !== undefined && exchange.hasBody) checkAccepted(exchange.head.contentType, accepts);
    const data = streamBody(exchange, limit);
    run(exchange, work, data, parseQuery(exchange.queryText, withoutPrototype()), undefined);
  }

  const sink: DataSink<{ work: Call; query: Query }> = {
    done: (exchange, data, { work, query }, bytes) =>
      run(exchange, work, data === undefined ? dataWithoutBody(exchange, work, query) : data, query, bytes),
    fail: respond.fail,
  };

  function run(exchange: Exchange, work: Call, data: unknown, query: Query, bytes: Buffer | undefined): void {
    const { check } = work.operation;
    if (check === undefined) invoke(exchange, work, data, query, bytes);
    else checkFirst(exchange, work, check, { data, query, path: exchange.path }, bytes);
  }

  /** Its mistakes are told before anything of the operation has run. */
  function checkFirst(
    exchange: Exchange,
    work: Call,
    check: RequestCheck,
    parts: RequestParts,
    bytes: Buffer | undefined,
  ): void {
    try {
      const { data, query } = parts;
      const isEmpty = bytes === undefined || bytes.length === 0;
      const dataIs = data === query ? 'query' : isEmpty ? 'nothing' : isForm(data) ? 'form' : 'body';
      const problems = check(parts, dataIs, exchange.verb);
      // A schema of a library may take its time: it has the operation's.
      if (isThenable(problems))
        return waitFor(
          exchange,
          problems.then((found) => {
            if (found !== undefined) throw invalidData(found);
            // Its client has been told that it took too long.
            if (exchange.settled) return undefined;
            exchange.path = parts.path as Exchange['path'];
            return perform(
              work.operation,
              parts.data,
              new Params(exchange, parts.query as Query, paramsParts, bytes),
              exchange,
            );
          }),
          work,
        );
      if (problems !== undefined) throw invalidData(problems);
      exchange.path = parts.path as Exchange['path'];
      invoke(exchange, work, parts.data, parts.query as Query, bytes);
    } catch (error) {
      respond.fail(exchange, error);
    }
  }

  function invoke(exchange: Exchange, work: Call, data: unknown, query: Query, bytes: Buffer | undefined): void {
    const { operation } = work;
    const { method } = operation;
    // Both arguments always, so that arity, defaults and rest arguments all mean what they say (decisions 3.4).
    try {
      const params = new Params(exchange, query, paramsParts, bytes) satisfies ControllerParams;
      const result = atHand.follows(method)
        ? atHand.run(exchange, () => perform(operation, data, params, exchange))
        : perform(operation, data, params, exchange);
      if (!isThenable(result)) {
        work.answer(exchange, result);
        // A stream whose first byte has not come.
        if (!exchange.settled) limitTime(exchange, operation.settings.timeout ?? operationTimeout);
        return;
      }
      atHand.follow(method);
      waitFor(exchange, result, work);
    } catch (error) {
      respond.fail(exchange, error);
    }
  }

  function waitFor(exchange: Exchange, work: PromiseLike<unknown>, { operation, answer }: Call): void {
    limitTime(exchange, operation.settings.timeout ?? operationTimeout);
    work.then(
      (result) => {
        if (exchange.settled) {
          letGo(result);
          return finishedLate(exchange);
        }
        try {
          answer(exchange, result);
        } catch (error) {
          respond.fail(exchange, error);
        }
        // Of a stream the limit ends with its first byte.
        if (exchange.settled) clearTimeout(exchange.timer);
      },
      (error) => {
        if (exchange.settled) return finishedLate(exchange, error);
        clearTimeout(exchange.timer);
        respond.fail(exchange, error);
      },
    );
  }

  function limitTime(exchange: Exchange, timeout: number): void {
    exchange.timer = setTimeout(() => {
      respond.fail(
        exchange,
        refusal('OPERATION_TIMEOUT', undefined, { cause: new Error(`it ran longer than ${timeout} ms`) }),
      );
      exchange.abort(new Error('the operation is out of time'));
    }, timeout);
  }

  /** Nobody waits for it any more. */
  function finishedLate({ requestId: request_id, group, operation }: Exchange, error?: unknown): void {
    if (error === undefined) log.debug('operation-finished-late', { request_id, group, operation });
    else log.warn('operation-failed-late', { request_id, group, operation, ...describeError(error) });
  }

  return { dispatch, call };
}

function invalidData(problems: readonly Problem[]): Error {
  const message =
    problems.length === 1 ? 'A field of the request is wrong' : `${problems.length} fields of the request are wrong`;
  return refusal('INVALID_DATA', message, { details: problems.map((problem) => ({ ...problem })) });
}

/** Bodies of forms, and no others, are objects without a prototype. */
function isForm(data: unknown): boolean {
  return typeof data === 'object' && data !== null && Object.getPrototypeOf(data) === null;
}

/** An operation that is reached by its name may have its arguments in the query, whatever the verb (decisions 11.2). */
function dataWithoutBody({ verb }: Exchange, { byName }: Call, query: Query): unknown {
  return !byName && (verb === 'POST' || verb === 'PUT' || verb === 'PATCH') ? {} : query;
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}
