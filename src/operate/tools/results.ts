// Turns the answer of an operation into the result of a tool, and a refusal into a text that says how to correct the
// call. A language model reads both, so the texts name the arguments as the tool does: `/query/limit`.
import type { ErrorDetail, HttpError } from '../../base/errors.ts';
import { attempt } from '../../base/failure.ts';
import { isObject } from '../../base/values.ts';
import type { CapturedAnswer } from '../../request/answer/answer-state.ts';
import { MAX_TOOL_BYTES, TOO_LONG_FOR_TOOL } from '../../request/answer/replies.ts';

export interface ToolResult {
  readonly content: readonly object[];
  readonly structuredContent?: object;
  readonly isError?: true;
}

export function createResult({ status, headers, body }: CapturedAnswer): ToolResult {
  if (status >= 400) return createError(bodyText(body) || `The call failed with the status ${status}.`);
  if (Buffer.byteLength(body) > MAX_TOOL_BYTES) return createError(`${TOO_LONG_FOR_TOOL}.`);
  if (body.length === 0) {
    const location = headerOf('location', headers);
    const text = location === undefined ? `Done (${status}).` : `Done (${status}). The result is at ${location}`;
    return { content: [{ type: 'text', text }] };
  }
  const type = headerOf('content-type', headers)?.toLowerCase() ?? '';
  const [, media] = /^(image|audio)\/[\w.+-]+/.exec(type) ?? [];
  if (/^application\/(?:[\w.-]+\+)?json\b/.test(type)) return createJsonResult(bodyText(body));
  if (media !== undefined) {
    const data = Buffer.from(body as Uint8Array).toString('base64');
    return { content: [{ type: media, data, mimeType: type.split(';', 1)[0] }] };
  }
  if (type.startsWith('text/')) return { content: [{ type: 'text', text: bodyText(body) }] };
  return createError(`The result has the type ${type || 'of unknown bytes'}, which no tool returns.`);
}

function createJsonResult(text: string): ToolResult {
  const value: unknown = attempt(() => JSON.parse(text), undefined);
  if (value === undefined) return createError('The result says that it is JSON, and is not.');
  const structuredContent = Array.isArray(value) ? { items: value } : isObject(value) ? value : { data: value };
  return {
    content: [{ type: 'text', text: structuredContent === value ? text : JSON.stringify(structuredContent) }],
    structuredContent,
  };
}

export function createError(text: string): ToolResult {
  return { content: [{ type: 'text', text }], isError: true };
}

/**
 * Returns the text of a refusal: its code, what is wrong, and a line for each mistake.
 *
 * @param dataPart the part of the arguments that became the data of the operation
 */
export function describeRefusal(
  { status, code, message, details, headers }: HttpError,
  requestId: string,
  dataPart: 'query' | 'body',
): string {
  const lines = [`${code} (${status}): ${message}${/[.!?]$/.test(message) ? '' : '.'}`];
  // A mistake that the type check has found says in `in` where it is: path, query or body. A mistake that the operation
  // reports has no `in`. Its pointer leads into the data of the operation, which is `dataPart`.
  if (Array.isArray(details)) lines.push(...details.map((detail) => describeDetail({ in: dataPart, ...detail })));
  if (code === 'PRECONDITION_REQUIRED') lines.push('A tool sends no such header, so this operation cannot be called.');
  const lineTexts = Object.entries(headers ?? {}).flatMap(([name, value]) => [name, String(value)]);
  const wait = headerOf('retry-after', lineTexts);
  if (wait !== undefined) lines.push(`Call again after ${wait} seconds.`);
  if (status >= 500) lines.push(`The operator finds the cause under the request id ${requestId}.`);
  return lines.join('\n');
}

export function describeDetail({ in: part, pointer, message }: ErrorDetail): string {
  const place = `${typeof part === 'string' ? `/${part}` : ''}${pointer}`;
  return `- ${place === '' ? 'the arguments' : place} ${message}`;
}

function headerOf(wanted: string, headers: readonly string[]): string | undefined {
  const index = headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === wanted);
  return index < 0 ? undefined : headers[index + 1];
}

function bodyText(body: string | Uint8Array): string {
  return typeof body === 'string' ? body : Buffer.from(body).toString();
}
