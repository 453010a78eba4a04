// A position in a list of tokens, and the steps of a recursive-descent parser. The cursor also finds doc comments whose
// constraints (tags such as `@minimum`) would have no effect. It remembers which comments the parsers have read, and
// `refuseStrayTags` reports a constraint in any other comment.
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
  readonly partner: Int32Array;
  /** Index of the next token. */
  i = 0;
  /** The namespace around the current statement, with a dot behind it: `Shop.`. */
  namespace = '';

  readonly #parsers: Parsers;
  /** Indexes of the tokens whose comments are done: a parser has read the comment, or it has no constraint. */
  readonly #checkedDocs = new Set<number>();

  /** @param parsers passed in, because this file and those that parse types and values would import each other */
  constructor({ tokens, partner }: Tokens, parsers: Parsers) {
    this.tokens = tokens;
    this.partner = partner;
    this.#parsers = parsers;
  }

  parseType(): TypeNode {
    return this.#parsers.parseType(this);
  }

  /** @param end index of the closing bracket, or of the file's end, before which the value ends */
  parseValue(end: number): ValueNode | undefined {
    return this.#parsers.parseValue(this, end);
  }

  token(ahead = 0): Token {
    return this.tokens[Math.max(0, Math.min(this.i + ahead, this.tokens.length - 1))] as Token;
  }

  /** Whether the token is this punctuation or word. @param ahead how many tokens behind the current one */
  is(text: string, ahead = 0): boolean {
    const token = this.token(ahead);
    return token.text === text && token.kind !== Kind.string;
  }

  isName(ahead = 0): boolean {
    return this.token(ahead).kind === Kind.name;
  }

  get isAtEnd(): boolean {
    return this.i >= this.tokens.length - 1;
  }

  /** Joins an earlier comment with the comment of the current token, so that the tags of both are read. */
  joinDoc(earlier: string | undefined): string | undefined {
    const { doc } = this.token();
    return doc === undefined || doc === earlier ? earlier : (earlier ?? '') + doc;
  }

  /** Reads the comment of a property or an alias. Skips one beside the previous token, to which it may belong. */
  readDocAt(index: number): string | undefined {
    const { doc, isDocBesidePrevious } = this.tokens[index] as Token;
    if (doc === undefined || isDocBesidePrevious) return undefined;
    this.#checkedDocs.add(index);
    return doc;
  }

  /** Returns the type, or a mistake when a comment from `from` to `end` has a constraint that no parser has read. */
  refuseStrayTags(type: TypeNode, from: number, end = this.i): TypeNode {
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
   * The index up to which `refuseStrayTags` looks at the comments of a declaration, when the cursor is behind it. A `;`
   * or `,` is included. The token after that is included when its comment is on the line of the declaration, or when
   * the token is a closing brace.
   */
  get declarationEnd(): number {
    const end = this.is(';') || this.is(',') || this.is('=') || this.is('}') ? this.i + 1 : this.i;
    const { isDocBesidePrevious, text } = this.tokens[end] ?? this.token();
    return end < this.tokens.length && (isDocBesidePrevious || (text === '}' && end > this.i)) ? end + 1 : end;
  }

  fail(expected: string): never {
    const { text, at } = this.token();
    throw new SourceError(`expected ${expected} and found ${text || 'the end of the file'}`, at);
  }

  /** Steps over the current token if it is this punctuation or word. Returns whether it was. */
  accept(text: string): boolean {
    if (!this.is(text)) return false;
    this.i++;
    return true;
  }

  expect(text: string): void {
    if (!this.accept(text)) this.fail(text);
  }

  next(): Token {
    if (this.isAtEnd) this.fail('more');
    return this.tokens[this.i++] as Token;
  }

  expectName(): string {
    return this.isName() ? this.next().value : this.fail('a name');
  }

  expectString(): string {
    return this.token().kind === Kind.string ? this.next().value : this.fail('a string');
  }

  /** Reads `.b.c` behind a first name and returns `a.b.c`. */
  parseDottedName(first: string): string {
    let path = first;
    while (this.is('.') && this.isName(1)) {
      path += `.${this.token(1).value}`;
      this.i += 2;
    }
    return path;
  }

  /** Returns the index of the bracket that closes the current one. @throws SourceError for another current token */
  closingIndex(bracket: string): number {
    return this.is(bracket) ? (this.partner[this.i] as number) : this.fail(bracket);
  }

  /** Steps over one token, or over a pair of brackets with its contents. */
  skip(): void {
    const partner = this.partner[this.i] as number;
    this.i = partner >= 0 ? partner + 1 : this.i + 1;
  }

  skipTo(text: string): void {
    while (!this.is(text) && !this.isAtEnd) this.skip();
  }
}
