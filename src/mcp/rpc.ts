// Reads a message of JSON-RPC 2.0 as the Model Context Protocol (MCP) defines it, and finds out which revision of MCP
// the message has. Each field is checked before it is used.
import type { IncomingHttpHeaders } from 'node:http';
import { type Fields, isObject } from '../base/values.ts';

/** The supported revisions of the protocol, the newest first. */
export const SUPPORTED = ['2026-07-28', '2025-11-25'] as const;
const [STATELESS, WITH_HANDSHAKE] = SUPPORTED;

export interface RpcMessage {
  /** The id of the message; undefined for a notification, which gets no result. */
  readonly id: string | number | undefined;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** Whether the message has the revision 2026-07-28, which needs no handshake. */
  readonly isStateless: boolean;
}

const CODES = {
  INVALID_REQUEST: -32_600,
  METHOD_NOT_FOUND: -32_601,
  INVALID_PARAMS: -32_602,
  HEADER_MISMATCH: -32_020,
  UNSUPPORTED_VERSION: -32_022,
} as const;

/** An error of JSON-RPC, which is sent instead of a result. */
export class RpcError extends Error {
  readonly kind: keyof typeof CODES;
  readonly code: number;
  readonly data: object | undefined;
  /** The id of the message; undefined when the id could not be read. */
  id: string | number | undefined;
  constructor(kind: keyof typeof CODES, message: string, data?: object) {
    super(message);
    this.kind = kind;
    this.code = CODES[kind];
    this.data = data;
  }
}

/** Maximum characters of the id of a message, and of an unsupported version that an error repeats. */
const MAX_ID_LENGTH = 256;
/** The names of the protocol's own fields in `_meta` begin with this text. */
export const META_PREFIX = 'io.modelcontextprotocol/';

/** Reads a message and checks its fields. @throws RpcError when a field or a header is wrong */
export function readMessage(sent: unknown, headers: IncomingHttpHeaders): RpcMessage {
  if (Array.isArray(sent))
    throw new RpcError('INVALID_REQUEST', 'The body is a batch: send one message in each request');
  if (!isObject(sent)) throw new RpcError('INVALID_REQUEST', 'The body must be an object of JSON-RPC 2.0');
  const id = readId(sent);
  try {
    return { id, ...readRequest(sent, id, headers) };
  } catch (error) {
    if (error instanceof RpcError) error.id = id;
    throw error;
  }
}

function readId(sent: Fields): string | number | undefined {
  if (!Object.hasOwn(sent, 'id')) return undefined;
  const { id } = sent;
  if (Number.isSafeInteger(id) || (typeof id === 'string' && id.length <= MAX_ID_LENGTH)) return id as string | number;
  throw new RpcError('INVALID_REQUEST', `id must be a whole number, or a text of at most ${MAX_ID_LENGTH} characters`);
}

function readRequest(
  { jsonrpc, method, params = {} }: Fields,
  id: string | number | undefined,
  headers: IncomingHttpHeaders,
): Omit<RpcMessage, 'id'> {
  if (jsonrpc !== '2.0') throw new RpcError('INVALID_REQUEST', "jsonrpc must be '2.0'");
  if (typeof method !== 'string')
    throw new RpcError('INVALID_REQUEST', 'method must be a text: the server sends no requests and takes no responses');
  if (id === undefined && !method.startsWith('notifications/'))
    throw new RpcError('INVALID_REQUEST', 'id is missing: only notifications have none');
  if (!isObject(params)) throw new RpcError('INVALID_PARAMS', 'params must be an object');
  const isStateless = needsNoHandshake(method, params, headers);
  if (isStateless && id !== undefined) checkStateless(method, params, headers);
  return { method, params, isStateless };
}

/** Returns whether the message has the revision without a handshake (2026-07-28). */
function needsNoHandshake(method: string, params: Fields, headers: IncomingHttpHeaders): boolean {
  const header = headers['mcp-protocol-version'];
  const meta = metaOf(params)[`${META_PREFIX}protocolVersion`];
  if (method === 'initialize' && meta === undefined && header !== STATELESS) return false;
  if (header === undefined) throw new RpcError('HEADER_MISMATCH', 'The header MCP-Protocol-Version is missing');
  if (meta !== undefined && meta !== header)
    throw new RpcError('HEADER_MISMATCH', 'The header MCP-Protocol-Version and protocolVersion in _meta differ');
  if (header === STATELESS) return true;
  if (header === WITH_HANDSHAKE && meta === undefined) return false;
  const data = { supported: SUPPORTED, requested: String(header).slice(0, MAX_ID_LENGTH) };
  throw new RpcError('UNSUPPORTED_VERSION', `Unsupported protocol version: send ${SUPPORTED.join(' or ')}`, data);
}

/**
 * Checks that the headers and the body agree. A proxy can decide by the headers whether a call may pass, and the
 * service reads the call from the body.
 */
function checkStateless(method: string, params: Fields, headers: IncomingHttpHeaders): void {
  const meta = metaOf(params);
  if (meta[`${META_PREFIX}protocolVersion`] === undefined || !isObject(meta[`${META_PREFIX}clientCapabilities`]))
    throw new RpcError('INVALID_PARAMS', `params._meta must have ${META_PREFIX}protocolVersion and clientCapabilities`);
  if (headers['mcp-method'] !== method)
    throw new RpcError('HEADER_MISMATCH', 'The header Mcp-Method must be the method of the message');
  if (method === 'tools/call' && decodeHeader(headers['mcp-name']) !== params.name)
    throw new RpcError('HEADER_MISMATCH', 'The header Mcp-Name must be the name of the tool');
}

function metaOf({ _meta: meta }: Fields): Fields {
  return isObject(meta) ? meta : {};
}

/** Decodes the value of a header. A value that is not ASCII is sent as `=?base64?…?=`. */
function decodeHeader(header: string | string[] | undefined): string | undefined {
  const text = String(header);
  const [, encoded] = /^=\?base64\?(.*)\?=$/.exec(text) ?? [];
  return encoded === undefined ? text : Buffer.from(encoded, 'base64').toString();
}
