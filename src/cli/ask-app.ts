// Asks the server's own app what it would answer to a request (the verdict), over a connection inside this process. The
// operations are replaced by ones that do nothing. So this file repeats no rule of the server.
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
import { firstFit } from '../http/router.ts';
import type { Route } from '../http/routes.ts';
import { rulesOf } from '../service/access.ts';

export interface Question {
  readonly verb: string;
  /** Path and query, as in a request line. */
  readonly target: string;
  /**
   * `foreign`: a header that matches no credential. Otherwise the id of a credential, or else the value of the header.
   * Undefined: no header.
   */
  readonly authorization?: string | undefined;
  /** A JSON body to check. */
  readonly data?: string | undefined;
  /** The id of the user that `authenticate` is to find. Undefined: nobody. */
  readonly user?: string | undefined;
  /** The header `Origin`. */
  readonly origin?: string | undefined;
  /** Unix milliseconds. */
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
  /** An operation, or the handler of an explicit route, would be called. */
  readonly called: boolean;
  /** The reason of a refusal, as the log has it. */
  readonly reason: string | undefined;
  /** The names of the steps that have begun. The last one refused, if the request was refused. */
  readonly steps: readonly string[];
  readonly route: Route | undefined;
  /** The routes before it that match the path but not the verb. */
  readonly passed: readonly Route[];
  readonly page: string;
  readonly slugs: readonly string[];
  readonly operation: string;
  /** The group that the server looked for, as the request or the credential names it. */
  readonly sought: string | undefined;
  readonly group: string | undefined;
  /** No credential has the id in the question, so the question is about a header with this value. */
  readonly isHeaderValue: boolean;
  /** The name of the credential. */
  readonly application: string | undefined;
  /** The group that answers all requests of the credential. */
  readonly handler: string | undefined;
}

export interface AskedService {
  readonly settings: Settings;
  readonly groups: Pick<Groups, 'find' | 'locate'>;
  /** Default: there is no service file. */
  readonly state?: ServiceState;
}

/**
 * Returns what the service would answer.
 *
 * @throws Error one line, when the credentials table cannot be read
 */
export async function askApp(question: Question, service: AskedService): Promise<Verdict> {
  const verdict = await ask(question, service);
  if (question.verb !== 'HEAD' || verdict.status < 400) return verdict;
  // A refusal of HEAD has no body with a code. The refusal of GET has the same code.
  const { errorCode, message } = await ask({ ...question, verb: 'GET' }, service);
  return { ...verdict, errorCode, message };
}

async function ask(question: Question, { settings, groups, state = { kind: 'none' } }: AskedService): Promise<Verdict> {
  const { caller, isHeaderValue } = callerOf(question, settings.dataDir);
  // Without a body in the question, the check of an operation that takes one is skipped.
  const checksData = question.data !== undefined || !/^(?:POST|PUT|PATCH)$/.test(question.verb);
  let called = false;
  let exchange: Exchange | undefined;
  let sought: string | undefined;
  let refusalReason: string | undefined;
  const call = async () => {
    called = true;
    return { status: 200, body: {} };
  };
  /** Returns a group with the same operations, none of which does anything. */
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
        sought = page;
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
  app.useService(withoutAuthor(state, question));
  app.server.emit('connection', connection);
  const answer = await send(client, question);
  const { resolved, page = '', slugs = [], operation = '', group, caller: row } = exchange ?? ({} as Partial<Exchange>);
  const matches = resolved?.matches ?? [];
  const match = firstFit(matches, question.verb);
  return {
    ...answer,
    called,
    isHeaderValue,
    reason: refusalReason,
    steps: exchange === undefined ? [] : stepsOf(exchange),
    route: match?.route,
    passed: matches.slice(0, match === undefined ? 0 : matches.indexOf(match)).map(({ route }) => route),
    page,
    slugs,
    operation,
    sought,
    group: group || undefined,
    application: row?.application.name,
    handler: row?.handler,
  };
}

/** Names the steps of http/steps.ts by their functions, as CONTROLLERS.md draws them. */
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

/** Returns the names of the steps that have begun. A bundle may add a number to the name of a function. */
function stepsOf({ steps, step, resolved }: Exchange): string[] {
  const names = steps.slice(0, step).flatMap(({ name }) => STEP_NAMES[name.replace(/\d+$/, '')] ?? []);
  return ['request', ...(resolved === undefined ? [] : ['row']), ...names];
}

/** Removes the author's functions from the access of an operation, so none is called. explain has a note on them. */
function withoutFunctions(settings: OperationSettings): OperationSettings {
  if (settings.access === undefined) return settings;
  const rules = rulesOf(settings.access).filter((rule) => typeof rule !== 'function');
  return { ...settings, access: rules.length === 0 ? 'anyone' : rules };
}

/** Returns the service file with the user of the question, and with the server's own envelope, which `send` reads. */
function withoutAuthor(state: ServiceState, { user }: Question): ServiceState {
  if (state.kind !== 'loaded') return state;
  const { authenticate } = state.service;
  const findUser = () => (user === undefined ? undefined : { id: user });
  return {
    kind: 'loaded',
    service: { ...state.service, authenticate: authenticate && findUser, formatError: undefined },
  };
}

/** Matches the ids that `credentials issue` creates. Imported tables may have others. */
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
  // Node decodes header values as Latin-1.
  const header = Buffer.from(authorization).toString('latin1');
  if (isHeaderValue)
    return { caller: identifyCaller(header, { table, now, sessionKey: () => undefined }), isHeaderValue };
  if (row === undefined)
    return { caller: { kind: 'refused', reason: 'no row has its id, or the row is quarantined' }, isHeaderValue };
  const reason = whyNotLive(row, now);
  return { caller: reason === undefined ? { kind: 'row', row } : { kind: 'refused', reason }, isHeaderValue };
}

async function send(client: Duplex, { verb, target, authorization, data, origin }: Question): Promise<AppAnswer> {
  const credential = authorization === undefined ? '' : 'Authorization: explained\r\n';
  const page = origin === undefined ? '' : `Origin: ${origin}\r\n`;
  const length =
    data === undefined ? '' : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(data)}\r\n`;
  client.write(
    `${verb} ${target} HTTP/1.1\r\nHost: gatefold\r\nConnection: close\r\n${credential}${page}${length}\r\n${data ?? ''}`,
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
