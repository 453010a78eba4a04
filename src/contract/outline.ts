// Writes the contract of an operation in a few words, for `routes` and `doctor`: `data { name, email, age? }`.
import { resolveReference } from './check/run.ts';
import type { Definitions, OperationContract, Schema } from './contract.ts';
import { isFile } from './schema/schema.ts';

export type ContractOutline = NonNullable<ReturnType<typeof outlineOf>>;

const MAX_FIELDS = 12;

export function outlineOf(
  { data, query, path, headers, uncheckedReason, undocumentedReason, schemaGaps }: OperationContract,
  defs: Definitions,
) {
  const parts = Object.entries({ data, query, path, headers }).flatMap(([name, schema]) =>
    schema === undefined ? [] : [`${name} ${outlineSchema(schema, defs)}`],
  );
  const undocumented = [undocumentedReason, schemaGaps].filter(Boolean).join('; ') || undefined;
  if (parts.length === 0 && uncheckedReason === undefined && undocumented === undefined) return undefined;
  // `checked` is empty when no part is checked.
  return { checked: parts.join(', '), unchecked: uncheckedReason, undocumented };
}

function outlineSchema(schema: Schema, defs: Definitions, depth = 0): string {
  const target = resolveReference(schema, defs);
  if (target.type === 'object') return outlineObject(target);
  // In `type Nested = Nested[]`, a list has lists without end.
  if (target.type === 'array')
    return typeof target.items === 'object' && depth < 2
      ? `list of ${outlineSchema(target.items, defs, depth + 1)}`
      : 'list';
  if (target.enum !== undefined || 'const' in target) return 'one of its literals';
  if (target.anyOf !== undefined) return `one of ${target.anyOf.length} types`;
  if (isFile(target)) return 'file';
  return [target.type ?? 'anything'].flat().join(' or ');
}

function outlineObject({ properties = {}, required = [], additionalProperties, patternProperties }: Schema): string {
  const requiredNames = new Set(required);
  const names = Object.keys(properties).map((name) => (requiredNames.has(name) ? name : `${name}?`));
  const words = names.slice(0, MAX_FIELDS);
  if (names.length > words.length) words.push(`… ${names.length - words.length} more`);
  if (additionalProperties !== undefined || patternProperties !== undefined) words.push('…');
  return words.length === 0 ? '{}' : `{ ${words.join(', ')} }`;
}
