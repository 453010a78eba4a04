// Splits TypeScript source into tokens and pairs its brackets. This file recognizes comments, strings, templates and
// regular expressions. The files `parse-*` recognize statements, types and values.
import { findUnreadConstraint } from './constraint-tags.ts';
import { SourceError } from './source-error.ts';

export const Kind = { punctuation: 0, name: 1, string: 2, number: 3, template: 4, regex: 5, end: 6 } as const;

export interface Token {
  readonly kind: number;
  /**
   * The text in the source, except for templates. A template without `${}` is one token with the text '`'. In any other
   * template, each piece between the `${}` is a token. The first piece has the text '`${', the last one has '}`', and
   * all others have '}${'. The end of the file is a token with an empty text.
   */
  readonly text: string;
  readonly at: number;
  /** Whether a line break comes between the previous token and this one. */
  readonly startsLine: boolean;
  /** The doc comments (`/** … *\/`) before the token: the last one, and earlier ones that also apply to the token. */
  readonly doc: string | undefined;
  /** Whether the doc comment may describe the previous token: it begins on that line, and this token is below. */
  readonly isDocBesidePrevious: boolean;
  /** The unescaped content of a name, a string or a piece of a template; '' for a regular expression; else `text`. */
  readonly value: string;
}

export type Tokens = Readonly<ReturnType<typeof tokenize>>;

/** The characters beyond ASCII that a name can contain: all except white space. */
const NON_ASCII =
  '\\x80-\\x9f\\xa1-\\u167f\\u1681-\\u1fff\\u200b-\\u2027\\u202a-\\u202e\\u2030-\\u205e\\u2060-\\u2fff\\u3001-\\ufefe\\uff00-\\uffff';
const TOKEN_PATTERNS = [
  /\s+/, // white space
  /\/\/[^\n\r\u2028\u2029]*|\/\*[\s\S]*?\*\//, // a comment
  /'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"/, // a string
  // A name, which can have escapes: `\u0041`, `\u{41}`. Braces belong to a name only directly after a `\u`.
  new RegExp(`#?(?:[a-z_$${NON_ASCII}]|\\\\u)(?:[\\w$${NON_ASCII}]|\\\\u|\\{[\\da-f]+\\}(?<=\\\\u\\{[\\da-f]+\\}))*`),
  /(?:0[xob][\da-f_]+|\d[\d_]*\.?[\d_]*(?:e[+-]?\d+)?|\.\d[\d_]*(?:e[+-]?\d+)?)n?/, // a number
  /=>|\.\.\.|[^\s]/, // punctuation, one character at a time, because `>>` can end two lists of type arguments
];
const TOKEN = new RegExp(TOKEN_PATTERNS.map((piece) => `(${piece.source})`).join('|'), 'iy');
const LINE_BREAK = /[\n\r\u2028\u2029]/;
/** A slash after such a keyword begins a regular expression. */
const KEYWORDS_BEFORE_VALUE = new Set(
  'return typeof case in of do else void delete throw new await yield extends instanceof'.split(' '),
);
/** A slash after the parentheses of such a keyword begins a regular expression. */
const CONDITION_KEYWORDS = new Set(['if', 'while', 'for', 'with']);
const OPENERS: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{' };
/** Key: the character after a backslash. Value: the meaning of both. A backslash removes the line break after it. */
const ESCAPES: Readonly<Record<string, string>> = {
  ...{ n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', v: '\v', '0': '\0', '\n': '', '\r\n': '' },
};

export function tokenize(source: string) {
  const tokens: Token[] = [];
  const openBrackets: number[] = [];
  /** Indexes of an opening bracket and its closing bracket, in turn. */
  const pairs: number[] = [];
  let startsLine = true;
  let doc: string | undefined;
  let isDocBeside = false;

  const pushToken = (kind: number, text: string, at: number, value: string) => {
    tokens.push({ kind, text, at, startsLine, doc, isDocBesidePrevious: isDocBeside && startsLine, value });
    startsLine = false;
    doc = undefined;
    isDocBeside = false;
  };
  const closeBracket = (at: number, opens: (text: string) => boolean) => {
    const from = openBrackets.pop();
    if (from === undefined || !opens((tokens[from] as Token).text))
      throw new SourceError('a bracket has no partner', at);
    pairs.push(from, tokens.length);
  };
  const opensTemplate = (text: string) => text.endsWith('${');

  /** Reads a piece of a template, up to the next `${` or the end of the template. Returns the offset after it. */
  const readTemplatePiece = (at: number, opening: '`' | '}'): number => {
    for (let i = at + 1; i < source.length; i++) {
      const isEnd = source[i] === '`';
      if (source[i] === '\\') i++;
      else if (isEnd || (source[i] === '$' && source[i + 1] === '{')) {
        if (opening === '}') closeBracket(at, opensTemplate);
        if (!isEnd) openBrackets.push(tokens.length);
        const text = isEnd && opening === '`' ? '`' : opening + (isEnd ? '`' : '${');
        pushToken(Kind.template, text, at, unescapeText(source.slice(at + 1, i)));
        return i + (isEnd ? 1 : 2);
      }
    }
    throw new SourceError('a template has no end', at);
  };

  /** Reads punctuation, a regular expression or a piece of a template. Returns the offset after it. */
  const readPunctuation = (text: string, at: number): number => {
    if (text === '`') return readTemplatePiece(at, '`');
    if (text === '}' && opensTemplate(tokens[openBrackets.at(-1) ?? -1]?.text ?? '')) return readTemplatePiece(at, '}');
    if (text === '/' && beginsRegex(tokens, pairs, startsLine)) {
      const end = findRegexEnd(source, at);
      if (end > 0) {
        pushToken(Kind.regex, source.slice(at, end), at, '');
        return end;
      }
    }
    const opener = OPENERS[text];
    if (opener !== undefined) closeBracket(at, (opening) => opening === opener);
    else if (text === '(' || text === '[' || text === '{') openBrackets.push(tokens.length);
    pushToken(Kind.punctuation, text, at, text);
    return at + text.length;
  };

  // A first line that begins with `#!` names an interpreter.
  TOKEN.lastIndex = /^#!.*/.exec(source)?.[0].length ?? 0;
  for (;;) {
    const at = TOKEN.lastIndex;
    const match = TOKEN.exec(source);
    if (match === null) break;
    // The groups of the match are those of TOKEN_PATTERNS, in their order.
    const text = match[0];
    if (match[1] !== undefined) startsLine ||= LINE_BREAK.test(text);
    else if (match[2] !== undefined) {
      // Four characters are `/**/`, an empty comment.
      if (text.startsWith('/**') && text.length > 4) {
        const continuesDoc = findUnreadConstraint(doc) !== undefined;
        isDocBeside = (continuesDoc && isDocBeside) || !(startsLine || beginsBlockOfLines(text, tokens.at(-1)));
        doc = continuesDoc ? `${doc}${text}` : text;
      }
      startsLine ||= text.startsWith('//') || LINE_BREAK.test(text);
    } else if (match[3] !== undefined) pushToken(Kind.string, text, at, unescapeText(text.slice(1, -1)));
    else if (match[4] !== undefined) pushToken(Kind.name, text, at, unescapeText(text));
    else if (match[5] !== undefined) pushToken(Kind.number, text, at, text);
    else TOKEN.lastIndex = readPunctuation(text, at);
  }
  const unclosed = openBrackets.at(-1);
  if (unclosed !== undefined) throw new SourceError('a bracket has no partner', (tokens[unclosed] as Token).at);
  /** By the index of a token: for an opening bracket (also `${`), the index of its closing bracket; for others, -1. */
  const partner = new Int32Array(tokens.length + 1).fill(-1);
  for (let i = 0; i < pairs.length; i += 2) partner[pairs[i] as number] = pairs[i + 1] as number;
  pushToken(Kind.end, '', source.length, '');
  return { tokens, partner };
}

/** Whether a comment has several lines and comes after `{`, `;` or `,`. Then it belongs to the declaration after it. */
function beginsBlockOfLines(comment: string, previous: Token | undefined): boolean {
  return LINE_BREAK.test(comment) && /^[{;,]$/.test(previous?.text ?? '');
}

/** Whether a slash after the tokens begins a regular expression. After a value, a slash is a division. */
function beginsRegex(tokens: readonly Token[], pairs: readonly number[], startsLine: boolean): boolean {
  const previous = tokens.at(-1);
  if (previous === undefined) return true;
  if (previous.kind === Kind.name) return KEYWORDS_BEFORE_VALUE.has(previous.text) && tokens.at(-2)?.text !== '.';
  if (previous.kind === Kind.template) return previous.text.endsWith('{');
  if (previous.kind !== Kind.punctuation) return false;
  // `if (x) /re/` or `(x) / y`: the token before the opening parenthesis decides. The last pair is this parenthesis.
  if (previous.text === ')') return CONDITION_KEYWORDS.has(tokens[(pairs.at(-2) as number) - 1]?.text ?? '');
  // After a block, a regular expression begins a statement, usually on a new line. After an object, a slash divides.
  if (previous.text === '}') return startsLine;
  if (previous.text === '!') return !endsValue(tokens.at(-2));
  if ((previous.text === '+' || previous.text === '-') && tokens.at(-2)?.text === previous.text)
    return !endsValue(tokens.at(-3));
  return previous.text !== ']';
}

/** Whether the token ends a value. A `!` or `++` after such a token belongs to the value. */
function endsValue(token: Token | undefined): boolean {
  if (token === undefined) return false;
  if (token.kind === Kind.name) return !KEYWORDS_BEFORE_VALUE.has(token.text);
  return token.kind !== Kind.punctuation || token.text === ')' || token.text === ']';
}

/** Returns the offset after a regular expression, or -1 when it does not end on its line, so that the slash divides. */
function findRegexEnd(source: string, from: number): number {
  let inCharacterClass = false;
  for (let i = from + 1; i < source.length && !LINE_BREAK.test(source[i] as string); i++) {
    const char = source[i];
    if (char === '\\') i++;
    else if (char === '[') inCharacterClass = true;
    else if (char === ']') inCharacterClass = false;
    else if (char === '/' && !inCharacterClass) return i + 1;
  }
  return -1;
}

/** Replaces the escapes of a string or a name by the characters that they mean. An invalid escape stays as it is. */
function unescapeText(text: string): string {
  if (!text.includes('\\')) return text;
  return text.replace(
    /\\(?:u\{([\da-f]+)\}|u([\da-f]{4})|x([\da-f]{2})|(\r\n|[\s\S]))/gi,
    (whole, braced?: string, fourDigits?: string, twoDigits?: string, other?: string) => {
      if (other !== undefined) return ESCAPES[other] ?? other;
      const code = Number.parseInt(braced ?? fourDigits ?? twoDigits ?? '', 16);
      return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
    },
  );
}
