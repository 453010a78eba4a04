// The servers that can be measured, one row each. Starts a server, and waits until it prints the port on which it
// listens.
import { spawnSync } from 'node:child_process';
import { existsSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { controllers, credentials, groupFolder, scratch, tlsSettings, typedControllers } from './fixtures.mjs';
import { startProcess, stopProcess } from './processes.mjs';

/**
 * @typedef {object} ServerRow
 * @property {string} label as the table prints it
 * @property {string} peer what `--peers` calls it
 * @property {string} file
 * @property {(() => Record<string, string>)=} env
 * @property {true=} secure it speaks HTTPS
 * @property {string=} needs a command that must be installed
 *
 * @typedef {object} Server
 * @property {number} pid
 * @property {number} port
 * @property {boolean} secure
 * @property {string} log the file that its standard error goes to
 * @property {() => Promise<void>} stop
 */

export const MANY_ROWS = 100_000;
export const MANY_GROUPS = 10_000;

const GATEFOLD = here('../dist/server.js');
/** The build of `--other`. */
let otherFile = '';
const START_LIMIT_MS = 60_000;

/** @satisfies {Record<string, ServerRow>} */
export const SERVERS = {
  bare: { label: 'bare', peer: 'bare', file: here('./peers/bare.mjs') },
  bareAgain: { label: 'bare, again (noise)', peer: 'bare', file: here('./peers/bare.mjs') },
  fastify: { label: 'Fastify', peer: 'fastify', file: here('./peers/fastify.mjs') },
  bareTls: { label: 'bare', peer: 'bare', file: here('./peers/bare.mjs'), env: tlsSettings, secure: true },
  bareTlsAgain: {
    label: 'bare, again (noise)',
    peer: 'bare',
    file: here('./peers/bare.mjs'),
    env: tlsSettings,
    secure: true,
  },
  fastifyTls: { label: 'Fastify', peer: 'fastify', file: here('./peers/fastify.mjs'), env: tlsSettings, secure: true },
  nginxTls: {
    label: 'nginx before bare',
    peer: 'nginx',
    file: here('./peers/nginx.mjs'),
    env: tlsSettings,
    secure: true,
    needs: 'nginx',
  },
  h3: { label: 'h3', peer: 'h3', file: here('./peers/h3.mjs') },
  hono: { label: 'Hono', peer: 'hono', file: here('./peers/hono.mjs') },
  koa: { label: 'Koa', peer: 'koa', file: here('./peers/koa.mjs') },
  express: { label: 'Express', peer: 'express', file: here('./peers/express.mjs') },
  gatefold: gatefold('Gatefold, lines off', () => ({})),
  other: otherBuild('the other build'),
  otherAgain: otherBuild('the other build, again (noise)'),
  gatefoldLines: gatefold('Gatefold', () => ({ LOG_LEVEL: 'info' })),
  gatefoldTls: { ...gatefold('Gatefold, lines off', tlsSettings), secure: true },
  gatefoldTlsLines: { ...gatefold('Gatefold', () => ({ ...tlsSettings(), LOG_LEVEL: 'info' })), secure: true },
  gatefoldTyped: gatefold('Gatefold, lines off', () => ({ CONTROLLERS_DIR: typedControllers })),
  gatefoldTwoWorkers: gatefold('Gatefold, lines off, 2 workers', () => ({ WORKERS: '2' })),
  gatefoldOneRow: gatefold('Gatefold, lines off, 1 credential', () => ({ DATA_DIR: credentials(1).folder })),
  gatefoldManyRows: gatefold('Gatefold, lines off, 100,000 credentials', () => ({
    DATA_DIR: credentials(MANY_ROWS).folder,
  })),
  gatefoldManyGroups: gatefold('Gatefold, lines off, 10,000 groups', () => ({
    CONTROLLERS_DIR: groupFolder(MANY_GROUPS),
  })),
};

/** @typedef {keyof typeof SERVERS} ServerName */

/**
 * Returns the row of a Gatefold. It has one worker by default, because single processes are compared.
 *
 * @param {string} label
 * @param {() => Record<string, string>} env
 * @returns {ServerRow}
 */
function gatefold(label, env) {
  return {
    label,
    peer: 'gatefold',
    file: GATEFOLD,
    env: () => ({
      HOST: '127.0.0.1',
      WORKERS: '1',
      LOG_LEVEL: 'warn',
      CONTROLLERS_DIR: controllers,
      DATA_DIR: credentials(0).folder,
      DRAIN_TIMEOUT: '1s',
      ...env(),
    }),
  };
}

/** @param {string} label @returns {ServerRow} */
function otherBuild(label) {
  return Object.defineProperty(
    gatefold(label, () => ({})),
    'file',
    { get: () => otherFile },
  );
}

/** @param {string} folder a checkout with its `dist`, or a `dist` */
export function useOther(folder) {
  otherFile = [join(folder, 'dist', 'server.js'), join(folder, 'server.js')].find((file) => existsSync(file)) ?? folder;
}

/**
 * Returns the command that this server needs and that is not installed; undefined: none is missing.
 *
 * @param {ServerName} name
 */
export function missingCommand(name) {
  /** @type {ServerRow} */
  const { needs } = SERVERS[name];
  return needs !== undefined && spawnSync(needs, ['-v']).error !== undefined ? needs : undefined;
}

let started = 0;

/**
 * Starts a server on a free port, and returns when it answers requests.
 *
 * @param {ServerName} name
 * @param {string} node the Node binary
 * @returns {Promise<Server>}
 */
export async function startServer(name, node) {
  /** @type {ServerRow} */
  const row = SERVERS[name];
  if (!existsSync(row.file))
    throw new Error(`Cannot start ${row.label}: there is no ${row.file}; npm run build makes it`);
  const log = join(scratch, `${name}-${++started}.log`);
  // Only the search path is inherited, because NODE_OPTIONS would affect the measurement.
  const env = { PATH: process.env.PATH ?? '', NODE_ENV: 'production', PORT: '0', ...row.env?.() };
  const child = startProcess(node, [row.file], { env, stdio: ['ignore', 'pipe', openSync(log, 'a')] });
  try {
    const port = await listeningPort(child);
    return {
      pid: /** @type {number} */ (child.pid),
      port,
      secure: row.secure === true,
      log,
      stop: () => stopProcess(child),
    };
  } catch (error) {
    await stopProcess(child);
    throw new Error(`Cannot start ${row.label}: ${/** @type {Error} */ (error).message}; its standard error is ${log}`);
  }
}

/**
 * Reads the port from the first line of standard output: `… listening on http://HOST:PORT` or `https://`.
 *
 * @param {import('node:child_process').ChildProcess} child
 * @returns {Promise<number>}
 */
function listeningPort(child) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`it does not listen after ${START_LIMIT_MS / 1000} s`)),
      START_LIMIT_MS,
    );
    const settle = (/** @type {() => void} */ then) => {
      clearTimeout(timer);
      then();
    };
    child.once('error', (error) => settle(() => reject(error)));
    child.once('exit', (code, signal) => settle(() => reject(new Error(`it ended with ${signal ?? code}`))));
    if (child.stdout === null) throw new Error('standard output is not a pipe');
    const lines = createInterface(child.stdout);
    lines.once('line', (line) => {
      const port = /^\S+ listening on https?:\/\/\S+:(\d+)$/.exec(line)?.[1];
      settle(() =>
        port === undefined ? reject(new Error('its first line does not say where it listens')) : resolve(Number(port)),
      );
    });
  });
}

/** @param {string} path */
function here(path) {
  return fileURLToPath(new URL(path, import.meta.url));
}
