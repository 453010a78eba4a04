// The check of the store (the database that several machines share) for `gatefold doctor`:
// - whether the store answers, and whether it accepts writes
// - whether a failover can lose keys
// - whether the clock of the store is right
// - whether STORE_KEY opens the session key
import { isLoopback } from '../base/store-address.ts';
import type { CommandCall } from './command.ts';
import type { Installation, Report } from './doctor.ts';
import type { StoreDescription } from './store.ts';

/** Seconds. Each machine checks the expiry of credentials by its own clock, so a larger difference is a warning. */
const MAX_CLOCK_DIFFERENCE = 5;

/** Returns the state of the store, or the reason why it cannot be used as an Error; undefined when STORE is not set. */
export async function inspectStore({ settings }: CommandCall): Promise<StoreDescription | Error | undefined> {
  if (settings.store === undefined) return undefined;
  const { describeStore } = await import('./store.ts');
  const { withStore } = await import('./table.ts');
  return withStore(settings, (store) => describeStore(store, settings.storeKeys)).catch((error: Error) => error);
}

export function checkStore({ settings, store }: Installation, report: Report): void {
  if (settings.store === undefined || store === undefined) return;
  const { tls, hosts } = settings.store;
  if (tls === 'off' && !hosts.every(({ host }) => isLoopback(host)))
    report('warning', 'the connection has no TLS: remove sslmode=disable');
  if (settings.storeKeys.length === 0)
    report('warning', 'STORE_KEY is not set, so each machine has a session key of its own');
  if (store instanceof Error) return report('wrong', store.message);
  report('note', `${store.rows} rows, ${store.machines.length} machines in the last hour, ${store.version}`);
  if (!store.isWritable) report('wrong', 'it is read-only, so no key can be issued or revoked');
  if (store.keyFailure !== undefined) report('wrong', store.keyFailure);
  if (Math.abs(store.secondsAhead) > MAX_CLOCK_DIFFERENCE)
    report('warning', `its clock is ${store.secondsAhead} s ahead of this machine's; set the clocks`);
  if (store.standbys === '')
    report('note', 'no standby is synchronous, so a failover may lose the last keys that were issued or rotated');
}
