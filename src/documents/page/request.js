// Sends the values of a form, writes the same request as a curl command, and shows the answer.
import { h } from './element.js';

/** The URL of the base path, taken from the page's URL: a proxy can have added a path, as in `/shop/api/docs`. */
export const base = location.origin + location.pathname.replace(/\/docs\/?$/, '');

/** Returns the options for `fetch`, and the `url`. */
export function requestOf({ pathBelow, method, bodyType }, values, caller) {
  const headers = { ...caller.headers };
  for (const [name, value] of entriesOf(values.header)) headers[name] = String(value);
  const search = new URLSearchParams([...entriesOf(values.query), ...caller.query]);
  // A part of the path without a value stays `{id}`, which the reader of the curl command then replaces.
  const filledPath = pathBelow.replaceAll(/\{([^}]+)\}/g, (part, name) => {
    const value = values.path?.[name];
    return value === undefined ? part : encodeURIComponent(value);
  });
  const url = base + filledPath + (String(search) && `?${search}`);
  const hasBody = values.body !== undefined;
  // ANY is an operation of every method. A GET has no body.
  const anyMethod = hasBody ? 'POST' : 'GET';
  const request = { method: method === 'ANY' ? anyMethod : method, headers, url };
  if (!hasBody) return request;
  if (bodyType === 'multipart/form-data') {
    const body = new FormData();
    for (const [key, value] of entriesOf(values.body)) body.append(key, value);
    return { ...request, body };
  }
  const isFile = values.body instanceof File;
  headers['Content-Type'] = isFile ? values.body.type || 'application/octet-stream' : bodyType;
  return { ...request, body: isFile ? values.body : textOf(values.body, bodyType) };
}

/** Writes a body in its media type: an operation can accept others than JSON. */
function textOf(body, type) {
  if (type === 'application/x-www-form-urlencoded') return String(new URLSearchParams(entriesOf(body)));
  return type.startsWith('text/') && typeof body === 'string' ? body : JSON.stringify(body);
}

/**
 * Returns the entries of a query or form. A list becomes a repeated key. An object is the query itself, as in a union of
 * queries. A value that is left out and null have no entry.
 */
const entriesOf = (values = {}) =>
  Object.entries(values).flatMap(([key, value]) =>
    [value].flat().flatMap((item) => {
      if (item === undefined || item === null) return [];
      return typeof item === 'object' && !(item instanceof File) ? entriesOf(item) : [[key, item]];
    }),
  );

const quote = (text) => (/^[\w./:=@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

export function curlOf({ method, url, headers, body }) {
  const data = dataWords(body);
  // After `-X HEAD`, curl waits for a body.
  const methodFlag = method === 'HEAD' ? '--head ' : `-X ${method} `;
  // Without a field, a form has no words, and curl sends a GET.
  const words = [`curl ${method === (data.length > 0 ? 'POST' : 'GET') ? '' : methodFlag}${quote(url)}`];
  for (const [name, value] of Object.entries(headers)) words.push(`-H ${quote(`${name}: ${value}`)}`);
  return [...words, ...data].join(' \\\n  ');
}

function dataWords(body) {
  if (typeof body === 'string') return [`--data-raw ${quote(body)}`];
  if (body instanceof File) return [`--data-binary ${quote(`@${body.name}`)}`];
  return Array.from(body ?? [], ([key, value]) =>
    value.name ? `-F ${quote(`${key}=@${value.name}`)}` : `--form-string ${quote(`${key}=${value}`)}`,
  );
}

/**
 * Sends the request and shows the answer in an element.
 *
 * @returns the JSON of the answer; undefined when the answer has another type
 */
export async function send({ url, ...request }, container, signal) {
  const started = performance.now();
  try {
    const response = await fetch(url, { ...request, signal, cache: 'no-store' });
    const size = h('span');
    const showSize = (bytes) => size.replaceChildren(`${Math.round(performance.now() - started)} ms, ${bytes} bytes`);
    const title = `${response.status} ${response.statusText}`;
    const status = h('p.status', h(`b.s${Math.floor(response.status / 100)}`, title), size);
    const lines = Array.from(response.headers, ([name, value]) => h('div', h('span', `${name}: `), value));
    const body = h('pre', { tabIndex: 0, 'aria-label': 'Body of the answer' });
    container.replaceChildren(status, body, h('details', h('summary', `${lines.length} headers`), h('pre', lines)));
    const type = response.headers.get('content-type') ?? '';
    if (type.startsWith('text/event-stream')) return await showEvents(response, body, showSize);
    const blob = await response.blob();
    showSize(blob.size);
    const value = type.includes('json') ? await new Response(blob).json().catch(() => undefined) : undefined;
    if (/json|text|xml$/.test(type)) return showText(await blob.text(), value, body);
    const link = h('a', { href: URL.createObjectURL(blob), download: url.split(/[?/]/).at(-1) }, 'Save the file');
    const image = type.startsWith('image/') ? h('img', { src: link.href, alt: '' }) : '';
    body.append(...(blob.size === 0 ? ['no body'] : [image, link]));
  } catch (error) {
    const failure = container.firstChild ? 'Broken off' : 'No answer';
    container.append(h('p.status', h('b.s5', signal.aborted ? 'Stopped' : `${failure}: ${error.message}`)));
  }
}

async function showEvents(response, body, showSize) {
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  let bytes = 0;
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    bytes += chunk.value.length;
    showSize(bytes);
    body.append(decoder.decode(chunk.value, { stream: true }));
    body.scrollTop = body.scrollHeight;
  }
}

/** Maximum number of shown characters of a body. */
const MAX_SHOWN = 200_000;

function showText(text, value, body) {
  const pretty = value === undefined ? text : JSON.stringify(value, null, 2);
  body.replaceChildren(pretty.slice(0, MAX_SHOWN));
  if (pretty.length > MAX_SHOWN) body.append(`\n… ${pretty.length - MAX_SHOWN} characters more`);
  return value;
}
