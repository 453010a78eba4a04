// A form made of a schema, and of a value to begin with. Each control is an element with `read()`: its value, undefined
// when it is left out. It refuses nothing: the service is the judge, and may be sent anything.
import { h, prose } from './element.js';
import { facts, isFile, read, sample, typeOf } from './schema.js';

/** One field: what it is, its input, and what is wrong with it. */
function field(key, schema, isRequired, value) {
  const { description, deprecated } = read(schema);
  const input = control(schema, isRequired, key, value);
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

/** Writes beside a field what is wrong with it. @returns whether there is such a field */
export function say(form, where, pointer, message) {
  let row = form.querySelector(`[data-key="${CSS.escape(where)}"]`);
  for (const part of pointer.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    const inside = Array.from(row?.querySelectorAll('.field') ?? []);
    row = inside.find((one) => one.dataset.key === key && one.parentElement.closest('[data-key]') === row);
  }
  const wrong = row?.querySelector(':scope > .input > .wrong');
  wrong?.append(message);
  return Boolean(wrong);
}

const withRead = (element, get) => Object.assign(element, { read: () => get(element) });
const orNull = (element, get = element.read) => withRead(element, () => get() ?? null);

export function control(schema, isRequired, label, value) {
  const { kinds, values, isNullable, type, items, properties, ...own } = read(schema);
  if (values !== undefined) return choice(isNullable ? [...values, null] : values, label, value);
  if (isNullable && isRequired) return orNull(control(schema, false, label, value));
  if (kinds.length > 1) return union(kinds, label, value ?? undefined);
  if (isNullable) return control(kinds[0], false, label, value ?? undefined);
  if (isFile(own)) return withRead(h('input', { type: 'file', 'aria-label': label }), (input) => input.files[0]);
  if (properties !== undefined) return isRequired ? object(schema, value) : union([schema], label, value);
  if (type === 'array' && items) return list(items, isRequired ? (own.minItems ?? 0) : undefined, label, value);
  return /^(string|integer|number)$/.test(type) ? text(type, own, label, value) : json(schema, label, value);
}

function text(type, { examples, default: usual = '' }, label, value = '') {
  const placeholder = String(examples?.[0] ?? usual);
  const input = h('input', {
    'aria-label': label,
    placeholder,
    autocomplete: 'off',
    spellcheck: false,
    value: String(value),
  });
  if (type !== 'string') input.inputMode = 'decimal';
  const isText = () => type === 'string' || Number.isNaN(Number(input.value));
  return withRead(input, () => (input.value === '' ? undefined : isText() ? input.value : Number(input.value)));
}

/** What is no JSON is sent as a text. */
export function json(schema, label, value) {
  const shown = value === undefined ? '' : JSON.stringify(value, null, 2);
  const rows = Math.min(24, Math.max(3, shown.split('\n').length));
  const placeholder = JSON.stringify(sample(schema)) ?? 'JSON';
  const area = h('textarea', { 'aria-label': label, rows, spellcheck: false, placeholder, value: shown });
  return withRead(area, () => {
    try {
      return area.value === '' ? undefined : JSON.parse(area.value);
    } catch {
      return area.value;
    }
  });
}

function choice(
  values,
  label,
  value,
  texts = values.map((one) => (typeof one === 'string' ? one : JSON.stringify(one))),
) {
  const options = texts.map((shown, i) => h('option', { value: String(i), selected: values[i] === value }, shown));
  return withRead(
    h('select', { 'aria-label': label }, h('option', { value: '' }, '–'), options),
    (select) => values[select.value],
  );
}

/** What can only be one thing, the tag of a union, is not asked for. */
function object(schema, value) {
  const { properties, required = [] } = read(schema);
  const [fixed, asked] = [true, false].map((is) =>
    Object.entries(properties).filter(([, one]) => (one.const !== undefined) === is),
  );
  const rows = asked.map(([key, property]) => field(key, property, required.includes(key), value?.[key]));
  const all = () => [
    ...fixed.map(([key, one]) => [key, one.const]),
    ...rows.map((row) => [row.dataset.key, row.read()]),
  ];
  return withRead(h('div.fields', rows), () => Object.fromEntries(all().filter(([, one]) => one !== undefined)));
}

/** @param least how many there are to begin with; undefined: the list may be left out */
function list(items, least, label, value) {
  const rows = h('div.fields');
  const add = (one) => {
    const row = field(String(rows.childElementCount), items, true, one);
    row.append(
      h('button.remove', { type: 'button', 'aria-label': `Remove from ${label}`, onclick: () => remove(row) }, '×'),
    );
    rows.append(row);
  };
  const remove = (row) => {
    row.remove();
    for (const [i, other] of [...rows.children].entries())
      other.querySelector('.name').textContent = other.dataset.key = String(i);
  };
  for (const one of Array.isArray(value) ? value : Array(least ?? 0).fill()) add(one);
  const element = h('div.list', rows, h('button', { type: 'button', onclick: () => add() }, `Add to ${label}`));
  return withRead(element, () =>
    least === undefined && !rows.firstChild ? undefined : Array.from(rows.children, (row) => row.read()),
  );
}

/** One of several kinds, or none. What is inside is made when it is chosen: so a type may contain itself. */
function union(kinds, label, value) {
  const chosen = choice(
    kinds,
    `Kind of ${label}`,
    value !== undefined && kinds.find((kind) => fits(value, read(kind))),
    kinds.map(nameOf),
  );
  const inside = h('div');
  const make = (given) =>
    inside.replaceChildren(...(chosen.read() === undefined ? [] : [control(chosen.read(), true, label, given)]));
  chosen.addEventListener('change', () => make());
  make(value);
  return withRead(h('div.union', chosen, inside), () => inside.firstChild?.read());
}

/** An object of a tagged union is called by its tag. */
const nameOf = (kind) =>
  Object.values(read(kind).properties ?? {}).find((one) => typeof one.const === 'string')?.const ?? typeOf(kind);

function fits(value, { type, properties = {} }) {
  const isType = (Array.isArray(value) ? 'array' : typeof value) === String(type).replace('integer', 'number');
  return isType && Object.entries(properties).every(([key, { const: tag = value[key] }]) => value[key] === tag);
}
