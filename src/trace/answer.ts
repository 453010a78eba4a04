// Parses the answer of a collector: HTTP/1.1 (RFC 9112) or HTTP/1.0, as much as the answer to a POST needs.

export interface Answer {
  readonly status: number;
  /** The header fields, by their names in lower case. Several fields of one name are joined by commas. */
  readonly headers: ReadonlyMap<string, string>;
  /**
   * The body. If the connection was closed early, or MAX_ANSWER_BYTES have come, `text` is only the part that has come.
   * Such a part of a chunked body still contains the lengths of its chunks.
   */
  readonly text: string;
  /** Whether the connection can carry another request. */
  readonly keepsConnection: boolean;
}

/** When this many bytes of an answer have come, no more are awaited. */
const MAX_ANSWER_BYTES = 64 * 1024;
/** Matches a status line, such as `HTTP/1.1 200 OK`. The groups are the minor version and the status. */
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: |$)/;
/** Matches a header field. The groups are its name and its value, without the blanks around the value. */
const FIELD = /^([!#$%&'*+.^_`|~\w-]+):[\t ]*(.*?)[\t ]*$/s;

/**
 * @param bytes what the collector has sent so far
 * @param isClosed whether the collector has closed the connection, so that no more bytes follow
 * @returns undefined while bytes are missing
 * @throws Error when the bytes are not an answer, or when the connection was closed before the end of the head
 */
export function parseAnswer(bytes: Buffer, isClosed: boolean): Answer | undefined {
  const isLimitReached = bytes.length >= MAX_ANSWER_BYTES;
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd === -1) {
    // A server of another protocol may wait for more from this client, so its first bytes must be enough to refuse it.
    if (!'HTTP/1.'.startsWith(bytes.toString('latin1', 0, 7))) throw notHttp();
    if (isLimitReached) throw new Error(`the head of the answer has more than ${MAX_ANSWER_BYTES} bytes`);
    if (isClosed) throw new Error('the collector closed the connection');
    return undefined;
  }
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n');
  const [, minorVersion, statusText] = STATUS_LINE.exec(statusLine) ?? [];
  if (statusText === undefined) throw notHttp();
  const status = Number(statusText);
  const bytesAfterHead = bytes.subarray(headEnd + 4);
  // An interim answer, such as 100 (Continue), comes before the answer to the request.
  if (status < 200) return parseAnswer(bytesAfterHead, isClosed);
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name, value] = FIELD.exec(line) ?? [];
    if (name === undefined || value === undefined) throw notHttp();
    const earlierValue = headers.get(name.toLowerCase());
    headers.set(name.toLowerCase(), earlierValue === undefined ? value : `${earlierValue}, ${value}`);
  }
  const body = readBody(bytesAfterHead, status, headers);
  if (body === undefined && !isClosed && !isLimitReached) return undefined;
  const canStayOpen = minorVersion === '1' && !/\bclose\b/i.test(headers.get('connection') ?? '');
  return {
    ...{ status, headers, text: (body?.content ?? bytesAfterHead).toString('utf8', 0, MAX_ANSWER_BYTES) },
    // Bytes after the body could be taken for the answer to the next request.
    keepsConnection: canStayOpen && body?.sentLength === bytesAfterHead.length,
  };
}

interface Body {
  readonly content: Buffer;
  /** The number of bytes that were sent for the body: its content and, if it is chunked, what encloses the chunks. */
  readonly sentLength: number;
}

/** @returns undefined while bytes are missing, and for a body that ends when the collector closes the connection */
function readBody(bytes: Buffer, status: number, headers: Answer['headers']): Body | undefined {
  if (status === 204 || status === 304) return { content: bytes.subarray(0, 0), sentLength: 0 };
  const coding = headers.get('transfer-encoding');
  // If `chunked` is not the last coding, only the end of the connection ends the body (RFC 9112, 6.3).
  if (coding !== undefined) return /\bchunked$/i.test(coding) ? readChunks(bytes) : undefined;
  const contentLength = headers.get('content-length');
  if (contentLength === undefined) return undefined;
  if (!/^\d{1,15}$/.test(contentLength)) throw notHttp();
  const length = Number(contentLength);
  return bytes.length < length ? undefined : { content: bytes.subarray(0, length), sentLength: length };
}

/** Reads the chunks of a body, such as `2\r\n{}\r\n0\r\n\r\n`. @returns undefined while bytes are missing */
function readChunks(bytes: Buffer): Body | undefined {
  const chunks: Buffer[] = [];
  for (let offset = 0; ; ) {
    const lineEnd = bytes.indexOf('\r\n', offset);
    if (lineEnd === -1) return undefined;
    // The line has the length of the chunk in hexadecimal digits. An extension can follow it: `2;name=value`.
    const [, digits] = /^([\da-f]{1,8})[\t ]*(?:;|$)/i.exec(bytes.toString('latin1', offset, lineEnd)) ?? [];
    if (digits === undefined) throw notHttp();
    const begin = lineEnd + 2;
    const size = Number.parseInt(digits, 16);
    // A chunk of length 0 ends the body, after trailer fields and an empty line. While the empty line is missing,
    // `indexOf` returns -1, and `end` is less than `begin`.
    const end = size > 0 ? begin + size : bytes.indexOf('\r\n\r\n', lineEnd) + 2;
    if (end < begin || bytes.length < end + 2) return undefined;
    offset = end + 2;
    if (size === 0) return { content: Buffer.concat(chunks), sentLength: offset };
    if (bytes.toString('latin1', end, offset) !== '\r\n') throw notHttp();
    chunks.push(bytes.subarray(begin, end));
  }
}

function notHttp(): Error {
  return new Error('the collector did not answer in HTTP/1.1');
}
