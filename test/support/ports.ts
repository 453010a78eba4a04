// Ports for programs that cannot report the port that the system gave them. A port that is free at one moment may
// belong to another process at the next, because the suites of several Node releases run at the same time. Two proxies
// may even share a port.
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/** The kernel assigns higher ports to clients, and to servers that listen on port 0. */
const [LOWEST, HIGHEST] = [20_000, 32_000];

/**
 * Returns `count` ports that belong to this process until it ends. A process owns an even port while it listens on the
 * odd port above, so no other caller of this function in any process gets the same port.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = LOWEST + 2 * Math.floor((Math.random() * (HIGHEST - LOWEST)) / 2);
    const claim = await listen(port + 1);
    if (claim === undefined) continue;
    claim.unref();
    const server = await listen(port);
    if (server === undefined) continue;
    await new Promise((closed) => server.close(closed));
    ports.push(port);
  }
  return ports;
}

async function listen(port: number): Promise<Server | undefined> {
  const server = createServer().listen(port, '127.0.0.1');
  return once(server, 'listening').then(
    () => server,
    () => undefined,
  );
}
