// Compares what an operation answers with what its result type says. For development alone: a difference is a line in the log.
import { createCompiler } from './check.ts';
import type { OperationContract, Schema } from './contract.ts';
import { type Check, Run } from './run.ts';

export interface ResultMistake {
  readonly pointer: string;
  readonly message: string;
}

/** @returns the first mistake of a result; undefined when there is none, or it cannot be told */
export type ResultCheck = (result: unknown) => ResultMistake | undefined;

const REPLY = Symbol.for('gatefold.Reply');

/** Undefined when the type says nothing. */
export function createResultCheck({ results }: OperationContract, defs: Readonly<Record<string, Schema>>): ResultCheck | undefined {
  if (results.every(({ schema }) => schema === undefined)) return undefined;
  const compiler = createCompiler(defs, false);
  const checks = new Map<number, Check | undefined>();
  for (const { status, body, schema } of results)
    checks.set(status, body === 'json' && schema !== undefined ? compiler.compile(schema) : undefined);
  return (result) => {
    const { status, value } = partsOf(result);
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

function partsOf(result: unknown): { status: number; value: unknown } {
  const reply = result as { [REPLY]?: unknown; status?: number; body?: unknown } | null | undefined;
  if (typeof result === 'object' && result !== null && reply?.[REPLY] === true) return { status: reply.status ?? 200, value: reply.body };
  return { status: 200, value: result };
}
