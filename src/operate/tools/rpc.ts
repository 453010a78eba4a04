// Reads a message of JSON-RPC 2.0 as the Model Context Protocol (MCP) defines it, and finds out which revision of MCP
// the message has. The fields of the protocol call a revision `protocolVersion`.
import type { IncomingHttpHeaders } from 'node:http';
import { type Fields, isObject } from '../../base/values.ts';

const STATELESS_REVISION = '2026-07-28';
/** In these revisions, a client begins with a handshake: the message `initialize`. The newest comes first. */
const HANDSHAKE_REVISIONS = ['2025-11-25', '2025-06-18', '2025-03-26'] as const;
export const SUPPORTED_REVISIONS = [STATELESS_REVISION, ...HANDSHAKE_REVISIONS];

const isHandshakeRevision = (value: unknown): boolean => HANDSHAKE_REVISIONS.some((revision) => revision === value);

/** Returns the revision that the answer to `initialize` names: the offered one, or else the newest. */
export function agreeOnRevision(offered: string): string {
  return isHandshakeRevision(offered) ? offered : HANDSHAKE_REVISIONS[0];
}

export interface RpcMessage {
  /** The id of the message; undefined for a notification, which gets no result. */
  readonly id: string | number | undefined;
  readonly method: string;
  readonly params: Fields;
  /** Whether the message has the stateless revision, in which a client sends no `initialize`. */
  readonly isStateless: boolean;
}

const CODES = {
  INVALID_REQUEST: -32_600,
  METHOD_NOT_FOUND: -32_601,
  INVALID_PARAMS: -32_602,
  HEADER_MISMATCH: -32_020,
  UNSUPPORTED_VERSION: -32_022,
} as const;

/** An error of JSON-RPC, which the server sends instead of a result. */
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

/** Maximum characters of the id of a message, and of an unsupported revision that an error repeats. */
const MAX_ID_LENGTH = 256;
/** The names of the protocol's own fields in `_meta` begin with this text. */
export const META_PREFIX = 'io.modelcontextprotocol/';

/** Reads a message and checks its fields. @throws RpcError when a field or a header is wrong */
export function readMessage(value: unknown, headers: IncomingHttpHeaders): RpcMessage {
  if (Array.isArray(value))
    throw new RpcError('INVALID_REQUEST', 'The body is a batch: send one message in each request');
  if (!isObject(value)) throw new RpcError('INVALID_REQUEST', 'The body must be an object of JSON-RPC 2.0');
  const id = readId(value);
  try {
    return { id, ...readRequest(value, id, headers) };
  } catch (error) {
    if (error instanceof RpcError) error.id = id;
    throw error;
  }
}

function readId(message: Fields): string | number | undefined {
  if (!Object.hasOwn(message, 'id')) return undefined;
  const { id } = message;
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
  const isStateless = isStatelessMessage(method, params, headers);
  if (isStateless && id !== undefined) checkStateless(method, params, headers);
  return { method, params, isStateless };
}

/** @throws RpcError when the header with the revision differs from `_meta`, or names an unsupported one */
function isStatelessMessage(method: string, params: Fields, headers: IncomingHttpHeaders): boolean {
  const header = headers['mcp-protocol-version'];
  const meta = metaOf(params)[`${META_PREFIX}protocolVersion`];
  if (method === 'initialize' && meta === undefined && header !== STATELESS_REVISION) return false;
  if (meta !== undefined && meta !== header)
    throw new RpcError('HEADER_MISMATCH', 'The header MCP-Protocol-Version and protocolVersion in _meta differ');
  // In the revision 2025-03-26, there is no such header yet.
  if (header === undefined) return false;
  if (header === STATELESS_REVISION) return true;
  if (isHandshakeRevision(header) && meta === undefined) return false;
  const data = { supported: SUPPORTED_REVISIONS, requested: String(header).slice(0, MAX_ID_LENGTH) };
  const advice = `send ${SUPPORTED_REVISIONS.join(' or ')}`;
  throw new RpcError('UNSUPPORTED_VERSION', `Unsupported protocol version: ${advice}`, data);
}

/** Checks that headers and body agree. A proxy can decide by the headers, and the service reads the body. */
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

/** Decodes the value of a header; '' when there is none. A client sends a value that is not ASCII as `=?base64?…?=`. */
function decodeHeader(header: string | string[] = ''): string {
  const text = String(header);
  const [, encoded] = /^=\?base64\?(.*)\?=$/.exec(text) ?? [];
  return encoded === undefined ? text : Buffer.from(encoded, 'base64').toString();
}
