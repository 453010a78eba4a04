// The socket of a connection to PostgreSQL. TLS begins here and not in the package `postgres`, for two reasons. The
// package checks the certificate for an IP address as if it were for `localhost`. And when the package's TLS connection
// is closed, a late write fails outside of any handler, which would end the process.
import { readFileSync } from 'node:fs';
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { describeFailure } from '../base/failure.ts';
import type { StoreAddress } from '../base/store-address.ts';
import { StoreAway } from './store.ts';

export interface SocketOptions {
  readonly address: Pick<StoreAddress, 'tls' | 'rootCertificate'>;
  readonly host: string;
  readonly port: number;
  /** Called with each socket that must be destroyed to end the attempt. */
  readonly onSocket: (socket: Socket) => void;
}

/** Asks the server to begin TLS: the length of the message and the code 80877103, as the protocol has them. */
const SSL_REQUEST = Buffer.from('0000000804d2162f', 'hex');
/** The server's answer to it: `S`. */
const ACCEPTED = 0x53;

/**
 * Resolves when the socket can carry messages: it is connected and, if the address asks for TLS, the certificate is
 * verified.
 *
 * @throws Error also when the server does not offer TLS
 */
export async function openSocket({ address, host, port, onSocket }: SocketOptions): Promise<Socket> {
  const authority = readAuthority(address);
  const socket = connect({ host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: 10_000 });
  onSocket(socket);
  await event(socket, 'connect');
  if (address.tls === 'off') return socket;
  socket.write(SSL_REQUEST);
  // More bytes than the answer could be messages that an attacker sent before TLS protects the connection
  // (CVE-2021-23222).
  const answer = await event(socket, 'data');
  if (answer.length !== 1 || answer[0] !== ACCEPTED) throw new Error('the server offers no TLS');
  // Node checks the certificate for `host`, when there is no `servername`. RFC 6066 allows no address as `servername`.
  const names = isIP(host) === 0 ? { host, servername: host } : { host };
  const secured = connectTls({ socket, ...names, ...authority, rejectUnauthorized: true });
  onSocket(secured);
  await event(secured, 'secureConnect');
  return secured;
}

function event(socket: Socket, name: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const onClose = () => reject(new Error('the connection was closed'));
    socket.once('error', reject);
    socket.once('close', onClose);
    socket.once(name, (value: Buffer) => {
      socket.off('error', reject);
      socket.off('close', onClose);
      resolve(value);
    });
  });
}

function readAuthority({ tls, rootCertificate }: SocketOptions['address']): { ca?: Buffer } {
  if (tls === 'off' || rootCertificate === undefined) return {};
  try {
    return { ca: readFileSync(rootCertificate) };
  } catch (error) {
    throw new StoreAway(`Cannot read ${rootCertificate}: ${describeFailure(error)}`, { isFinal: true });
  }
}
