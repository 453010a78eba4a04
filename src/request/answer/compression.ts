// COMPRESSION=on: compresses the JSON and the text of results. A page of another site can measure the length of a
// compressed answer, and so guess a secret in it (BREACH). Answers to such a page are sent as they are.
import { zlib } from '../../base/builtins.ts';
import { isCompressible } from '../../base/files/media-types.ts';
import { isSentByBrowserAlone } from '../../callers/access/origin-check.ts';
import type { Exchange } from '../exchange.ts';
import { codingsFor } from '../files/codings.ts';
import { NO_LINES } from './answer-headers.ts';
import { isRead } from './conditional.ts';

/** @param extra more header lines: alternating names and values */
type Send = (body: string | Uint8Array, extra: readonly string[]) => void;

/** Calls `send` with the compressed body, or at once with the body as it is. @param lines all header lines */
export type Compress = (exchange: Exchange, lines: readonly string[], body: string | Uint8Array, send: Send) => void;

type Packed = (error: Error | null, body: Buffer) => void;

const MIN_BYTES = 1024;
/** The thread pool of Node has four threads, which files and host names need, too. */
const MAX_JOBS = 2;
const PACKERS: Readonly<Record<string, (body: string | Uint8Array, packed: Packed) => void>> = {
  br(body, packed) {
    const { brotliCompress, constants } = zlib();
    brotliCompress(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }, packed);
  },
  // The default level of zstd is 3.
  zstd: (body, packed) => zlib().zstdCompress(body, packed),
  gzip: (body, packed) => zlib().gzip(body, { level: 6 }, packed),
};
const VARY = ['Vary', 'Accept-Encoding'];
/** A validator of an operation is that of the bytes which the operation returned. */
const STAYS_AS_IT_IS = /^(?:etag|last-modified|set-cookie|content-encoding|content-range)$/i;

/** @param fail answers an exchange whose compressed answer cannot be sent */
export function createCompression(fail: (exchange: Exchange, error: unknown) => void): Compress {
  let jobs = 0;
  return (exchange, lines, body, send) => {
    const { request, answer } = exchange;
    if (!isRead(exchange) || Buffer.byteLength(body) < MIN_BYTES || !isCompressibleAnswer(lines))
      return send(body, NO_LINES);
    const codings = jobs < MAX_JOBS && !mayBeProbed(exchange) ? codingsFor(request.headers['accept-encoding']) : [];
    const coding = codings.find((one) => one.coding !== 'zstd' || 'zstdCompress' in zlib())?.coding;
    if (coding === undefined) return send(body, VARY);
    jobs++;
    // The operation has ended.
    exchange.timeLimit?.end();
    PACKERS[coding]?.(body, (error, packed) => {
      jobs--;
      if (answer.isComplete) return;
      try {
        if (error === null) send(packed, ['Content-Encoding', coding, ...VARY]);
        else send(body, VARY);
      } catch (failure) {
        fail(exchange, failure);
      }
    });
  };
}

function isCompressibleAnswer(lines: readonly string[]): boolean {
  let isText = false;
  for (let i = 0; i < lines.length; i += 2) {
    const [name = '', value = ''] = lines.slice(i, i + 2);
    if (STAYS_AS_IT_IS.test(name) || (/^cache-control$/i.test(name) && /no-(?:store|transform)/i.test(value)))
      return false;
    if (/^content-type$/i.test(name)) isText = isCompressible(value);
  }
  return isText;
}

/** Says whether a page of another site may have caused the request. An old browser does not say which page it was. */
function mayBeProbed(exchange: Exchange): boolean {
  const site = exchange.request.headers['sec-fetch-site'];
  return isSentByBrowserAlone(exchange) && site !== 'same-origin' && site !== 'same-site' && site !== 'none';
}
