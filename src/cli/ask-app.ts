// Finds out what the server would answer to a request. This file makes a server in this process, with the real rules
// and with operations that do nothing, and sends the request to that server. So no rule is repeated here.
import { type Duplex, duplexPair } from 'node:stream';
import { text } from 'node:stream/consumers';
import { envelope } from '../base/envelope.ts';
import { createLog } from '../base/log.ts';
import type { Settings } from '../base/settings.ts';
import type { Problem } from '../contract/contract.ts';
import type { OperationSettings } from '../controller/operations.ts';
import { identifyCaller, whyNotLive } from '../credentials/identify.ts';
import { readTable } from '../credentials/table/live-table.ts';
import { tablePath } from '../credentials/write/table-file.ts';
import type { Group, Operation } from '../groups/operations.ts';
import type { Groups, ServiceState } from '../groups/registry.ts';
import { createApp } from '../http/app.ts';
import type { Caller } from '../http/caller.ts';
import type { Exchange } from '../http/exchange.ts';
import { firstMatch } from '../http/router.ts';
import type { Route } from '../http/routes.ts';
import { rulesOf } from '../service/access.ts';

export interface Question {
  readonly verb: string;
  /** The path and the query, as in a request line. */
  readonly target: string;
  /**
   * The header `Authorization` of the request:
   * - `foreign`: a header that matches no credential.
   * - The id of a credential: a header with that credential.
   * - Any other text: a header with this value.
   */
  readonly authorization?: string | undefined;
  /** A JSON body to check. */
  readonly data?: string | undefined;
  /** The id of the user that `authenticate` is assumed to find; undefined when it finds nobody. */
  readonly user?: string | undefined;
  readonly origin?: string | undefined;
  /** The time of the request, in Unix milliseconds. */
  readonly now: number;
}

interface ServerAnswer {
  readonly status: number;
  readonly errorCode: string | undefined;
  readonly message: string | undefined;
  /** The mistakes in the data of the request; undefined unless it was refused for them. */
  readonly errors: readonly Problem[] | undefined;
}

export interface Verdict extends ServerAnswer {
  /** Whether an operation, or the handler of an explicit route, would be called. */
  readonly isCalled: boolean;
  /** The reason for a refusal, as the log of the service would have it. */
  readonly reason: string | undefined;
  /** The names of the steps that have begun, such as `rate`. If the request was refused, the last step refused it. */
  readonly steps: readonly string[];
  /** The route that took the request; undefined when none did. */
  readonly route: Route | undefined;
  /** The explicit routes (routes that lead to no controller) before `route` that match the path but not the verb. */
  readonly passedRoutes: readonly Route[];
  /** The segments of the path after the group. */
  readonly slugs: readonly string[];
  /** Empty when the request was refused before its operation was found. */
  readonly operation: string;
  /** Whether the path names the operation. */
  readonly isByName: boolean;
  /** The group that the server looked for, as the URL or the credential names it. */
  readonly soughtGroup: string | undefined;
  /** The group that the server found. */
  readonly group: string | undefined;
  /** Whether `authorization` of the question was used as the value of the header. */
  readonly isHeaderValue: boolean;
  /** The name of the live credential. */
  readonly application: string | undefined;
  /** The group that answers all requests of the credential; undefined when URLs name the group. */
  readonly handler: string | undefined;
}

export interface AskedService {
  readonly settings: Settings;
  readonly groups: Pick<Groups, 'find' | 'locate'>;
  /** Default: there is no service file. */
  readonly serviceState?: ServiceState;
}

/** @throws Error with a message of one line, when the credentials table cannot be read */
export async function askApp(question: Question, service: AskedService): Promise<Verdict> {
  const verdict = await ask(question, service);
  if (question.verb !== 'HEAD' || verdict.status < 400) return verdict;
  // An answer to HEAD has no body. A GET request for the same target is refused with the same error code.
  const { errorCode, message } = await ask({ ...question, verb: 'GET' }, service);
  return { ...verdict, errorCode, message };
}

async function ask(question: Question, service: AskedService): Promise<Verdict> {
  const { settings, groups, serviceState = { kind: 'none' } } = service;
  const { caller, isHeaderValue } = callerOf(question, settings.dataDir);
  // The data of a POST, PUT or PATCH is its body. A question without a body is not about the data.
  const checksData = question.data !== undefined || !/^(?:POST|PUT|PATCH)$/.test(question.verb);
  let isCalled = false;
  let exchange: Exchange | undefined;
  let soughtGroup: string | undefined;
  let refusalReason: string | undefined;
  const noteCall = async () => {
    isCalled = true;
    return { status: 200, body: {} };
  };
  const withoutEffects = (group: Group | undefined): Group | undefined => {
    const operations = Array.from(group?.operations ?? [], ([name, real]): [string, Operation] => {
      const settings = withoutAccessFunctions(real.settings);
      const check = checksData ? real.check : undefined;
      return [name, { ...real, settings, method: noteCall, guards: undefined, check }];
    });
    return group && { ...group, operations: new Map(operations) };
  };
  const write = (line: string): void => {
    const { event, reason, error } = JSON.parse(line) as { event: string; reason?: string; error?: string };
    if (event === 'request-refused' || event === 'request-failed') refusalReason ??= reason ?? error;
  };
  const app = createApp({
    settings,
    log: createLog({ level: 'info', sink: { write } }),
    groups: {
      locate: groups.locate,
      find(page) {
        soughtGroup = page;
        const group = groups.find(page);
        return group instanceof Promise ? group.then(withoutEffects) : withoutEffects(group);
      },
    },
    credentials: { identify: () => caller },
    identity: { signin: noteCall, register: noteCall },
    docs: { openapi: noteCall, page: noteCall },
    tools: { answer: noteCall, refuseMessage: envelope, describeRefusal: (error, id) => envelope(error, id) },
    observer: {
      answered(answered) {
        exchange = answered;
      },
    },
  });
  const [client, connection] = duplexPair();
  app.useService(withoutServiceFunctions(serviceState, question));
  app.server.emit('connection', connection);
  const answer = await send(client, question);
  const answered: Partial<Exchange> = exchange ?? {};
  const { resolvedPath, slugs = [], operation = '', choice, group, caller: credentialRow } = answered;
  const matches = resolvedPath?.matches ?? [];
  const match = firstMatch(matches, question.verb);
  return {
    ...answer,
    isCalled,
    isHeaderValue,
    reason: refusalReason,
    steps: exchange === undefined ? [] : stepsOf(exchange),
    route: match?.route,
    passedRoutes: matches.slice(0, match === undefined ? 0 : matches.indexOf(match)).map(({ route }) => route),
    slugs,
    operation,
    isByName: choice?.isByName === true,
    soughtGroup,
    group: group || undefined,
    application: credentialRow?.application.name,
    handler: credentialRow?.handler,
  };
}

/** Key: the name of the step's function in http/steps.ts. Value: the name of the step in CONTROLLERS.md. */
const STEP_NAMES: Readonly<Record<string, string>> = {
  checkOrigin: 'origin',
  identifyAuthorization: 'key',
  identifyEither: 'key',
  checkRate: 'rate',
  checkRights: 'rights',
  findOperation: 'group and operation',
  timedStep: 'access',
  checkLimit: 'limit',
  readData: 'body',
  checkTypes: 'types',
};

/** Returns the steps that have begun. `request` comes before all, and `row` is the search for the route. */
function stepsOf({ steps, stepsBegun, resolvedPath }: Exchange): string[] {
  // The build may have added digits to the name of a function: `readData2` for `readData`.
  const names = steps.slice(0, stepsBegun).flatMap(({ name }) => STEP_NAMES[name.replace(/\d+$/, '')] ?? []);
  return ['request', ...(resolvedPath === undefined ? [] : ['row']), ...names];
}

/** Removes the author's functions from the access rules, so that none is called. explain.ts adds a note about them. */
function withoutAccessFunctions(settings: OperationSettings): OperationSettings {
  if (settings.access === undefined) return settings;
  return { ...settings, access: rulesOf(settings.access).filter((rule) => typeof rule !== 'function') };
}

/**
 * Replaces the author's functions of the service file, so that none is called. `authenticate` then finds the user of
 * the question, and errors have the server's own format, which `send` can read.
 */
function withoutServiceFunctions(state: ServiceState, { user }: Question): ServiceState {
  if (state.kind !== 'loaded') return state;
  const { authenticate } = state.service;
  const findUser = () => (user === undefined ? undefined : { id: user });
  const service = { ...state.service, authenticate: authenticate && findUser, formatError: undefined };
  return { kind: 'loaded', service };
}

/** The form of the ids that `credentials issue` creates. Imported tables may have other ids. */
const ISSUED_ID = /^[0-9A-Za-z]{12}$/;

function callerOf(
  { authorization, now }: Question,
  dataDir: string,
): Pick<Verdict, 'isHeaderValue'> & { readonly caller: Caller } {
  if (authorization === undefined || authorization === 'foreign')
    return { caller: { kind: 'foreign' }, isHeaderValue: false };
  const table = readTable(tablePath(dataDir));
  const row = table.rows.get(authorization);
  const isHeaderValue = row === undefined && !ISSUED_ID.test(authorization);
  // Node decodes the bytes of a header as Latin-1. So does this line with the bytes of the text.
  const header = Buffer.from(authorization).toString('latin1');
  if (isHeaderValue)
    return { caller: identifyCaller(header, { table, now, sessionKey: () => undefined }), isHeaderValue };
  if (row === undefined)
    return { caller: { kind: 'refused', reason: 'no row has its id, or the row is quarantined' }, isHeaderValue };
  const reason = whyNotLive(row, now);
  return { caller: reason === undefined ? { kind: 'row', row } : { kind: 'refused', reason }, isHeaderValue };
}

async function send(client: Duplex, { verb, target, authorization, data, origin }: Question): Promise<ServerAnswer> {
  // The value does not count, because `credentials.identify` in `ask` returns the caller.
  const authorizationHeader = authorization === undefined ? '' : 'Authorization: explained\r\n';
  // A page makes its browser send the cookies of its user.
  const originHeader = origin === undefined ? '' : `Origin: ${origin}\r\nCookie: explained\r\n`;
  const bodyHeaders =
    data === undefined ? '' : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(data)}\r\n`;
  client.write(
    `${verb} ${target} HTTP/1.1\r\nHost: gatefold\r\nConnection: close\r\n${authorizationHeader}${originHeader}${bodyHeaders}\r\n${data ?? ''}`,
  );
  const answer = await text(client);
  const status = Number(answer.split(' ', 2)[1]);
  const body = answer.slice(answer.indexOf('\r\n\r\n') + 4);
  const { error_code: errorCode, message, errors } = status < 400 || body === '' ? {} : JSON.parse(body);
  return { status, errorCode, message, errors };
}
