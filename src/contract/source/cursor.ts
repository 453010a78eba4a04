// A place in a list of tokens, and the small questions that a recursive descent asks there.
import { idleIn } from './constraint-tags.ts';
import { SourceError } from './source-error.ts';
import type { TypeNode, ValueNode } from './syntax.ts';
import { Kind, type Token, type Tokens } from './tokens.ts';

export interface Parsers {
  readonly type: (c: Cursor) => TypeNode;
  readonly value: (c: Cursor, end: number) => ValueNode | undefined;
}

export class Cursor {
  readonly list: readonly Token[];
  readonly partner: Int32Array;
  /** Index of the next token. */
  i = 0;
  /** The namespace around the statement that is being read, with its dot. */
  inside = '';

  readonly #parsers: Parsers;
  /** Indexes of tokens whose comment is read, or constrains nothing. */
  readonly #taken = new Set<number>();

  /** @param parsers members have types and values, and those have members: the circle closes here */
  constructor({ list, partner }: Tokens, parsers: Parsers) {
    this.list = list;
    this.partner = partner;
    this.#parsers = parsers;
  }

  type(): TypeNode {
    return this.#parsers.type(this);
  }

  /** The value up to `end`, which is the index of its closing bracket. */
  value(end: number): ValueNode | undefined {
    return this.#parsers.value(this, end);
  }

  token(ahead = 0): Token {
    return this.list[Math.max(0, Math.min(this.i + ahead, this.list.length - 1))] as Token;
  }

  /** Whether the token is this punctuation or word; a string never is. */
  is(text: string, ahead = 0): boolean {
    const token = this.token(ahead);
    return token.text === text && token.kind !== Kind.string;
  }

  isName(ahead = 0): boolean {
    return this.token(ahead).kind === Kind.name;
  }

  get atEnd(): boolean {
    return this.i >= this.list.length - 1;
  }

  /** The comment there, behind another: all their tags count. */
  docBehind(other: string | undefined): string | undefined {
    const { doc } = this.token();
    return doc === undefined || doc === other ? other : (other ?? '') + doc;
  }

  /**
   * The comment before the property or the alias that begins at that token; one beside another token is not its own.
   */
  takeDoc(at: number): string | undefined {
    const { doc, trails } = this.list[at] as Token;
    if (doc === undefined || trails) return undefined;
    this.#taken.add(at);
    return doc;
  }

  /**
   * The type; a mistake when a comment from that token to the next one, or beside it, constrains what nothing reads.
   */
  sound(type: TypeNode, from: number, end = this.i): TypeNode {
    for (let i = from; i < end; i++) {
      const { doc, at, trails } = this.list[i] as Token;
      if (doc === undefined || this.#taken.has(i)) continue;
      const idle = idleIn(doc);
      if (idle !== undefined) return { kind: 'mistake', message: trails ? `${idle}, on a line of its own` : idle, at };
      this.#taken.add(i);
    }
    return type;
  }

  /** Index behind what a declaration ends with, and behind what has a comment beside that. */
  get behind(): number {
    const end = this.is(';') || this.is(',') || this.is('=') || this.is('}') ? this.i + 1 : this.i;
    const { trails, text } = this.list[end] ?? this.token();
    return end < this.list.length && (trails || (text === '}' && end > this.i)) ? end + 1 : end;
  }

  fail(what: string): never {
    throw new SourceError(`expected ${what} and found ${this.token().text || 'the end of the file'}`, this.token().at);
  }

  take(text: string): boolean {
    if (!this.is(text)) return false;
    this.i++;
    return true;
  }

  expect(text: string): void {
    if (!this.take(text)) this.fail(text);
  }

  next(): Token {
    if (this.atEnd) this.fail('more');
    return this.list[this.i++] as Token;
  }

  name(): string {
    return this.isName() ? this.next().value : this.fail('a name');
  }

  string(): string {
    return this.token().kind === Kind.string ? this.next().value : this.fail('a string');
  }

  /** `a.b.c`, from behind its first name. */
  dotted(first: string): string {
    let all = first;
    while (this.is('.') && this.isName(1)) {
      all += `.${this.token(1).value}`;
      this.i += 2;
    }
    return all;
  }

  /** Index of the bracket that closes the one here. @throws SourceError when there is no opening bracket here */
  end(bracket: string): number {
    return this.is(bracket) ? (this.partner[this.i] as number) : this.fail(bracket);
  }

  /** Over one token, or over all that stands in brackets. */
  skip(): void {
    const partner = this.partner[this.i] as number;
    this.i = partner >= 0 ? partner + 1 : this.i + 1;
  }

  skipTo(text: string): void {
    while (!this.is(text) && !this.atEnd) this.skip();
  }
}
