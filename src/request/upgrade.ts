// Hands the socket of a WebSocket handshake over to `upgrade` of a mount. The socket counts as an answer that streams:
// the first bytes that the handler writes are its head, and the close of the socket is its end.
import type { UpgradeHandler } from '../api/controller/mount.ts';
import { lendSocket } from '../base/node-internals.ts';
import { isThenable } from '../base/values.ts';
import { logBrokenStream } from './answer/refusals.ts';
import { parseQuery } from './body/form.ts';
import type { Exchange } from './exchange.ts';
import { setTarget } from './node-mount.ts';
import type { CallOptions } from './operation-call.ts';
import { Params } from './params.ts';

export function handOver(exchange: Exchange, options: CallOptions): void {
  const { log, respond } = options;
  const { request, socket, answer, choice, queryText } = exchange;
  if (socket.destroyed) return respond.complete(exchange, 499, 0);
  const sentBefore = socket.bytesWritten;
  let status = 499;
  const release = () => {
    for (const name of ['write', 'end']) Reflect.deleteProperty(socket, name);
  };
  const watch = (name: 'write' | 'end') =>
    function watched(...args: unknown[]): unknown {
      release();
      status = Number(/^HTTP\/1\.1 (\d{3})/.exec(String(args[0]))?.[1] ?? 101);
      respond.handOverHead(exchange, () => {});
      return Reflect.apply(socket[name], socket, args);
    };
  Object.assign(socket, { write: watch('write'), end: watch('end') });
  const takeBack = lendSocket(socket);
  // The response is closed by a later listener. For a response that is closed, the log would say 499.
  socket.prependListener('close', () => {
    respond.complete(exchange, status, socket.bytesWritten - sentBefore);
    takeBack();
  });
  answer.takeBack = () => {
    release();
    takeBack();
  };
  answer.live = {
    // The handler learns from `signal` that its socket has to end.
    cancel() {},
    fail(error) {
      logBrokenStream(log, exchange, error);
      exchange.abort(new Error('the socket was ended', { cause: error }));
      socket.destroy();
    },
  };
  setTarget(exchange);
  const upgrade = choice.operation.mount?.upgrade as UpgradeHandler;
  const params = new Params(exchange, parseQuery(queryText), options, undefined);
  const result = upgrade(request, socket, request.upgradeHead as Buffer, params);
  if (isThenable(result)) result.then(undefined, (error) => respond.fail(exchange, error));
}
