// The order of a request's steps, for each row of routes.ts. The order decides what is refused first.
import type { ControllerParams } from '../api/controller.ts';
import { type CallerTable, createIdentifyCaller } from '../callers/access/key-check.ts';
import { createCheckMessageOrigin, createCheckOrigin, type OriginParts } from '../callers/access/origin-check.ts';
import { createRateSteps, type RateOptions } from '../callers/access/rate-steps.ts';
import { createCheckCaller } from '../callers/access/user-check.ts';
import { NO_SETTINGS } from '../groups/operation-settings.ts';
import type { OperationMethod } from '../groups/operations.ts';
import type { LoadedService } from '../groups/service-file.ts';
import type { Groups } from '../live/load/registry.ts';
import type { Responder } from './answer/response.ts';
import type { Exchange, Step } from './exchange.ts';
import { createFileSteps } from './files/file-steps.ts';
import type { PublicFiles } from './files/public-files.ts';
import { createFindSteps, createLocateGroup } from './find-operation.ts';
import { type CallOptions, createCallSteps } from './operation-call.ts';
import type { Choice } from './operation-choice.ts';
import { createReadData, type DataOptions } from './request-data.ts';
import type { RouteTarget } from './routes.ts';
import { checkToolOperation, createMessageSteps, type MessageParts } from './tool-calls.ts';

/** The answer of an explicit handler. The body contains a secret, so `Cache-Control: no-store` is sent with it. */
export interface ExplicitAnswer {
  readonly status: number;
  readonly body: object;
}

/** Serves a row of routes.ts that leads to an operation of the service itself, and not to a controller. */
export type ExplicitHandler = (data: unknown, params: ControllerParams) => Promise<ExplicitAnswer>;

/** The parts of the service to which the rows of routes.ts lead. */
export interface TargetParts {
  readonly groups: Pick<Groups, 'find' | 'locate' | 'ownsCors'>;
  readonly identity: { readonly signin: ExplicitHandler; readonly register: ExplicitHandler };
  /** The handlers of the OpenAPI document and of the page that shows it. Both are called like operations. */
  readonly docs: { readonly openapi: OperationMethod; readonly page: OperationMethod };
  readonly files?: PublicFiles | undefined;
}

export interface StepParts extends TargetParts, RateOptions, DataOptions, CallOptions, MessageParts, OriginParts {
  readonly credentials: CallerTable;
}

/**
 * The steps for each target of routes.ts. `mcp.call` has the steps of a tool call, which run after the steps of the
 * message that brings the call. `gateway.preflight` has the steps of a preflight where a mount may answer it.
 */
export type StepsByTarget = Readonly<Record<RouteTarget | 'gateway.preflight' | 'mcp.call', readonly Step[]>>;

/** @returns a function that makes the steps for a service file; its argument is undefined when there is no such file */
export function prepareSteps(parts: StepParts): (service: LoadedService | undefined) => StepsByTarget {
  const { groups, credentials, identity, docs, basePath, respond } = parts;
  const { checkRate, checkLimit } = createRateSteps(parts);
  const readData = createReadData(parts);
  const locateGroup = createLocateGroup(groups, basePath);
  const { createTimedStep, checkTypes, callOperation } = createCallSteps(parts);
  const messageSteps = createMessageSteps(parts);

  const answerResult: Responder['result'] = (exchange, result) => respond.result(exchange, result);

  function answerSecret(exchange: Exchange, result: unknown): void {
    const { status, body } = result as ExplicitAnswer;
    respond.secret(exchange, status, body);
  }

  return (service) => {
    const checkOrigin = createCheckOrigin(service, parts);
    const identifyCaller = createIdentifyCaller(credentials, checkRate, service?.keyHeader);
    const { checkRights, findOperation, answerPreflight } = createFindSteps(parts, service?.strict);
    const checkCaller = createTimedStep(createCheckCaller(service, parts, parts.contexts));
    // A comment begins with the statuses of the answers with which the step refuses.
    const callerSteps: readonly Step[] = [
      identifyCaller, //                401: whose key it is, if there is one
      checkRate, //                     429: the rate of the key, or else of the address
    ];
    const findSteps: readonly Step[] = [
      locateGroup, //                   a URL can name a group in a folder by two segments (`v2/order`)
      checkRights, //                   405, 403: the methods and the groups of the key
      findOperation, //                 404, 405, 500: the group and its operation
    ];
    const operationSteps: readonly Step[] = [
      checkOrigin, //                   403: a page of another origin that would use a user's cookies
      checkCaller, //                   401, 403, 500: `authenticate` of the service file, then `access`
      checkLimit, //                    429
      readData, //                      400, 408, 413, 415, 503: the body, or else the query
      checkTypes, //                    422
      callOperation(answerResult), //   500, 503: `_before`, the operation, `_after`
    ];
    const gatewaySteps: readonly Step[] = [...callerSteps, ...findSteps, ...operationSteps];
    const fileSteps = createFileSteps(parts, service?.fileHeaders);
    const documentSteps = [identifyCaller, checkRate, readData, callOperation(answerResult)];
    // A client gets its key from one of these operations, so no `Authorization` is read. No step checks the origin: the
    // caller is known by the ID token in the body, which a page of another site does not have, and not by a cookie.
    const identitySteps = [checkRate, readData, callOperation(answerSecret)];
    return {
      'gateway.index': fileSteps && basePath === '' ? [fileSteps.serveFileAtRoot, ...gatewaySteps] : gatewaySteps,
      // For OPTIONS without `Authorization`, where a mount may answer it. A browser sends no user with a preflight.
      'gateway.preflight': [
        locateGroup,
        answerPreflight,
        ...callerSteps,
        ...findSteps,
        ...operationSteps.with(1, (exchange) => (isPreflightOfMount(exchange) ? undefined : checkCaller(exchange))),
      ],
      // A message of the Model Context Protocol passes the steps that concern its caller. The tool call that it brings
      // passes the other steps.
      'mcp.message': [
        useOperation('message', messageSteps, () => {}),
        messageSteps.beginMessage, //   404, 405, 415
        createCheckMessageOrigin(service?.cors), // 403
        ...callerSteps, //              401, 403, 429
        messageSteps.checkApplication, // 401
        readData, //                    400, 408, 413, 415, 503
        messageSteps.createAnswerMessage(checkCaller),
      ],
      'mcp.call': [...findSteps, checkToolOperation, ...operationSteps],
      // A path outside of BASE_PATH. Without PUBLIC_DIR, no request comes here.
      'public.file': fileSteps === undefined ? [] : [fileSteps.serveFile, checkRate, ...fileSteps.refuse],
      'public.fallback': [...(fileSteps === undefined ? [] : [fileSteps.serveFile]), ...gatewaySteps],
      'identity.signin': [useOperation('signin', identity, identity.signin), ...identitySteps],
      'identity.register': [useOperation('register', identity, identity.register), ...identitySteps],
      'docs.openapi': [useOperation('openapi', docs, docs.openapi), ...documentSteps],
      'docs.page': [useOperation('page', docs, docs.page), ...documentSteps],
    };
  };
}

/** No other operation than a mount that answers OPTIONS may be called without the check of its caller. */
function isPreflightOfMount({ choice, head: { origin }, request: { headers } }: Exchange): boolean {
  if (choice.operation.mount?.ownsCors !== true) return false;
  return origin !== undefined && headers['access-control-request-method'] !== undefined;
}

/** The operation of a row that leads to no group is always the same. */
function useOperation(name: string, controller: object, method: OperationMethod): Step {
  const choice: Choice = {
    operation: {
      ...{ name, verb: 'POST', controller, method, settings: NO_SETTINGS, depth: 0 },
      ...{ guards: undefined, check: undefined, contract: undefined, filter: undefined, unfilteredReason: undefined },
    },
    path: {},
    isByName: false,
  };
  return (exchange): undefined => {
    exchange.choice = choice;
    exchange.operation = name;
  };
}
