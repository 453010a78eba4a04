// Creates elements. A text always becomes a text node, so no text of a document is parsed as HTML.

/**
 * Creates an element.
 *
 * @param {string} kind name and classes: `p.dim`
 * @param parts children, and records of properties, attributes and `on…` listeners
 */
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

/** A paragraph with the text of a doc comment. Words in backticks become `code` elements. */
export function prose(text = '') {
  const parts = text.trim().split(/`([^`\n]+)`/);
  return text.trim() !== '' && h('p.prose', ...parts.map((part, i) => (i % 2 === 1 ? h('code', part) : part)));
}
