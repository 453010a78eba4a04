// The page: a list of the groups, and beside it an overview or the operations of one group. Everything on the page comes from the OpenAPI
// document of the service.
import { callerFields, credentials, keyField, showFields } from './caller.js';
import { h, prose } from './element.js';
import { badge, createPanel } from './operation.js';
import { base } from './request.js';
import { openApi } from './schema.js';

const [main, nav, filter, menu] = ['main', 'nav', 'filter', 'menu'].map((id) => document.getElementById(id));
let groups = new Map();

document.getElementById('document').href = `${base}/openapi.json`;

async function load() {
  const { headers } = credentials();
  const answer = await fetch(`${base}/openapi.json`, { headers }).then(jsonOf, () => undefined);
  if (answer?.paths === undefined) {
    const message = answer === undefined ? 'The service does not answer' : answer.message;
    main.replaceChildren(
      h('h1', 'No document'),
      h('p', `${message ?? 'The service refuses the document'}. Enter a credential above.`),
    );
    return keyField().focus();
  }
  Object.assign(openApi, answer);
  groups = groupOperations(answer);
  showFields(answer.components?.securitySchemes ?? {});
  for (const name of ['title', 'version']) document.getElementById(name).textContent = answer.info[name];
  document.title = answer.info.title;
  show();
}

/** Returns the groups of the document, each with its operations. */
function groupOperations({ paths, servers: [server], tags = [], security: defaultSecurity = [] }) {
  // The paths of the document begin with the default base path. Any other base path is in `servers`.
  const prefix = Object.keys(paths).every((path) => /^\/api(?:\/|$)/.test(path)) ? '/api' : '';
  const byName = new Map(tags.map((tag) => [tag.name, { ...tag, operations: [] }]));
  for (const [path, methods] of Object.entries(paths)) {
    for (const [verb, operation] of Object.entries(methods)) {
      const { operationId: id, summary = '', parameters = [], security = defaultSecurity } = operation;
      const [group] = operation.tags;
      const [[bodyType, { schema: body } = {}] = []] = Object.entries(operation.requestBody?.content ?? {});
      const words = [group, verb, path, id, summary, operation.description].join(' ').toLowerCase();
      const fields = {
        id,
        group,
        path: server.url.replace(/\/$/, '') + path,
        pathBelow: path.slice(prefix.length),
        method: verb.replaceAll(/^x-|-rest$/g, '').toUpperCase(),
        summary,
        parameters,
        security,
        bodyType,
        body,
        words,
      };
      byName.get(group)?.operations.push({ ...operation, ...fields });
    }
  }
  return byName;
}

/** Maximum number of operations in the list. */
const MAX_LISTED = 200;

function list() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let remaining = MAX_LISTED;
  const links = Array.from(groups.values(), ({ name, operations }) => {
    const isCurrent = name === currentPlace().group;
    const hits = operations.filter((operation) =>
      words.length === 0 ? isCurrent : words.every((word) => operation.words.includes(word)),
    );
    if (words.length > 0 && hits.length === 0) return [];
    const listed = hits.slice(0, remaining);
    remaining -= listed.length;
    const operationLinks = listed.map((operation) => {
      const path = h('span', shortPath(operation));
      return h('a.operation', { href: linkTo(operation), title: operation.summary }, badge(operation), path);
    });
    const count = h('span', String(operations.length));
    return [
      h('a.group', { href: linkTo({ group: name }), 'aria-current': isCurrent && 'page' }, h('span', name), count),
      ...operationLinks,
    ];
  }).flat();
  const note = remaining === 0 ? `The first ${MAX_LISTED}. Type another word to find more.` : '';
  nav.replaceChildren(...links, links.length === 0 && groups.size > 0 ? 'No operation has these words.' : note);
}

const jsonOf = (answer) => answer.json().catch(() => undefined);
const linkTo = ({ group, id = '' }) => `#/${group}/${id}`;
const shortPath = ({ pathBelow, group }) => pathBelow.replace(`/${group}`, '') || '/';

/**
 * Returns the group and the operation of the URL: `#/v2/order/v2_order_created` is the group `v2/order`. The group is
 * undefined for the overview. A hash that is no place, such as that of the skip link, changes nothing.
 */
function currentPlace() {
  const [, group, id] = /^#\/(.*?)(?:\/([^/]*))?$/.exec(location.hash) ?? [];
  if (groups.has(group)) return { group, id };
  return { group: group === undefined && location.hash !== '' ? main.dataset.group : undefined };
}

/** Shows what the service is, and its groups. */
function showOverview() {
  const { title, version, description } = openApi.info;
  const rows = Array.from(groups.values(), ({ name, description: about = '', operations: { length } }) => {
    const count = h('span', length === 1 ? '1 operation' : `${length} operations`);
    return h('li', h('a', { href: linkTo({ group: name }) }, name), ' ', count, prose(about));
  });
  main.replaceChildren(
    h('h1', title, ' ', h('span', version)),
    prose(description) || '',
    h('h2', rows.length === 0 ? 'No operations yet' : 'Groups'),
    h('ul.groups', rows),
  );
}

function show() {
  const { group, id } = currentPlace();
  const { name, description, operations = [] } = groups.get(group) ?? {};
  if (name === undefined) {
    delete main.dataset.group;
    showOverview();
  } else if (main.dataset.group !== name) {
    main.dataset.group = name;
    const setUrl = (operation) => history.replaceState(null, '', linkTo(operation));
    const panels = operations.map((operation) => createPanel(operation, () => setUrl(operation)));
    main.replaceChildren(h('h1', name), prose(description) || '', ...panels);
  }
  list();
  const panel = main.querySelectorAll('.panel')[operations.findIndex((operation) => operation.id === id)];
  if (panel === undefined) return scrollTo(0, 0);
  panel.open = true;
  panel.scrollIntoView();
  panel.firstChild.focus({ preventScroll: true });
}

function toggleMenu(isOpen) {
  menu.ariaExpanded = String(isOpen);
  if (isOpen) filter.focus();
}

/** `/` opens the list, arrows move in the list, and Escape moves back to the search field. */
function onKey(event) {
  const targets = [filter, ...nav.querySelectorAll('a')];
  const i = targets.indexOf(event.target);
  const target = i < 0 ? undefined : { ArrowDown: targets[i + 1], ArrowUp: targets[i - 1], Escape: filter }[event.key];
  const isFind = event.key === '/' && !event.target.matches('input, textarea, select');
  if (isFind) toggleMenu(true);
  if (isFind || target) event.preventDefault();
  target?.focus();
}

callerFields.addEventListener('change', () => groups.size === 0 && load());
filter.addEventListener('input', list);
menu.addEventListener('click', () => toggleMenu(menu.getAttribute('aria-expanded') === 'false'));
addEventListener('keydown', onKey);
addEventListener('hashchange', () => toggleMenu(false) ?? show());
load();
