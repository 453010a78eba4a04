// The panel of one operation. A closed panel is a line. An open panel has a form, the request as a curl command, the
// answer, and the answers that the document declares.
import { callerFields, credentials } from './caller.js';
import { h, prose } from './element.js';
import { createControl, createJsonInput, showMistake } from './form.js';
import { curlOf, requestOf, send } from './request.js';
import { follow, outline, read, sample } from './schema.js';

export const badge = ({ method }) => h(`span.method.${method.toLowerCase()}`, method);

/** Creates the panel, whose content is created when a user opens the panel for the first time. */
export function createPanel(operation, onOpen) {
  const path = operation.path.split(/(\{[^}]+\})/).map((part, i) => (i % 2 === 1 ? h('span', part) : part));
  const lock = needsCaller(operation) && h('span.locked', callersOf(operation));
  const line = h(
    'summary',
    badge(operation),
    h('h2', h('code.path', path)),
    h('span.summary', operation.summary),
    lock,
  );
  const panel = h(`details.panel${operation.deprecated ? '.deprecated' : ''}`, { id: operation.id }, line);
  panel.addEventListener('toggle', () => {
    if (panel.open && panel.childElementCount === 1) panel.append(createContent(operation));
    if (panel.open) onOpen();
  });
  return panel;
}

function createContent(operation) {
  const [path, query, header] = ['path', 'query', 'header'].map((where) => parametersOf(operation, where));
  const schemas = Object.entries({ path, query, header, body: operation.body }).filter(
    ([, schema]) => schema !== undefined,
  );
  const sections = h('div');
  const values = () =>
    Object.fromEntries(Array.from(sections.children, (section) => [section.dataset.key, section.lastChild.read()]));
  const samples = () => Object.fromEntries(schemas.map(([where, schema]) => [where, sample(schema)]));
  const request = (show) => requestOf(operation, values(), credentials(show));
  const line = h('code', { tabIndex: 0 });
  const copy = h('button', { type: 'button', onclick: () => copyText(line, copy) }, 'Copy');
  const answer = h('div.answer', { 'aria-live': 'polite' });
  /** Mistakes of the answer that belong to no field of the form. */
  const otherMistakes = h('div.lost', { role: 'alert' });
  const example = h('button', { type: 'button', onclick: () => build(samples()) }, 'Fill in an example');
  const actions = h('p.actions', h('button.send', 'Send'), schemas.length > 0 && example);
  const form = h('form', { noValidate: true, onsubmit: submit }, sections, otherMistakes, actions);
  let isJson = false;
  let running;

  function build(initial, asJson = isJson) {
    isJson = asJson;
    sections.replaceChildren(...schemas.map(([where, schema]) => createSection(where, schema, initial[where])));
    updateCurl();
  }
  function createSection(where, schema, initial) {
    const hasFields = read(schema).properties !== undefined;
    const canSwap = where === 'body' && hasFields && operation.bodyType === 'application/json';
    const swap = { type: 'button', onclick: () => build(values(), !isJson) };
    const swapButton = canSwap && h('button', swap, isJson ? 'as fields' : 'as JSON');
    const control =
      canSwap && isJson ? createJsonInput(schema, where, initial) : createControl(schema, true, where, initial);
    return h('section', { 'data-key': where }, h('h3', where, swapButton), control);
  }
  /** The page shows only the beginning of each credential in the curl command. The button copies all of it. */
  function updateCurl() {
    line.dataset.complete = curlOf(request());
    line.textContent = curlOf(request((value) => `${value.slice(0, 11)}…`));
  }
  async function submit(event) {
    event.preventDefault();
    if (running !== undefined) return running.abort();
    running = new AbortController();
    form.classList.add('running');
    for (const element of [answer, otherMistakes, ...form.querySelectorAll('.wrong')]) element.replaceChildren();
    const body = await send(request(), answer, running.signal);
    // A controller can return a field `errors` with any content.
    const entries = Array.isArray(body?.errors) ? body.errors : [];
    const errors = entries.filter((entry) => typeof entry?.message === 'string');
    for (const { in: where = 'body', pointer = '', message } of errors) {
      if (!showMistake(form, where, String(pointer), message))
        otherMistakes.append(h('p', h('code', String(pointer || where)), ` ${message}`));
    }
    running = undefined;
    form.classList.remove('running');
    (form.querySelector('.wrong:not(:empty)') ?? answer).scrollIntoView({ block: 'nearest' });
  }

  for (const event of ['input', 'change', 'click']) form.addEventListener(event, () => queueMicrotask(updateCurl));
  form.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    // Firefox and Safari send the form for this key, too, and the second submission would stop the first.
    event.preventDefault();
    form.requestSubmit();
  });
  callerFields.addEventListener('input', updateCurl);
  build({});
  const leftColumn = h('div', prose(operation.description), describeAccess(operation), form);
  const answers = Object.entries(operation.responses).map(describeAnswer);
  return h('div.content', leftColumn, h('div.right', h('div.curl', line, copy), answer, h('h3', 'Answers'), answers));
}

/** Joins the parameters of the path, of the query or of the header into one object schema; undefined when there are none. */
function parametersOf({ parameters }, where) {
  const ofPart = parameters.filter((parameter) => parameter.in === where);
  // The `required` of a parameter is none of its schema.
  const entries = ofPart.map(({ name, schema, required: _, ...about }) => [name, { ...schema, ...about }]);
  const properties = Object.fromEntries(entries);
  const required = ofPart.filter((parameter) => parameter.required).map(({ name }) => name);
  return ofPart.length === 0 ? undefined : { type: 'object', properties, required };
}

/** An empty requirement: a caller without a credential meets it. */
const isOpen = (requirement) => Object.keys(requirement).length === 0;

/** A service whose users have no security scheme shows only by the answer 401 that an operation needs a user. */
function needsCaller({ security, responses }) {
  return responses[401] !== undefined || (security.length > 0 && !security.some(isOpen));
}

/** Returns who may call, by the names of schemes: `credential or token`. Gatefold has two schemes for a credential. */
function callersOf({ security }) {
  if (security.some(isOpen)) return 'user';
  const nameOf = (name) => (/^application(Key)?$/.test(name) ? 'credential' : name);
  const alternatives = security.map((requirement) => Object.keys(requirement).map(nameOf).join(' and '));
  return [...new Set(alternatives)].join(' or ');
}

function describeAccess(operation) {
  const scopes = new Set(operation.security.flatMap((requirement) => Object.values(requirement).flat()));
  const suffix = scopes.size > 0 ? ` with ${[...scopes].join(' or ')}` : '';
  return needsCaller(operation) && h('p.access', `Needs a ${callersOf(operation)}${suffix}.`);
}

function describeAnswer([status, response]) {
  const { description = '', content = {} } = follow(response);
  const [[type = '', { schema } = {}] = []] = Object.entries(content);
  const shape = type.includes('json') ? outline(schema) : type;
  const title = [h(`b.s${status[0]}`, status), h('span', description)];
  if (!shape.includes('\n')) return h('p.response', title, h('code', shape));
  return h('details.response', { open: status[0] === '2' }, h('summary', title), h('pre', shape));
}

/** Copies the curl command. Without HTTPS, a page may not use the clipboard, so the command is selected instead. */
async function copyText(line, button) {
  await navigator.clipboard?.writeText(line.dataset.complete);
  button.textContent = navigator.clipboard ? 'Copied' : 'Press Ctrl C';
  if (navigator.clipboard) return;
  line.textContent = line.dataset.complete;
  getSelection().selectAllChildren(line);
}
