// The load client of try.sh. It sends requests on kept-alive connections through each proxy, counts the answers, and
// describes each incomplete or wrong answer. It never repeats a request, so each lost request is visible.
//
//   node try-client.mjs load NAME=HOST:PORT …   reads "phase NAME" and "kill NAME" from standard input, reports at its
// end
//   node try-client.mjs flood FROM COUNT LIMIT HOST:PORT …   asks as one address; exit 1 unless the limit holds over
// all of them
//   node try-client.mjs get URL                 prints status and body; exit 1 unless the status is 200
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

/** The clients of each proxy. Their pauses are from none to longer than any idle timeout between proxy and service. */
const CLIENTS = [
  { count: 4, method: 'GET', path: '/api/try', pause: () => 5 },
  { count: 3, method: 'POST', path: '/api/try', pause: () => 5 },
  { count: 2, method: 'GET', path: '/api/try/slow', pause: () => 5 },
  { count: 2, method: 'POST', path: '/api/try/slow', pause: () => 5 },
  { count: 6, method: 'GET', path: '/api/try', pause: () => Math.random() * 2500 },
  { count: 6, method: 'POST', path: '/api/try', pause: () => Math.random() * 2500 },
];
/** Milliseconds. Longer than any timeout of the proxies, except their timeout for an answer. */
const PATIENCE = 15_000;
const POSTS_AT_ONCE = CLIENTS.filter(({ method }) => method === 'POST').reduce((sum, { count }) => sum + count, 0);

const [command, ...words] = process.argv.slice(2);
if (command === 'get') await get(words[0] ?? '');
else if (command === 'load') await load(words.map(parseProxy));
else if (command === 'flood') await flood(words);
else throw new Error('Cannot run: the first word is "load", "flood" or "get"');

/** @param {string} url */
async function get(url) {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2000), headers: { connection: 'close' } });
    process.stdout.write(`${response.status} ${await response.text()}\n`);
    process.exitCode = response.status === 200 ? 0 : 1;
  } catch (error) {
    process.stdout.write(`no answer: ${/** @type {any} */ (error).cause?.code ?? /** @type {Error} */ (error).name}\n`);
    process.exitCode = 1;
  }
}

/** @param {string[]} words */
async function flood([from = '', count = '', limit = '', ...hosts]) {
  const proxies = hosts.map((host) => parseProxy(`proxy=${host}`));
  /** @type {Map<number | string, number>} */
  const by = new Map();
  let asked = 0;
  const client = async (/** @type {number} */ i) => {
    const proxy = /** @type {Proxy} */ (proxies[i % proxies.length]);
    /** @type {Connection | undefined} */
    let connection;
    while (asked++ < Number(count)) {
      connection = connection?.isOpen() ? connection : openConnection(proxy, from);
      const outcome = await connection.ask(
        requestText({ method: 'GET', path: '/api/try', nonce: `f${asked}`, host: proxy.host }),
      );
      const result = 'status' in outcome ? outcome.status : outcome.kind;
      by.set(result, (by.get(result) ?? 0) + 1);
    }
    connection?.close();
  };
  await Promise.all(Array.from({ length: 4 * proxies.length }, (_, i) => client(i)));
  const allowed = by.get(200) ?? 0;
  const others = [...by.keys()].filter((key) => key !== 200 && key !== 429);
  const isHeld = others.length === 0 && Math.abs(allowed - Number(limit)) <= 0.05 * Number(limit);
  const list = Array.from(by, ([result, times]) => `${times} x ${result}`).join(', ');
  process.stdout.write(
    `One address, ${count} requests over ${hosts.length} HAProxys, limit ${limit}: ${list}: ${isHeld ? 'ok' : 'NOT HELD'}\n`,
  );
  process.exitCode = isHeld ? 0 : 1;
}

/** @param {string} word */
function parseProxy(word) {
  const match = /^(\w+)=(.+):(\d+)$/.exec(word);
  if (match === null) throw new Error(`Cannot read ${word}: it must look like haproxy=127.0.0.1:8080`);
  return { name: String(match[1]), host: String(match[2]), port: Number(match[3]) };
}

/** @typedef {{ name: string, host: string, port: number }} Proxy */
/** @typedef {{ phase: string, proxy: string, answers: number, by: Map<string, number>, losses: Loss[] }} Row */
/** @typedef {{ method: string, path: string, kind: string, detail: string, at: number }} Loss */

/** @param {Proxy[]} proxies */
async function load(proxies) {
  const begun = performance.now();
  /** @type {Row[]} */
  const rows = [];
  let phase = 'steady';
  let stopped = false;
  let serial = 0;

  /** @param {string} proxy @param {string} name */
  const rowOf = (proxy, name) => {
    const known = rows.find((row) => row.proxy === proxy && row.phase === name);
    if (known !== undefined) return known;
    /** @type {Row} */
    const row = { phase: name, proxy, answers: 0, by: new Map(), losses: [] };
    rows.push(row);
    return row;
  };

  /** @param {Proxy} proxy @param {typeof CLIENTS[number]} client */
  async function run(proxy, { method, path, pause }) {
    /** @type {Connection | undefined} */
    let connection;
    while (!stopped) {
      connection = connection?.isOpen() ? connection : openConnection(proxy);
      const nonce = `n${++serial}`;
      const asked = phase;
      const outcome = await connection.ask(requestText({ method, path, nonce, host: proxy.host }));
      const loss = outcome.kind === 'answer' ? whatIsWrong(outcome, nonce) : outcome;
      // A request that was under way when the phase changed counts in the new phase, which may have caused its loss.
      const row = rowOf(proxy.name, loss === undefined ? asked : phase);
      if (loss === undefined && outcome.kind === 'answer') {
        row.answers++;
        const { instance } = JSON.parse(outcome.body);
        row.by.set(instance, (row.by.get(instance) ?? 0) + 1);
      } else if (loss !== undefined) {
        row.losses.push({
          method,
          path,
          kind: loss.kind,
          detail: loss.detail,
          at: Math.round(performance.now() - begun),
        });
        connection.close();
      }
      if (outcome.kind === 'answer' && /^connection: close\r?$/im.test(outcome.head)) connection.close();
      await new Promise((resolve) => setTimeout(resolve, pause()));
    }
    connection?.close();
  }

  const clients = proxies.flatMap((proxy) =>
    CLIENTS.flatMap((client) => Array.from({ length: client.count }, () => run(proxy, client))),
  );
  /** @type {Set<string>} */
  const mayLose = new Set();
  for await (const line of createInterface({ input: process.stdin })) {
    const [word, ...name] = line.split(' ');
    phase = name.join(' ');
    if (word === 'kill') mayLose.add(phase);
  }
  stopped = true;
  await Promise.all(clients);
  report(rows, mayLose);
}

/** @param {Row[]} rows @param {Set<string>} mayLose */
function report(rows, mayLose) {
  const columns = /** @type {const} */ ([
    'phase',
    'proxy',
    'answers',
    'by a / b / c',
    'lost',
    'of them allowed',
    'verdict',
  ]);
  let bad = 0;
  const lines = rows.map(({ phase, proxy, answers, by, losses }) => {
    const posts = losses.filter(({ method, kind }) => method === 'POST' && kind !== 'wrong').length;
    const allowed = mayLose.has(phase) ? Math.min(posts, POSTS_AT_ONCE) : 0;
    // A phase without answers proves nothing.
    const isBad = losses.length > allowed || answers === 0;
    if (isBad) bad++;
    const shares = ['a', 'b', 'c'].map((name) => by.get(name) ?? 0).join(' / ');
    return [phase, proxy, String(answers), shares, String(losses.length), String(allowed), isBad ? 'LOST' : 'ok'];
  });
  const widths = columns.map((title, i) => Math.max(title.length, ...lines.map((line) => String(line[i]).length)));
  for (const line of [columns, ...lines])
    process.stdout.write(`${line.map((cell, i) => cell.padEnd(Number(widths[i]))).join('  ')}\n`);
  const losses = rows.flatMap(({ phase, proxy, losses }) => losses.map((loss) => ({ phase, proxy, ...loss })));
  for (const { phase, proxy, method, path, kind, detail, at } of losses.slice(0, 40)) {
    process.stdout.write(`  ${(at / 1000).toFixed(2)} s, ${phase}, ${proxy}: ${method} ${path}: ${kind}: ${detail}\n`);
  }
  if (losses.length > 40) process.stdout.write(`  and ${losses.length - 40} more\n`);
  process.stdout.write(bad === 0 ? 'No request was lost that may not be.\n' : `Requests were lost in ${bad} rows.\n`);
  process.exitCode = bad === 0 ? 0 : 1;
}

/** @param {{ method: string, path: string, nonce: string, host: string }} parts */
function requestText({ method, path, nonce, host }) {
  const head = `Host: ${host}\r\nX-Request-Id: ${nonce}\r\n`;
  if (method === 'GET') return `GET ${path}?nonce=${nonce} HTTP/1.1\r\n${head}\r\n`;
  const body = JSON.stringify({ nonce, filling: 'x'.repeat(500) });
  return `${method} ${path} HTTP/1.1\r\n${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

/** @param {Answer} answer @param {string} nonce @returns {{ kind: string, detail: string } | undefined} */
function whatIsWrong({ status, head, body }, nonce) {
  if (status !== 200) return { kind: `status ${status}`, detail: body.slice(0, 120).replace(/\s+/g, ' ') };
  if (!new RegExp(`^x-request-id: ${nonce}\r?$`, 'im').test(head))
    return { kind: 'wrong', detail: 'the request id of another request' };
  if (!body.includes(`"nonce":"${nonce}"`)) return { kind: 'wrong', detail: 'the answer to another request' };
  return undefined;
}

/** @typedef {{ kind: 'answer', status: number, head: string, body: string }} Answer */
/** @typedef {{ kind: string, detail: string }} Failure */
/** @typedef {{ ask(text: string): Promise<Answer | Failure>, isOpen(): boolean, close(): void }} Connection */

/** Opens a connection for one request at a time. @param {Proxy} proxy @param {string} [from] @returns {Connection} */
function openConnection({ host, port }, from) {
  const socket = connect({ host, port, noDelay: true, ...(from !== undefined && { localAddress: from }) });
  let received = '';
  let open = true;
  let connected = false;
  /** @type {Failure | undefined} */
  let failure;
  /** @type {((outcome: Answer | Failure) => void) | undefined} */
  let settle;

  /** @param {Answer | Failure} outcome */
  const finish = (outcome) => {
    settle?.(/** @type {any} */ (outcome));
    settle = undefined;
  };
  socket.setEncoding('latin1');
  socket.on('connect', () => {
    connected = true;
  });
  socket.on('data', (text) => {
    received += text;
    const answer = parseAnswer(received);
    if (answer === undefined || settle === undefined) return;
    received = '';
    finish(answer);
  });
  socket.on('error', (error) => {
    const code = /** @type {NodeJS.ErrnoException} */ (error).code ?? error.message;
    failure = { kind: connected ? 'reset' : 'refused', detail: code };
  });
  socket.on('end', () => socket.end());
  socket.on('close', () => {
    open = false;
    const state = received === '' ? 'no answer' : 'short answer';
    finish(failure ?? { kind: state, detail: `closed after ${received.length} bytes` });
  });

  return {
    ask(text) {
      return new Promise((resolve) => {
        const timer = setTimeout(() => {
          failure = { kind: 'no answer', detail: `nothing for ${PATIENCE} ms` };
          socket.destroy();
        }, PATIENCE);
        settle = (outcome) => {
          clearTimeout(timer);
          resolve(outcome);
        };
        socket.write(text, 'latin1');
      });
    },
    isOpen: () => open && socket.readyState !== 'closed' && socket.writable,
    close() {
      open = false;
      socket.destroy();
    },
  };
}

/** Returns the answer, or undefined while it is incomplete. @param {string} text @returns {Answer | undefined} */
function parseAnswer(text) {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const head = text.slice(0, end);
  const length = /^content-length: (\d+)\r?$/im.exec(head)?.[1];
  // Each answer must have a Content-Length: neither the service nor a proxy has a reason to leave it out.
  if (length === undefined) return { kind: 'answer', status: 0, head, body: 'an answer without Content-Length' };
  const body = text.slice(end + 4);
  if (body.length < Number(length)) return undefined;
  return { kind: 'answer', status: Number(head.slice(9, 12)), head, body };
}
