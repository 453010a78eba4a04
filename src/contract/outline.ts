// A contract in a few words, for the commands: `body { name, email, age? }`.

import { resolveReference } from './check/run.ts';
import type { OperationContract, Schema } from './contract.ts';

export interface ContractOutline {
  /** What is checked: `data { name, age? }, query { dryRun? }`; empty: nothing. */
  readonly checked: string;
  /** Why `data` is not. */
  readonly unchecked?: string;
  /** What of the result is not understood, so not documented. */
  readonly undocumented?: string;
}

const MOST_FIELDS = 12;

/** Undefined when there is nothing to say. */
export function outlineOf(
  { data, query, path, unchecked, undocumented }: OperationContract,
  defs: Readonly<Record<string, Schema>>,
): ContractOutline | undefined {
  const parts = Object.entries({ data, query, path }).flatMap(([name, schema]) =>
    schema === undefined ? [] : [`${name} ${textOf(schema, defs)}`],
  );
  if (parts.length === 0 && unchecked === undefined && undocumented === undefined) return undefined;
  return {
    checked: parts.join(', '),
    ...(unchecked === undefined ? {} : { unchecked }),
    ...(undocumented === undefined ? {} : { undocumented }),
  };
}

function textOf(schema: Schema, defs: Readonly<Record<string, Schema>>): string {
  const of = resolveReference(schema, defs);
  if (of.type === 'object') return objectText(of);
  if (of.type === 'array') return `list of ${textOf((of.items as Schema | undefined) ?? {}, defs)}`;
  if (of.enum !== undefined || 'const' in of) return 'one of its literals';
  if (of.anyOf !== undefined) return `one of ${(of.anyOf as unknown[]).length} types`;
  return typeof of.type === 'string' ? of.type : 'anything';
}

function objectText({ properties = {}, required = [], additionalProperties, patternProperties }: Schema): string {
  const needed = new Set(required as string[]);
  const names = Object.keys(properties as object).map((name) => (needed.has(name) ? name : `${name}?`));
  const shown = names.slice(0, MOST_FIELDS);
  if (names.length > shown.length) shown.push(`… ${names.length - shown.length} more`);
  if (additionalProperties !== undefined || patternProperties !== undefined) shown.push('…');
  return shown.length === 0 ? '{}' : `{ ${shown.join(', ')} }`;
}
