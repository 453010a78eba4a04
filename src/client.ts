// What a front end imports: a client whose types are the controllers' own, by `import type`. Nothing is generated, and
// nothing of the server is loaded: this is a module by itself, for browsers and for Node. At run time it knows no
// controller: the name of an operation says what to send, and the content type of an answer how to read it.
import { splitRouteName } from './base/route-name.ts';
import { ApiError, type FieldError } from './client/error.ts';
import { readEvents } from './client/events.ts';
import { encode, type Given, requestOf, type WireRequest } from './client/request.ts';
import type { Call, CallOptions, Client, ClientOptions } from './client/types.ts';

export { ApiError, type FieldError } from './client/error.ts';
export type { ServerEvent } from './client/events.ts';
export type * from './client/types.ts';

/**
 * @param url where the service is: its base URL, with `/api` or without; '' for a page that the service's own origin
 *   serves
 * @example
 * const api = createClient<{ user: typeof UserController }>('https://example.com', { authorization: `Bearer ${token}`
 * }); const user = await api.user.created({ name: 'Ada' }); const order = await api.order['GET {id}']({ path: { id: 7 }
 * });
 */
export function createClient<Groups>(url: string, options: ClientOptions = {}): Client<Groups> {
  const base = `${url.replace(/\/(api\/?)?$/, '')}/api/`;
  const operationsOf = (group: string) =>
    withEveryName((name) => (first: unknown, second?: object) => {
      // A quoted route takes one object, any other operation its data and then options.
      const given = (splitRouteName(name) ? first : { ...second, body: first }) as Given | undefined;
      return start(options, given, () => requestOf(base + group, name, given));
    });
  return withEveryName(operationsOf) as Client<Groups>;
}

/** An object that has something under every name but `then`, for which `await` would take it for a promise. */
function withEveryName<T>(make: (name: string) => T): object {
  return new Proxy<Record<string, T>>(Object.create(null), {
    get(made, name) {
      if (typeof name !== 'string' || name === 'then') return undefined;
      made[name] ??= make(name);
      return made[name];
    },
  });
}

/**
 * Sends at once. The body is read when somebody asks for the result, so that a download can be had as a stream instead.
 */
function start(
  client: ClientOptions,
  { signal, headers: own, timeout = client.timeout }: CallOptions = {},
  prepare: () => WireRequest,
): Call<unknown> {
  const abort = new AbortController();
  const cancel = () => abort.abort(signal?.reason);
  if (signal?.aborted) cancel();
  else signal?.addEventListener('abort', cancel, { signal: abort.signal });
  // Lets go of the connection, if it is still held, and of the caller's signal. A caller who reads `response` keeps
  // both: an abort must still end the download.
  const close = () => abort.abort();

  async function send(lastEventId = ''): Promise<Response> {
    const { url, verb, data } = prepare();
    const headers = new Headers({ ...client.headers, ...own });
    const authorization =
      typeof client.authorization === 'function' ? await client.authorization() : client.authorization;
    if (authorization) headers.set('authorization', authorization);
    if (lastEventId) headers.set('last-event-id', lastEventId);
    const body = encode(data, headers);
    const { fetch: request = fetch } = client;
    // Node takes a stream as a body only with `duplex`, which the type does not know.
    const init = { method: verb, headers, body, signal: abort.signal, duplex: 'half' };
    const response = await limited(request(url, init as RequestInit));
    if (response.ok) return response;
    throw refusalOf(response, await limited(response.text()));
  }

  async function read(response: Response): Promise<unknown> {
    const type = response.headers.get('content-type') ?? '';
    if (type.startsWith('text/event-stream'))
      return readEvents(response, prepare().verb === 'GET' ? send : undefined, abort);
    try {
      if (/[/+]json\b/.test(type))
        return await limited(response.text().then((text) => (text ? JSON.parse(text) : undefined)));
      const bytes = await limited(response.blob());
      // What has neither a type nor a byte has no body, as 204.
      return type || bytes.size > 0 ? bytes : undefined;
    } finally {
      close();
    }
  }

  /** What goes wrong on the way, in one class. */
  async function limited<T>(work: Promise<T>): Promise<T> {
    const late = () => abort.abort(new ApiError(0, 'TIMEOUT', `No answer within ${timeout} ms`));
    const timer = timeout === undefined ? undefined : setTimeout(late, timeout);
    try {
      return await work;
    } catch (cause) {
      if (abort.signal.aborted) throw abort.signal.reason;
      throw new ApiError(0, 'NETWORK_ERROR', 'No whole answer came from the service', { cause });
    } finally {
      clearTimeout(timer);
    }
  }

  const response = send().catch((error) => {
    close();
    throw error;
  });
  let result: Promise<unknown> | undefined;
  const wait = () => {
    result ??= response.then(read);
    return result;
  };
  return {
    response,
    // biome-ignore lint/suspicious/noThenProperty: a call is a promise whose body is read when somebody awaits it.
    then: (done, failed) => wait().then(done, failed),
    catch: (failed) => wait().catch(failed),
    finally: (done) => wait().finally(done),
    [Symbol.toStringTag]: 'Call',
  };
}

function refusalOf(response: Response, text: string): ApiError {
  const { status, statusText } = response;
  let envelope: { error_code?: string; message?: string; errors?: readonly FieldError[]; request_id?: string } = {};
  try {
    envelope = Object(JSON.parse(text));
  } catch {
    // Of somebody between here and the service.
  }
  const {
    error_code: code = `HTTP_${status}`,
    message = statusText || `HTTP ${status}`,
    errors,
    request_id: requestId,
  } = envelope;
  return new ApiError(status, code, message, { errors, requestId, response });
}
