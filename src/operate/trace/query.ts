// Prepares the queries of URLs for attributes. A query can have personal data and keys, so TRACE_CAPTURE must name it.

/** Signatures and ids of keys, which the semantic conventions hide. A URL with a signature opens a file to anybody. */
const SECRET_PARAMETERS = /(^|&)(AWSAccessKeyId|Signature|sig|X-Goog-Signature)=[^&]*/g;

/** @param keyNames the names of further parameters whose values are secrets */
export function redactQuery(query: string, keyNames: readonly string[] = []): string {
  const redacted = query.replace(SECRET_PARAMETERS, '$1$2=REDACTED');
  if (keyNames.length === 0) return redacted;
  const redactPart = (part: string) => {
    const [[name = ''] = []] = new URLSearchParams(part);
    return keyNames.includes(name) ? `${part.split('=', 1)[0]}=REDACTED` : part;
  };
  return redacted.split('&').map(redactPart).join('&');
}

/** Returns the path, and with `keepsQuery` its query without secrets. @param target a path, perhaps with a query */
export function visibleTarget(target: string, keepsQuery: boolean): string {
  const queryStart = target.indexOf('?');
  if (queryStart < 0) return target;
  return keepsQuery
    ? `${target.slice(0, queryStart + 1)}${redactQuery(target.slice(queryStart + 1))}`
    : target.slice(0, queryStart);
}
