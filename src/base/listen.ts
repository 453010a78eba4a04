// Opens a port.
import type { ListenOptions, Server } from 'node:net';

/**
 * Resolves when the server listens. Later errors of the server are left to its own listeners. @throws the system's
 * error
 */
export function listen(server: Server, options: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, () => {
      server.off('error', reject);
      resolve();
    });
  });
}
