// Makes elements. Text only ever becomes a text node, so nothing in a document is taken for HTML.

/** @param {string} kind `p.dim`: name and classes. A part is a child, or a record of properties and `on…` listeners. */
export function h(kind, ...parts) {
  const [name, ...classes] = kind.split('.');
  const element = document.createElement(name);
  element.className = classes.join(' ');
  for (const part of parts.flat(2)) {
    if (part instanceof Node || typeof part === 'string') element.append(part);
    else
      for (const [key, value] of Object.entries(part || {})) {
        if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
        else if (key.includes('-')) element.setAttribute(key, value);
        else element[key] = value;
      }
  }
  return element;
}

/** The text of a comment: `code` in backticks, all else as it stands. */
export function prose(text = '') {
  const parts = text.trim().split(/`([^`\n]+)`/);
  return text.trim() !== '' && h('p.prose', ...parts.map((part, i) => (i % 2 === 1 ? h('code', part) : part)));
}
