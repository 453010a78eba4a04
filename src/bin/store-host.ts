// The entry of the store-host, the process that the supervisor starts when STORE has the address of a database. This
// file only connects operate/store/host.ts with the channel to the supervisor.
import { readProcessBasics } from '../base/process.ts';
import type { Settings } from '../base/settings.ts';
import { type HostOptions, startHost } from '../operate/store/host.ts';
import type { FromHost, ToHost } from '../operate/store/messages.ts';

// Ctrl-C in a terminal also signals this process. The signal is ignored, because the supervisor needs the store until
// the supervisor itself ends. Then the channel to the supervisor is closed, and this process exits.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
process.on('disconnect', () => process.exit(0));
// The event has passed when the supervisor ended while this process was booting.
if (process.connected === false) process.exit(0);

// The empty callback ignores an error of the channel. When the channel is closed, this process exits anyway.
const send = (message: FromHost): void => void process.send?.(message, undefined, {}, () => {});
const settings = readProcessBasics()?.settings;
if (settings?.store !== undefined) await run(settings as HostOptions['settings']);

async function run(settings: Settings & HostOptions['settings']): Promise<void> {
  try {
    const host = await startHost({ settings, send });
    process.on('message', (message: ToHost) => host.receive(message));
  } catch (error) {
    const failure: FromHost = { kind: 'failed', reason: (error as Error).message };
    process.send?.(failure, undefined, {}, () => process.exit(1));
  }
}
