// A cursor is a position in a list of tokens, and has the elementary steps of a recursive-descent parser. The cursor
// also finds constraints (tags such as `@minimum`) that would have no effect: it records which doc comments the parsers
// have read, and `refuseStrayTags` reports a constraint in any other comment.
import { findUnreadConstraint } from './constraint-tags.ts';
import { SourceError } from './source-error.ts';
import type { TypeNode, ValueNode } from './syntax.ts';
import { Kind, type Token, type Tokens } from './tokens.ts';

export interface Parsers {
  readonly parseType: (c: Cursor) => TypeNode;
  readonly parseValue: (c: Cursor, end: number) => ValueNode | undefined;
}

export class Cursor {
  readonly tokens: readonly Token[];
  readonly partner: Tokens['partner'];
  index = 0;

  readonly #parsers: Parsers;
  /** Indexes of the tokens whose comments are not stray: a parser has read the comment, or it has no constraint. */
  readonly #checkedDocs = new Set<number>();

  /** @param parsers passed in, because the files with the parsers import this file */
  constructor({ tokens, partner }: Tokens, parsers: Parsers) {
    this.tokens = tokens;
    this.partner = partner;
    this.#parsers = parsers;
  }

  parseType(): TypeNode {
    return this.#parsers.parseType(this);
  }

  /** @param end index of the token before which the value ends at the latest: a closing bracket, or the file's end */
  parseValue(end: number): ValueNode | undefined {
    return this.#parsers.parseValue(this, end);
  }

  /** Returns the token that is `ahead` tokens after the current one; beyond an end, the first or last token. */
  token(ahead = 0): Token {
    return this.tokens[Math.max(0, Math.min(this.index + ahead, this.tokens.length - 1))] as Token;
  }

  /** Whether the token at `ahead` is this punctuation or word. False for a string with the same text. */
  is(text: string, ahead = 0): boolean {
    const token = this.token(ahead);
    return token.text === text && token.kind !== Kind.string;
  }

  isName(ahead = 0): boolean {
    return this.token(ahead).kind === Kind.name;
  }

  get isAtEnd(): boolean {
    return this.index >= this.tokens.length - 1;
  }

  /** Returns a declaration's comment, and records it as read. Skips a comment that is beside the previous token. */
  readDocAt(index: number): string | undefined {
    const { doc, isDocBesidePrevious } = this.tokens[index] as Token;
    if (doc === undefined || isDocBesidePrevious) return undefined;
    this.#checkedDocs.add(index);
    return doc;
  }

  /** Returns `type`, or a mistake when a token from `from` up to `end` has a constraint that no parser has read. */
  refuseStrayTags(type: TypeNode, from: number, end = this.index): TypeNode {
    for (let i = from; i < end; i++) {
      const { doc, at, isDocBesidePrevious } = this.tokens[i] as Token;
      if (doc === undefined || this.#checkedDocs.has(i)) continue;
      const message = findUnreadConstraint(doc);
      if (message !== undefined)
        return { kind: 'mistake', message: isDocBesidePrevious ? `${message}, on a line of its own` : message, at };
      this.#checkedDocs.add(i);
    }
    return type;
  }

  /**
   * The `end` for `refuseStrayTags` when the cursor is directly after a declaration. A comment before a `;`, `,`, `=`
   * or `}` there belongs to the declaration. So does a comment after this token, if it is on the same line or before a
   * `}`.
   */
  get declarationEnd(): number {
    const end = this.is(';') || this.is(',') || this.is('=') || this.is('}') ? this.index + 1 : this.index;
    const { isDocBesidePrevious, text } = this.tokens[end] as Token;
    return isDocBesidePrevious || text === '}' ? end + 1 : end;
  }

  fail(expected: string): never {
    const { text, at } = this.token();
    throw new SourceError(`expected ${expected} and found ${text || 'the end of the file'}`, at);
  }

  /** Steps over the current token if it is this punctuation or word. Returns whether it was. */
  accept(text: string): boolean {
    if (!this.is(text)) return false;
    this.index++;
    return true;
  }

  expect(text: string): void {
    if (!this.accept(text)) this.fail(text);
  }

  next(): Token {
    if (this.isAtEnd) this.fail('more');
    return this.tokens[this.index++] as Token;
  }

  expectName(): string {
    return this.isName() ? this.next().value : this.fail('a name');
  }

  expectString(): string {
    return this.token().kind === Kind.string ? this.next().value : this.fail('a string');
  }

  /** Returns what `parse` returns. Moves back and returns undefined when the tokens have another form. */
  attempt<T>(parse: () => T | undefined): T | undefined {
    const from = this.index;
    try {
      const parsed = parse();
      if (parsed !== undefined) return parsed;
    } catch (error) {
      if (!(error instanceof SourceError)) throw error;
    }
    this.index = from;
    return undefined;
  }

  /** Reads `.b.c` after the name `a`, and returns `a.b.c`. */
  parseDottedName(first: string): string {
    let name = first;
    while (this.is('.') && this.isName(1)) {
      name += `.${this.token(1).value}`;
      this.index += 2;
    }
    return name;
  }

  /** Returns the index of the bracket that closes the current one. @throws SourceError for another current token */
  closingIndex(bracket: string): number {
    return this.is(bracket) ? (this.partner[this.index] as number) : this.fail(bracket);
  }

  /** Steps over one token, or over a pair of brackets with its contents. */
  skipGroup(): void {
    const partner = this.partner[this.index] as number;
    this.index = partner >= 0 ? partner + 1 : this.index + 1;
  }

  /** Steps over a pattern such as `{ a, b: [c] }`. Returns the tokens of its names, also of the key `b`. */
  skipPattern(): Token[] {
    const from = this.index;
    this.skipGroup();
    return this.tokens.slice(from, this.index).filter(({ kind }) => kind === Kind.name);
  }

  /** Stops at the next token with this text outside of brackets, or at the end of the file. */
  skipTo(text: string): void {
    while (!this.is(text) && !this.isAtEnd) this.skipGroup();
  }
}
