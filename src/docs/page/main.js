// The page: the groups, and the operations of one of them. All it shows comes from the service's OpenAPI document. It
// asks nobody else, and the policy that it is served with would not let it.
import { h, prose } from './element.js';
import { badge, panelOf } from './operation.js';
import { base } from './request.js';
import { root } from './schema.js';

const [main, nav, filter, token, menu] = ['main', 'nav', 'filter', 'token', 'menu'].map((id) =>
  document.getElementById(id),
);
let groups = new Map();

document.getElementById('document').href = `${base}/api/openapi.json`;

async function load() {
  const headers = token.value === '' ? {} : { Authorization: token.value };
  const found = await fetch(`${base}/api/openapi.json`, { headers }).then(jsonOf, () => undefined);
  if (found?.paths === undefined) {
    main.replaceChildren(
      h('h1', 'No document'),
      h('p', `${found?.message ?? 'The service does not answer'}. A credential goes above.`),
    );
    return token.focus();
  }
  Object.assign(root, found);
  groups = groupsOf(found);
  for (const name of ['title', 'version']) document.getElementById(name).textContent = found.info[name];
  document.title = found.info.title;
  show();
}

function groupsOf({ paths, tags = [], security: usual = [] }) {
  const found = new Map(tags.map((tag) => [tag.name, { ...tag, operations: [] }]));
  for (const [path, methods] of Object.entries(paths)) {
    for (const [verb, operation] of Object.entries(methods)) {
      const { operationId: id, summary = '', parameters = [], security = usual } = operation;
      const [group] = operation.tags;
      const [[bodyType, { schema: body } = {}] = []] = Object.entries(operation.requestBody?.content ?? {});
      const words = [group, verb, path, id, summary, operation.description].join(' ').toLowerCase();
      const known = {
        id,
        group,
        path,
        method: verb.toUpperCase(),
        summary,
        parameters,
        security,
        bodyType,
        body,
        words,
      };
      found.get(group)?.operations.push({ ...operation, ...known });
    }
  }
  return found;
}

/** No more operations are listed at once: one more word narrows them down faster than an eye. */
const LISTED = 200;

function list() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let left = LISTED;
  const links = Array.from(groups.values(), ({ name, operations }) => {
    const isHere = name === here().group;
    const hits = operations.filter((one) =>
      words.length === 0 ? isHere : words.every((word) => one.words.includes(word)),
    );
    if (words.length > 0 && hits.length === 0) return [];
    const shown = hits.slice(0, left);
    left -= shown.length;
    const inside = shown.map((one) =>
      h('a.operation', { href: linkTo(one), title: one.summary }, badge(one), h('span', shortPath(one))),
    );
    const count = h('span', String(operations.length));
    return [
      h('a.group', { href: linkTo({ group: name }), 'aria-current': isHere && 'page' }, h('span', name), count),
      ...inside,
    ];
  }).flat();
  const note = left === 0 ? `The first ${LISTED}; one more word helps.` : '';
  nav.replaceChildren(...links, links.length === 0 && groups.size > 0 ? 'Nothing has these words.' : note);
}

const jsonOf = (answer) => answer.json().catch(() => undefined);
const linkTo = ({ group, id = '' }) => `#/${group}/${id}`;
const shortPath = ({ path, group }) => path.replace(`/api/${group}`, '') || '/';

function here() {
  const [, group, id] = location.hash.split('/');
  return { group: groups.has(group) ? group : (main.dataset.group ?? groups.keys().next().value), id };
}

function show() {
  const { group, id } = here();
  const { name = 'Nothing answers yet', description = '', operations = [] } = groups.get(group) ?? {};
  if (main.dataset.group !== name) {
    main.dataset.group = name;
    const panels = operations.map((one) => panelOf(one, token, () => history.replaceState(null, '', linkTo(one))));
    main.replaceChildren(h('h1', name), prose(description) || '', ...panels);
  }
  list();
  const panel = main.querySelectorAll('.panel')[operations.findIndex((one) => one.id === id)];
  if (panel === undefined) return scrollTo(0, 0);
  panel.open = true;
  panel.scrollIntoView();
  panel.firstChild.focus({ preventScroll: true });
}

function toggleMenu(isOpen) {
  menu.ariaExpanded = String(isOpen);
  if (isOpen) filter.focus();
}

/** `/` finds, arrows choose, Escape goes back to the words. */
function onKey(event) {
  const links = [filter, ...nav.querySelectorAll('a')];
  const at = links.indexOf(event.target);
  const to = at < 0 ? undefined : { ArrowDown: links[at + 1], ArrowUp: links[at - 1], Escape: filter }[event.key];
  const isFind = event.key === '/' && !event.target.matches('input, textarea, select');
  if (isFind) toggleMenu(true);
  if (isFind || to) event.preventDefault();
  to?.focus();
}

token.value = sessionStorage.getItem('authorization') ?? '';
token.addEventListener('input', () => sessionStorage.setItem('authorization', token.value));
token.addEventListener('change', () => groups.size === 0 && load());
filter.addEventListener('input', list);
menu.addEventListener('click', () => toggleMenu(menu.getAttribute('aria-expanded') === 'false'));
addEventListener('keydown', onKey);
addEventListener('hashchange', () => toggleMenu(false) ?? show());
load();
