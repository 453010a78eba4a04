// Keeps contracts.gen.ts in `gatefold dev`: `gatefold contracts` runs in a process of its own, which TypeScript blocks.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../../base/log.ts';
import { entryPath } from '../../own-files.ts';

/** Milliseconds after which the log says why nothing happens: once, in the first slow run. */
const SLOW = 4000;
const HINT = 'TypeScript reads the types, and edits wait for it; version 7 is the fastest';

/** @returns a function that resolves to whether the file has changed. Calls run one after the other */
export function createTypeMaker(controllersDir: string, log: Log): () => Promise<boolean> {
  let running: Promise<boolean> | undefined;
  let lastWarnings = '';
  let isHinted = false;
  const sayHint = () => {
    if (!isHinted) log.info('contracts-running', { hint: HINT });
    isHinted = true;
  };
  const make = () =>
    new Promise<boolean>((resolve) => {
      const startedAt = performance.now();
      const timer = setTimeout(sayHint, SLOW);
      const args = [...process.execArgv, entryPath('cli'), 'contracts', '--controllers-dir', controllersDir];
      execFile(process.execPath, args, (_error, stdout, stderr) => {
        clearTimeout(timer);
        const [, types] = /^Wrote .*: (\d+)/.exec(stdout) ?? [];
        const took_ms = Math.round(performance.now() - startedAt);
        if (types !== undefined) log.info('contracts-written', { types: Number(types), took_ms });
        for (const warning of stderr === lastWarnings ? [] : stderr.trimEnd().split('\n'))
          log.warn('contracts-warning', { warning });
        lastWarnings = stderr;
        resolve(types !== undefined);
      });
    });
  const makeTypes = async () => {
    // The caller may have read the file before the earlier run has written it.
    const run = (running ?? Promise.resolve(false)).then(async (changed) => (await make()) || changed);
    running = run;
    const result = await run;
    if (running === run) running = undefined;
    return result;
  };
  // A package can have other types under its version, which the reader does not see. A changed file is loaded again.
  if (existsSync(join(controllersDir, 'contracts.gen.ts'))) void makeTypes();
  return makeTypes;
}
