// Hands a request over to a handler of Node's own types, such as an Express application, and watches the answer that
// the handler writes. Express replaces the prototypes of both objects, so no method of this project is called on the
// request, and properties of the response watch the answer.
import type { ServerResponse } from 'node:http';
import type { NodeHandler } from '../api/controller/mount.ts';
import { refusal } from '../base/errors.ts';
import { describeError, idsOf } from '../base/log.ts';
import { reviveRequest, watchBody } from '../base/node-internals.ts';
import type { OwnHeaders } from '../base/own-headers.ts';
import { isObject, isThenable } from '../base/values.ts';
import { logBrokenStream } from './answer/refusals.ts';
import type { Responder } from './answer/response.ts';
import { NEVER_A_BODY } from './answer/result.ts';
import { tooLarge } from './body/body.ts';
import type { Exchange } from './exchange.ts';
import type { CallOptions } from './operation-call.ts';
import type { ResolvedPath } from './router.ts';
import { targetOf } from './web-request.ts';

/** The methods that have no effect once the service has answered for a handler that is late. */
const WRITERS = 'setHeader appendHeader removeHeader flushHeaders addTrailers writeHead write end'.split(' ');

export function handOver(exchange: Exchange, options: CallOptions): void {
  const { log, respond, bodyLimit, processLimits } = options;
  const { streamedUploads } = processLimits;
  const { request, response, answer, choice } = exchange;
  const { settings, method } = choice.operation;
  const fail = (error: unknown) => respond.fail(exchange, error);
  if (response.destroyed) return respond.complete(exchange, 499, 0);
  exchange.body.isStreamed = exchange.hasBody;
  reviveRequest(request, response);
  if (exchange.hasBody && !request.complete) streamedUploads.begin(exchange, fail);
  const { bodyLimit: limit = bodyLimit } = settings;
  let size = 0;
  watchBody(request, {
    wait: () => streamedUploads.beginWait(exchange),
    receive(length) {
      if (length === undefined) return streamedUploads.end(exchange);
      streamedUploads.endWait(exchange);
      size += length;
      if (size > limit) fail(tooLarge(limit));
    },
  });
  if (answer.isComplete) return;
  setTarget(exchange);
  if (exchange.body.expectsContinue) response.writeContinue();
  const lines = respond.linesOf(exchange);
  appendLines(response, lines);
  const bytesOf = watchAnswer(exchange, respond);
  answer.live = {
    // The handler learns from Node's own events that its client has left.
    cancel() {},
    fail(error) {
      const { group, operation } = exchange;
      const reason = describeError(error);
      // An answer that is whole is still sent.
      if (response.writableEnded)
        return log.warn('operation-failed-late', { ...idsOf(exchange), group, operation, ...reason });
      logBrokenStream(log, exchange, error);
      respond.complete(exchange, response.statusCode, bytesOf());
      response.destroy();
    },
  };
  answer.takeBack = () => {
    for (const name of ['writeHead', 'write', 'end']) Reflect.deleteProperty(response, name);
    const { writeHead } = response;
    // Where a header was set before, `writeHead` of Node 20 sends only the last of several lines with one name.
    const sendHead = (status: number, headers: readonly string[]) => {
      for (const name of response.getHeaderNames()) response.removeHeader(name);
      appendLines(response, headers);
      return Reflect.apply(writeHead, response, [status]);
    };
    Object.assign(response, { writeHead: sendHead });
    response.statusMessage = '';
    response.shouldKeepAlive = false;
    // After the end of its response, a request learns nothing more from Node, so its reader would wait for ever.
    const aborted = Object.assign(new Error('aborted'), { code: 'ECONNRESET' });
    exchange.socket.once('close', () => request.destroy(aborted));
    // The caller answers at once. The end of the answer can be seconds later.
    queueMicrotask(() => {
      for (const name of WRITERS) Object.assign(response, { [name]: () => response });
    });
  };
  const next = (error?: unknown) => fail(error ?? refusal('ROUTE_NOT_FOUND'));
  const result: unknown = (method as unknown as NodeHandler)(request, response, next);
  if (isThenable(result)) result.then(undefined, fail);
}

/** Reports the head and the end of the answer. @returns a function that returns the bytes of the body so far */
function watchAnswer(exchange: Exchange, respond: Responder): () => number {
  const { response, verb, answer } = exchange;
  const { writeHead, write, end } = response;
  let bytes = 0;
  const count =
    (method: typeof write | typeof end) =>
    (...args: unknown[]) => {
      const [chunk, encoding] = args;
      if (typeof chunk === 'string') bytes += Buffer.byteLength(chunk, encoding as BufferEncoding);
      else if (chunk instanceof Uint8Array) bytes += chunk.length;
      return Reflect.apply(method, response, args);
    };
  Object.assign(response, {
    // Node itself calls this method of the object for a handler that calls only `write` or `end`.
    writeHead(...args: unknown[]) {
      respond.handOverHead(exchange, () =>
        Reflect.apply(writeHead, response, setHeaders(response, answer.ownHeaders, args)),
      );
      return response;
    },
    write: count(write),
    end: count(end),
  });
  const bytesOf = () => (verb === 'HEAD' || NEVER_A_BODY.has(response.statusCode) ? 0 : bytes);
  const done = () => {
    if (!answer.isComplete) respond.complete(exchange, response.statusCode, bytesOf());
  };
  response.on('finish', done).on('close', done);
  // A write after the end is an error of the handler, which must not end the process.
  response.on('error', () => {});
  return bytesOf;
}

/**
 * Sets the headers that the handler passes to `writeHead`, and then those of `params.setHeader` which it has replaced.
 * For example, a library sets all its cookies by one `setHeader`, which drops those of `authenticate`. A proxy passes
 * lines such as `rawHeaders`, of which `writeHead` of Node 20 would send only the last one with a name.
 *
 * @returns the arguments without the headers that are set
 */
function setHeaders(response: ServerResponse, ownHeaders: OwnHeaders | undefined, args: unknown[]): unknown[] {
  const passed = args.at(-1);
  if (ownHeaders === undefined && !Array.isArray(passed)) return args;
  if (isObject(passed) || Array.isArray(passed)) {
    const lines: readonly unknown[] = Array.isArray(passed) ? passed : Object.entries(passed).flat();
    for (let i = 0; i < lines.length; i += 2) response.removeHeader(lines[i] as string);
    appendLines(response, lines);
  }
  const lines = Object.entries(response.getHeaders()).flatMap(([name, value]) =>
    [value].flat().flatMap((one) => [name, String(one)]),
  );
  appendLines(response, ownHeaders?.addTo(lines, true).slice(lines.length) ?? []);
  return args.filter((arg) => typeof arg !== 'object');
}

function appendLines(response: ServerResponse, lines: readonly unknown[]): void {
  for (let i = 0; i < lines.length; i += 2) response.appendHeader(lines[i] as string, lines[i + 1] as string);
}

/** Gives the request the path as the client sent it, or what is left of it behind the group. */
export function setTarget(exchange: Exchange): void {
  const { request, choice } = exchange;
  request.url = targetOf(exchange);
  if (choice.operation.mount?.strips) Object.assign(request, { originalUrl: request.url, url: pathBelow(exchange) });
}

/** Returns the URL without the path of the group. A path may have several slashes between two segments. */
function pathBelow({ request, resolvedPath, slugs }: Exchange): string {
  let url = request.url as string;
  for (let i = (resolvedPath as ResolvedPath).path.segments.length - slugs.length; i > 0; i--)
    url = url.replace(/^\/+[^/?]*/, '');
  return url.startsWith('/') ? url : `/${url}`;
}
