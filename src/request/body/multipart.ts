// Decodes multipart forms (RFC 7578) by Node's own parser. That of Node before 24 reads only what browsers send, so
// what other clients send is first written as browsers write it. The number and the headers of parts are limited.
import { isUtf8 } from 'node:buffer';
import type { FormValue } from '../../api/controller.ts';
import { refusal } from '../../base/errors.ts';
import { attempt } from '../../base/failure.ts';
import { addValue, objectWithoutPrototype, tooMany } from './form.ts';
import { parseMediaType } from './media-type.ts';

/** In a multipart body. Node's parser needs about 10 µs for each part. */
const MAX_PARTS = 1000;
/** Maximum bytes of the headers of all parts of a body together. Node's parser needs about 0.2 µs for each byte. */
const MAX_PART_HEADER_BYTES = 128 * 1024;
/** Maximum characters of a boundary (RFC 2046, 5.1.1). */
const MAX_BOUNDARY_LENGTH = 70;

/** Parses a multipart form. A repeated name becomes an array. @throws HttpError MALFORMED_BODY, TOO_MANY_FIELDS */
export async function decodeMultipart(contentType: string, bytes: Buffer): Promise<Record<string, FormValue>> {
  const type = parseMediaType(contentType);
  const parts = usualParts(type?.params.get('boundary') ?? '', bytes);
  let form: FormData;
  try {
    // The header is written again from `type`, so that Node's parser uses the boundary that usualParts() used.
    form = await new Response(Buffer.concat(parts), { headers: { 'content-type': String(type) } }).formData();
  } catch (error) {
    throw refusal('MALFORMED_BODY', 'Cannot read the body as multipart/form-data', { cause: error });
  }
  const fields = objectWithoutPrototype<FormValue>();
  for (const [name, value] of form as unknown as Iterable<[string, string | File]>) addValue(fields, name, value);
  return fields;
}

/**
 * Returns the parts as browsers write them, without the text before the first part and after the last one. Refuses too
 * many parts and too long part headers, because Node's parser is slow with them and has no limit.
 */
function usualParts(boundary: string, bytes: Buffer): Uint8Array[] {
  if (boundary === '' || boundary.length > MAX_BOUNDARY_LENGTH)
    throw refusal(
      'MALFORMED_BODY',
      `Cannot read the body: send a Content-Type with a boundary of 1 to ${MAX_BOUNDARY_LENGTH} characters`,
    );
  const delimiter = Buffer.from(`--${boundary}`, 'latin1');
  const pieces: Uint8Array[] = [];
  let parts = 0;
  let headerBytes = 0;
  for (let start = bytes.indexOf(delimiter), next: number; start >= 0; start = next) {
    const headStart = start + delimiter.length;
    if (bytes.toString('latin1', headStart, headStart + 2) === '--') {
      pieces.push(bytes.subarray(start, headStart + 2));
      break;
    }
    next = bytes.indexOf(delimiter, headStart);
    // Each delimiter but the last begins a part.
    if (next >= 0 && ++parts > MAX_PARTS) throw tooMany('parts', MAX_PARTS);
    const part = bytes.subarray(start, next < 0 ? bytes.length : next);
    const headEnd = part.indexOf('\r\n\r\n');
    headerBytes += headEnd < 0 ? part.length : headEnd;
    if (headerBytes > MAX_PART_HEADER_BYTES)
      throw refusal(
        'TOO_MANY_FIELDS',
        `Cannot read the body: the headers of its parts have more than ${MAX_PART_HEADER_BYTES} bytes`,
      );
    // Without an end of its headers, the part is malformed, as Node's parser says.
    pieces.push(...(headEnd < 0 ? [part] : usualPart(part, headEnd)));
  }
  return pieces;
}

/** Matches the line that says the name of a part, and the name of its file. */
const DISPOSITION = /^content-disposition:[ \t]*form-data[ \t]*(;.*)$/gim;
/** Matches the parameters of that line as browsers write them. Each version of Node reads this spelling. */
const USUAL_PARAMETERS = /^; name="[^"]*"(; filename="[^"]*")?$/;
/** Matches any of them: a token, or a text in quotes, in which `\"` is a quote. */
const PARAMETER = /;[ \t]*([\w*-]+)[ \t]*=[ \t]*(?:"((?:\\"|[^"])*)"|([^\s";]+))[ \t]*/gy;

function usualPart(part: Buffer, headEnd: number): Uint8Array[] {
  let isFile = false;
  const head = part.toString('latin1', 0, headEnd).replace(DISPOSITION, (line, parameters: string) => {
    const usual = usualParameters(parameters);
    isFile ||= /;[ \t]*filename\*?[ \t]*=/i.test(parameters);
    return usual === undefined ? line : `Content-Disposition: form-data${usual}`;
  });
  // Node's parser would replace other bytes by U+FFFD. The content of a file may have any.
  if (!isUtf8(isFile ? part.subarray(0, headEnd) : part))
    throw refusal('MALFORMED_BODY', 'Cannot read the body: a field or a name of the form is not UTF-8');
  return [Buffer.from(head, 'latin1'), part.subarray(headEnd)];
}

/** @returns undefined when the parameters are malformed, or have no name, or an encoded name that cannot be read */
function usualParameters(parameters: string): string | undefined {
  if (USUAL_PARAMETERS.test(parameters)) return parameters;
  const values = new Map<string, string>();
  let end = 0;
  for (const [text, key = '', quoted, token] of parameters.matchAll(PARAMETER)) {
    end += text.length;
    values.set(key.toLowerCase(), quoted?.replaceAll('\\"', '%22') ?? (token as string));
  }
  const name = values.get('name');
  const encoded = values.get('filename*');
  // The encoded name wins, because the other one is its replacement for old programs (RFC 6266, 4.3).
  const fileName = decodeFileName(encoded) ?? values.get('filename');
  const isUnread = name === undefined || (encoded !== undefined && fileName === undefined);
  if (isUnread || !/^;?[ \t]*$/.test(parameters.slice(end))) return undefined;
  return `; name="${name}"${fileName === undefined ? '' : `; filename="${fileName}"`}`;
}

/** Decodes `UTF-8''na%C3%AFve.txt`, which .NET sends (RFC 8187), to a character for each byte. */
function decodeFileName(encoded: string | undefined): string | undefined {
  const [, text] = /^utf-8'[^']*'(.*)$/i.exec(encoded ?? '') ?? [];
  if (text === undefined) return undefined;
  // Node's parser decodes these three.
  const kept = text.replace(/%(22|0a|0d)/gi, '%25$1');
  const name = attempt(() => decodeURIComponent(Buffer.from(kept, 'latin1').toString()), undefined);
  return name && Buffer.from(name).toString('latin1');
}
