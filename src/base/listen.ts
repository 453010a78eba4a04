// Opens a port, as a promise.
import type { ListenOptions, Server } from 'node:net';

/**
 * Resolves when the server listens. Later errors of the server go to its own listeners.
 *
 * @throws Error of the system
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
