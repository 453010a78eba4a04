// One operation: its line in the list, and behind it the form that sends it, the curl line, the answer and what may be
// answered.
import { h, prose } from './element.js';
import { control, json, say } from './form.js';
import { curlOf, requestOf, send } from './request.js';
import { follow, outline, read, sample } from './schema.js';

export const badge = ({ method }) => h(`span.method.${method.toLowerCase()}`, method);

/** Folded up it is a line; the rest is made when it is first opened. */
export function panelOf(operation, token, onOpen) {
  const path = operation.path.split(/(\{[^}]+\})/).map((part, i) => (i % 2 === 1 ? h('i', part) : part));
  const lock = needsCredential(operation) && h('span.locked', 'credential');
  const line = h('summary', badge(operation), h('code.path', path), h('span.summary', operation.summary), lock);
  const panel = h(`details.panel${operation.deprecated ? '.deprecated' : ''}`, { id: operation.id }, line);
  panel.addEventListener('toggle', () => {
    if (panel.open && panel.childElementCount === 1) panel.append(contentOf(operation, token));
    if (panel.open) onOpen();
  });
  return panel;
}

function contentOf(operation, token) {
  const all = { path: parametersOf(operation, 'path'), query: parametersOf(operation, 'query'), body: operation.body };
  const schemas = Object.entries(all).filter(([, schema]) => schema !== undefined);
  const sections = h('div');
  const values = () =>
    Object.fromEntries(Array.from(sections.children, (section) => [section.dataset.key, section.lastChild.read()]));
  const samples = () => Object.fromEntries(schemas.map(([where, schema]) => [where, sample(schema)]));
  const request = () => requestOf(operation, values(), token.value.trim());
  const line = h('code', { tabIndex: 0 });
  const copy = h('button', { type: 'button', onclick: () => copyText(line, copy) }, 'Copy');
  const answer = h('div.answer', { 'aria-live': 'polite' });
  const lost = h('div.lost', { role: 'alert' });
  const example = h('button', { type: 'button', onclick: () => build(samples()) }, 'Fill in an example');
  const actions = h('p.actions', h('button.send', 'Send'), schemas.length > 0 && example);
  const form = h('form', { noValidate: true, onsubmit: submit }, sections, lost, actions);
  let isJson = false;
  let running;

  function build(held, inJson = isJson) {
    isJson = inJson;
    sections.replaceChildren(...schemas.map(([where, schema]) => sectionOf(where, schema, held[where])));
    renew();
  }
  function sectionOf(where, schema, held) {
    const canSwap =
      where === 'body' && read(schema).properties !== undefined && operation.bodyType === 'application/json';
    const swap =
      canSwap &&
      h('button', { type: 'button', onclick: () => build(values(), !isJson) }, isJson ? 'as fields' : 'as JSON');
    const inner = canSwap && isJson ? json(schema, where, held) : control(schema, true, where, held);
    return h('section', { 'data-key': where }, h('h3', where, swap), inner);
  }
  function renew() {
    line.dataset.whole = curlOf(request());
    line.textContent = line.dataset.whole.replace(/(Authorization: .{0,11})[^']*/, '$1…');
  }
  async function submit(event) {
    event.preventDefault();
    if (running !== undefined) return running.abort();
    running = new AbortController();
    form.classList.add('running');
    for (const wrong of [answer, lost, ...form.querySelectorAll('.wrong')]) wrong.replaceChildren();
    const body = await send(request(), answer, running.signal);
    // A controller may call anything "errors".
    const errors = Array.isArray(body?.errors) ? body.errors.filter((one) => typeof one?.message === 'string') : [];
    for (const { in: where = 'body', pointer = '', message } of errors) {
      if (!say(form, where, String(pointer), message))
        lost.append(h('p', h('code', String(pointer || where)), ` ${message}`));
    }
    running = undefined;
    form.classList.remove('running');
    (form.querySelector('.wrong:not(:empty)') ?? answer).scrollIntoView({ block: 'nearest' });
  }

  for (const event of ['input', 'change', 'click']) form.addEventListener(event, () => queueMicrotask(renew));
  form.addEventListener(
    'keydown',
    (event) => event.key === 'Enter' && (event.ctrlKey || event.metaKey) && form.requestSubmit(),
  );
  token.addEventListener('input', renew);
  build({});
  const left = h('div', prose(operation.description), accessOf(operation), form);
  const answers = Object.entries(operation.responses).map(answerOf);
  return h('div.content', left, h('div.right', h('div.curl', line, copy), answer, h('h3', 'Answers'), answers));
}

function parametersOf({ parameters }, where) {
  const those = parameters.filter((one) => one.in === where);
  const properties = Object.fromEntries(those.map(({ name, schema, ...about }) => [name, { ...schema, ...about }]));
  const required = those.filter((one) => one.required).map(({ name }) => name);
  return those.length === 0 ? undefined : { type: 'object', properties, required };
}

function needsCredential({ security }) {
  return security.length > 0 && security.every((one) => Object.keys(one).length > 0);
}

function accessOf(operation) {
  const scopes = operation.security.flatMap((one) => Object.values(one).flat());
  return (
    needsCredential(operation) &&
    h('p.access', scopes.length > 0 ? `Needs a credential with ${scopes.join(' or ')}.` : 'Needs a credential.')
  );
}

function answerOf([status, response]) {
  const { description = '', content = {} } = follow(response);
  const [[type = '', { schema } = {}] = []] = Object.entries(content);
  const shape = type.includes('json') ? outline(schema) : type;
  const title = [h(`b.s${status[0]}`, status), h('span', description)];
  if (!shape.includes('\n')) return h('p.response', title, h('code', shape));
  return h('details.response', { open: status[0] === '2' }, h('summary', title), h('pre', shape));
}

/** Without a secure context there is no clipboard: the line is selected instead. */
async function copyText(line, button) {
  await navigator.clipboard?.writeText(line.dataset.whole);
  button.textContent = navigator.clipboard ? 'Copied' : 'Press Ctrl C';
  if (navigator.clipboard) return;
  line.textContent = line.dataset.whole;
  getSelection().selectAllChildren(line);
}
