// Reads from TypeScript source which methods of which class are marked `private` or `protected`. Types are erased at
// run time, so this is the only place where that wish of the author can still be seen. It reads tokens, not a grammar;
// where it loses its way it hides every name that any such mark stands before, which is the safe side.

export interface HiddenMembers {
  /** Class name (`default` for a nameless default export) → names marked private or protected. */
  readonly byClass: ReadonlyMap<string, ReadonlySet<string>>;
  /** All names with such a mark, in whatever class. */
  readonly all: ReadonlySet<string>;
}

const TOKEN = new RegExp(
  [
    /\/\/[^\n]*|\/\*[\s\S]*?\*\//, // a comment
    /'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"/, // a string
    /#?[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*/u, // a name or keyword
    /\d[\w.]*/, // a number
    /[^\s]/, // anything else, one character at a time
  ]
    .map((part) => part.source)
    .join('|'),
  'gu',
);

const MODIFIERS = new Set(['public', 'static', 'async', 'override', 'abstract', 'readonly', 'declare', 'accessor', 'get', 'set', '*']);
/** After these a slash begins a regular expression although a name stands before it. */
const BEFORE_REGEX = new Set(['return', 'typeof', 'case', 'in', 'of', 'do', 'else', 'void', 'delete', 'throw', 'new', 'await', 'yield']);

export function parseHiddenMembers(source: string): HiddenMembers {
  const byClass = new Map<string, Set<string>>();
  const all = new Set<string>();
  if (!/\b(?:private|protected)\b/.test(source)) return { byClass, all };
  const tokens = tokenize(source);
  /** A frame per open brace: the class whose body it is, or undefined for any other block. */
  const braces: (string | undefined)[] = [];
  let parens = 0;
  let awaitingBody: string | undefined;
  let depthAtHeader = 0;
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i] as string;
    if (token === '(' || token === '[') parens++;
    else if (token === ')' || token === ']') parens--;
    else if (token === '{') {
      const opensBody = awaitingBody !== undefined && parens === depthAtHeader && !isTypeArgument(tokens, i);
      braces.push(opensBody ? awaitingBody : undefined);
      if (opensBody) awaitingBody = undefined;
    } else if (token === '}') braces.pop();
    else if (token === 'class' && tokens[i - 1] !== '.' && /^[\p{ID_Start}$_{]/u.test(tokens[i + 1] ?? '')) {
      awaitingBody = classNameAt(tokens, i);
      depthAtHeader = parens;
      if (!byClass.has(awaitingBody)) byClass.set(awaitingBody, new Set());
    } else if ((token === 'private' || token === 'protected') && braces.at(-1) !== undefined) {
      const name = memberAfter(tokens, i + 1);
      if (name === undefined) continue;
      byClass.get(braces.at(-1) as string)?.add(name);
      all.add(name);
    }
  }
  if (braces.length > 0 || parens !== 0) return { byClass: new Map(), all: everyMarkedName(tokens) };
  return { byClass, all };
}

function everyMarkedName(tokens: readonly string[]): Set<string> {
  const names = new Set<string>();
  tokens.forEach((token, i) => {
    const name = token === 'private' || token === 'protected' ? memberAfter(tokens, i + 1) : undefined;
    if (name !== undefined) names.add(name);
  });
  return names;
}

/** The name of a method behind a mark: modifiers may stand between, and `(` or `<` follows (a field has neither). */
function memberAfter(tokens: readonly string[], from: number): string | undefined {
  let i = from;
  while (MODIFIERS.has(tokens[i] ?? '') && !isCall(tokens[i + 1])) i++;
  const bracketed = tokens[i] === '[';
  const token = tokens[bracketed ? i + 1 : i];
  if (token === undefined || !isCall(tokens[bracketed ? i + 3 : i + 1])) return undefined;
  return /^['"]/.test(token) ? token.slice(1, -1) : token;
}

function isCall(token: string | undefined): boolean {
  return token === '(' || token === '<' || token === '?';
}

/** `class X`, `x = class`, `export default class`: the name that `constructor.name` will have. */
function classNameAt(tokens: readonly string[], i: number): string {
  const next = tokens[i + 1] as string;
  if (next !== '{' && next !== 'extends' && next !== 'implements') return next;
  const before = tokens[i - 1];
  return before === '=' || before === ':' ? (tokens[i - 2] ?? 'default') : 'default';
}

/** `class A extends Base<{ x: 1 }> {`: the first brace is a type, not the body. */
function isTypeArgument(tokens: readonly string[], i: number): boolean {
  const before = tokens[i - 1];
  return before === '<' || before === ',' || before === '|' || before === '&' || before === ':' || before === '=';
}

/** Comments fall away, and so does what stands in template literals and regular expressions. */
function tokenize(source: string): string[] {
  const tokens: string[] = [];
  /** For each open `${`, how many braces are open inside it. */
  const templates: number[] = [];
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(source); match !== null; match = TOKEN.exec(source)) {
    const token = match[0];
    const inTemplate = templates.length - 1;
    if (token.startsWith('//') || token.startsWith('/*')) continue;
    if (token === '`') TOKEN.lastIndex = skipTemplate(source, TOKEN.lastIndex, templates);
    else if (token === '}' && templates[inTemplate] === 0) {
      templates.pop();
      TOKEN.lastIndex = skipTemplate(source, TOKEN.lastIndex, templates);
    } else if (token === '/' && beginsRegex(tokens.at(-1))) TOKEN.lastIndex = skipRegex(source, TOKEN.lastIndex);
    else {
      if (inTemplate >= 0 && token === '{') (templates[inTemplate] as number)++;
      if (inTemplate >= 0 && token === '}') (templates[inTemplate] as number)--;
      tokens.push(token);
    }
  }
  return tokens;
}

/** From inside a template literal to its end, or to just behind its next `${`. */
function skipTemplate(source: string, from: number, templates: number[]): number {
  for (let i = from; i < source.length; i++) {
    if (source[i] === '\\') i++;
    else if (source[i] === '`') return i + 1;
    else if (source[i] === '$' && source[i + 1] === '{') {
      templates.push(0);
      return i + 2;
    }
  }
  return source.length;
}

function beginsRegex(before: string | undefined): boolean {
  if (before === undefined || BEFORE_REGEX.has(before)) return true;
  return !/^[\p{ID_Continue}$'"`#)\]}]/u.test(before);
}

function skipRegex(source: string, from: number): number {
  let inClass = false;
  for (let i = from; i < source.length; i++) {
    const char = source[i];
    if (char === '\\') i++;
    else if (char === '[') inClass = true;
    else if (char === ']') inClass = false;
    else if (char === '/' && !inClass) return i + 1;
    else if (char === '\n') return from; // it was a division after all
  }
  return from;
}
