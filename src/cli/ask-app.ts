// Finds out what the server would answer to a request: the verdict. The request goes to the server's own app, over a
// connection inside this process. So this file repeats no rule of the server. The real operations are replaced by
// operations that do nothing.
import { type Duplex, duplexPair } from 'node:stream';
import { text } from 'node:stream/consumers';
import { envelope } from '../base/envelope.ts';
import { createLog } from '../base/log.ts';
import type { Settings } from '../base/settings.ts';
import type { Problem } from '../contract/contract.ts';
import type { OperationSettings } from '../controller/operations.ts';
import { identifyCaller, whyNotLive } from '../credentials/identify.ts';
import { readTable } from '../credentials/table/live-table.ts';
import { tablePath } from '../credentials/write/store.ts';
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
   *
   * `authorization` is undefined when the request has no such header.
   */
  readonly authorization?: string | undefined;
  /** A JSON body to check. */
  readonly data?: string | undefined;
  /**
   * The id of the user that `authenticate` is assumed to find. When `user` is undefined, `authenticate` finds nobody.
   */
  readonly user?: string | undefined;
  /** The header `Origin`. */
  readonly origin?: string | undefined;
  /** The time of the request, in Unix milliseconds. */
  readonly now: number;
}

/** The answer of the server. */
interface AppAnswer {
  readonly status: number;
  readonly errorCode: string | undefined;
  readonly message: string | undefined;
  /** Each mistake of the request. */
  readonly errors: readonly Problem[] | undefined;
}

export interface Verdict extends AppAnswer {
  /** Whether an operation, or the handler of an explicit route, would be called. */
  readonly isCalled: boolean;
  /** The reason for a refusal, as the log of the service would have it. */
  readonly reason: string | undefined;
  /**
   * The names of the steps that the request has reached. If the request was refused, the last of these steps refused
   * it.
   */
  readonly steps: readonly string[];
  readonly route: Route | undefined;
  /** The explicit routes before `route` that match the path but not the verb. */
  readonly passedRoutes: readonly Route[];
  /** The group, as the URL names it. */
  readonly page: string;
  readonly slugs: readonly string[];
  readonly operation: string;
  /** The group that the server looked for, as the URL or the credential names it. */
  readonly soughtGroup: string | undefined;
  readonly group: string | undefined;
  /** Whether `authorization` was used as the value of the header, because it is not the id of a credential. */
  readonly isHeaderValue: boolean;
  /** The name of the credential. */
  readonly application: string | undefined;
  /** The group that answers all requests of the credential. */
  readonly handler: string | undefined;
}

export interface AskedService {
  readonly settings: Settings;
  readonly groups: Pick<Groups, 'find' | 'locate'>;
  /** The state of the service file. By default, there is no service file. */
  readonly state?: ServiceState;
}

/**
 * Returns what the service would answer.
 *
 * @throws Error with a message of one line, when the credentials table cannot be read
 */
export async function askApp(question: Question, service: AskedService): Promise<Verdict> {
  const verdict = await ask(question, service);
  if (question.verb !== 'HEAD' || verdict.status < 400) return verdict;
  // The refusal of a HEAD request has no body, so it shows no error code. A GET request for the same target is refused
  // with the same code.
  const { errorCode, message } = await ask({ ...question, verb: 'GET' }, service);
  return { ...verdict, errorCode, message };
}

async function ask(question: Question, { settings, groups, state = { kind: 'none' } }: AskedService): Promise<Verdict> {
  const { caller, isHeaderValue } = callerOf(question, settings.dataDir);
  // If the question has no body, the check of an operation that takes a body is skipped.
  const checksData = question.data !== undefined || !/^(?:POST|PUT|PATCH)$/.test(question.verb);
  let isCalled = false;
  let exchange: Exchange | undefined;
  let soughtGroup: string | undefined;
  let refusalReason: string | undefined;
  const call = async () => {
    isCalled = true;
    return { status: 200, body: {} };
  };
  /** Returns a copy of a group in which no operation does anything. */
  const withoutEffects = (group: Group | undefined): Group | undefined => {
    const operations = Array.from(group?.operations ?? [], ([name, real]): [string, Operation] => {
      const settings = withoutFunctions(real.settings);
      return [name, { ...real, settings, method: call, guards: undefined, check: checksData ? real.check : undefined }];
    });
    return group && { ...group, operations: new Map(operations) };
  };
  const write = (line: string): void => {
    const { event, reason, error } = JSON.parse(line) as { event: string; reason?: string; error?: string };
    if (event === 'request-refused' || event === 'request-failed') refusalReason ??= reason ?? error;
  };
  const app = createApp({
    settings,
    log: createLog({ level: 'info', sink: { write, flush: () => {} } }),
    groups: {
      locate: groups.locate,
      find(page) {
        soughtGroup = page;
        const group = groups.find(page);
        return group instanceof Promise ? group.then(withoutEffects) : withoutEffects(group);
      },
    },
    credentials: { identify: () => caller },
    identity: { signin: call, register: call },
    docs: { openapi: call, page: call },
    tools: { answer: call, refuseMessage: envelope, describeRefusal: (error, id) => envelope(error, id) },
    observer: {
      answered(answered) {
        exchange = answered;
      },
    },
  });
  const [client, connection] = duplexPair();
  app.useService(withoutAuthorsFunctions(state, question));
  app.server.emit('connection', connection);
  const answer = await send(client, question);
  const served: Partial<Exchange> = exchange ?? {};
  const { resolvedPath, groupInUrl = '', slugs = [], operation = '', group, caller: row } = served;
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
    page: groupInUrl,
    slugs,
    operation,
    soughtGroup,
    group: group || undefined,
    application: row?.application.name,
    handler: row?.handler,
  };
}

/**
 * The name of each step, by the name of its function in http/steps.ts. The drawing in CONTROLLERS.md has the same
 * names.
 */
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

/**
 * Returns the names of the steps that have begun. A bundler may add a number to the name of a function, so such a
 * number is removed.
 */
function stepsOf({ steps, stepsBegun, resolvedPath }: Exchange): string[] {
  const names = steps.slice(0, stepsBegun).flatMap(({ name }) => STEP_NAMES[name.replace(/\d+$/, '')] ?? []);
  return ['request', ...(resolvedPath === undefined ? [] : ['row']), ...names];
}

/**
 * Removes the author's functions from the access rules of an operation, so that none is called. `gatefold explain`
 * reports that it did not call them.
 */
function withoutFunctions(settings: OperationSettings): OperationSettings {
  if (settings.access === undefined) return settings;
  const rules = rulesOf(settings.access).filter((rule) => typeof rule !== 'function');
  return { ...settings, access: rules.length === 0 ? 'anyone' : rules };
}

/**
 * Returns the service file without the author's functions. `authenticate` finds the user of the question. Errors have
 * the server's own envelope, which `send` can read.
 */
function withoutAuthorsFunctions(state: ServiceState, { user }: Question): ServiceState {
  if (state.kind !== 'loaded') return state;
  const { authenticate } = state.service;
  const findUser = () => (user === undefined ? undefined : { id: user });
  return {
    kind: 'loaded',
    service: { ...state.service, authenticate: authenticate && findUser, formatError: undefined },
  };
}

/** Matches the ids that `credentials issue` creates. Imported tables may have ids of another form. */
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
  // Node decodes header values as Latin-1, so this value is decoded in the same way.
  const header = Buffer.from(authorization).toString('latin1');
  if (isHeaderValue)
    return { caller: identifyCaller(header, { table, now, sessionKey: () => undefined }), isHeaderValue };
  if (row === undefined)
    return { caller: { kind: 'refused', reason: 'no row has its id, or the row is quarantined' }, isHeaderValue };
  const reason = whyNotLive(row, now);
  return { caller: reason === undefined ? { kind: 'row', row } : { kind: 'refused', reason }, isHeaderValue };
}

async function send(client: Duplex, { verb, target, authorization, data, origin }: Question): Promise<AppAnswer> {
  const authorizationHeader = authorization === undefined ? '' : 'Authorization: explained\r\n';
  const originHeader = origin === undefined ? '' : `Origin: ${origin}\r\n`;
  const bodyHeaders =
    data === undefined ? '' : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(data)}\r\n`;
  client.write(
    `${verb} ${target} HTTP/1.1\r\nHost: gatefold\r\nConnection: close\r\n${authorizationHeader}${originHeader}${bodyHeaders}\r\n${data ?? ''}`,
  );
  const answer = await text(client);
  const status = Number(answer.split(' ', 2)[1]);
  const body = answer.slice(answer.indexOf('\r\n\r\n') + 4);
  const {
    error_code: errorCode,
    message,
    errors,
  } = status < 400 || body === '' ? ({} as Envelope) : (JSON.parse(body) as Envelope);
  return { status, errorCode, message, errors };
}

interface Envelope {
  readonly error_code?: string;
  readonly message?: string;
  readonly errors?: readonly Problem[];
}
