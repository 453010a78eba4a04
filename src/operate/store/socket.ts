// Opens the socket to PostgreSQL and starts TLS itself, because the package `postgres` checks the certificate of an IP
// address as if the host were `localhost`, and a write after it has closed a TLS connection ends the process.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { describeFailure } from '../../base/failure.ts';
import type { StoreAddress } from '../../base/store-address.ts';
import { StoreAway } from './store.ts';

export interface SocketOptions {
  readonly address: Pick<StoreAddress, 'tls' | 'rootCertificate'>;
  readonly host: string;
  readonly port: number;
  /** Called with the TCP socket, and then with the TLS socket over it. Destroying the newer socket ends the attempt. */
  readonly onSocket: (socket: Socket) => void;
}

/** The message `SSLRequest` of PostgreSQL's protocol, which asks for TLS: its length 8 and the code 80877103. */
const SSL_REQUEST = Buffer.from('0000000804d2162f', 'hex');
/** The letter `S`, the server's answer when it accepts TLS. */
const TLS_ACCEPTED = 0x53;

/**
 * Resolves when the socket is connected and, if the address asks for TLS, the certificate is verified.
 *
 * @throws Error also when the address asks for TLS and the server does not offer it
 */
export async function openSocket({ address, host, port, onSocket }: SocketOptions): Promise<Socket> {
  const trust = readRootCertificate(address);
  const socket = connect({ host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: 10_000 });
  onSocket(socket);
  await waitFor(socket, 'connect');
  if (address.tls === 'off') return socket;
  socket.write(SSL_REQUEST);
  // Further bytes are refused. An attacker could have added them before TLS protects the connection (CVE-2021-23222).
  const answer = await waitFor(socket, 'data');
  if (answer.length !== 1 || answer[0] !== TLS_ACCEPTED) throw new Error('the server offers no TLS');
  // RFC 6066 forbids an IP address as `servername`. Without a `servername`, Node checks the certificate for `host`.
  const hostNames = isIP(host) === 0 ? { host, servername: host } : { host };
  const tlsSocket = connectTls({ socket, ...hostNames, ...trust, rejectUnauthorized: true });
  onSocket(tlsSocket);
  await waitFor(tlsSocket, 'secureConnect');
  return tlsSocket;
}

/** Resolves with the value of the next event of this name. @throws Error when the socket fails or closes first */
async function waitFor(socket: Socket, eventName: string): Promise<Buffer> {
  const closed = once(socket, 'close').then(() => {
    throw new Error('the connection was closed');
  });
  const [value] = await Promise.race([once(socket, eventName), closed]);
  return value;
}

function readRootCertificate({ tls, rootCertificate }: SocketOptions['address']): { ca?: Buffer } {
  if (tls === 'off' || rootCertificate === undefined) return {};
  try {
    return { ca: readFileSync(rootCertificate) };
  } catch (error) {
    throw new StoreAway(`Cannot read ${rootCertificate}: ${describeFailure(error)}`, { needsOperator: true });
  }
}
