// Keeps the id of this machine and the number of machines over a restart, in the file `.store-proof`. With a new id, a
// machine would count twice after a restart, and each machine would allow less than its part of a rate.
import { readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { crypto } from '../../base/builtins.ts';
import { attempt } from '../../base/failure.ts';
import { parseObject } from '../../base/values.ts';
import { proofPathOf } from './replica.ts';

export interface Machine {
  readonly id: string;
  /** The number of machines that were seen last. */
  readonly machines: number;
}

/** Returns a new machine when there is no file, or when the file is from a machine with another name. */
export function readMachine(dataDir: string): Machine {
  // There may be no file, or this user may not read it.
  const text = attempt(() => readFileSync(proofPathOf(dataDir), 'utf8'), '');
  const { id, name, machines } = parseObject(text) ?? {};
  if (typeof id === 'string' && name === hostname() && Number.isSafeInteger(machines))
    return { id, machines: Math.max(1, Number(machines)) };
  return { id: crypto().randomUUID(), machines: 1 };
}

/** Called just after a look, because it also sets the time of the file. */
export function writeMachine(dataDir: string, { id, machines }: Machine): void {
  const text = `${JSON.stringify({ id, name: hostname(), machines })}\n`;
  // On a full disk, this machine counts twice for 15 s after its next restart.
  attempt(() => writeFileSync(proofPathOf(dataDir), text), undefined);
}
