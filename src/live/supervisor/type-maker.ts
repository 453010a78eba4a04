// Keeps contracts.gen.ts in `gatefold dev`: runs `gatefold contracts` in a process of its own, because TypeScript needs
// much memory and blocks its process.
import { execFile } from 'node:child_process';
import type { Log } from '../../base/log.ts';
import { entryPath } from '../../own-files.ts';

/** Milliseconds from which a run is slow. The log has a hint for the first one. */
const SLOW = 4000;

/** @returns a function that resolves to whether the file has changed. Calls run one after the other */
export function createTypeMaker(controllersDir: string, log: Log): () => Promise<boolean> {
  let running: Promise<boolean> | undefined;
  let lastWarnings = '';
  let isSlowTold = false;
  const make = () =>
    new Promise<boolean>((resolve) => {
      const startedAt = performance.now();
      const args = [...process.execArgv, entryPath('cli'), 'contracts', '--json', '--controllers-dir', controllersDir];
      execFile(process.execPath, args, (_error, stdout, stderr) => {
        const { changed = false, types = [] } = parse(stdout);
        const took_ms = Math.round(performance.now() - startedAt);
        const isSlow = took_ms > SLOW && !isSlowTold;
        isSlowTold ||= isSlow;
        if (changed)
          log.info('contracts-written', { types: types.length, took_ms, ...(isSlow && { hint: 'edits wait for it' }) });
        if (stderr !== lastWarnings)
          for (const line of stderr.split('\n').filter(Boolean)) log.warn('contracts-warning', { warning: line });
        lastWarnings = stderr;
        resolve(changed);
      });
    });
  return async () => {
    const earlier = running;
    // The caller may have read the file before the earlier run has written it.
    const run = (earlier ?? Promise.resolve(false)).then(async (changed) => (await make()) || changed);
    running = run;
    const result = await run;
    if (running === run) running = undefined;
    return result;
  };
}

function parse(stdout: string): { readonly changed?: boolean; readonly types?: readonly string[] } {
  try {
    return JSON.parse(stdout);
  } catch {
    // The command has failed, and standard error says why.
    return {};
  }
}
