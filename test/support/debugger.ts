// A debugger: the Chrome DevTools Protocol over a WebSocket of its own, because Node 20 has none.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import type { Socket } from 'node:net';

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: Record<string, unknown>;
}

export interface Debugger {
  send(method: string, params?: object): Promise<Record<string, unknown>>;
  /** Resolves with the next event of this name. */
  next(event: string): Promise<Record<string, unknown>>;
  readonly closed: Promise<unknown>;
  close(): void;
}

/** Waits until an inspector listens on the port, and connects to it. */
export async function attach(port: number, patience: number): Promise<Debugger> {
  const deadline = Date.now() + patience;
  for (;;) {
    try {
      const [target] = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as {
        webSocketDebuggerUrl: string;
      }[];
      return await connect(port, new URL(target?.webSocketDebuggerUrl ?? '').pathname);
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

async function connect(port: number, path: string): Promise<Debugger> {
  const key = randomBytes(16).toString('base64');
  const headers = {
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': key,
  };
  const upgrade = request({ port, host: '127.0.0.1', path, headers }).end();
  const [, socket] = (await once(upgrade, 'upgrade')) as [unknown, Socket];
  const answers = new Map<number, (result: Record<string, unknown>) => void>();
  const waiting: [event: string, resolve: (params: Record<string, unknown>) => void][] = [];
  let received = Buffer.alloc(0);
  let text = '';
  let count = 0;
  socket.on('error', () => {});
  socket.on('data', (bytes: Buffer) => {
    received = Buffer.concat([received, bytes]);
    for (;;) {
      if (received.length < 2) return;
      const short = (received[1] as number) & 127;
      const start = short === 126 ? 4 : short === 127 ? 10 : 2;
      if (received.length < start) return;
      const length =
        short === 126 ? received.readUInt16BE(2) : short === 127 ? Number(received.readBigUInt64BE(2)) : short;
      if (received.length < start + length) return;
      const [first = 0] = received;
      // Node waits for the end of a connection that it closes.
      if ((first & 15) === 8) return void socket.destroy();
      if ((first & 15) <= 1) text += received.toString('utf8', start, start + length);
      received = received.subarray(start + length);
      if ((first & 128) === 0 || text === '') continue;
      const message = JSON.parse(text) as Message;
      text = '';
      if (message.id !== undefined) answers.get(message.id)?.(message.result ?? {});
      const place = waiting.findIndex(([event]) => event === message.method);
      if (place >= 0) waiting.splice(place, 1)[0]?.[1](message.params ?? {});
    }
  });
  return {
    send(method, params = {}) {
      const payload = Buffer.from(JSON.stringify({ id: ++count, method, params }));
      const head = Buffer.from([0x81, 0x80 | 126, payload.length >> 8, payload.length & 255, 0, 0, 0, 0]);
      socket.write(Buffer.concat([head, payload]));
      return new Promise((resolve) => answers.set(count, resolve));
    },
    next: (event) => new Promise((resolve) => waiting.push([event, resolve])),
    closed: once(socket, 'close'),
    close: () => socket.destroy(),
  };
}
