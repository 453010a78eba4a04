// Measures the memory that a body of 1 MiB takes, relative to its size. Many bodies are held at once, each without its
// last byte, so that they outweigh the noise of the heap. Then all are finished at once, and the peak is read, which
// includes the parsed JSON. The client writes HTTP by hand, because it must stop before the end of a body.
import { readFileSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { readOptions } from './options.mjs';
import { treeMemory, treePids } from './processes.mjs';
import { markdown, median, ratio, verdict } from './report.mjs';
import { SERVERS, startServer } from './servers.mjs';

const MIB = 1024 ** 2;
const BODIES = 64;
const WARM_UP_BODIES = 8;
const GOAL = 2;
/** The most readings before the memory that is held counts as stable. */
const LOOKS = 100;
const LOOK_MS = 100;

const BODY = `{"text":"${'x'.repeat(MIB - '{"text":""}'.length)}"}`;
const HEAD = `POST /api/test/measured HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${MIB}\r\n\r\n`;

const options = readOptions();

try {
  const held = [];
  const peak = [];
  for (let round = 0; round < options.rounds; round++) {
    const cost = await measureOnce();
    held.push(cost.held);
    peak.push(cost.peak);
  }
  const row = [
    SERVERS.gatefold.label,
    ...[held, peak].map((costs) => verdict(median(costs) <= GOAL, ratio(median(costs)))),
  ];
  process.stdout.write(
    `${markdown(['server', `held, over the body's size (at most ${GOAL})`, 'peak while all are answered'], [row])}\n`,
  );
} catch (error) {
  process.stderr.write(`${/** @type {Error} */ (error).message}\n`);
  process.exitCode = 1;
}

async function measureOnce() {
  const server = await startServer('gatefold', options.node);
  try {
    for (let i = 0; i < WARM_UP_BODIES; i++) await (await upload(server.port)).finish();
    const before = await settledMemory(server.pid);
    resetPeak(server.pid);
    const uploads = await Promise.all(Array.from({ length: BODIES }, () => upload(server.port)));
    const held = (await settledMemory(server.pid)) - before;
    await Promise.all(uploads.map(({ finish }) => finish()));
    const peak = treeMemory(server.pid, 'VmHWM') - before;
    return { held: held / BODIES / MIB, peak: peak / BODIES / MIB };
  } finally {
    await server.stop();
  }
}

/**
 * Sends all of the body except its last byte. `finish` sends that byte and waits for the answer.
 *
 * @param {number} port
 * @returns {Promise<{ finish: () => Promise<void> }>}
 */
async function upload(port) {
  const socket = createConnection({ port, host: '127.0.0.1' });
  const answered = new Promise((resolve, reject) => {
    let text = '';
    socket.setEncoding('latin1');
    socket.on('data', (chunk) => {
      text += chunk;
      if (text.endsWith(`{"length":${BODY.length - '{"text":""}'.length}}`)) resolve(undefined);
    });
    socket.setTimeout(30_000, () => socket.destroy(new Error('no answer within 30 s')));
    socket.on('error', reject);
    socket.on('close', () =>
      reject(new Error(`Cannot measure a body: the answer is ${text.slice(0, 300) || 'missing'}`)),
    );
  });
  answered.catch(() => {}); // Looked at by `finish`; until then it is not unhandled.
  await new Promise((resolve) => socket.write(HEAD + BODY.slice(0, -1), resolve));
  return {
    finish: async () => {
      socket.write(BODY.slice(-1));
      await answered;
      socket.destroy();
    },
  };
}

/** Returns the resident memory, once three readings in a row differ by less than 1 % of a body. @param {number} pid */
async function settledMemory(pid) {
  let last = 0;
  let calm = 0;
  for (let look = 0; look < LOOKS && calm < 3; look++) {
    await delay(LOOK_MS);
    const now = treeMemory(pid, 'VmRSS');
    calm = Math.abs(now - last) < MIB / 100 ? calm + 1 : 0;
    last = now;
  }
  return last;
}

/** Resets the peak to the present resident set: proc(5), clear_refs, value 5. @param {number} root */
function resetPeak(root) {
  for (const pid of treePids(root)) {
    writeFileSync(`/proc/${pid}/clear_refs`, '5');
    if (!readFileSync(`/proc/${pid}/status`, 'latin1').includes('VmHWM:'))
      throw new Error('Cannot measure a peak: the kernel tells none');
  }
}
