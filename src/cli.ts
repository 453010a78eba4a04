#!/usr/bin/env node
// The `gatefold` command: the process's own words, streams and environment in, an exit code out. It only wires; what a
// command does is cli/, one file each.
import { INSPECTION } from './cli/command.ts';
import { runGatefold } from './cli/commands.ts';

if (process.argv[2] === INSPECTION && process.send !== undefined) {
  const { runInspection } = await import('./cli/inspection-process.ts');
  runInspection();
} else {
  process.exitCode = await runGatefold(process.argv.slice(2), {
    env: process.env,
    cwd: process.cwd(),
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    isTTY: process.stdout.isTTY === true,
  });
}
