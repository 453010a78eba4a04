// The port before any worker exists: is it free, and which one is it when any will do? Workers then all ask for the same
// number, so that it stays the same for as long as the service lives. It keeps nothing open.
import { createServer } from 'node:net';
import { StartError } from './start-error.ts';

/**
 * The port to listen on, tried out.
 *
 * @param port 0: any free one
 * @throws StartError one line, when it cannot be had
 */
export async function findPort(port: number, host: string | undefined): Promise<number> {
  const server = createServer();
  try {
    return await new Promise<number>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ port, host }, () => {
        const address = server.address();
        resolve(typeof address === 'object' && address !== null ? address.port : port);
      });
    });
  } catch (error) {
    throw new StartError(describeListenError(port, host, (error as NodeJS.ErrnoException).code ?? String(error)));
  } finally {
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'it is in use by another process',
  EACCES: 'this user may not listen on it',
  EADDRNOTAVAIL: 'the address is not one of this machine',
  ENOTFOUND: 'the host name cannot be resolved',
};

export function describeListenError(port: number, host: string | undefined, code: string): string {
  return `Cannot listen on ${host === undefined ? `port ${port}` : hostAndPort(host, port)}: ${REASONS[code] ?? 'the system refuses'} (${code})`;
}

/** As it stands in a URL (RFC 3986, section 3.2.2); `localhost` for all interfaces, so that the line can be clicked. */
export function hostAndPort(host: string | undefined, port: number): string {
  if (host === undefined) return `localhost:${port}`;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
