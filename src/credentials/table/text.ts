// The text of the table, `{"production":[row, …]}`, parsed row by row, so that a table of any size can be read in slices. It
// knows where each row stands in the file, and not what a row means.
import { isUtf8 } from 'node:buffer';
import { repeatedKey } from '../../base/json-keys.ts';
import type { Sliced } from './slices.ts';

/** Who is told of the rows. Places are in bytes. */
export interface RowReader {
  /** The list begins, behind its `[`. */
  begin?(at: number): void;
  /** `start` is its first byte, `end` is behind its last one; `repeated` is a key that it has twice. */
  row(value: unknown, start: number, end: number, repeated: string | undefined): void;
}

/** A row takes a few microseconds: so many between two pauses. */
const ROWS_A_STEP = 64;

/** @throws Error one line, without a word of the text: it may hold literal header values */
export function* readTableText(bytes: Buffer, reader: RowReader): Sliced<void> {
  if (!isUtf8(bytes)) throw new Error('it is not UTF-8');
  const scanner = new Scanner(bytes);
  let hasList = false;
  if (scanner.take('{')) {
    for (let more = !scanner.take('}'); more; more = scanner.goesOn('}')) {
      const key = scanner.value();
      if (typeof key !== 'string' || !scanner.take(':')) throw scanner.notJson();
      // Which of two is meant cannot be told, and one of them may have the rows that are revoked.
      if (key === 'production' && hasList) throw new Error('it has the list "production" twice');
      if (key === 'production') hasList = scanner.take('[');
      if (key !== 'production' || !hasList) scanner.value();
      else {
        reader.begin?.(scanner.at);
        let rows = 0;
        for (let more = !scanner.take(']'); more; more = scanner.goesOn(']')) {
          const value = scanner.value();
          reader.row(value, scanner.start, scanner.at, repeatedKey(scanner.text, value));
          if (++rows % ROWS_A_STEP === 0) yield;
        }
      }
    }
  } else scanner.value();
  if (!scanner.isAtEnd()) throw scanner.notJson();
  if (!hasList) throw new Error('it has no list "production"');
}

class Scanner {
  readonly bytes: Buffer;
  at = 0;
  /** Where the last value began. */
  start = 0;
  /** The last value. */
  text = '';

  constructor(bytes: Buffer) {
    this.bytes = bytes;
    // A byte order mark is not JSON, and some editors write one.
    if (bytes[0] === 0xef) this.at = 3;
  }

  /** Passes over this character, if it comes next. */
  take(char: string): boolean {
    this.#skipSpace();
    if (this.bytes[this.at] !== char.charCodeAt(0)) return false;
    this.at++;
    return true;
  }

  /** Behind a member or an element: whether another one follows. */
  goesOn(closing: string): boolean {
    if (this.take(',')) return true;
    if (this.take(closing)) return false;
    throw this.notJson();
  }

  /** Its end is found by brackets and quotes alone; whether it is JSON in between, JSON.parse says. */
  value(): unknown {
    this.#skipSpace();
    this.start = this.at;
    this.at = endOfValue(this.bytes, this.start);
    this.text = this.bytes.toString('utf8', this.start, this.at);
    try {
      return JSON.parse(this.text);
    } catch {
      throw this.notJson();
    }
  }

  isAtEnd(): boolean {
    this.#skipSpace();
    return this.at === this.bytes.length;
  }

  /** The parser's own message would quote the text. */
  notJson(): Error {
    const { length } = this.bytes;
    return new Error(`it is not JSON (${length === 0 ? 'it is empty' : `${length} bytes`})`);
  }

  #skipSpace(): void {
    while (isSpace(this.bytes[this.at])) this.at++;
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

function endOfValue(bytes: Buffer, start: number): number {
  let depth = 0;
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      for (at++; at < bytes.length && bytes[at] !== QUOTE; at++) if (bytes[at] === BACKSLASH) at++;
      if (depth === 0) return at + 1;
    } else if (byte === 0x7b || byte === 0x5b) depth++;
    else if (byte === 0x7d || byte === 0x5d) {
      if (depth === 0) return at;
      if (--depth === 0) return at + 1;
    } else if (depth === 0 && (byte === 0x2c || byte === 0x3a || isSpace(byte))) return at;
  }
  return bytes.length;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
