// Compares the result of an operation with its result type, in development only. The caller logs the difference, and
// sends the result unchanged.
import { isReply } from '../../api/controller/reply.ts';
import type { Definitions, OperationContract, ResultContract } from '../contract.ts';
import { createCompiler } from './compile.ts';
import { FAULTS } from './messages.ts';
import { type Check, CheckRun, type Mistake } from './run.ts';

/** Returns the first mistake of a result, or all undeclared fields; undefined for a result without mistakes. */
export type ResultCheck = (result: unknown) => Pick<Mistake, 'pointer' | 'message'> | undefined;

/** @param isLimited whether undeclared fields are not sent; the others are reported, until the list stays the same */
export function createResultCheck(
  { results }: OperationContract,
  defs: Definitions,
  isLimited: boolean,
): ResultCheck | undefined {
  if (results.every(({ schema }) => schema === undefined)) return undefined;
  const compiler = createCompiler(defs, false);
  const checks = new Map<number, Check | undefined>();
  for (const { status, body, schema } of results)
    checks.set(status, body === 'json' && schema !== undefined ? compiler.compile(schema) : undefined);
  // A result that is no `Reply` has the status of the first result type, which `static operations` can set.
  const plainStatus = (results[0] as ResultContract).status;
  let lastUndeclared = '';
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
    if (!isLimited) run.alsoDeclared = new Set();
    run.check(check, JSON.parse(text));
    const mistake = run.mistakes.find(({ code }) => code !== 'additionalProperties');
    if (mistake !== undefined) return mistake;
    const fields = new Set(run.mistakes.map((undeclared) => undeclared.pointer.replace(/\/\d+(?=\/)/g, '/*')));
    const pointer = [...fields].join(', ');
    if (pointer === lastUndeclared) return undefined;
    lastUndeclared = pointer;
    return pointer === '' ? undefined : { pointer, message: FAULTS.undeclared.message };
  };
}
