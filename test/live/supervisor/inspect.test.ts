// `gatefold dev --inspect`: a breakpoint that is held longer than every limit loses nothing. The port stays the same.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { startService, write } from '../../support/cluster-server.ts';
import { attach } from '../../support/debugger.ts';
import { freePorts } from '../../support/ports.ts';

/** Longer than the watchdog, which kills a worker after 5 s, and than all limits of the test's service. */
const PAUSE = 8000;
const LIMITS = {
  ...{ OPERATION_TIMEOUT: '300ms', KEEP_ALIVE_TIMEOUT: '2s', HEADERS_TIMEOUT: '1s', REQUEST_TIMEOUT: '1s' },
  ...{ DRAIN_TIMEOUT: '1s', NODE_ENV: 'development', WORKERS: '1' },
};
const source = (value: string) => `export default class {
  async index(data) {
    const value = '${value}';
    await null;
    return { value, pid: process.pid };
  }
  created(data) { return { value: '${value}', got: data }; }
}
`;

test('a breakpoint that is held longer than every limit loses nothing', { timeout: 300_000 }, async (context) => {
  const [port = 0] = await freePorts(1);
  const flags = ['--dev', `--inspect=${port}`];
  const service = await startService(context, { files: { 'StopController.js': source('old') }, env: LIMITS, flags });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  context.after(() => agent.destroy());
  const stop = () => call(service.port, agent);
  const { pid } = await stop();

  let front = await attach(port, service.patience());
  await front.send('Debugger.enable');
  const setBreakpoint = () => front.send('Debugger.setBreakpointByUrl', { urlRegex: 'StopController', lineNumber: 3 });
  const { breakpointId } = await setBreakpoint();
  const paused = front.next('Debugger.paused');
  const first = stop();
  await paused;
  await front.send('Debugger.removeBreakpoint', { breakpointId });
  // During the pause come a request on a new connection, a body that is on its way, and an edit.
  const second = call(service.port);
  const upload = request({
    port: service.port,
    host: '127.0.0.1',
    path: '/api/stop',
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Content-Length': 8 },
  });
  const uploaded = answerOf(upload);
  upload.write('{"a":');
  write(service.dir, 'StopController.js', source('new'));
  await wait(PAUSE);
  upload.end(' 1}');
  assert.deepEqual(
    service.lines.filter(({ event }) => event === 'worker-died'),
    [],
  );
  assert.equal(service.lines.filter(({ event }) => event === 'generation-serving').length, 1, 'the edit waits');
  await front.send('Debugger.resume');
  assert.deepEqual(await first, { value: 'old', pid });
  // The new worker may accept a connection that waited during the pause.
  assert.match((await second).value, /^(?:old|new)$/);
  assert.deepEqual((await uploaded).got, { a: 1 });

  await service.logged('generation-serving', ({ generation }) => generation === 2);
  await front.closed;
  // The old worker may still accept a connection or two.
  while ((await call(service.port)).value !== 'new');
  front = await attach(port, service.patience());
  await front.send('Debugger.enable');
  await setBreakpoint();
  const pausedAgain = front.next('Debugger.paused');
  const third = call(service.port);
  await pausedAgain;
  await front.send('Debugger.resume');
  const { value, pid: newPid } = await third;
  assert.equal(value, 'new');
  assert.notEqual(newPid, pid);
  // A debugger that is still there does not keep the service from its end.
  service.process.kill('SIGTERM');
  assert.deepEqual(await service.exited, { code: 0, signal: null });
  assert.deepEqual(
    service.lines.filter(({ level }) => level === 'error' || level === 'warn'),
    [],
  );
});

for (const [value, reason] of [
  ['70000', /: --inspect: "70000" is not a port or HOST:PORT$/m],
  ['x', /: --inspect: "x" is not a port or HOST:PORT$/m],
] as const)
  test(`--inspect=${value} stops the start`, { timeout: 200_000 }, async (context) => {
    await assert.rejects(startService(context, { files: {}, flags: [`--inspect=${value}`] }), reason);
  });

test('a port that is taken is logged, and the service serves', { timeout: 200_000 }, async (context) => {
  const other = createServer().listen(0, '127.0.0.1');
  context.after(() => other.close());
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const service = await startService(context, {
    files: { 'StopController.js': source('a') },
    flags: [`--inspect=127.0.0.1:${port}`],
    env: { WORKERS: '1' },
  });
  await service.logged('inspector-not-opened', (line) => line.port === port);
  assert.equal((await call(service.port)).value, 'a');
});

interface Answer {
  readonly value: string;
  readonly pid: number;
  readonly got?: unknown;
}

function call(port: number, agent?: Agent): Promise<Answer> {
  const options = { port, host: '127.0.0.1', path: '/api/stop', ...(agent && { agent }) };
  return answerOf(request(options).end());
}

function answerOf(sent: ReturnType<typeof request>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    sent.on('error', reject);
    sent.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part) => (text += part));
      response.on('end', () => resolve(JSON.parse(text)));
    });
  });
}
