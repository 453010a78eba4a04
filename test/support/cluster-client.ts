// A load client over plain sockets. It counts each answer and describes each that is incomplete or malformed. Unlike
// client libraries, it never retries silently.
import { connect, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { connect as connectSecurely, type TLSSocket } from 'node:tls';

export interface Answer {
  readonly status: number;
  readonly headers: string;
  readonly body: string;
}

export interface Failure {
  readonly kind: 'refused' | 'reset' | 'no answer' | 'short answer' | 'malformed' | 'wrong';
  readonly detail: string;
  /** Milliseconds since the start of the load. */
  readonly at: number;
}

export interface LoadReport {
  readonly answers: number;
  readonly failures: readonly Failure[];
}

export interface LoadOptions {
  readonly port: number;
  readonly connections: number;
  readonly mode: 'kept-alive' | 'one request a connection';
  readonly path?: string;
  /** Milliseconds between an answer and the next request. Default: 0. */
  readonly pause?: number;
  /** Whether to use HTTPS. Default: plain HTTP. */
  readonly tls?: TlsOptions;
  /** Returns the fault of an answer, or undefined. */
  readonly check?: (answer: Answer) => string | undefined;
}

export interface TlsOptions {
  readonly servername: string;
  /** The trusted root certificates (PEM). No others are trusted. */
  readonly ca: string | readonly string[];
  /** Called with each new connection. */
  readonly onSecure?: (socket: TLSSocket) => void;
}

export interface Load {
  readonly answered: () => number;
  /** Resolves as soon as `test` accepts an answer. */
  until(test: (answer: Answer) => boolean): Promise<Answer>;
  stop(): Promise<LoadReport>;
}

/**
 * Milliseconds. A draining worker closes connections that were idle for 1.5 s. A client must repeat a request that was
 * on its way when its connection closed (RFC 9112, section 9.3.1; docs/LIVE.md). This client pauses that long only when
 * the machine is too busy to run it.
 */
const STALL = 1000;
/** Milliseconds. Without this limit, a request that is never answered would hold its test without a word. */
const LONGEST_ANSWER = 150_000;

export function startLoad(
  test: Pick<TestContext, 'after'>,
  { port, connections, mode, path = '/api/test', pause = 0, tls, check = mustBe200 }: LoadOptions,
): Load {
  const begun = performance.now();
  const failures: Failure[] = [];
  const watchers = new Set<(answer: Answer) => void>();
  let answers = 0;
  let stopped = false;
  /** When this process last noticed that it had not run for a while. */
  let stalledAt = 0;
  let ticked = begun;
  const tick = () => {
    const now = performance.now();
    if (now - ticked > STALL) stalledAt = now;
    ticked = now;
  };
  const ticking = setInterval(tick, 50);
  const clients = Array.from({ length: connections }, async () => {
    let connection: Connection | undefined;
    /** When the previous request was sent, or when the connection was made. */
    let before = 0;
    while (!stopped) {
      if (connection === undefined || connection.isClosed()) {
        connection = openConnection(port, tls);
        before = performance.now();
      }
      tick();
      const sent = performance.now();
      const outcome = await connection.ask(request(path, mode));
      if ('kind' in outcome && stalledAt > before && (outcome.kind === 'no answer' || outcome.kind === 'reset')) {
        connection.close();
        connection = undefined;
        continue;
      }
      before = sent;
      if ('kind' in outcome) {
        failures.push({ ...outcome, at: Math.round(performance.now() - begun) });
        connection.close();
        connection = undefined;
        await new Promise((resolve) => setTimeout(resolve, 5));
        continue;
      }
      answers++;
      const wrong = check(outcome);
      if (wrong !== undefined)
        failures.push({ kind: 'wrong', detail: wrong, at: Math.round(performance.now() - begun) });
      for (const watch of watchers) watch(outcome);
      if (mode !== 'kept-alive' || /^connection: close\r?$/im.test(outcome.headers)) {
        connection.close();
        connection = undefined;
      }
      if (pause > 0) await new Promise((resolve) => setTimeout(resolve, pause));
    }
    connection?.close();
  });
  test.after(() => {
    clearInterval(ticking);
    stopped = true;
  });
  return {
    answered: () => answers,
    until: (test) =>
      new Promise((resolve) => {
        const watch = (answer: Answer) => {
          if (!test(answer)) return;
          watchers.delete(watch);
          resolve(answer);
        };
        watchers.add(watch);
      }),
    async stop() {
      stopped = true;
      await Promise.all(clients);
      return { answers, failures };
    },
  };
}

/** Makes one request on a new connection. @throws Error when the answer is incomplete */
export async function ask(port: number, path: string, method = 'GET', tls?: TlsOptions): Promise<Answer> {
  const connection = openConnection(port, tls);
  const outcome = await connection.ask(`${method} ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
  connection.close();
  if ('kind' in outcome) throw new Error(`${outcome.kind}: ${outcome.detail}`);
  return outcome;
}

export function json(answer: Answer): Record<string, unknown> {
  return JSON.parse(answer.body) as Record<string, unknown>;
}

export interface Connection {
  ask(request: string): Promise<Answer | Omit<Failure, 'at'>>;
  isClosed(): boolean;
  close(): void;
  readonly socket: Socket;
}

export function openConnection(port: number, tls?: TlsOptions): Connection {
  const socket = tls === undefined ? connect({ port, host: '127.0.0.1' }) : openSecurely(port, tls);
  let received = '';
  let ended: Omit<Failure, 'at'> | undefined;
  let isConnected = false;
  let settle: ((outcome: Answer | Omit<Failure, 'at'>) => void) | undefined;
  const finish = (outcome: Answer | Omit<Failure, 'at'>) => {
    const done = settle;
    settle = undefined;
    done?.(outcome);
  };
  socket.setNoDelay(true);
  socket.setEncoding('utf8');
  socket.on('connect', () => {
    isConnected = true;
  });
  socket.on('data', (text: string) => {
    received += text;
    const outcome = parseAnswer(received);
    if (outcome === undefined) return;
    received = '';
    finish(outcome);
  });
  const end = (reason: string, isError: boolean) => {
    ended ??= {
      kind: !isConnected ? 'refused' : received !== '' ? 'short answer' : isError ? 'reset' : 'no answer',
      detail: reason,
    };
    finish(ended);
  };
  socket.on('error', (error) => end(error.message, true));
  socket.on('end', () => end('the server ended the connection', false));
  socket.on('close', () => end('the connection was closed', false));
  return {
    socket,
    ask(text) {
      return new Promise((resolve) => {
        if (ended !== undefined) return resolve(ended);
        const overdue = () => end(`no answer within ${LONGEST_ANSWER / 1000} s`, false);
        const timer = setTimeout(overdue, LONGEST_ANSWER);
        settle = (outcome) => {
          clearTimeout(timer);
          resolve(outcome);
        };
        socket.write(text);
      });
    },
    isClosed: () => ended !== undefined,
    close: () => socket.destroy(),
  };
}

function openSecurely(port: number, { servername, ca, onSecure }: TlsOptions): TLSSocket {
  const socket = connectSecurely({ port, host: '127.0.0.1', servername, ca: [ca].flat(), ALPNProtocols: ['http/1.1'] });
  socket.on('secureConnect', () => onSecure?.(socket));
  return socket;
}

function request(path: string, mode: LoadOptions['mode']): string {
  return `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${mode === 'kept-alive' ? '' : 'Connection: close\r\n'}\r\n`;
}

/** Returns undefined while the answer is incomplete. */
function parseAnswer(text: string): Answer | Omit<Failure, 'at'> | undefined {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const headers = text.slice(0, end);
  const status = /^HTTP\/1\.1 (\d{3}) /.exec(headers)?.[1];
  const length = /^content-length: (\d+)\r?$/im.exec(headers)?.[1];
  if (status === undefined || length === undefined) return { kind: 'malformed', detail: headers };
  const body = text.slice(end + 4);
  const missing = Number(length) - Buffer.byteLength(body);
  if (missing > 0) return undefined;
  if (missing < 0) return { kind: 'malformed', detail: `${-missing} bytes behind the answer` };
  return { status: Number(status), headers, body };
}

function mustBe200({ status, body }: Answer): string | undefined {
  return status === 200 ? undefined : `${status} ${body}`;
}
