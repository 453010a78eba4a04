// The HTTP/1.1 connection to the collector. Node's own HTTP client is not used here. The client and the server of
// `node:http` share code, and V8 has optimised that code for the server. When the client runs in the same process, V8
// drops the optimised code, and each request that the service answers costs a tenth more (bench/traces.mjs).
import { connect, isIP, type Socket } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { tls } from '../base/builtins.ts';
import { withoutBrackets } from '../base/values.ts';
import { type Answer, parseAnswer } from './answer.ts';

export interface ConnectionTarget {
  readonly endpoint: URL;
  /** The header fields of each request, by name, without `host` and `content-length`. */
  readonly headers: Readonly<Record<string, string>>;
  /** Used when the endpoint begins with `https:`. */
  readonly tlsOptions: Pick<ConnectionOptions, 'ca' | 'cert' | 'key'>;
}

/**
 * Sends one POST and resolves with its answer. The caller waits for the answer before it sends the next request.
 *
 * @param timeLimit milliseconds
 * @throws Error when the collector cannot be reached, does not answer in time, or does not answer in HTTP/1
 */
export type SendPost = (body: Buffer, timeLimit: number) => Promise<Answer>;

/**
 * Milliseconds after an answer until the connection is closed, unless it is used again. Collectors close their side
 * after some seconds, and a request that is sent just then would fail.
 */
const MAX_IDLE = 1000;

/** The listeners of the request that waits for its answer. */
interface PendingAnswer {
  readonly onBytes: (bytes: Buffer) => void;
  /** Called with the error that ended the connection; undefined when the collector has closed it. */
  readonly onClose: (error: Error | undefined) => void;
}

export function createConnection({ endpoint, headers, tlsOptions }: ConnectionTarget): SendPost {
  const host = withoutBrackets(endpoint.hostname);
  const isSecure = endpoint.protocol === 'https:';
  const port = Number(endpoint.port) || (isSecure ? 443 : 80);
  const fields = Object.entries({ host: endpoint.host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  const requestHead = `POST ${endpoint.pathname}${endpoint.search} HTTP/1.1\r\n${fields.join('')}`;
  let connection: Socket | undefined;
  let pendingAnswer: PendingAnswer | undefined;
  let idleTimer: NodeJS.Timeout | undefined;

  function open(): Socket {
    // RFC 6066 forbids an IP address as `servername`. Without it, Node checks the certificate for `host`.
    const socket = isSecure
      ? tls().connect({ host, port, ...(isIP(host) === 0 && { servername: host }), ...tlsOptions })
      : connect({ host, port });
    let failure: Error | undefined;
    socket.setNoDelay();
    socket.on('error', (error) => {
      failure = error;
    });
    // Nothing is expected while no answer is pending. Bytes that come then could be taken for the next answer.
    socket.on('data', (bytes: Buffer) => (pendingAnswer === undefined ? close() : pendingAnswer.onBytes(bytes)));
    socket.on('close', () => {
      // The function `close` has already dropped this socket, and another one may be in use.
      if (socket !== connection) return;
      connection = undefined;
      pendingAnswer?.onClose(failure);
    });
    return socket;
  }

  function close(): void {
    const socket = connection;
    connection = undefined;
    socket?.destroy();
  }

  return (body, timeLimit) =>
    new Promise((resolve, reject) => {
      clearTimeout(idleTimer);
      connection ??= open();
      const socket = connection;
      const timer = setTimeout(
        () => finishRequest(() => reject(new Error('the collector did not answer in time')), false),
        timeLimit,
      );
      let received = Buffer.alloc(0);

      function finishRequest(resolveOrReject: () => void, staysOpen: boolean): void {
        clearTimeout(timer);
        pendingAnswer = undefined;
        // A collector can answer before the whole body is sent. Closing the connection then drops the unsent bytes.
        if (staysOpen && socket.writableLength === 0) idleTimer = setTimeout(close, MAX_IDLE);
        else close();
        resolveOrReject();
      }
      function readAnswer(isClosed: boolean): void {
        try {
          const answer = parseAnswer(received, isClosed);
          if (answer !== undefined) finishRequest(() => resolve(answer), answer.keepsConnection);
        } catch (error) {
          finishRequest(() => reject(error), false);
        }
      }
      pendingAnswer = {
        onBytes(bytes) {
          received = Buffer.concat([received, bytes]);
          readAnswer(false);
        },
        onClose: (error) => (error === undefined ? readAnswer(true) : finishRequest(() => reject(error), false)),
      };
      // The values of header fields are bytes and not UTF-8 (environment.ts allows only characters of one byte).
      socket.cork();
      socket.write(`${requestHead}content-length: ${body.length}\r\n\r\n`, 'latin1');
      socket.write(body);
      socket.uncork();
    });
}
