// What would the server do with this request? Puts the question to the app itself, over a connection within this process, with
// operations that do nothing. So no rule of the server is repeated here.
import { type Duplex, duplexPair } from 'node:stream';
import { text } from 'node:stream/consumers';
import { createLog } from '../base/log.ts';
import type { Settings } from '../base/settings.ts';
import type { Problem } from '../contract/contract.ts';
import { identifyCaller, whyNotLive } from '../credentials/identify.ts';
import { readContent } from '../credentials/table/file.ts';
import { compile } from '../credentials/table/live-table.ts';
import { tablePath } from '../credentials/write/store.ts';
import type { Group, Operation } from '../groups/operations.ts';
import type { Groups } from '../groups/registry.ts';
import { createApp } from '../http/app.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Caller } from '../http/gateway.ts';
import { firstFit } from '../http/router.ts';
import type { Route } from '../http/routes.ts';

export interface Question {
  readonly verb: string;
  /** As it would stand in the request line. */
  readonly target: string;
  /** `foreign`: a header that no row matches; else the id of a row, or the value of the header; undefined: no header. */
  readonly authorization?: string;
  /** A JSON body to check. */
  readonly data?: string;
  /** Unix milliseconds. */
  readonly now: number;
}

export interface Verdict {
  readonly status: number;
  /** An operation, or the handler of an explicit route, would be called. */
  readonly called: boolean;
  readonly errorCode?: string;
  readonly message?: string;
  /** Each mistake of the request. */
  readonly errors?: readonly Problem[];
  /** What the log would say of a refusal. */
  readonly reason?: string;
  readonly route?: Route;
  /** Rows above it that fit the path and do not take the verb. */
  readonly passed: readonly Route[];
  readonly page: string;
  readonly slugs: readonly string[];
  readonly operation: string;
  /** The group that was looked for, as it was named; undefined: none was. */
  readonly sought?: string;
  readonly group?: string;
  /** No row has the id that the question names, so the question is about a header with this value. */
  readonly isHeaderValue: boolean;
  /** Of a credential: the row's name, and its handler group, if it has one. */
  readonly application?: string;
  readonly handler?: string;
}

export interface Asked {
  readonly settings: Settings;
  readonly groups: Pick<Groups, 'find'>;
}

/** @throws Error one line, when the credentials table cannot be read */
export async function askApp(question: Question, asked: Asked): Promise<Verdict> {
  const verdict = await ask(question, asked);
  if (question.verb !== 'HEAD' || verdict.status < 400) return verdict;
  // A refusal of HEAD has no body to read the code from; that of GET is the same.
  const { errorCode, message } = await ask({ ...question, verb: 'GET' }, asked);
  return { ...verdict, ...(errorCode === undefined ? {} : { errorCode }), ...(message === undefined ? {} : { message }) };
}

async function ask(question: Question, { settings, groups }: Asked): Promise<Verdict> {
  const { caller, isHeaderValue } = callerOf(question, settings.dataDir);
  let called = false;
  let exchange: Exchange | undefined;
  let sought: string | undefined;
  let group: string | undefined;
  const lines: string[] = [];
  const call = async () => {
    called = true;
    return { status: 200, body: {} };
  };
  /** The same names, and nothing behind them. */
  const hollow = (found: Group | undefined): Group | undefined => {
    group = found?.name;
    if (found === undefined) return undefined;
    // Without a body to look at, an operation that takes one is only found, and nothing is said of its data.
    const looks = question.data !== undefined || !/^(?:POST|PUT|PATCH)$/.test(question.verb);
    const hollowed = ([name, real]: [string, Operation]): [string, Operation] => [
      name,
      { ...real, method: call, check: looks ? real.check : undefined },
    ];
    return { ...found, operations: new Map(Array.from(found.operations, hollowed)) };
  };
  const { server } = createApp({
    settings,
    log: createLog({ level: 'debug', sink: { write: (line) => lines.push(line), flush: () => {} } }),
    groups: {
      find(page) {
        sought = page;
        const found = groups.find(page);
        return found instanceof Promise ? found.then(hollow) : hollow(found);
      },
    },
    credentials: { identify: () => caller },
    identity: { signin: call, register: call },
    docs: { openapi: call, page: call },
    observer: {
      answered(answered) {
        exchange = answered;
      },
    },
  });
  const [client, connection] = duplexPair();
  server.emit('connection', connection);
  const answer = await send(client, question);
  const matches = exchange?.resolved?.matches ?? [];
  const match = firstFit(matches, question.verb);
  return {
    ...answer,
    called,
    isHeaderValue,
    ...reasonIn(lines),
    ...(match === undefined ? {} : { route: match.route }),
    passed: matches.slice(0, match === undefined ? 0 : matches.indexOf(match)).map(({ route }) => route),
    page: exchange?.page ?? '',
    slugs: exchange?.slugs ?? [],
    operation: exchange?.operation ?? '',
    ...(sought === undefined ? {} : { sought }),
    ...(group === undefined ? {} : { group }),
    ...(exchange?.caller === undefined ? {} : { application: exchange.caller.application.name }),
    ...(exchange?.caller?.handler === undefined ? {} : { handler: exchange.caller.handler }),
  };
}

/** Ids that `credentials issue` gives. Tables brought from elsewhere may have others. */
const ISSUED_ID = /^[0-9A-Za-z]{12}$/;

function callerOf({ authorization, now }: Question, dataDir: string): Pick<Verdict, 'isHeaderValue'> & { readonly caller: Caller } {
  if (authorization === undefined || authorization === 'foreign') return { caller: { kind: 'foreign' }, isHeaderValue: false };
  const table = compile(tablePath(dataDir), readContent(tablePath(dataDir)));
  const row = table.rows.get(authorization);
  if (row === undefined && !ISSUED_ID.test(authorization)) {
    // Node decodes header values as Latin-1.
    const value = Buffer.from(authorization).toString('latin1');
    return { caller: identifyCaller(value, { table, now, sessionKey: () => undefined }), isHeaderValue: true };
  }
  if (row === undefined)
    return { caller: { kind: 'refused', reason: 'no row has its id, or the row is quarantined' }, isHeaderValue: false };
  const reason = whyNotLive(row, now);
  return { caller: reason === undefined ? { kind: 'row', row } : { kind: 'refused', reason }, isHeaderValue: false };
}

async function send(
  client: Duplex,
  { verb, target, authorization, data }: Question,
): Promise<Pick<Verdict, 'status' | 'errorCode' | 'message' | 'errors'>> {
  const credential = authorization === undefined ? '' : 'Authorization: explained\r\n';
  const length = data === undefined ? '' : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(data)}\r\n`;
  client.write(`${verb} ${target} HTTP/1.1\r\nHost: gatefold\r\nConnection: close\r\n${credential}${length}\r\n${data ?? ''}`);
  const answer = await text(client);
  const status = Number(answer.split(' ', 2)[1]);
  const body = answer.slice(answer.indexOf('\r\n\r\n') + 4);
  if (status < 400 || body === '') return { status };
  const { error_code: errorCode, message, errors } = JSON.parse(body) as { error_code: string; message: string; errors?: Problem[] };
  return { status, errorCode, message, ...(errors === undefined ? {} : { errors }) };
}

function reasonIn(lines: readonly string[]): { reason?: string } {
  for (const line of lines) {
    const { event, reason, error } = JSON.parse(line) as { event: string; reason?: string; error?: string };
    if (event === 'request-refused' && reason !== undefined) return { reason };
    if (event === 'request-failed' && error !== undefined) return { reason: error };
  }
  return {};
}
