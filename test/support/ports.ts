// Ports for programs that cannot say which one they were given. A port that was free a moment ago may be another
// process's now, and a proxy may even share it with another proxy: the suites of several Node releases run side by
// side.
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/** Below what the kernel gives to whoever asks for any port, or connects. */
const [LOWEST, HIGHEST] = [20_000, 32_000];

/**
 * As many ports, each for this process alone until it ends. An even port belongs to whoever listens on the odd one
 * above it: so no other caller of this function, in whatever process, gets one of them.
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
