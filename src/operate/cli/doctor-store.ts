// The check of the store for `gatefold doctor`.
import { isLoopback } from '../../base/store-address.ts';
import { FILLING_ADVICE, FILLING_BYTES, MAX_BYTES } from '../../callers/credentials/table/live-table.ts';
import type { Installation, Report } from './finding.ts';
import type { StoreDescription } from './store.ts';

/** Seconds. Each machine checks the expiry of credentials by its own clock, so a larger difference is a warning. */
const MAX_CLOCK_DIFFERENCE = 5;

export async function checkStore({ settings, inspection }: Installation, report: Report): Promise<void> {
  if (settings.store === undefined) return;
  const { channels } = inspection instanceof Error ? { channels: [] } : inspection;
  if (channels.length > 0)
    report('note', `an event of a channel (${channels.join(', ')}) reaches one machine: see docs/CHANNELS.md`);
  const { tls, hosts } = settings.store;
  if (tls === 'off' && !hosts.every(({ host }) => isLoopback(host)))
    report('warning', 'the connection has no TLS: remove sslmode=disable');
  if (settings.storeKeys.length === 0)
    report('warning', 'STORE_KEY is not set, so each machine has a session key of its own');
  const { describeStore } = await import('./store.ts');
  const { withStore } = await import('./credentials-table.ts');
  reportDescription(await withStore(settings, (store) => describeStore(store, settings.storeKeys)), report);
}

export function reportDescription(description: StoreDescription, report: Report): void {
  const { bytes, isWritable, keyFailure, secondsAhead, standbys } = description;
  if (!isWritable) report('wrong', 'it is read-only, so no key can be issued or revoked');
  if (bytes > FILLING_BYTES)
    report(
      bytes > MAX_BYTES ? 'wrong' : 'warning',
      `its table has ${Math.floor((100 * bytes) / MAX_BYTES)} % of its limit: ${FILLING_ADVICE}`,
    );
  if (keyFailure !== undefined) report('wrong', keyFailure);
  if (Math.abs(secondsAhead) > MAX_CLOCK_DIFFERENCE)
    report('warning', `its clock is ${secondsAhead} s ahead of this machine's; set the clocks`);
  if (standbys === '')
    report('note', 'no standby is synchronous, so a failover may lose the last keys that were issued or rotated');
}
