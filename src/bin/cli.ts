#!/usr/bin/env node
// The entry of the `gatefold` command. Commands also start this file in another process, with an internal first word:
// INSPECT_FOLDER to load the controllers, DEPLOY_ON_MACHINE on a target machine.
import { INSPECT_FOLDER } from '../operate/cli/command.ts';
import { runGatefold } from '../operate/cli/commands.ts';
import { DEPLOY_ON_MACHINE } from '../operate/cli/deploy/order.ts';

if (process.argv[2] === INSPECT_FOLDER && process.send !== undefined) {
  const { runInspection } = await import('../operate/cli/inspection-process.ts');
  runInspection();
} else if (process.argv[2] === DEPLOY_ON_MACHINE) {
  const { runOnMachine } = await import('../operate/cli/deploy/machine.ts');
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
