// The sockets that systemd has opened for this service (sd_listen_fds(3)). They stay open while the service is
// replaced, so the kernel queues connections instead of refusing them.

/** The descriptors for PORT and for HTTP_PORT. */
export type ListenFds = Readonly<ReturnType<typeof takeListenFds>>;

/** The first descriptor that systemd passes. */
const FIRST = 3;

/** Reads and removes the variables, which are not for other processes. @throws Error for a socket of unknown name */
export function takeListenFds(env: NodeJS.ProcessEnv = process.env, pid: number = process.pid) {
  const found: { http?: number | undefined; httpPort?: number | undefined } = {};
  const { LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES = '' } = env;
  for (const name of ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES', 'LISTEN_PIDFDID']) delete env[name];
  const count = Number(LISTEN_FDS);
  // The variables of a parent are not for this process. Its descriptors with these numbers are something else.
  if (Number(LISTEN_PID) !== pid || !Number.isSafeInteger(count) || count < 1) return found;
  const names = LISTEN_FDNAMES.split(':');
  for (let index = 0; index < count; index++) {
    const name = names[index] ?? '';
    // A unit without FileDescriptorName has its own name, such as `shop.socket`.
    const key = name === 'http-port' ? 'httpPort' : name === 'http' || count === 1 ? 'http' : undefined;
    if (key === undefined || found[key] !== undefined)
      throw new Error(
        `LISTEN_FDNAMES: "${LISTEN_FDNAMES}" must name one socket http, and another one http-port: FileDescriptorName=`,
      );
    found[key] = FIRST + index;
  }
  return found;
}
