// Fetches one JSON document from a provider. The time and the size are limited, and redirects are refused.

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export const FETCH_TIMEOUT_MS = 5000;
export const MAX_DOCUMENT_BYTES = 256 * 1024;

/**
 * @returns the value, and as `maxAge` the seconds in `Cache-Control: max-age`; undefined when there is no such header
 * @throws Error whose message has no text of the document
 */
export async function fetchJson(fetch: Fetch, url: string, timeoutMs = FETCH_TIMEOUT_MS) {
  // Anybody on the way could answer with keys of their own, and sign as anybody.
  if (process.env.NODE_TLS_REJECT_UNAUTHORIZED === '0' && !url.startsWith('http:'))
    throw new Error(
      'NODE_TLS_REJECT_UNAUTHORIZED=0 trusts any server: remove it, and name your root by NODE_EXTRA_CA_CERTS',
    );
  const init: RequestInit = {
    // With an open redirect on the provider's host, an attacker could choose where the keys come from.
    redirect: 'error',
    // The signal also ends the reading of the body.
    signal: AbortSignal.timeout(timeoutMs),
    headers: { Accept: 'application/json' },
  };
  const response = await fetch(url, init);
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the answer has status ${response.status}`);
  }
  const text = new TextDecoder('utf-8', { fatal: true }).decode(await readBody(response));
  return { value: parseJson(text), maxAge: parseMaxAge(response.headers.get('cache-control')) };
}

/** Reads at most MAX_DOCUMENT_BYTES. The header Content-Length is no limit: it is the length of the compressed body. */
async function readBody(response: Response): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > MAX_DOCUMENT_BYTES) throw new Error(`the answer is longer than ${MAX_DOCUMENT_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('the answer is not JSON'); // The parser's own message would quote the answer.
  }
}

function parseMaxAge(header: string | null): number | undefined {
  const match = /(?:^|,)\s*max-age\s*=\s*"?(\d{1,10})"?\s*(?:,|$)/i.exec(header ?? '');
  return match === null ? undefined : Number(match[1]);
}
