// The port of the service: this process binds it once and shares the socket with every worker, which accept on it. It
// never accepts itself. While no worker lives, the kernel completes connections and keeps them, as many as the workers'
// backlog.
import { lookup } from 'node:dns/promises';
import net from 'node:net';
import { getSystemErrorName } from 'node:util';

/** The service cannot start; the message is one line for the person who started it. */
export class StartError extends Error {}

/** As libuv has it: it goes to a worker by `worker.send()`, and `server.listen()` takes it there. */
export interface BoundSocket {
  close(): void;
}

export interface Port {
  readonly number: number;
  readonly socket: BoundSocket;
  /** One line that says why no worker can accept. @param code of the system's error */
  describeError(code: string): string;
  /** Lets go of this process's copy: the socket ends with the last worker that has one. */
  close(): void;
}

type Handle = BoundSocket & { getsockname(into: { port?: number }): number };

/**
 * What node:cluster itself binds with, on every Node since 0.6. It is not documented, but no documented way leads to a
 * socket that is bound and on which this process does not accept; the port's test holds it on each Node that we
 * support.
 */
const { _createServerHandle: bind } = net as unknown as {
  _createServerHandle(address: string | null, port: number, family: number): Handle | number;
};

/**
 * @param port 0: any free one
 * @param host undefined: all interfaces
 * @throws StartError one line, when it cannot be had
 */
export async function openPort(port: number, host: string | undefined): Promise<Port> {
  const fail = (code: string) => new StartError(describeListenError(port, host, code));
  const { address, family } = await addressOf(host).catch((error: NodeJS.ErrnoException) => {
    throw fail(error.code ?? String(error));
  });
  const socket = bind(address, port, family);
  if (typeof socket === 'number') throw fail(getSystemErrorName(socket));
  const bound: { port?: number } = {};
  const status = socket.getsockname(bound);
  // libuv tells of a busy port only when somebody listens, and the socket is bound to nothing till then.
  if (status !== 0 || !bound.port || (port !== 0 && bound.port !== port)) {
    socket.close();
    throw fail('EADDRINUSE');
  }
  return {
    number: bound.port,
    socket,
    // It was free when it was bound.
    describeError: (code) =>
      describeListenError(bound.port ?? port, host, code).replace(REASONS.EADDRINUSE ?? '', TAKEN),
    close: () => socket.close(),
  };
}

async function addressOf(host: string | undefined): Promise<{ address: string | null; family: number }> {
  return host === undefined ? { address: null, family: 6 } : lookup(host);
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'it is in use by another process',
  EACCES: 'this user may not listen on it',
  EADDRNOTAVAIL: 'the address is not one of this machine',
  ENOTFOUND: 'the host name cannot be resolved',
};

const TAKEN = 'a controller, or another process, has begun to listen on it';

export function describeListenError(port: number, host: string | undefined, code: string): string {
  return `Cannot listen on ${host === undefined ? `port ${port}` : hostAndPort(host, port)}: ${REASONS[code] ?? 'the system refuses'} (${code})`;
}

/** As it stands in a URL (RFC 3986, section 3.2.2); `localhost` for all interfaces, so that the line can be clicked. */
export function hostAndPort(host: string | undefined, port: number): string {
  if (host === undefined) return `localhost:${port}`;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
