// Prepares queries for attributes. A query may contain personal data and keys, so it is left out unless TRACE_CAPTURE
// asks for it.

/**
 * The parameters for signatures, as the conventions name them. Anybody who has a query with such a signature can open
 * an object in a cloud.
 */
const SECRETS = /(^|&)(AWSAccessKeyId|Signature|sig|X-Goog-Signature)=[^&]*/g;

export function redactQuery(query: string): string {
  return query.replace(SECRETS, '$1$2=REDACTED');
}

/** @param target a path with its query @param isAsked whether the query stays in the result */
export function visibleTarget(target: string, isAsked: boolean): string {
  const at = target.indexOf('?');
  if (at < 0) return target;
  return isAsked ? `${target.slice(0, at + 1)}${redactQuery(target.slice(at + 1))}` : target.slice(0, at);
}
