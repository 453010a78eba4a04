// Compares what an operation answers with what its result type says. For development alone: a difference is a line in
// the log.
import { isReply } from '../../controller/reply.ts';
import type { OperationContract, Schema } from '../contract.ts';
import { createCompiler } from './compile.ts';
import { type Check, Run } from './run.ts';

export interface ResultMistake {
  readonly pointer: string;
  readonly message: string;
}

/** @returns the first mistake of a result; undefined when there is none, or it cannot be told */
export type ResultCheck = (result: unknown) => ResultMistake | undefined;

/** Undefined when the type says nothing. */
export function createResultCheck(
  { results }: OperationContract,
  defs: Readonly<Record<string, Schema>>,
): ResultCheck | undefined {
  if (results.every(({ schema }) => schema === undefined)) return undefined;
  const compiler = createCompiler(defs, false);
  const checks = new Map<number, Check | undefined>();
  for (const { status, body, schema } of results)
    checks.set(status, body === 'json' && schema !== undefined ? compiler.compile(schema) : undefined);
  // The first result is the plain one, with the status that static operations gives.
  const plainStatus = results[0]?.status ?? 200;
  return (result) => {
    const { status = plainStatus, value } = partsOf(result);
    const check = checks.get(status);
    // What is sent for nothing at all is the plain success, whatever the type.
    if (check === undefined || value === undefined || value === null || value === true) return undefined;
    const text = JSON.stringify(typeof value === 'object' ? value : { data: value });
    if (text === undefined) return undefined;
    const run = new Run();
    check(JSON.parse(text), run);
    return run.mistakes[0];
  };
}

/** The status and the value of a result. A plain result has no status of its own. */
function partsOf(result: unknown): { status?: number; value: unknown } {
  if (!isReply(result)) return { value: result };
  const { status, body } = result;
  return { status, value: body };
}
