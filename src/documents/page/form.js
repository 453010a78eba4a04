// Creates a form from a schema and an initial value. A control is an element with a method `read()`, which returns the
// value, or undefined when the user has left the field out. The form checks nothing: a user may try wrong values.
import { h, prose } from './element.js';
import { facts, isFile, read, sample, typeOf } from './schema.js';

/** Creates a row: name, type and bounds of a field, its control, and a place for the mistakes that the answer names. */
function createField(key, schema, isRequired, value) {
  const { description, deprecated } = read(schema);
  const input = createControl(schema, isRequired, key, value);
  const bounds = facts(schema).map((fact) => h(fact.startsWith('/') ? 'code.fact' : 'span.fact', fact));
  const mark = isRequired && h('b', { title: 'required' }, '*');
  const about = h('div.about', h('code.name', key), mark, h('span.type', typeOf(schema)), bounds);
  const row = h(
    'div.field',
    h('div', about, prose(description)),
    h('div.input', input, h('p.wrong', { role: 'alert' })),
  );
  row.classList.toggle('deprecated', deprecated === true);
  row.dataset.key = key;
  return withRead(row, input.read);
}

/**
 * Writes a mistake of the answer beside its field.
 *
 * @param pointer a JSON pointer: `/items/0/price`
 * @returns {boolean} whether the form has that field
 */
export function showMistake(form, where, pointer, message) {
  let row = form.querySelector(`[data-key="${CSS.escape(where)}"]`);
  for (const step of pointer.split('/').slice(1)) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~');
    const fields = Array.from(row?.querySelectorAll('.field') ?? []);
    row = fields.find((field) => field.dataset.key === key && field.parentElement.closest('[data-key]') === row);
  }
  const mistakes = row?.querySelector(':scope > .input > .wrong');
  mistakes?.append(message);
  return Boolean(mistakes);
}

const withRead = (element, get) => Object.assign(element, { read: () => get(element) });
/** Makes a control return null for a field that is left out. */
const withNull = (element, get = element.read) => withRead(element, () => get() ?? null);

export function createControl(schema, isRequired, label, value) {
  const { kinds, values, isNullable, type, items, properties, ...own } = read(schema);
  if (values !== undefined) return createSelect(isNullable ? [...values, null] : values, label, value);
  if (isNullable && isRequired) return withNull(createControl(schema, false, label, value));
  if (kinds.length > 1) return createUnion(kinds, label, value ?? undefined);
  if (isNullable) return createControl(kinds[0], false, label, value ?? undefined);
  if (isFile(own)) return withRead(h('input', { type: 'file', 'aria-label': label }), (input) => input.files[0]);
  if (properties !== undefined) return isRequired ? createObject(schema, value) : createUnion([schema], label, value);
  if (type === 'array' && items && !own.prefixItems)
    return createList(items, isRequired ? (own.minItems ?? 0) : undefined, label, value);
  return /^(string|integer|number)$/.test(type)
    ? createInput(type, own, label, value)
    : createJsonInput(schema, label, value);
}

function createInput(type, { examples, default: defaultValue = '' }, label, value = '') {
  const texts = { 'aria-label': label, placeholder: String(examples?.[0] ?? defaultValue), value: String(value) };
  const input = h('input', { ...texts, autocomplete: 'off', spellcheck: false });
  if (type !== 'string') input.inputMode = 'decimal';
  const isText = () => type === 'string' || Number.isNaN(Number(input.value));
  return withRead(input, () => (input.value === '' ? undefined : isText() ? input.value : Number(input.value)));
}

/** Creates an area for JSON. A text that is not JSON is sent as a string. */
export function createJsonInput(schema, label, value) {
  const json = value === undefined ? '' : JSON.stringify(value, null, 2);
  const rows = Math.min(24, Math.max(3, json.split('\n').length));
  const placeholder = JSON.stringify(sample(schema)) ?? 'JSON';
  const area = h('textarea', { 'aria-label': label, rows, spellcheck: false, placeholder, value: json });
  return withRead(area, () => {
    try {
      return area.value === '' ? undefined : JSON.parse(area.value);
    } catch {
      return area.value;
    }
  });
}

const textOf = (value) => (typeof value === 'string' ? value : JSON.stringify(value));

function createSelect(values, label, value, texts = values.map(textOf)) {
  const options = texts.map((text, i) => h('option', { value: String(i), selected: values[i] === value }, text));
  const select = h('select', { 'aria-label': label }, h('option', { value: '' }, '–'), options);
  return withRead(select, () => values[select.value]);
}

/** Creates the fields of an object. A field with one possible value, such as the tag of a union, needs no input. */
function createObject(schema, value) {
  const { properties, required = [] } = read(schema);
  const [constants, inputs] = [true, false].map((isConstant) =>
    Object.entries(properties).filter(([, property]) => (property.const !== undefined) === isConstant),
  );
  const rows = inputs.map(([key, property]) => createField(key, property, required.includes(key), value?.[key]));
  const entries = () => [
    ...constants.map(([key, property]) => [key, property.const]),
    ...rows.map((row) => [row.dataset.key, row.read()]),
  ];
  return withRead(h('div.fields', rows), () =>
    Object.fromEntries(entries().filter(([, entry]) => entry !== undefined)),
  );
}

/** @param least the smallest number of entries; undefined when the list may be left out */
function createList(items, least, label, value) {
  const rows = h('div.fields');
  const add = (entry) => {
    const row = createField(String(rows.childElementCount), items, true, entry);
    const about = { type: 'button', 'aria-label': `Remove from ${label}` };
    row.append(h('button.remove', { ...about, onclick: () => remove(row) }, '×'));
    rows.append(row);
  };
  const remove = (row) => {
    row.remove();
    for (const [i, other] of [...rows.children].entries())
      other.querySelector('.name').textContent = other.dataset.key = String(i);
  };
  for (const entry of Array.isArray(value) ? value : Array(least ?? 0).fill()) add(entry);
  const element = h('div.list', rows, h('button', { type: 'button', onclick: () => add() }, `Add to ${label}`));
  return withRead(element, () =>
    least === undefined && !rows.firstChild ? undefined : Array.from(rows.children, (row) => row.read()),
  );
}

/** Creates a choice among kinds. Only the chosen kind gets fields, because a recursive type would have no end. */
function createUnion(kinds, label, value) {
  const initialKind = value !== undefined && kinds.find((kind) => fits(value, read(kind)));
  const select = createSelect(kinds, `Kind of ${label}`, initialKind, kinds.map(nameOf));
  const container = h('div');
  const update = (initial) => {
    const kind = select.read();
    container.replaceChildren(...(kind === undefined ? [] : [createControl(kind, true, label, initial)]));
  };
  select.addEventListener('change', () => update());
  update(value);
  return withRead(h('div.union', select, container), () => container.firstChild?.read());
}

/** Returns the name of a kind in the choice: `card` for `{ by: 'card'; number: string }`, else the type. */
const nameOf = (kind) =>
  Object.values(read(kind).properties ?? {}).find(({ const: tag }) => typeof tag === 'string')?.const ?? typeOf(kind);

/** Returns whether a value can be of a kind. */
function fits(value, { type, properties = {} }) {
  const isType = (Array.isArray(value) ? 'array' : typeof value) === String(type).replace('integer', 'number');
  return isType && Object.entries(properties).every(([key, { const: tag = value[key] }]) => value[key] === tag);
}
