// Prints what the process of a long test has open: the test mostly waits for one of these. A test whose time is over
// says no more than that.
import { ChildProcess } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { Server, Socket } from 'node:net';
import { beforeEach } from 'node:test';

// A test may mock these.
const { setTimeout, clearTimeout } = globalThis;

/** Reports each test that takes longer. @param {number} milliseconds */
export function reportLongTests(milliseconds) {
  const { defaultMaxListeners } = EventEmitter;
  // On Node 20, each test that runs at the same time as others adds a listener to the signal of this hook.
  EventEmitter.defaultMaxListeners = 0;
  beforeEach((context) => {
    // Only a test has a signal, which is aborted when the test ends.
    const { name, signal } = /** @type {import('node:test').TestContext} */ (context);
    const report = () => console.error(`"${name}" takes ${milliseconds / 1000} s. Its process has open:\n${opened()}`);
    const timer = setTimeout(report, milliseconds).unref();
    signal.addEventListener('abort', () => clearTimeout(timer));
  });
  EventEmitter.defaultMaxListeners = defaultMaxListeners;
}

function opened() {
  /** @type {unknown[]} */
  const handles = Reflect.get(process, '_getActiveHandles').call(process);
  const others = process.getActiveResourcesInfo().filter((name) => !/^(TCP|Pipe|Process)/.test(name));
  const counts = new Map();
  for (const line of [...handles.map(lineOf), ...others]) counts.set(line, (counts.get(line) ?? 0) + 1);
  return Array.from(counts, ([line, count]) => `  ${line}${count > 1 ? `, ${count} times` : ''}`).join('\n');
}

/** @param {unknown} handle */
function lineOf(handle) {
  if (handle instanceof ChildProcess) return `process ${handle.pid}: ${handle.spawnargs.join(' ').slice(0, 300)}`;
  if (handle instanceof Server) return `server at ${JSON.stringify(handle.address())}`;
  if (!(handle instanceof Socket)) return Object(handle).constructor?.name;
  return handle.remotePort === undefined ? 'pipe' : `connection from ${handle.localPort} to ${handle.remotePort}`;
}
