// Cuts the connections of clients that do not read their answers. The server holds a whole answer in memory until its
// last byte is sent, so a client that reads nothing occupies memory. Such a client is cut after a time limit, or at the
// next sweep when the unread answers of all clients are too large.
import type { Socket } from 'node:net';
import { tcpCounters } from '../../base/node-internals.ts';
import { connectionOf, sweepsIn, type TrackedSocket } from './connection.ts';

export interface SlowReaderLimits {
  /** Milliseconds after which a client is cut that has not read one more byte of its answer. */
  readonly readTimeout: number;
  /**
   * Maximum unread bytes of all answers together. Beyond this maximum, clients that have read nothing since the last
   * sweep are cut, the longest answer first.
   */
  readonly maxUnread: number;
}

/** @param unsentSockets those that still have unsent bytes. @param sweep the number of this sweep */
export type CutSlowReaders = (unsentSockets: readonly TrackedSocket[], sweep: number) => void;

export function createSlowReaders({ readTimeout, maxUnread }: SlowReaderLimits): CutSlowReaders {
  const maxSweeps = sweepsIn(readTimeout);

  /** Records how much the client has read so far. @returns whether that is more than at the last sweep */
  function recordProgress(socket: TrackedSocket, sweep: number): boolean {
    const connection = connectionOf(socket);
    if (connection.lastExchange !== undefined) connection.lastExchange.answer.unsentBytes = unsentBytes(socket);
    const bytesSent = sentBytes(socket);
    if (bytesSent === connection.lastBytesSent) return false;
    connection.lastBytesSent = bytesSent;
    connection.stalledSince = sweep;
    return true;
  }

  return (unsentSockets, sweep) => {
    const stalledSockets = unsentSockets.filter((socket) => !recordProgress(socket, sweep));
    for (const socket of stalledSockets) if (sweep - connectionOf(socket).stalledSince >= maxSweeps) socket.destroy();
    let excess = -maxUnread;
    for (const { destroyed, writableLength } of unsentSockets) if (!destroyed) excess += writableLength;
    const remainingSockets = stalledSockets.filter(({ destroyed }) => !destroyed);
    for (const socket of remainingSockets.sort((a, b) => b.writableLength - a.writableLength)) {
      if (excess <= 0) return;
      excess -= socket.writableLength;
      socket.destroy();
    }
  };
}

/** Returns the number of bytes that the server has written and that the kernel has not taken yet. */
export function unsentBytes(socket: Socket): number {
  if (socket.writableLength === 0) return 0;
  return tcpCounters(socket).writeQueueSize ?? socket.writableLength;
}

/**
 * Returns the number of bytes that the kernel has taken so far. The number grows when the client reads, even if the
 * client has read only a part of what one `write` call of the server passed on.
 */
function sentBytes(socket: Socket): number {
  return (tcpCounters(socket).bytesWritten ?? socket.bytesWritten) - unsentBytes(socket);
}
