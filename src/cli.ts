#!/usr/bin/env node
// The entry of the `gatefold` command. The entry passes the arguments, streams and environment of the process to cli/,
// where each command has a file, and sets the exit code. Two processes that commands start also begin here.
import { INSPECTION } from './cli/command.ts';
import { runGatefold } from './cli/commands.ts';
import { ON_MACHINE } from './cli/deploy/order.ts';

if (process.argv[2] === INSPECTION && process.send !== undefined) {
  const { runInspection } = await import('./cli/inspection-process.ts');
  runInspection();
} else if (process.argv[2] === ON_MACHINE) {
  const { runOnMachine } = await import('./cli/deploy/machine.ts');
  await runOnMachine(process.argv[3] ?? '');
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
