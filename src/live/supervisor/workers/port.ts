// The port of the service. The supervisor binds the port once and shares the socket with every worker, but never
// accepts connections itself. While no worker lives, the kernel still completes connections and holds them for the next
// worker, as many as the backlog of the socket allows.
import { lookup } from 'node:dns/promises';
import { getSystemErrorName } from 'node:util';
import { adoptSocket, type BoundSocket, bindSocket } from '../../../base/node-internals.ts';

/** The reason why the service cannot start, in one line for the person who started it. */
export class StartError extends Error {}

export interface Port {
  readonly number: number;
  readonly socket: BoundSocket;
  /** Returns one line that says why no worker can accept. @param code of the system's error */
  describeError(code: string): string;
  /** Closes this process's copy of the socket. The socket itself is closed when the last worker has closed its copy. */
  close(): void;
}

/** @param port 0 for any free port @param host undefined for all interfaces @throws StartError */
export async function openPort(port: number, host: string | undefined): Promise<Port> {
  const fail = (code: string) => {
    return new StartError(describeListenError(port, host, code) + (CURES[code] ?? ''));
  };
  const { address, family } = await addressOf(host).catch((error: NodeJS.ErrnoException) => {
    throw fail(error.code ?? String(error));
  });
  const bound = bindSocket(address, port, family);
  if (typeof bound === 'number') throw fail(getSystemErrorName(bound));
  const { socket, port: boundPort } = bound;
  if (boundPort === undefined || (port !== 0 && boundPort !== port)) {
    socket.close();
    throw fail('EADDRINUSE');
  }
  return {
    number: boundPort,
    socket,
    // The port was free when it was bound, so EADDRINUSE means that somebody has begun to listen on it since then.
    describeError: (code) =>
      describeListenError(boundPort, host, code, code === 'EADDRINUSE' ? PORT_TAKEN_LATER : REASONS[code]),
    close: () => socket.close(),
  };
}

/**
 * Takes the socket that systemd has opened, and that stays open while the service is replaced.
 *
 * @throws StartError when the socket is not the one that PORT and HOST name
 */
export async function adoptPort(fd: number, port: number, host: string | undefined): Promise<Port> {
  const adopted = adoptSocket(fd);
  if (adopted === undefined) throw new StartError(`LISTEN_FDS: descriptor ${fd} is no TCP socket`);
  const { socket, port: number, address } = adopted;
  const wanted =
    host === undefined ? ['::', '0.0.0.0'] : [(await lookup(host).catch(() => ({ address: host }))).address];
  if ((port !== 0 && port !== number) || !wanted.includes(address)) {
    socket.close();
    throw new StartError(
      `LISTEN_FDS: the socket listens on ${hostAndPort(address, number)}, and the service is for ${hostAndPort(host ?? '::', port)}: make ListenStream= agree with PORT and HOST`,
    );
  }
  return {
    number,
    socket,
    describeError: (code) => describeListenError(number, host, code),
    close: () => socket.close(),
  };
}

/** Without a host, the socket is bound to all IPv6 and IPv4 interfaces. */
async function addressOf(host: string | undefined): Promise<{ address: string | null; family: number }> {
  return host === undefined ? { address: null, family: 6 } : lookup(host);
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'it is in use by another process',
  EACCES: 'this user may not listen on it',
  EADDRNOTAVAIL: 'the address is not one of this machine',
  ENOTFOUND: 'the host name cannot be resolved',
};

const HOST_CURE = '; set HOST to an address of this machine';
const CURES: Readonly<Record<string, string>> = {
  EADDRINUSE: '; choose another one: PORT=3001 or --port 3001',
  EADDRNOTAVAIL: HOST_CURE,
  ENOTFOUND: HOST_CURE,
  EAI_AGAIN: HOST_CURE,
};

const PORT_TAKEN_LATER = 'a controller or another process has begun to listen on it';

export function describeListenError(port: number, host: string | undefined, code: string, reason = REASONS[code]) {
  const endpoint = host === undefined ? `port ${port}` : hostAndPort(host, port);
  return `Cannot listen on ${endpoint}: ${reason ?? 'the system refuses'} (${code})`;
}

/** Returns the host and port of a URL (RFC 3986, 3.2.2): `localhost` for all interfaces, which can be clicked. */
export function hostAndPort(host: string | undefined, port: number): string {
  if (host === undefined) return `localhost:${port}`;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
