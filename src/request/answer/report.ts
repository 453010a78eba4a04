// Reports each answer to the log, the metrics and a tracing tool: now, or when the kernel has taken the whole answer.
import { performance } from 'node:perf_hooks';
import { unsentBytes } from '../connections/slow-readers.ts';
import type { Exchange } from '../exchange.ts';
import { endEvent, routeOf } from '../request-event.ts';
import type { ResponderOptions } from './response.ts';

export interface RequestObserver {
  /**
   * @param status the status of the answer that was sent; 499 when the client has left
   * @param duration milliseconds since the head of the request
   * @param route the template of the path, such as `/api/order/{id}`; undefined when no operation was found
   */
  answered(exchange: Exchange, status: number, bytes: number, duration: number, route: string | undefined): void;
}

export type Report = (exchange: Exchange, status: number, bytes: number) => void;

export function createReport({ accessLog, observer, basePath }: ResponderOptions): Report {
  function report(exchange: Exchange, status: number, bytes: number): void {
    if (accessLog !== undefined || observer !== undefined) {
      const now = performance.now();
      accessLog?.(exchange, status, bytes, now);
      observer?.answered(exchange, status, bytes, now - exchange.startedAt, routeOf(exchange, basePath));
    }
    endEvent(exchange, status, bytes);
  }

  return (exchange, status, bytes) => {
    if (accessLog === undefined && observer === undefined && exchange.event === undefined) return;
    const { response } = exchange;
    // If the client has left, the log says 499, as nginx does.
    if (response.destroyed) return report(exchange, 499, bytes);
    const { socket } = response;
    exchange.answer.unsentBytes = socket === null ? 0 : unsentBytes(socket);
    if (exchange.answer.unsentBytes === 0) return report(exchange, status, bytes);
    // The kernel has not taken the whole answer yet, so the report waits. Node also emits 'finish' after a failed
    // write, so the listeners check the socket, too.
    let isFinished = false;
    response.on('finish', () => {
      isFinished = socket?.destroyed === false;
    });
    response.on('close', () => {
      if (isFinished && socket?.errored === null) report(exchange, status, bytes);
      else report(exchange, 499, Math.max(0, bytes - exchange.answer.unsentBytes));
    });
  };
}
