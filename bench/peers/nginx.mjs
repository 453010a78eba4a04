// nginx in front of Node, as most people run it. nginx speaks TLS with one worker, like the other servers, and forwards
// each request on kept-alive connections to the bare handler in this process. nginx is a child of this process, so its
// CPU time is counted, too.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { announce } from './answers.mjs';
import { serve } from './bare-handler.mjs';

const HOST = '127.0.0.1';
const folder = mkdtempSync(join(tmpdir(), 'gatefold-nginx-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
process.once('SIGTERM', () => process.exit());

const upstream = await listen(createServer(serve));
const probe = createTcpServer();
const port = await listen(probe);
await new Promise((closed) => probe.close(closed));

writeFileSync(join(folder, 'nginx.conf'), configuration());
const args = ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', 'stderr', '-g', 'daemon off;'];
const nginx = spawn('nginx', args, { stdio: ['ignore', 'inherit', 'inherit'] });
nginx.once('exit', (code) => process.exit(code ?? 1));
process.once('exit', () => nginx.kill('SIGKILL'));
await answers();
announce({ address: HOST, family: 'IPv4', port });

/**
 * The settings that matter for the comparison: TLS versions, session tickets and kept-alive connections are those of
 * node:https and Gatefold.
 */
function configuration() {
  const scratch = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  return `pid ${folder}/nginx.pid;
error_log stderr crit;
worker_processes 1;
events { worker_connections 4096; }
http {
  ${scratch.join(' ')}
  access_log off;
  upstream bare { server ${HOST}:${upstream}; keepalive 256; keepalive_requests 1000000000; keepalive_timeout 4s; }
  server {
    listen ${HOST}:${port} ssl backlog=511;
    ssl_certificate ${process.env.TLS_CERT};
    ssl_certificate_key ${process.env.TLS_KEY};
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_session_tickets on;
    keepalive_requests 1000000000;
    location / { proxy_pass http://bare; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
}
`;
}

/** @param {import('node:net').Server} server @returns {Promise<number>} its port */
function listen(server) {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, HOST, () => resolve(/** @type {import('node:net').AddressInfo} */ (server.address()).port));
  });
}

/** Resolves when nginx accepts connections. When nginx fails, this process ends, too. @returns {Promise<void>} */
async function answers() {
  for (;;) {
    const socket = connect(port, HOST);
    const isThere = await new Promise((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    });
    socket.destroy();
    if (isThere) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
