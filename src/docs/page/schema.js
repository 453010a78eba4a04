// JSON Schema as people read it: what kind of value, within which bounds, for example what.

export const root = {};

/** What a `$ref` stands for, or the thing itself. */
export function follow(thing = {}) {
  const [, ...path] = thing.$ref?.split('/') ?? [];
  return path.length === 0 ? thing : { ...path.reduce((at, key) => at?.[key], root), ...thing, name: path.at(-1) };
}

/** A schema, followed. `kinds`: its alternatives but null. `values`: all that there are, of an enumeration. */
export function read(schema) {
  const own = follow(schema);
  const all =
    own.anyOf ?? [own.type].flat().map((type) => (type === own.type ? own : { ...own, type, $ref: undefined }));
  const kinds = all.filter((one) => one.type !== 'null' && one.const !== null);
  const parts = kinds.length > 1 ? kinds.map((kind) => read(kind).values) : [undefined];
  const values =
    own.enum ?? (own.const === undefined ? (own.type === 'boolean' ? [true, false] : undefined) : [own.const]);
  return {
    ...own,
    kinds,
    isNullable: kinds.length < all.length,
    values: values ?? (parts.includes(undefined) ? undefined : parts.flat()),
  };
}

export const isFile = ({ format, contentMediaType }) => format === 'binary' || contentMediaType !== undefined;
const inBrackets = (text) => (/^[^{]* \| /.test(text) ? `(${text})[]` : `${text}[]`);

/** As TypeScript would say it: a name, or with `describe` what is behind it. */
export function typeOf(schema, describe = typeOf) {
  const { name, kinds, isNullable, values, type = 'any', items, properties, ...own } = read(schema);
  if (name !== undefined && describe === typeOf) return name;
  if (values?.length > 8) return `one of ${values.length}`;
  if (values !== undefined && type !== 'boolean') return values.map((value) => JSON.stringify(value)).join(' | ');
  if (kinds.length > 1 || isNullable)
    return [...kinds.map((kind) => describe(kind)), ...(isNullable ? ['null'] : [])].join(' | ');
  if (type === 'array' && items) return inBrackets(describe(items));
  if (own.prefixItems) return `[${own.prefixItems.map((item) => describe(item)).join(', ')}]`;
  const [others = own.additionalProperties] = Object.values(own.patternProperties ?? {});
  if (!properties && others) return `{ [key]: ${describe(others)} }`;
  return isFile(own) ? 'file' : type;
}

/** The shape of a value, a property a line. */
export function outline(schema, pad = '', above = []) {
  const { name, properties, required = [] } = read(schema);
  if (above.includes(name) || pad.length > 8) return typeOf(schema);
  const inside = name === undefined ? above : [...above, name];
  if (properties === undefined) return typeOf(schema, (inner) => outline(inner, pad, inside));
  const lines = Object.entries(properties).map(([key, property]) => {
    const about = [...facts(property), follow(property).description?.split('\n')[0]]
      .filter((fact) => fact && fact.length < 60)
      .join(', ');
    return `${pad}  ${key}${required.includes(key) ? '' : '?'}: ${outline(property, `${pad}  `, inside)}${about && `  // ${about}`}\n`;
  });
  return `{\n${lines.join('')}${pad}}`;
}

/** Undefined for the bound of every whole number, which libraries write into its schema. */
const bounding = (bound) => (Math.abs(bound) === Number.MAX_SAFE_INTEGER ? undefined : bound);

/** Bounds and the like, a few words each. */
export function facts(schema) {
  const all = { ...follow(read(schema).kinds[0]), ...follow(schema) };
  const range = (least, most, unit = '') => {
    const [low, high] = [bounding(least), bounding(most)];
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

const TEXTS = {
  email: 'ada@example.com',
  uuid: '123e4567-e89b-42d3-a456-426614174000',
  date: '2030-01-31',
  uri: 'https://example.com',
};
TEXTS['date-time'] = `${TEXTS.date}T12:00:00Z`;

const needs = (kind) => read(kind).required?.length ?? 0;
/** A value that ought to pass. A text without a format is the name of its field. */
export function sample(schema, depth = 0, name = 'text') {
  const { kinds, values, isNullable, type, properties = {}, required = [], items, ...own } = read(schema);
  const given = own.examples?.[0] ?? own.default ?? values?.[0];
  if (given !== undefined || isFile(own)) return given;
  // A type may contain itself.
  if (depth > (isNullable ? 2 : 12)) return isNullable ? null : undefined;
  if (kinds.length > 1 || isNullable)
    return sample(depth > 2 ? kinds.toSorted((a, b) => needs(a) - needs(b))[0] : kinds[0], depth, name);
  if (type === 'array')
    return [...Array(own.minItems || +(depth < 4))].map((_, i) =>
      sample(own.prefixItems?.[i] ?? items, depth + 1, name),
    );
  if (type === 'string') return (TEXTS[own.format] ?? name.slice(0, own.maxLength)).padEnd(own.minLength ?? 0, 'x');
  const step = own.multipleOf ?? 1;
  if (type === 'integer' || type === 'number')
    return Math.ceil((bounding(own.minimum) ?? (own.exclusiveMinimum ?? 0) + step) / step) * step;
  const keys = Object.keys(properties).filter((key) => depth < 2 || required.includes(key));
  return type === 'object'
    ? Object.fromEntries(keys.map((key) => [key, sample(properties[key], depth + 1, key)]))
    : undefined;
}
