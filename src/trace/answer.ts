// Parses the answer of a collector: HTTP/1.1 (RFC 9112) or HTTP/1.0, as much as the answer to a POST needs.

export interface Answer {
  readonly status: number;
  /** The header fields, by their names in lower case. Several fields of one name are joined by commas. */
  readonly headers: ReadonlyMap<string, string>;
  /**
   * The body. When the connection was closed early, or MAX_ANSWER_BYTES have come, it is the part that has arrived,
   * still with the lengths of its chunks if it is chunked.
   */
  readonly text: string;
  /** Whether the connection can carry another request. */
  readonly keepsConnection: boolean;
}

/** When this many bytes of an answer have come, no more are awaited. */
const MAX_ANSWER_BYTES = 64 * 1024;
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: |$)/;
const FIELD = /^([!#$%&'*+.^_`|~\w-]+):[\t ]*(.*?)[\t ]*$/s;

/**
 * @param bytes what the collector has sent so far
 * @param isClosed whether the collector has closed the connection, so that no more bytes follow
 * @returns undefined while bytes are missing
 * @throws Error when the bytes are not an answer, or when the connection was closed before the end of the head
 */
export function parseAnswer(bytes: Buffer, isClosed: boolean): Answer | undefined {
  const isCut = bytes.length >= MAX_ANSWER_BYTES;
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd === -1) {
    if (isCut || !'HTTP/1.'.startsWith(bytes.toString('latin1', 0, 7))) throw notHttp();
    if (isClosed) throw new Error('the collector closed the connection');
    return undefined;
  }
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n');
  const [, minorVersion, statusText] = STATUS_LINE.exec(statusLine) ?? [];
  if (statusText === undefined) throw notHttp();
  const status = Number(statusText);
  const rest = bytes.subarray(headEnd + 4);
  // An interim answer, such as 100 (Continue), comes before the final one.
  if (status < 200) return parseAnswer(rest, isClosed);
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name, value] = FIELD.exec(line) ?? [];
    if (name === undefined || value === undefined) throw notHttp();
    const known = headers.get(name.toLowerCase());
    headers.set(name.toLowerCase(), known === undefined ? value : `${known}, ${value}`);
  }
  const body = readBody(rest, status, headers);
  if (body === undefined && !isClosed && !isCut) return undefined;
  const { content, length } = body ?? { content: rest, length: Number.NaN };
  const isKept = minorVersion === '1' && !/\bclose\b/i.test(headers.get('connection') ?? '');
  return {
    ...{ status, headers, text: content.toString('utf8', 0, MAX_ANSWER_BYTES) },
    keepsConnection: isKept && length === rest.length,
  };
}

interface Body {
  readonly content: Buffer;
  /** The number of bytes that the body takes in the connection. */
  readonly length: number;
}

/** @returns undefined while bytes are missing, and for a body that ends when the collector closes the connection */
function readBody(bytes: Buffer, status: number, headers: Answer['headers']): Body | undefined {
  if (status === 204 || status === 304) return { content: bytes.subarray(0, 0), length: 0 };
  const coding = headers.get('transfer-encoding');
  if (coding !== undefined) return /\bchunked$/i.test(coding) ? readChunks(bytes) : undefined;
  const text = headers.get('content-length');
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw notHttp();
  const length = Number(text);
  return bytes.length < length ? undefined : { content: bytes.subarray(0, length), length };
}

/** Reads the chunks of a body, such as `2\r\n{}\r\n0\r\n\r\n`. @returns undefined while bytes are missing */
function readChunks(bytes: Buffer): Body | undefined {
  const chunks: Buffer[] = [];
  for (let offset = 0; ; ) {
    const lineEnd = bytes.indexOf('\r\n', offset);
    if (lineEnd === -1) return undefined;
    const [, digits] = /^([\da-f]{1,8})[\t ]*(?:;|$)/i.exec(bytes.toString('latin1', offset, lineEnd)) ?? [];
    if (digits === undefined) throw notHttp();
    const begin = lineEnd + 2;
    const size = Number.parseInt(digits, 16);
    // The last chunk is empty. Trailer fields can follow it.
    const end = size > 0 ? begin + size : bytes.indexOf('\r\n\r\n', lineEnd) + 2;
    if (end < begin || bytes.length < end + 2) return undefined;
    offset = end + 2;
    if (size === 0) return { content: Buffer.concat(chunks), length: offset };
    if (bytes.toString('latin1', end, offset) !== '\r\n') throw notHttp();
    chunks.push(bytes.subarray(begin, end));
  }
}

function notHttp(): Error {
  return new Error('the collector did not answer in HTTP/1.1');
}
