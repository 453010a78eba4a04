// TypeScript source → tokens, each bracket with its partner. Knows comments, strings, templates and regular
// expressions; nothing of the grammar.
import { saysMore } from './constraint-tags.ts';
import { SourceError } from './source-error.ts';

export const Kind = { punctuation: 0, name: 1, string: 2, number: 3, template: 4, regex: 5, end: 6 } as const;

export interface Token {
  readonly kind: number;
  /** As in the source; of a template its opening or closing piece: '`', '`${', '}${', '}`'. */
  readonly text: string;
  /** Offset in the source. */
  readonly at: number;
  /** A line break stands before it. */
  readonly fresh: boolean;
  /** The `/** … *\/` before it, behind those of its comments that matter too. */
  readonly doc: string | undefined;
  /** The comment ends the line of the token before: it may be meant for that one. */
  readonly trails: boolean;
  /** A name, or the text of a string or of a piece of a template, unescaped. */
  readonly value: string;
}

export interface Tokens {
  readonly list: readonly Token[];
  /** Offsets of each `/** … *\/`. */
  readonly docs: readonly number[];
  /** Index of an opening bracket → index of its partner; -1 elsewhere. */
  readonly partner: Int32Array;
}

/** Beyond ASCII whatever is no white space. */
const BEYOND =
  '\\x80-\\x9f\\xa1-\\u167f\\u1681-\\u1fff\\u200b-\\u2027\\u202a-\\u202e\\u2030-\\u205e\\u2060-\\u2fff\\u3001-\\ufefe\\uff00-\\uffff';
const PIECES = [
  /\s+/, // white space
  /\/\/[^\n\r\u2028\u2029]*|\/\*[\s\S]*?\*\//, // a comment
  /'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"/, // a string
  new RegExp(`#?(?:[a-z_$${BEYOND}]|\\\\u)(?:[\\w$${BEYOND}]|\\\\u|\\{[\\da-f]+\\}(?<=\\\\u\\{[\\da-f]+\\}))*`), // a name
  /(?:0[xob][\da-f_]+|\d[\d_]*\.?[\d_]*(?:e[+-]?\d+)?|\.\d[\d_]*(?:e[+-]?\d+)?)n?/, // a number
  /=>|\.\.\.|[^\s]/, // punctuation, one character at a time: `>>` may end two type arguments
];
const TOKEN = new RegExp(PIECES.map((piece) => `(${piece.source})`).join('|'), 'iy');
const LINE_BREAK = /[\n\r\u2028\u2029]/;
const BEFORE_REGEX = new Set(
  'return typeof case in of do else void delete throw new await yield extends instanceof'.split(' '),
);
const HEADS = new Set(['if', 'while', 'for', 'with']);
const OPENERS: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{' };
const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  b: '\b',
  f: '\f',
  v: '\v',
  '0': '\0',
  '\n': '',
  '\r\n': '',
};

/** @throws SourceError when a bracket or a template has no end */
export function tokenize(source: string): Tokens {
  const list: Token[] = [];
  const docs: number[] = [];
  const open: number[] = [];
  const pairs: number[] = [];
  let fresh = true;
  let doc: string | undefined;
  let isBeside = false;

  const push = (kind: number, text: string, at: number, value: string) => {
    list.push({ kind, text, at, fresh, doc, trails: isBeside && fresh, value });
    fresh = false;
    doc = undefined;
    isBeside = false;
  };
  const close = (at: number, opens: (text: string) => boolean) => {
    const from = open.pop();
    if (from === undefined || !opens((list[from] as Token).text)) throw new SourceError('a bracket has no partner', at);
    pairs.push(from, list.length);
  };
  const opensTemplate = (text: string) => text.endsWith('${');

  /** From behind a backtick, or behind the brace that ends a `${}`, to the next piece. */
  const templatePiece = (at: number, opening: '`' | '}'): number => {
    for (let i = at + 1; i < source.length; i++) {
      const ends = source[i] === '`';
      if (source[i] === '\\') i++;
      else if (ends || (source[i] === '$' && source[i + 1] === '{')) {
        if (opening === '}') close(at, opensTemplate);
        if (!ends) open.push(list.length);
        push(
          Kind.template,
          ends ? (opening === '}' ? '}`' : '`') : `${opening}\${`,
          at,
          unescapeText(source.slice(at + 1, i)),
        );
        return i + (ends ? 1 : 2);
      }
    }
    throw new SourceError('a template has no end', at);
  };

  const punctuation = (text: string, at: number): number => {
    if (text === '`') return templatePiece(at, '`');
    if (text === '}' && opensTemplate(list[open.at(-1) ?? -1]?.text ?? '')) return templatePiece(at, '}');
    if (text === '/' && beginsRegex(list, pairs, fresh)) {
      const end = endOfRegex(source, at);
      if (end > 0) {
        push(Kind.regex, source.slice(at, end), at, '');
        return end;
      }
    }
    const opener = OPENERS[text];
    if (opener !== undefined) close(at, (found) => found === opener);
    else if (text === '(' || text === '[' || text === '{') open.push(list.length);
    push(Kind.punctuation, text, at, text);
    return at + text.length;
  };

  TOKEN.lastIndex = source.startsWith('#!') ? Math.max(source.indexOf('\n'), 0) : 0;
  for (;;) {
    const at = TOKEN.lastIndex;
    const match = TOKEN.exec(source);
    if (match === null) break;
    const text = match[0];
    if (match[1] !== undefined) fresh ||= LINE_BREAK.test(text);
    else if (match[2] !== undefined) {
      if (text.startsWith('/**') && text.length > 4) {
        const isMore = doc !== undefined && saysMore(doc);
        isBeside = (isMore && isBeside) || !fresh;
        doc = isMore ? doc + text : text;
        docs.push(at);
      }
      fresh ||= text.startsWith('//') || LINE_BREAK.test(text);
    } else if (match[3] !== undefined) push(Kind.string, text, at, unescapeText(text.slice(1, -1)));
    else if (match[4] !== undefined) push(Kind.name, text, at, unescapeText(text));
    else if (match[5] !== undefined) push(Kind.number, text, at, text);
    else TOKEN.lastIndex = punctuation(text, at);
  }
  const unclosed = open.at(-1);
  if (unclosed !== undefined) throw new SourceError('a bracket has no partner', (list[unclosed] as Token).at);
  const partner = new Int32Array(list.length + 1).fill(-1);
  for (let i = 0; i < pairs.length; i += 2) partner[pairs[i] as number] = pairs[i + 1] as number;
  push(Kind.end, '', source.length, '');
  return { list, docs, partner };
}

/** After a value a slash divides; after anything else it begins a regular expression. */
function beginsRegex(list: readonly Token[], pairs: readonly number[], fresh: boolean): boolean {
  const before = list.at(-1);
  if (before === undefined) return true;
  if (before.kind === Kind.name) return BEFORE_REGEX.has(before.text) && list.at(-2)?.text !== '.';
  if (before.kind === Kind.template) return before.text.endsWith('{');
  if (before.kind !== Kind.punctuation) return false;
  // `if (x) /re/` against `(x) / y`, by what stands before the parenthesis that was closed last.
  if (before.text === ')') return HEADS.has(list[(pairs.at(-2) as number) - 1]?.text ?? '');
  if (before.text === '}') return fresh;
  if (before.text === '!') return !endsValue(list.at(-2));
  if ((before.text === '+' || before.text === '-') && list.at(-2)?.text === before.text) return !endsValue(list.at(-3));
  return before.text !== ']';
}

/** `x!` and `x++` are values when something that is one stands before the mark. */
function endsValue(token: Token | undefined): boolean {
  if (token === undefined) return false;
  if (token.kind === Kind.name) return !BEFORE_REGEX.has(token.text);
  return token.kind !== Kind.punctuation || token.text === ')' || token.text === ']';
}

/** -1 when there is none on its line: it was a division after all. */
function endOfRegex(source: string, from: number): number {
  let inClass = false;
  for (let i = from + 1; i < source.length && !LINE_BREAK.test(source[i] as string); i++) {
    const char = source[i];
    if (char === '\\') i++;
    else if (char === '[') inClass = true;
    else if (char === ']') inClass = false;
    else if (char === '/' && !inClass) return i + 1;
  }
  return -1;
}

function unescapeText(text: string): string {
  if (!text.includes('\\')) return text;
  return text.replace(
    /\\(?:u\{([\da-f]+)\}|u([\da-f]{4})|x([\da-f]{2})|(\r\n|[\s\S]))/gi,
    (whole, braced?: string, four?: string, two?: string, other?: string) => {
      if (other !== undefined) return ESCAPES[other] ?? other;
      const code = Number.parseInt(braced ?? four ?? two ?? '', 16);
      return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
    },
  );
}
