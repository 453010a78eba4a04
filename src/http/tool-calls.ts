// Calls of operations by tools of the Model Context Protocol. A call happens inside of the request that brings the
// message. The message itself passes the steps for its origin, its key and its rate. The call is an exchange of its own
// with the same caller, and passes the steps that come after these for any request. This file reads no message: mcp/
// does.
import type { IncomingHttpHeaders } from 'node:http';
import { JSON_TYPE } from '../base/envelope.ts';
import { type HttpError, refusal } from '../base/errors.ts';
import { groupNameOf } from '../base/page-name.ts';
import type { Access } from '../controller/operations.ts';
import { Reply } from '../controller/reply.ts';
import { rulesOf } from '../service/access.ts';
import type { CorsPolicy } from '../service/cors.ts';
import type { Responder } from './answer/response.ts';
import { bodyKindOf } from './body/media-type.ts';
import { checkAccess, checkGroup, checkOperation, checkVerb } from './credential-rights.ts';
import { type CapturedAnswer, Exchange, type RequestInput, type Step, type ToolCall } from './exchange.ts';
import { Request } from './head.ts';

/** Answers messages. The code in mcp/ implements this interface. */
export interface ToolServer {
  answer(message: unknown, conversation: Conversation): Promise<MessageAnswer>;
  /** Returns the body of the answer to a message that was refused before it was read. */
  refuseMessage(error: HttpError, requestId: string): string;
  /**
   * Returns the text that explains the refusal of a call to a model. @param dataPart the part of the arguments that
   * became the data
   */
  describeRefusal(error: HttpError, requestId: string, dataPart: 'query' | 'body'): string;
}

/** The rights of the caller of a message, and the calls that it may make. */
export interface Conversation {
  readonly headers: IncomingHttpHeaders;
  /** Finds the user by `authenticate` of the service file. */
  identifyUser(): Promise<void>;
  /** Says whether the key and the rules of `access` let the caller in. Rules that are functions are not called. */
  mayCall(tool: ListedTool): boolean;
  call(call: ToolCall): Promise<CapturedAnswer>;
}

export interface ListedTool {
  readonly group: string;
  readonly groupInUrl: string;
  readonly operation: string;
  readonly verb: string;
  readonly access: Access;
}

export interface MessageAnswer {
  readonly status: number;
  /** The answer to a message; undefined when the message was a notification. */
  readonly body: object | undefined;
}

export interface MessageParts {
  /** Answers the messages of the Model Context Protocol; undefined when MCP is off. */
  readonly tools?: ToolServer | undefined;
  readonly toolAccess: 'on' | 'application' | 'off';
  readonly respond: Responder;
  /** Calls an operation within the request that brings the message. */
  readonly callTool: (outer: Exchange, call: ToolCall) => Promise<CapturedAnswer>;
}

/** Headers of the message that say nothing about the call. */
const OF_MESSAGE =
  /^(?:content-.*|transfer-encoding|expect|connection|keep-alive|te|trailer|upgrade|if-.*|range|accept|last-event-id|mcp-.*)$/;

/**
 * @returns the three steps that only a message has: one before its key is read, one after its rate, and one at its end
 */
export function createMessageSteps({ tools, toolAccess, respond, callTool }: MessageParts) {
  function begin(exchange: Exchange): undefined {
    if (tools === undefined) throw refusal('GROUP_NOT_FOUND');
    exchange.formatRefusal = (error, requestId) => ({
      status: error.status,
      text: tools.refuseMessage(error, requestId),
      contentType: JSON_TYPE,
      headers: [],
    });
    if (exchange.verb !== 'POST') throw refusal('METHOD_NOT_ALLOWED', undefined, { headers: { Allow: 'POST' } });
    if (bodyKindOf(exchange.head.contentType) !== 'json')
      throw refusal('UNSUPPORTED_MEDIA_TYPE', 'Cannot read the message: send it as application/json');
  }

  function checkApplication({ application }: Exchange): undefined {
    if (toolAccess !== 'application' || application !== undefined) return;
    throw refusal('CREDENTIAL_REQUIRED', undefined, { headers: { 'WWW-Authenticate': 'Bearer' } });
  }

  /** @param authenticate finds the user of an exchange whose operation has no `access` */
  function answerWith(authenticate: Step): Step {
    return (exchange) => {
      const { data } = exchange.input as RequestInput;
      exchange.input = undefined;
      const conversation: Conversation = {
        headers: exchange.request.headers,
        identifyUser: async () => void (await authenticate(exchange)),
        mayCall: (tool) => mayCall(exchange, tool),
        call: (call) => callTool(exchange, call),
      };
      (tools as ToolServer).answer(data, conversation).then(
        ({ status, body }) => {
          if (body === undefined) respond.result(exchange, new Reply(status));
          else respond.secret(exchange, status, body);
        },
        (error) => respond.fail(exchange, error),
      );
      return 'later';
    };
  }

  return { begin, checkApplication, answerWith };
}

/**
 * Refuses a page whose origin `cors` of the service file does not name. Without `cors`, no page may call. Otherwise, a
 * page could make its own host name point to this address, and call with the rights of the network (DNS rebinding).
 */
export function createCheckPage(cors: CorsPolicy | undefined): Step {
  return ({ head: { origin } }): undefined => {
    if (origin === undefined || (cors !== undefined && cors.allows?.(origin) !== false)) return;
    throw refusal('ORIGIN_NOT_ALLOWED');
  };
}

function mayCall({ caller, user, application }: Exchange, tool: ListedTool): boolean {
  try {
    if (caller !== undefined) {
      checkVerb(caller, tool.verb);
      checkOperation(caller, tool.operation);
      if (caller.handler === undefined) checkGroup(caller, tool.groupInUrl);
      else if (groupNameOf(caller.handler) !== tool.group) return false;
    }
    for (const rule of rulesOf(tool.access)) {
      if (typeof rule === 'function') continue;
      if (rule !== 'user' && rule !== 'caller') checkAccess(application, rule);
      else if (user === undefined && (rule === 'user' || application === undefined)) return false;
    }
    return true;
  } catch {
    return false;
  }
}

/** Says whether a mistake in the data is a mistake in the body, even when the call has left the body out. */
const takesBody = ({ body, verb }: ToolCall): boolean => body !== undefined || /^(?:POST|PUT|PATCH)$/.test(verb);

/** Creates the exchange of a call. The client that waits for the call is the client of the message. */
export function createCallExchange(outer: Exchange, call: ToolCall, tools: ToolServer, startedAt: number): Exchange {
  const exchange = new Exchange(createCallRequest(outer.request, call), outer.response, startedAt);
  exchange.tool = call;
  exchange.requestId = outer.requestId;
  exchange.caller = outer.caller;
  exchange.credential = outer.credential;
  exchange.key = outer.key;
  exchange.foreignAuthorization = outer.foreignAuthorization;
  exchange.formatRefusal = (error, requestId) => ({
    status: error.status,
    text: tools.describeRefusal(error, requestId, takesBody(call) ? 'body' : 'query'),
    contentType: 'text/plain; charset=UTF-8',
    headers: [],
  });
  return exchange;
}

/** Creates a request with the headers of the message and the body of the call. The body has already arrived. */
function createCallRequest(outer: Request, { verb, target, body }: ToolCall): Request {
  const request = new Request(outer.socket);
  const bytes = Buffer.from(body ?? '');
  const own = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': String(bytes.length) };
  request.method = verb;
  request.url = target;
  request.httpVersion = outer.httpVersion;
  request.httpVersionMajor = outer.httpVersionMajor;
  request.httpVersionMinor = outer.httpVersionMinor;
  const isKept = (name: string | undefined) => !OF_MESSAGE.test(String(name).toLowerCase());
  request.rawHeaders = outer.rawHeaders.filter((_, i, raw) => isKept(raw[i - (i % 2)])).concat(...Object.entries(own));
  const kept = <Value>(headers: Readonly<Record<string, Value>>) =>
    Object.entries(headers).filter(([name]) => isKept(name));
  const distinct = Object.entries(own).map(([name, value]) => [name, [value]] as const);
  Object.defineProperties(request, {
    headers: { value: { ...Object.fromEntries(kept(outer.headers)), ...own } },
    headersDistinct: { value: Object.fromEntries([...kept(outer.headersDistinct), ...distinct]) },
  });
  if (bytes.length > 0) request.push(bytes);
  request.push(null);
  request.complete = true;
  return request;
}

/**
 * Refuses a call whose path leads to another operation than that of its tool. For example, the value of `{id}` may be
 * the name of a route.
 */
export function checkTool({ tool, group, operation }: Exchange): undefined {
  if (tool?.group === group && tool.operation === operation) return;
  throw refusal('ROUTE_NOT_FOUND', 'A value of path leads to another operation: send the value of an existing item');
}
