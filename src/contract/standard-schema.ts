// Schemas of libraries (zod, valibot, arktype, …) in the place of types: the convention of https://standardschema.dev. Whatever
// they throw or answer, it becomes a list of mistakes or a value.

import type { Problem, Schema } from './contract.ts';
import { cutPointer, LIMITS, stepOf } from './run.ts';

/** As far as it is used here. */
export interface StandardSchema {
  readonly '~standard': {
    readonly validate: (value: unknown) => unknown;
    readonly jsonSchema?: {
      readonly input?: (options: { target: string }) => unknown;
      readonly output?: (options: { target: string }) => unknown;
    };
  };
}

export type Validated = { readonly value: unknown } | { readonly problems: readonly Problem[] };

/** @throws whatever the library throws, and TypeError on an answer that is none */
export function validate(schema: StandardSchema, value: unknown, from: Problem['in']): Validated | Promise<Validated> {
  const answer = schema['~standard'].validate(value);
  return answer instanceof Promise ? answer.then((late) => read(late, from)) : read(answer, from);
}

function read(answer: unknown, from: Problem['in']): Validated {
  if (typeof answer !== 'object' || answer === null) throw new TypeError('the schema answered neither a value nor issues');
  const { issues, value } = answer as { issues?: unknown; value?: unknown };
  if (issues === undefined || issues === null) return { value };
  if (!Array.isArray(issues)) throw new TypeError('the schema answered issues that are no list');
  const problems = issues.slice(0, LIMITS.mistakes).map((issue) => problemOf(issue, from));
  return { problems: problems.length > 0 ? problems : [{ in: from, pointer: '', message: 'is not what it should be' }] };
}

function problemOf(issue: unknown, from: Problem['in']): Problem {
  const { message, path } = (issue ?? {}) as { message?: unknown; path?: unknown };
  const steps = Array.isArray(path)
    ? path.map((step) => (typeof step === 'object' && step !== null ? (step as { key?: unknown }).key : step))
    : [];
  const pointer = cutPointer(steps.map((step) => stepOf(String(step))).join(''));
  return { in: from, pointer, message: typeof message === 'string' ? message : 'is not what it should be' };
}

/** Its JSON Schema, where it can say it; `{}` (anything) where it cannot. */
export function documentOf(schema: StandardSchema, side: 'input' | 'output'): Schema {
  try {
    const made = schema['~standard'].jsonSchema?.[side]?.({ target: 'draft-2020-12' });
    if (typeof made !== 'object' || made === null || Array.isArray(made)) return {};
    const { $schema: _, ...plain } = JSON.parse(JSON.stringify(made)) as Record<string, unknown>;
    return plain;
  } catch {
    // zod throws for what JSON Schema cannot say, such as z.date().
    return {};
  }
}
