// Writes a JSON Schema as a type of TypeScript. `{ type: 'string', minLength: 1 }` becomes `string`, because no type
// can express the length.
import type { Fields } from '../base/values.ts';
import type { Schema } from '../contract/contract.ts';
import { IS_DATE, isFile } from '../contract/schema/schema.ts';

export type NameOf = (reference: string) => string;

const PLAIN_NAME = /^[A-Za-z_$][\w$]*$/;
const UNKNOWN = 'unknown';

export function typeText(value: unknown, nameOf: NameOf, indent = '  '): string {
  if (value === false) return 'never';
  if (typeof value !== 'object' || value === null) return UNKNOWN;
  const schema = value as Schema;
  const write = (inner: unknown) => typeText(inner, nameOf, indent);
  if (typeof schema.$ref === 'string') return nameOf(schema.$ref);
  if (schema[IS_DATE]) return Array.isArray(schema.type) ? 'Date | null' : 'Date';
  if (isFile(schema)) return Array.isArray(schema.type) ? 'File | null' : 'File';
  if ('const' in schema) return literal(schema.const);
  if (Array.isArray(schema.enum)) return unite(schema.enum.map(literal));
  const parts = [schema.anyOf, schema.oneOf].filter(Array.isArray).map((list) => unite(list.map(write)));
  if (Array.isArray(schema.allOf)) parts.push(...schema.allOf.map(write));
  if (schema.type !== undefined) {
    const kinds = [schema.type].flat();
    parts.push(unite(kinds.map((kind) => writeKind(kind, schema, nameOf, indent))));
  }
  if (parts.length === 0) return schema.not === undefined ? UNKNOWN : 'never';
  return parts.length === 1 ? (parts[0] as string) : parts.map(withBrackets).join(' & ');
}

/** Writes a union of types: `string | null`. A union with `unknown` is `unknown`, which includes every other type. */
function unite(parts: readonly string[]): string {
  if (parts.includes(UNKNOWN)) return UNKNOWN;
  return [...new Set(parts)].join(' | ') || 'never';
}

/** Puts a union or an intersection into brackets. Any other type needs none to be a part of another type. */
function withBrackets(text: string): string {
  return / [|&] /.test(text) ? `(${text})` : text;
}

function writeKind(kind: string, schema: Schema, nameOf: NameOf, indent: string): string {
  if (kind === 'integer' || kind === 'number') return 'number';
  if (kind === 'array') return writeArray(schema, nameOf, indent);
  if (kind === 'object') return writeObject(schema, nameOf, indent);
  return /^(?:string|boolean|null)$/.test(kind) ? kind : UNKNOWN;
}

function writeArray({ prefixItems, items, minItems = 0, type }: Schema, nameOf: NameOf, indent: string): string {
  // A schema with `type: ['object', 'array']` is the TypeScript type `object`, which includes lists.
  if (Array.isArray(type) && type.includes('object')) return 'object';
  if (!Array.isArray(prefixItems)) {
    if (items === false) return '[]';
    return `${withBrackets(typeText(items ?? true, nameOf, indent))}[]`;
  }
  const cells = prefixItems.map((item, i) => {
    const cell = typeText(item, nameOf, indent);
    return i < Number(minItems) ? cell : `${withBrackets(cell)}?`;
  });
  const rest = items === false ? [] : [`...${withBrackets(typeText(items ?? true, nameOf, indent))}[]`];
  return `[${[...cells, ...rest].join(', ')}]`;
}

function writeObject(schema: Schema, nameOf: NameOf, indent: string): string {
  const { properties = {}, required = [], additionalProperties, patternProperties } = schema;
  const fields = Object.entries(properties).map(([name, property]) => {
    const mark = required.includes(name) ? '' : '?';
    const text = typeText(property, nameOf, `${indent}  `);
    return `${docComment(property, indent)}${indent}${propertyName(name)}${mark}: ${text};\n`;
  });
  const parts = fields.length === 0 ? [] : [`{\n${fields.join('')}${indent.slice(2)}}`];
  const others = typeText(additionalProperties ?? false, nameOf, indent);
  // Beside fields, an index signature of `never` would refuse the fields, too.
  if (others !== 'never' || (fields.length === 0 && additionalProperties)) parts.push(`{ [name: string]: ${others} }`);
  // The only source of `patternProperties` is an index signature such as `{ [name: number]: string }`.
  for (const values of Object.values(patternProperties ?? {}))
    parts.push(`{ [name: number]: ${typeText(values, nameOf, indent)} }`);
  if (parts.length > 0) return parts.join(' & ');
  // An empty `properties` declares that there are no fields. In TypeScript, the type `{}` would accept any fields.
  return schema.properties === undefined ? 'object' : 'Record<never, never>';
}

export function propertyName(name: string): string {
  return PLAIN_NAME.test(name) ? name : literal(name);
}

function literal(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  return `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}

export function docComment({ summary, description, deprecated }: Fields, indent: string): string {
  const texts = [summary, description].filter((text) => typeof text === 'string' && text !== '');
  const lines = [...texts.join('\n\n').split('\n'), ...(deprecated === true ? ['@deprecated'] : [])]
    .map((line) => line.replaceAll('*/', '*\\/').trimEnd())
    // An empty first or last line is left out.
    .filter((line, i, all) => line !== '' || (i > 0 && i < all.length - 1));
  if (lines.length === 0) return '';
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} *${line === '' ? '' : ` ${line}`}\n`).join('')}${indent} */\n`;
}
