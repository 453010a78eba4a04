// What has not loaded may load by now, because a database is there that was away, or what it imports is mended. One
// worker loads the whole folder, as a generation would, and goes; the others serve on. When more loads than serves, a
// generation is made.
import { type Groups, isGain } from '../group-table.ts';
import { rollOut } from '../rollout.ts';
import { pardonServing, RETRY, refuse, type Service } from '../service.ts';

export interface Probe {
  /** Milliseconds until one is due; infinite when everything loads. Files that were not the last ones begin anew. */
  remaining(): number;
  run(): Promise<void>;
  isRunning(): boolean;
  /** Something else is wanted, and does not wait. */
  interrupt(): void;
}

export function createProbe(service: Service): Probe {
  const { table, poison, watch, loader, retries, now } = service;
  let isRunning = false;
  /** The files that the pauses are for. */
  let known = '';

  return {
    remaining() {
      const files = brokenFiles(table.current.groups);
      if (files !== known) {
        known = files;
        retries.forget('probe');
        retries.failed('probe');
      }
      // A file that ended its process stands as it was, but something else has changed: what it imports may be mended.
      const seen = poison.active().size === 0 ? undefined : watch.look();
      if (seen !== undefined && poison.suspect(seen) !== undefined) return 0;
      return files === '' ? Number.POSITIVE_INFINITY : retries.remaining('probe');
    },
    async run() {
      const begun = now();
      isRunning = true;
      const outcome = await loader.probe(table.current.number).finally(() => {
        isRunning = false;
        // Whatever this worker met.
        pardonServing(service);
      });
      // One that was interrupted is due as soon as there is nothing else to be done.
      if (outcome.kind === 'aborted') return;
      retries.failed('probe', now() - begun);
      if (service.isStopping) return;
      if (outcome.kind === 'ended') return refuse(service, RETRY, outcome.reason);
      if (!isGain(table.current.groups, outcome.groups)) return;
      await rollOut(service, RETRY);
      if (isGain(table.current.groups, outcome.groups)) retries.deceived('probe');
    },
    isRunning: () => isRunning,
    interrupt() {
      if (isRunning) loader.abort();
    },
  };
}

function brokenFiles(groups: Groups): string {
  const files = Array.from(groups.values()).flatMap(({ ok, file }) => (ok ? [] : [file]));
  return files.sort().join('\n');
}
