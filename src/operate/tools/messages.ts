// Answers the messages of the Model Context Protocol (MCP) over streamable HTTP. Each request has one message, and
// there are no sessions. In the stateless revision 2026-07-28 of the protocol, each request names its revision
// in `_meta`. In 2025-11-25, 2025-06-18 and 2025-03-26, a client begins with the message `initialize`.
import type { HttpError } from '../../base/errors.ts';
import { rulesOf } from '../../callers/access/access.ts';
import type { DocumentInfo } from '../../documents/documented.ts';
import type { Group } from '../../groups/operations.ts';
import type { Conversation, MessageAnswer, ToolServer } from '../../request/tool-calls.ts';
import { createCallRequest } from './call-request.ts';
import { createError, createResult, describeDetail, describeRefusal, type ToolResult } from './results.ts';
import { agreeOnRevision, META_PREFIX, RpcError, type RpcMessage, readMessage, SUPPORTED_REVISIONS } from './rpc.ts';
import { describeTools, type Tool } from './tool-list.ts';

export interface ToolServerParts {
  readonly groups: () => Promise<readonly Group[]>;
  readonly info: () => DocumentInfo;
  readonly basePath: string;
}

/** A client may cache an answer for a minute. `private`: the cached answer is for this client alone. */
const CACHING = { ttlMs: 60_000, cacheScope: 'private' };
const CAPABILITIES = { tools: {} };

export function createToolServer({ groups, info, basePath }: ToolServerParts): ToolServer {
  const allTools = async (): Promise<readonly Tool[]> => (await groups()).flatMap(describeTools);

  async function listTools({ params }: RpcMessage, conversation: Conversation): Promise<object> {
    // Each list is sent as a whole, so no cursor comes from this server.
    if (params.cursor !== undefined) throw new RpcError('INVALID_PARAMS', 'The cursor is unknown: ask without one');
    const tools = await allowedTools(await allTools(), conversation);
    return { tools: tools.map(({ definition }) => definition) };
  }

  async function allowedTools(tools: readonly Tool[], conversation: Conversation): Promise<readonly Tool[]> {
    const rules = new Set(tools.flatMap(({ access }) => rulesOf(access)));
    if (rules.has('user') || rules.has('caller')) await conversation.identifyUser();
    return tools.filter((tool) => conversation.mayCall(tool));
  }

  async function callTool({ params }: RpcMessage, conversation: Conversation): Promise<ToolResult> {
    const tool = (await allTools()).find(({ name }) => name === params.name);
    if (tool === undefined)
      throw new RpcError('INVALID_PARAMS', 'There is no tool of this name: tools/list has all names');
    const request = createCallRequest(tool, params.arguments, basePath);
    if ('problems' in request) {
      // A caller who may not call the tool learns nothing about its fields.
      const isAllowed = (await allowedTools([tool], conversation)).length > 0;
      if (!isAllowed) return createError('The caller may not call this tool: tools/list has those that it may call.');
      return createError(['The arguments are wrong:', ...request.problems.map(describeDetail)].join('\n'));
    }
    const { name, group, operation, verb } = tool;
    return createResult(await conversation.call({ name, group, operation, verb, ...request }));
  }

  async function perform(message: RpcMessage, conversation: Conversation): Promise<object> {
    const { method, isStateless, params } = message;
    const { title: name, version, description: instructions } = info();
    if (method === 'tools/list') {
      const list = await listTools(message, conversation);
      return isStateless ? { ...list, ...CACHING } : list;
    }
    if (method === 'tools/call') return callTool(message, conversation);
    if (method === 'server/discover' && isStateless)
      return { supportedVersions: SUPPORTED_REVISIONS, capabilities: CAPABILITIES, instructions, ...CACHING };
    if (method === 'initialize' && !isStateless) {
      if (typeof params.protocolVersion !== 'string')
        throw new RpcError('INVALID_PARAMS', 'params.protocolVersion is missing');
      const serverInfo = { name, version };
      const protocolVersion = agreeOnRevision(params.protocolVersion);
      return { protocolVersion, capabilities: CAPABILITIES, serverInfo, instructions };
    }
    if (method === 'ping' && !isStateless) return {};
    throw new RpcError('METHOD_NOT_FOUND', 'There is no such method: the server has tools alone');
  }

  async function answer(value: unknown, conversation: Conversation): Promise<MessageAnswer> {
    let message: RpcMessage | undefined;
    try {
      message = readMessage(value, conversation.headers);
      if (message.id === undefined) return { status: 202, body: undefined };
      const result = await perform(message, conversation);
      const { title: name, version } = info();
      const _meta = { [`${META_PREFIX}serverInfo`]: { name, version } };
      const fullResult = message.isStateless ? { ...result, resultType: 'complete', _meta } : result;
      return { status: 200, body: { jsonrpc: '2.0', id: message.id, result: fullResult } };
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      return refuse(error, message);
    }
  }

  return { answer, refuseMessage, describeRefusal };
}

/** @param rpcMessage undefined when the message could not be read */
function refuse({ kind, code, message, data, id }: RpcError, rpcMessage: RpcMessage | undefined): MessageAnswer {
  const isUnknownMethod = rpcMessage?.isStateless === true && kind === 'METHOD_NOT_FOUND';
  const statusOfMistake = isUnknownMethod ? 404 : 200;
  const status = rpcMessage === undefined ? 400 : statusOfMistake;
  const error = { code, message, ...(data !== undefined && { data }) };
  return { status, body: { jsonrpc: '2.0', id: rpcMessage?.id ?? id ?? null, error } };
}

/** Returns the body of an answer to a message that was not read, so that its id is unknown. */
function refuseMessage({ status, code, message, details }: HttpError, requestId: string): string {
  const rpcCode = code === 'MALFORMED_JSON' ? -32_700 : status >= 500 ? -32_603 : -32_600;
  const data = { error_code: code, request_id: requestId, ...(details !== undefined && { errors: details }) };
  return JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: rpcCode, message, data } });
}
