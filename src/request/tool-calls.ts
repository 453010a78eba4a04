// Calls operations as tools of the Model Context Protocol (MCP). A request brings a message, and passes the steps for
// its origin, its key and its rate. If the message is a tool call, an exchange is made for the call, with the same
// caller. This exchange passes the later steps. The code in operate/tools/ reads the messages.
import type { IncomingHttpHeaders } from 'node:http';
import type { Access } from '../api/controller/operations.ts';
import { Reply } from '../api/controller/reply.ts';
import { JSON_TYPE } from '../base/envelope.ts';
import { type HttpError, refusal } from '../base/errors.ts';
import { rulesOf } from '../callers/access/access.ts';
import { type Call, checkAccess, checkCall } from '../callers/access/credential-rights.ts';
import type { CapturedAnswer } from './answer/answer-state.ts';
import type { FormatError } from './answer/error-body.ts';
import type { Responder } from './answer/response.ts';
import { bodyKindOf } from './body/media-type.ts';
import { Exchange, type RequestInput, type Step, type ToolCall } from './exchange.ts';
import { Request } from './head.ts';

/** The interface of the code in operate/tools/, which answers the messages. */
export interface ToolServer {
  answer(message: unknown, conversation: Conversation): Promise<MessageAnswer>;
  /** Returns the body of the answer to a message that was refused before it was read. */
  refuseMessage(error: HttpError, requestId: string): string;
  /** Explains a refusal to a language model. @param dataPart the part of the arguments that becomes the data */
  describeRefusal(error: HttpError, requestId: string, dataPart: 'query' | 'body'): string;
}

/** Gives the code in operate/tools/ access to the rights of the caller of a message, and to the operations. */
export interface Conversation {
  readonly headers: IncomingHttpHeaders;
  /** Finds the user by `authenticate` of the service file. */
  identifyUser(): Promise<void>;
  /** Says whether the caller's key and the rules of `access` allow the tool. Functions in `access` are not called. */
  mayCall(tool: ListedTool): boolean;
  call(call: ToolCall): Promise<CapturedAnswer>;
}

export interface ListedTool extends Call {
  readonly access: Access;
}

export interface MessageAnswer {
  readonly status: number;
  /** The answer; undefined when the message was a notification, which has none. */
  readonly body: object | undefined;
}

export interface MessageParts {
  /** Undefined when MCP is off. */
  readonly tools?: ToolServer | undefined;
  /** The setting MCP. With `application`, only callers with a key may send messages. */
  readonly toolAccess: 'on' | 'application' | 'off';
  readonly respond: Responder;
  /** Calls an operation within the request that brings the message. */
  readonly callTool: (outer: Exchange, call: ToolCall) => Promise<CapturedAnswer>;
}

/** Matches names of headers that concern only the message. The request of the call does not get such headers. */
const MESSAGE_HEADERS =
  /^(?:content-.*|transfer-encoding|expect|connection|keep-alive|te|trailer|upgrade|if-.*|range|accept|last-event-id|mcp-.*)$/;

/** Creates the steps that only a message has: the first, the one after the check of its rate, and the last. */
export function createMessageSteps({ tools, toolAccess, respond, callTool }: MessageParts) {
  // Only when MCP is on, routes.ts has a row that leads to these steps.
  const toolServer = tools as ToolServer;

  function beginMessage(exchange: Exchange): undefined {
    exchange.answer.formatRefusal = refusalFormat(JSON_TYPE, toolServer.refuseMessage);
    if (exchange.verb !== 'POST') throw refusal('METHOD_NOT_ALLOWED', undefined, { headers: { Allow: 'POST' } });
    if (bodyKindOf(exchange.head.contentType) !== 'json')
      throw refusal('UNSUPPORTED_MEDIA_TYPE', 'Cannot read the message: send it as application/json');
  }

  function checkApplication({ caller }: Exchange): undefined {
    if (toolAccess === 'application') checkAccess(caller, toolAccess);
  }

  /** @param authenticate the step that finds the user; the other half of this step, `access`, is empty for a message */
  function createAnswerMessage(authenticate: Step): Step {
    return (exchange) => {
      const { data } = exchange.input as RequestInput;
      exchange.input = undefined;
      const conversation: Conversation = {
        headers: exchange.request.headers,
        identifyUser: async () => void (await authenticate(exchange)),
        mayCall: (tool) => mayCall(exchange, tool),
        call: (call) => callTool(exchange, call),
      };
      toolServer
        .answer(data, conversation)
        .then(({ status, body }) => {
          if (body === undefined) respond.result(exchange, new Reply(status));
          else respond.secret(exchange, status, body);
        })
        .catch((error) => respond.fail(exchange, error));
      return 'later';
    };
  }

  return { beginMessage, checkApplication, createAnswerMessage };
}

function mayCall({ caller }: Exchange, tool: ListedTool): boolean {
  try {
    if (caller.row !== undefined) checkCall(caller.row, tool);
    for (const rule of rulesOf(tool.access)) if (typeof rule !== 'function') checkAccess(caller, rule);
    return true;
  } catch {
    // The checks throw the refusal that a call would get.
    return false;
  }
}

/** Says whether the data of a call is its body, which may be missing. If not, the data is the query. */
const isDataInBody = ({ body, verb }: ToolCall): boolean => body !== undefined || /^(?:POST|PUT|PATCH)$/.test(verb);

/** @param outer the exchange of the message */
export function createCallExchange(outer: Exchange, call: ToolCall, tools: ToolServer, startedAt: number): Exchange {
  const exchange = new Exchange(createCallRequest(outer.request, call), outer.response, startedAt);
  exchange.toolCall = call;
  exchange.requestId = outer.requestId;
  const { row, credentialId, key, keyHeader, foreignAuthorization } = outer.caller;
  Object.assign(exchange.caller, { row, credentialId, key, keyHeader, foreignAuthorization });
  const dataPart = isDataInBody(call) ? 'body' : 'query';
  exchange.answer.formatRefusal = refusalFormat('text/plain; charset=UTF-8', (error, requestId) =>
    tools.describeRefusal(error, requestId, dataPart),
  );
  return exchange;
}

function refusalFormat(contentType: string, textOf: (error: HttpError, requestId: string) => string): FormatError {
  return (error, requestId) => ({ status: error.status, text: textOf(error, requestId), contentType, headers: [] });
}

/** Creates the request of a tool call, with most headers of the message's request. The body has already arrived. */
function createCallRequest(outer: Request, { verb, target, body }: ToolCall): Request {
  const request = new Request(outer.socket);
  const bytes = Buffer.from(body ?? '');
  const bodyHeaders =
    body === undefined ? {} : { 'content-type': 'application/json', 'content-length': String(bytes.length) };
  const { httpVersion, httpVersionMajor, httpVersionMinor } = outer;
  Object.assign(request, { method: verb, url: target, httpVersion, httpVersionMajor, httpVersionMinor });
  const isCallHeader = (name: string | undefined) => !MESSAGE_HEADERS.test(String(name).toLowerCase());
  request.rawHeaders = outer.rawHeaders
    .filter((_, i, raw) => isCallHeader(raw[i - (i % 2)]))
    .concat(...Object.entries(bodyHeaders));
  const callHeadersOf = <Value>(headers: Readonly<Record<string, Value>>) =>
    Object.entries(headers).filter(([name]) => isCallHeader(name));
  const distinctBodyHeaders = Object.entries(bodyHeaders).map(([name, value]) => [name, [value]] as const);
  Object.defineProperties(request, {
    headers: { value: { ...Object.fromEntries(callHeadersOf(outer.headers)), ...bodyHeaders } },
    headersDistinct: { value: Object.fromEntries([...callHeadersOf(outer.headersDistinct), ...distinctBodyHeaders]) },
  });
  if (bytes.length > 0) request.push(bytes);
  request.push(null);
  request.complete = true;
  return request;
}

/**
 * Refuses a call whose path leads to another operation than its tool names. For example, the value of `{id}` can be a
 * literal segment of another route.
 */
export function checkToolOperation({ toolCall, group, operation }: Exchange): undefined {
  if (toolCall?.group === group && toolCall.operation === operation) return;
  throw refusal('ROUTE_NOT_FOUND', 'A value of path leads to another operation: send the value of an existing item');
}
