// Follows the redirects of a call that has headers of its own, within one origin. `fetch` would send these headers to
// another origin, too: it withholds only `Authorization` and `Cookie`. So a key in `X-Api-Key` would get there.

export type OwnInit = RequestInit & { readonly headers: Headers };

/** The limit of `fetch` itself (Fetch standard, HTTP-redirect fetch). */
const MAX_REDIRECTS = 20;

/**
 * Sends a request and follows redirects within the origin of its URL. Any other redirect is returned as the answer. In
 * a browser every redirect is returned, because browsers hide where a redirect leads.
 */
export async function fetchWithinOrigin(sendRequest: typeof fetch, url: string, init: OwnInit): Promise<Response> {
  for (let redirects = 0; ; redirects++) {
    const response = await sendRequest(url, { ...init, redirect: 'manual' });
    const { type, status, headers, body } = response;
    if (type === 'opaqueredirect' || !isRedirect(response) || redirects === MAX_REDIRECTS) return response;
    const target = new URL(headers.get('location') as string, url);
    if (target.origin !== new URL(url).origin) return response;
    await body?.cancel();
    url = target.href;
    // The Fetch standard makes a POST a GET, and 303 makes any method but HEAD a GET.
    if (status === 303 ? init.method !== 'HEAD' : status < 303 && init.method === 'POST') {
      init.headers.delete('content-type');
      init = { ...init, method: 'GET', body: null };
    }
  }
}

/** A browser hides a redirect: the answer has the type `opaqueredirect`, and neither a status nor headers. */
export function isRedirect({ type, status, headers }: Response): boolean {
  return type === 'opaqueredirect' || ([301, 302, 303, 307, 308].includes(status) && headers.has('location'));
}
