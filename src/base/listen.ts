// Opens a port, as a promise.
import { once } from 'node:events';
import type { ListenOptions, Server } from 'node:net';

/** Resolves when the server listens, or rejects with the system's error. Later errors go to the server's listeners. */
export async function listen(server: Server, options: ListenOptions | { readonly fd: number }): Promise<void> {
  server.listen(options);
  await once(server, 'listening');
}
