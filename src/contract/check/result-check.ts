// Compares the result of an operation with its result type, in development only. The caller logs the first difference,
// and sends the result unchanged.
import { isReply } from '../../api/controller/reply.ts';
import type { OperationContract, Schema } from '../contract.ts';
import { createCompiler } from './compile.ts';
import { type Check, CheckRun, type Mistake } from './run.ts';

/** Returns the first mistake of a result; undefined for a result without mistakes or without a schema. */
export type ResultCheck = (result: unknown) => Mistake | undefined;

/** @returns undefined when no result has a schema */
export function createResultCheck(
  { results }: OperationContract,
  defs: Readonly<Record<string, Schema>>,
): ResultCheck | undefined {
  if (results.every(({ schema }) => schema === undefined)) return undefined;
  const compiler = createCompiler(defs, false);
  const checks = new Map<number, Check | undefined>();
  for (const { status, body, schema } of results)
    checks.set(status, body === 'json' && schema !== undefined ? compiler.compile(schema) : undefined);
  // A result that is no `Reply` has the status of the first result type, which `static operations` can set.
  const plainStatus = results[0]?.status ?? 200;
  return (result) => {
    const { status, value } = isReply(result)
      ? { status: result.status, value: result.body }
      : { status: plainStatus, value: result };
    const check = checks.get(status);
    // For undefined, null and true, the service sends its success message, whatever the type is.
    if (check === undefined || value === undefined || value === null || value === true) return undefined;
    const text = JSON.stringify(typeof value === 'object' ? value : { data: value });
    if (text === undefined) return undefined;
    const run = new CheckRun();
    run.check(check, JSON.parse(text));
    return run.mistakes[0];
  };
}
