// The fields for credentials: one for each header or query parameter in which the document says that a credential is
// sent (its security schemes). A browser sends cookies by itself, so a scheme with a cookie has no field.
import { h } from './element.js';

/** The element that contains the fields. Events of the fields arrive at this element. */
export const callerFields = document.getElementById('caller');
const keyHeader = callerFields.dataset.keyHeader;
const AUTHORIZATION = 'Authorization';

/** Returns where a scheme sends its credential: `Authorization`, `X-Api-Key`, `?key`; undefined for a cookie. */
function placeOf({ type, in: where, name }) {
  if (type !== 'apiKey' || (where === 'header' && name.toLowerCase() === 'authorization')) return AUTHORIZATION;
  return { header: name, query: `?${name}` }[where];
}

/** Adds the fields that are missing, and labels each field with the names of its schemes. */
export function showFields(schemes) {
  const places = new Map([[AUTHORIZATION, []]]);
  for (const [name, scheme] of Object.entries(schemes)) {
    const place = placeOf(scheme);
    // A credential of Gatefold can be sent in two headers. One field is enough: that of the key header.
    const isInKeyHeader = name === 'application' && keyHeader !== '';
    if (place !== undefined && !isInKeyHeader) places.set(place, [...(places.get(place) ?? []), [name, scheme]]);
  }
  for (const [place, entries] of places) {
    const input = fieldOf(place) ?? addField(place);
    const userSchemes = entries.filter(([name]) => name !== 'application' && name !== 'applicationKey');
    input.previousSibling.textContent = userSchemes.length === 0 ? place : entries.map(([name]) => name).join(' or ');
    if (userSchemes.length > 0) input.placeholder = userSchemes.map(([, scheme]) => exampleOf(scheme)).join(', or ');
  }
}

function exampleOf({ description, type, scheme = 'bearer' }) {
  return description ?? (type === 'apiKey' ? '' : `${scheme[0].toUpperCase()}${scheme.slice(1)} …`);
}

const inputs = () => [...callerFields.querySelectorAll('input')];
const fieldOf = (place) => inputs().find((input) => input.dataset.place === place);

function addField(place) {
  const placeholder = place === keyHeader ? 'gfk_…' : place === AUTHORIZATION ? 'Bearer gfk_…, or another scheme' : '';
  const about = { type: 'password', autocomplete: 'off', spellcheck: false, placeholder };
  const id = place === AUTHORIZATION ? 'token' : `token-${place}`;
  const input = h('input', { ...about, id, value: sessionStorage.getItem(place.toLowerCase()) ?? '' });
  input.dataset.place = place;
  input.addEventListener('input', () => sessionStorage.setItem(place.toLowerCase(), input.value));
  callerFields.append(h('label', h('span', place), input));
  return input;
}

/** Returns the headers and the query that identify the caller. @param show shortens each value for display */
export function credentials(show = (value) => value) {
  const filled = inputs().filter((input) => input.value.trim() !== '');
  const entries = filled.map((input) => [input.dataset.place, show(input.value.trim())]);
  const isQuery = ([place]) => place.startsWith('?');
  return {
    headers: Object.fromEntries(entries.filter((entry) => !isQuery(entry))),
    query: entries.filter(isQuery).map(([place, value]) => [place.slice(1), value]),
  };
}

/** The field for a credential of Gatefold. */
export const keyField = () => fieldOf(keyHeader) ?? fieldOf(AUTHORIZATION);

showFields(keyHeader === '' ? {} : { applicationKey: { type: 'apiKey', in: 'header', name: keyHeader } });
