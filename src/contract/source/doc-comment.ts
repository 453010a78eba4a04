// Splits doc comments into their text and their tags, as TypeScript does. This file does not know what a tag means.

export interface Tag {
  readonly name: string;
  /** The text up to the next tag, without the asterisks at the starts of its lines. */
  readonly text: string;
  /** Whether only white space and an asterisk precede the tag on its line. */
  readonly isFirstOnLine: boolean;
}

/** The characters that TypeScript takes for white space within a line, as the inside of a character class. */
const WHITE_SPACE = '\\t\\v\\f \\u0085\\u00a0\\u1680\\u2000-\\u200b\\u202f\\u205f\\u3000\\ufeff';
/** Optional white space within a line. As in TypeScript, it must begin with an ASCII character. */
const OPTIONAL_SPACE = `(?:[\\t\\v\\f ][${WHITE_SPACE}]*)?`;
const LINE_BREAK = '(?:\\r\\n|[\\n\\r])';
const TAG_NAME = /[\p{ID_Start}$_][\p{ID_Continue}$\p{Join_Control}-]*/uy;
/** The at sign of a tag at the start of the comment, where only white space precedes it. */
const AT_SIGN_AT_COMMENT_START = new RegExp(`(?<=^${OPTIONAL_SPACE})@`);
/** White space and line breaks. A line break includes the asterisk at the start of the next line. */
const SPACE_AND_LINE_STARTS = new RegExp(`(?:${LINE_BREAK}${OPTIONAL_SPACE}\\*?|[\\t\\v\\f ][${WHITE_SPACE}]*)*`, 'y');
/** The at sign of a tag that only white space and an asterisk precede on the line. */
const AT_SIGN_AT_LINE_START = new RegExp(`(?<=(?:^|[\\n\\r])${OPTIONAL_SPACE}\\*?${OPTIONAL_SPACE})@`, 'y');
/**
 * Finds the next place where a tag can begin (at the start of a line, or after white space), or that can hide an at
 * sign: a backtick, or a link.
 */
const TAG_OR_SKIPPED_TEXT = new RegExp(
  `${LINE_BREAK}${OPTIONAL_SPACE}\\*?${OPTIONAL_SPACE}(@?)|(\`)|` +
    `\\{@link(?:code|plain)?(?![\\p{ID_Continue}$\\p{Join_Control}-])[\\t\\v\\f \\r\\n]*[^}\\n\\r]*\\}?|(?<=[${WHITE_SPACE}])(@)(?![\\s${WHITE_SPACE}])`,
  'gu',
);
/** Tags with a type in braces before their text. Those of group 1 can also have a name before it: `@param name {T}`. */
const TAGS_WITH_TYPE =
  /^(?:(param|arg|argument|prop|property)|returns?|type|typedef|throws|exception|enum|this|satisfies|template|implements|augments|extends)$/;
const PARAM_NAME = /[\p{ID_Continue}$.[\]`]+/uy;

/** Reads one comment, or several in a row: all their tags, and the text of the last one that has a text. */
export function readDoc(doc: string | undefined) {
  const comments = doc?.slice(0, -'*/'.length).split('*/').map(readComment) ?? [];
  return { text: comments.findLast(({ text }) => text !== '')?.text ?? '', tags: comments.flatMap(({ tags }) => tags) };
}

/** Joins two comments, so that `readDoc` reads the tags of both. The same comment twice is read once. */
export function joinDocs(first: string | undefined, second: string | undefined): string | undefined {
  return first === undefined || second === undefined || first === second ? (first ?? second) : first + second;
}

/** @param comment a doc comment without its end */
function readComment(comment: string) {
  const body = comment.slice('/**'.length);
  const tagHeads: { at: number; name: string; nameEnd: number }[] = [];
  let at = body.search(AT_SIGN_AT_COMMENT_START);
  if (at < 0) at = findNextTag(body, 0, false);
  while (at >= 0) {
    const name = matchAt(TAG_NAME, body, at + 1);
    const nameEnd = at + 1 + name.length;
    tagHeads.push({ at, name, nameEnd });
    const textStart = skipType(
      body,
      nameEnd + matchAt(SPACE_AND_LINE_STARTS, body, nameEnd).length,
      TAGS_WITH_TYPE.exec(name),
    );
    at = body[textStart] === '@' ? textStart : findNextTag(body, textStart, true);
  }
  const tags = tagHeads.map(({ at, name, nameEnd }, i): Tag => {
    const text = removeLineStarts(body.slice(nameEnd, tagHeads[i + 1]?.at));
    const isFirstOnLine = matchAt(AT_SIGN_AT_LINE_START, body, at) !== '';
    return { name, text, isFirstOnLine };
  });
  return { text: removeLineStarts(body.slice(0, tagHeads[0]?.at)), tags };
}

/**
 * Returns the offset of the next tag, or -1.
 *
 * @param isInTag whether `from` is in the text of a tag. There, an at sign between backticks begins no tag. Before the
 *   first tag, it does
 */
function findNextTag(body: string, from: number, isInTag: boolean): number {
  const pattern = TAG_OR_SKIPPED_TEXT;
  pattern.lastIndex = from;
  for (let match = pattern.exec(body); match !== null; match = pattern.exec(body)) {
    const [, atLineStart, backtick, afterSpace] = match;
    if (atLineStart === '@' || afterSpace === '@') return pattern.lastIndex - 1;
    if (backtick && isInTag) pattern.lastIndex += matchAt(/[^`\n\r]*`?/y, body, pattern.lastIndex).length;
  }
  return -1;
}

/** Returns the offset after a type in braces, or `from` without one. An at sign inside the type begins no tag. */
function skipType(body: string, from: number, tag: RegExpExecArray | null): number {
  if (tag === null) return from;
  const afterName = from + (tag[1] === undefined ? '' : matchAt(PARAM_NAME, body, from)).length;
  const start = afterName + matchAt(SPACE_AND_LINE_STARTS, body, afterName).length;
  return Math.max(from, findBraceEnd(body, start));
}

/** Returns the offset after the brace that closes the one at `from`, or -1. Braces in quotes do not count. */
function findBraceEnd(text: string, from: number): number {
  let depth = 0;
  for (const { 0: piece, index } of text.slice(from).matchAll(/(["'`])(?:\\.|(?!\1)[^\\])*\1|./gs)) {
    if (piece === '{') depth++;
    else if (piece === '}') depth--;
    if (depth === 0) return piece === '}' ? from + index + 1 : -1;
  }
  return -1;
}

/** Returns what a sticky pattern (flag `y`) matches at an offset; empty without a match. */
function matchAt(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? '';
}

/** Removes the white space and the asterisk at the start of each line. */
const removeLineStarts = (slice: string): string =>
  slice
    .split(/(?:\r\n|[\n\r])[\t\v\f ]*(?:\*[\t\v\f ]?)?/)
    .map((line) => line.trimEnd())
    .join('\n')
    .trim();

/** Splits a text into its first sentence or paragraph, whichever is shorter, and the rest; both undefined if empty. */
export function summaryOf(text: string): { summary: string | undefined; description: string | undefined } {
  if (text === '') return { summary: undefined, description: undefined };
  const end = /\n\s*\n|(?<=[.!?])\s+(?=[^\s])/.exec(text);
  const summary = (end === null ? text : text.slice(0, end.index)).replace(/\s+/g, ' ').replace(/\.$/, '');
  const rest = end === null ? '' : text.slice(end.index).trim();
  return { summary, description: rest === '' ? undefined : rest };
}
