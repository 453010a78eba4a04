// A log that keeps its lines in an array.
import type { Log, LogFields } from '../../src/base/log.ts';

export type MemoryLine = LogFields & { readonly event: string };

export function createMemoryLog(onLine = () => {}): { log: Log; lines: MemoryLine[] } {
  const lines: MemoryLine[] = [];
  const note = (event: string, fields: LogFields = {}) => {
    lines.push({ ...fields, event });
    onLine();
  };
  return { log: { debug: note, info: note, warn: note, error: note }, lines };
}
