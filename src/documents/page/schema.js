// Writes a JSON Schema for people: the type of the value, its bounds, and an example.

/** The OpenAPI document, filled by main.js. */
export const openApi = {};

/**
 * Returns the target of a `$ref`, such as `#/components/schemas/Book`, also through the name of another name. A part
 * without `$ref` is its own target.
 */
export function follow(part = {}) {
  const [, ...path] = part.$ref?.split('/') ?? [];
  if (path.length === 0) return part;
  const target = follow(path.reduce((value, key) => value?.[key], openApi));
  // Keys beside the `$ref`, such as `description`, replace those of its target.
  return { ...target, ...part, name: path.at(-1) };
}

/**
 * Returns the target of a schema with three more fields:
 * - `kinds`: the alternatives of the schema, without null.
 * - `values`: all possible values, for an enumeration.
 * - `isNullable`: whether null is an alternative.
 */
export function read(schema) {
  const target = follow(schema);
  const { type, anyOf, oneOf } = target;
  // `type: ['string', 'null']` stands for two alternatives.
  const types = Array.isArray(type) ? type.map((name) => ({ ...target, type: name, $ref: undefined })) : [target];
  const alternatives = anyOf ?? oneOf ?? types;
  const kinds = alternatives.filter((kind) => kind.type !== 'null' && kind.const !== null);
  const valuesOfKinds = kinds.length > 1 ? kinds.map((kind) => read(kind).values) : [undefined];
  const fixedValues = target.const === undefined ? undefined : [target.const];
  const values = target.enum ?? fixedValues ?? (type === 'boolean' ? [true, false] : undefined);
  return {
    ...target,
    kinds,
    isNullable: kinds.length < alternatives.length,
    values: values ?? (valuesOfKinds.includes(undefined) ? undefined : valuesOfKinds.flat()),
  };
}

export const isFile = ({ format }) => format === 'binary';
const listTypeOf = (type) => (/^[^{]* \| /.test(type) ? `(${type})[]` : `${type}[]`);

/** Writes a type as TypeScript does. @param describe writes the types in it; by default, a named type is its name */
export function typeOf(schema, describe = typeOf) {
  const { name, kinds, isNullable, values, type = 'any', items, properties, ...own } = read(schema);
  if (name !== undefined && describe === typeOf) return name;
  if (values?.length > 8) return `one of ${values.length}`;
  if (values !== undefined && type !== 'boolean') return values.map((value) => JSON.stringify(value)).join(' | ');
  if (kinds.length > 1 || isNullable)
    return [...kinds.map((kind) => describe(kind)), ...(isNullable ? ['null'] : [])].join(' | ');
  if (type === 'array' && items) return listTypeOf(describe(items));
  if (own.prefixItems) return `[${own.prefixItems.map((item) => describe(item)).join(', ')}]`;
  const [others = own.additionalProperties] = Object.values(own.patternProperties ?? {});
  if (!properties && others) return `{ [key]: ${describe(others)} }`;
  return isFile(own) ? 'file' : type;
}

/** Writes the properties of a value, one in a line. @param ancestors the named types that contain the value */
export function outline(schema, indent = '', ancestors = []) {
  const { name, properties, required = [] } = read(schema);
  if (ancestors.includes(name) || indent.length > 8) return typeOf(schema);
  const names = name === undefined ? ancestors : [...ancestors, name];
  if (properties === undefined) return typeOf(schema, (inner) => outline(inner, indent, names));
  const lines = Object.entries(properties).map(([key, property]) => {
    const notes = [...facts(property), follow(property).description?.split('\n')[0]]
      .filter((note) => note && note.length < 60)
      .join(', ');
    return `${indent}  ${key}${required.includes(key) ? '' : '?'}: ${outline(property, `${indent}  `, names)}${notes && `  // ${notes}`}\n`;
  });
  return `{\n${lines.join('')}${indent}}`;
}

/** Returns a bound; undefined for the largest safe integer, which libraries write into the schema of every integer. */
const boundOf = (bound) => (Math.abs(bound) === Number.MAX_SAFE_INTEGER ? undefined : bound);

/** Lists the bounds, the format and similar keywords of a schema, in a few words each. */
export function facts(schema) {
  const all = { ...follow(read(schema).kinds[0]), ...follow(schema) };
  const range = (least, most, unit = '') => {
    const [low, high] = [boundOf(least), boundOf(most)];
    const count = (bound) => `${bound}${unit && (bound === 1 ? unit : `${unit}s`)}`;
    if (low !== undefined && high !== undefined) return low === high ? count(low) : `${low} to ${count(high)}`;
    return low === undefined ? high !== undefined && `at most ${count(high)}` : `at least ${count(low)}`;
  };
  const rows = [
    all.format !== 'binary' && all.format,
    range(all.minLength, all.maxLength, ' character'),
    range(all.minimum, all.maximum),
    all.exclusiveMinimum !== undefined && `above ${all.exclusiveMinimum}`,
    all.exclusiveMaximum !== undefined && `below ${all.exclusiveMaximum}`,
    all.multipleOf !== undefined && `a multiple of ${all.multipleOf}`,
    range(all.minItems, all.maxItems, ' item'),
    all.uniqueItems && 'each once',
    all.pattern !== undefined && `/${all.pattern}/`,
    all.contentMediaType !== 'application/octet-stream' && all.contentMediaType,
    all.default !== undefined && `default ${JSON.stringify(all.default)}`,
    all.deprecated && 'deprecated',
  ];
  return rows.filter(Boolean);
}

/** Examples of strings by their `format`. */
const EXAMPLES = {
  email: 'ada@example.com',
  uuid: '123e4567-e89b-42d3-a456-426614174000',
  date: '2030-01-31',
  uri: 'https://example.com',
  ipv4: '192.0.2.1',
  time: '12:00:00Z',
};
EXAMPLES['date-time'] = `${EXAMPLES.date}T12:00:00Z`;

/** Returns the first number above the lower bound, or else the last one below the upper bound. */
function sampleNumber({ minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf: step = 1 }) {
  const first = Math.ceil((boundOf(minimum) ?? (exclusiveMinimum ?? 0) + step) / step) * step;
  const most = boundOf(maximum) ?? (exclusiveMaximum ?? Infinity) - step;
  if (first <= most) return first;
  const [low, high] = [minimum ?? exclusiveMinimum, maximum ?? exclusiveMaximum];
  return low === undefined ? Math.floor(most / step) * step : (low + high) / 2;
}

const requiredCount = (kind) => read(kind).required?.length ?? 0;

/** Creates an example. A string without a format is the name of its field: `{ "customer": "customer" }`. */
export function sample(schema, depth = 0, name = 'text') {
  const { kinds, values, isNullable, type, properties = {}, required = [], items, ...own } = read(schema);
  const declaredExample = own.examples?.[0] ?? own.default ?? values?.[0];
  if (declaredExample !== undefined || isFile(own)) return declaredExample;
  // A recursive type has no end.
  if (depth > (isNullable ? 2 : 12)) return isNullable ? null : undefined;
  if (kinds.length > 1 || isNullable)
    return sample(depth > 2 ? kinds.toSorted((a, b) => requiredCount(a) - requiredCount(b))[0] : kinds[0], depth, name);
  if (type === 'array') {
    const most = items === false ? (own.prefixItems?.length ?? 0) : Infinity;
    return [...Array(Math.min(own.minItems || +(depth < 4), most))].map((_, i) =>
      sample(own.prefixItems?.[i] ?? items, depth + 1, name),
    );
  }
  if (type === 'string') return (EXAMPLES[own.format] ?? name.slice(0, own.maxLength)).padEnd(own.minLength ?? 0, 'x');
  if (type === 'integer' || type === 'number') return sampleNumber(own);
  const keys = Object.keys(properties).filter((key) => depth < 2 || required.includes(key));
  return type === 'object'
    ? Object.fromEntries(keys.map((key) => [key, sample(properties[key], depth + 1, key)]))
    : undefined;
}
