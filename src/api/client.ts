// The entry `gatefold/client`: a client for front ends, whose types come from the controllers by `import type`. The
// client runs in browsers and in Node, and loads nothing of the server. So it makes a request from the name of the
// operation alone: `'GET {id}'` or `created`.
import { ROOT_ID } from '../base/group-name.ts';
import { splitRouteName } from '../base/route-name.ts';
import { ApiError, type FieldError } from './client/error.ts';
import { readEvents } from './client/events.ts';
import { encodeBody, type RequestParts, requestOf } from './client/request.ts';
import type { Call, CallOptions, Client, ClientOptions } from './client/types.ts';

export { ApiError, type FieldError, isApiError } from './client/error.ts';
export type { ServerEvent } from './client/events.ts';
export type * from './client/types.ts';

/**
 * Creates a typed client. A call sends its request at once, and returns a promise of the result. A failed call is
 * rejected with an `ApiError`. These calls are rejected with another reason:
 * - The caller's `signal` was aborted: the reason of the signal.
 * - The function `authorization` threw or was rejected: that error.
 * - The request cannot be built, for example because a value of its path is empty: usually a `TypeError`.
 * - Next.js ended the making of a page at its build: the error of its `fetch`.
 *
 * @param url the URL of the service with its base path. A URL without a path gets `/api`. In a page of the service's
 *   own origin, '' stands for `/api`. For a service with the base path `/`, write `https://example.com/.`,
 *   because a URL without a path would get `/api`.
 * @example
 * const authorization = `Bearer ${token}`;
 * const api = createClient<{ user: typeof UserController }>('https://example.com', { authorization });
 * const user = await api.user.created({ name: 'Ada' });
 * const friends = await api.user['GET {id}/friends']({ path: { id: 7 } });
 */
export function createClient<Groups>(url: string, options: ClientOptions = {}): Client<Groups> {
  const base = /^([a-z]+:\/\/[^/]*)?\/?$/i.test(url) ? `${url.replace(/\/$/, '')}/api/` : url.replace(/\/?$/, '/');
  const operationsOf = (group: string) =>
    withEveryName((name) => (input: unknown, callOptions?: object) => {
      // A quoted route such as 'GET {id}' takes all parts of the request. Any other operation takes data and options.
      const parts = (splitRouteName(name) ? input : { ...callOptions, body: input }) as RequestParts | undefined;
      return startCall(options, parts, () => requestOf(urlOfGroup(base, group), name, parts));
    });
  return withEveryName(operationsOf) as Client<Groups>;
}

/** `root` and `v2_root` stand for the root groups, of the service and of its folder `v2`: their URLs have no name. */
function urlOfGroup(base: string, group: string): string {
  return (base + group.replace(ROOT_ID, '$1')).replace(/\/$/, '');
}

/** The object has a value for every name but `then`, with which `await` would treat the object as a promise. */
function withEveryName<T>(create: (name: string) => T): object {
  return new Proxy<Record<string, T>>(Object.create(null), {
    get(cache, name) {
      if (typeof name !== 'string' || name === 'then') return undefined;
      cache[name] ??= create(name);
      return cache[name];
    },
  });
}

// `fetch` would send the headers to another origin, too: it withholds only `Authorization` and `Cookie`. So a key in
// `X-Api-Key` would get there. A browser hides where a redirect leads, so the origin does not count.
const REFUSED_REDIRECT = 'A call with headers follows no redirect: send a key by authorization';

/** Sends a request at once. Awaiting the call reads the body; awaiting only its `response` does not. */
function startCall(
  options: ClientOptions,
  { signal, headers: callHeaders, timeout = options.timeout }: CallOptions = {},
  buildRequest: () => ReturnType<typeof requestOf>,
): Call<unknown> {
  const abortController = new AbortController();
  const cancel = () => abortController.abort(signal?.reason);
  if (signal?.aborted) cancel();
  else signal?.addEventListener('abort', cancel, { signal: abortController.signal });
  // This also ends the listener of `signal`. When a caller reads `response` as a stream, the connection stays open, so
  // that `signal` can still end the download.
  const closeConnection = () => abortController.abort();

  async function send(lastEventId = ''): Promise<Response> {
    const { url, method, data } = buildRequest();
    const ownHeaders = { ...options.headers, ...callHeaders };
    const headers = new Headers(ownHeaders);
    abortController.signal.throwIfAborted();
    const authorization =
      typeof options.authorization === 'function'
        ? await untilAborted(options.authorization(), abortController.signal)
        : options.authorization;
    if (authorization) headers.set('authorization', authorization);
    if (lastEventId) headers.set('last-event-id', encodeUtf8(lastEventId));
    const body = encodeBody(data, headers);
    const { fetch: sendRequest = fetch } = options;
    const redirect = Object.keys(ownHeaders).length > 0 ? 'manual' : 'follow';
    const own = { method, headers, body, redirect, signal: abortController.signal };
    // With its cache, Firefox lets a second tab wait for the end of the same stream, and Chrome a second equal GET.
    // Node accepts a stream as a body only with `duplex`. The type `RequestInit` lacks both.
    const init = { ...own, cache: 'no-store', duplex: 'half' } as RequestInit;
    const response = await withTimeout(sendRequest(url, init));
    if (response.ok) return response;
    if (isRedirect(response)) throw new ApiError(response.status, 'REDIRECT_REFUSED', REFUSED_REDIRECT, { response });
    throw createError(response, await withTimeout(response.text()));
  }

  async function read(response: Response): Promise<unknown> {
    const type = response.headers.get('content-type') ?? '';
    if (type.startsWith('text/event-stream'))
      return readEvents(response, buildRequest().method === 'GET' ? send : undefined, abortController);
    try {
      if (/[/+]json\b/.test(type))
        return await withTimeout(response.text().then((text) => (text ? JSON.parse(text) : undefined)));
      const bytes = await withTimeout(response.blob());
      // An answer without a type and without bytes, such as a 204, has no body.
      return type || bytes.size > 0 ? bytes : undefined;
    } finally {
      closeConnection();
    }
  }

  /** @throws ApiError when the step fails or takes too long, or the reason of the caller's `signal` */
  async function withTimeout<T>(step: Promise<T>): Promise<T> {
    const endLateStep = () => abortController.abort(new ApiError(0, 'TIMEOUT', `No answer within ${timeout} ms`));
    // `setTimeout` takes a longer time, such as Infinity, for 1 ms.
    const hasLimit = timeout !== undefined && timeout < 2 ** 31;
    const timer = hasLimit ? setTimeout(endLateStep, timeout) : undefined;
    try {
      return await step;
    } catch (cause) {
      if (abortController.signal.aborted) throw abortController.signal.reason;
      // By such an error of its `fetch`, Next.js learns that a page cannot be made at its build.
      throw (cause as { digest?: unknown } | undefined)?.digest
        ? cause
        : new ApiError(0, 'NETWORK_ERROR', 'No complete answer came from the service', { cause });
    } finally {
      clearTimeout(timer);
    }
  }

  const response = send().catch((error) => {
    closeConnection();
    throw error;
  });
  let result: Promise<unknown> | undefined;
  const readOnce = () => {
    result ??= response.then(read);
    return result;
  };
  return {
    response,
    // biome-ignore lint/suspicious/noThenProperty: a call is a promise that reads its body when a caller awaits it.
    then: (onFulfilled, onRejected) => readOnce().then(onFulfilled, onRejected),
    catch: (onRejected) => readOnce().catch(onRejected),
    finally: (onFinally) => readOnce().finally(onFinally),
    [Symbol.toStringTag]: 'Call',
  };
}

/** Rejects with the reason of the signal when the step, which nothing else can end, is not over before. */
function untilAborted<T>(step: T | Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort);
    Promise.resolve(step)
      .finally(() => signal.removeEventListener('abort', abort))
      .then(resolve, reject);
  });
}

/** Writes a text as a header has it: a character for each byte of UTF-8, as `EventSource` of a browser sends its id. */
function encodeUtf8(text: string): string {
  return Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join('');
}

/** A browser hides a redirect: the answer has the type `opaqueredirect`, and neither a status nor headers. */
function isRedirect({ type, status, headers }: Response): boolean {
  return type === 'opaqueredirect' || ([301, 302, 303, 307, 308].includes(status) && headers.has('location'));
}

function createError(response: Response, text: string): ApiError {
  const { status, statusText } = response;
  let body: unknown = text;
  try {
    body = JSON.parse(text);
  } catch {
    // The answer comes from another server, or the service's error format is plain text.
  }
  // Other servers, such as proxies, also send JSON. Only a body with an `error_code` is an error body of the service.
  const envelope: Envelope = typeof Object(body).error_code === 'string' ? (body as Envelope) : {};
  const {
    error_code: code = `HTTP_${status}`,
    message = statusText || `HTTP ${status}`,
    errors = [],
    request_id: requestId = response.headers.get('x-request-id') ?? undefined,
  } = envelope;
  return new ApiError(status, code, message, { errors, requestId, response, body });
}

interface Envelope {
  readonly error_code?: string;
  readonly message?: string;
  readonly errors?: readonly FieldError[];
  readonly request_id?: string;
}
