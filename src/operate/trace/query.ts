// Prepares the queries of URLs for attributes. A query can contain personal data and keys, so it is left out unless the
// setting TRACE_CAPTURE names it.

/**
 * Signatures and the ids of their keys, which the semantic conventions hide. A URL with a signature opens a file in
 * cloud storage to anybody.
 */
const SECRET_PARAMETERS = /(^|&)(AWSAccessKeyId|Signature|sig|X-Goog-Signature)=[^&]*/g;

export function redactQuery(query: string): string {
  return query.replace(SECRET_PARAMETERS, '$1$2=REDACTED');
}

/** Returns the path, and with `keepsQuery` its query without secrets. @param target a path, perhaps with a query */
export function visibleTarget(target: string, keepsQuery: boolean): string {
  const queryStart = target.indexOf('?');
  if (queryStart < 0) return target;
  return keepsQuery
    ? `${target.slice(0, queryStart + 1)}${redactQuery(target.slice(queryStart + 1))}`
    : target.slice(0, queryStart);
}
