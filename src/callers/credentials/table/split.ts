// Splits the text of a large table into its rows, in steps of a few milliseconds. The scanner here knows only strings
// and brackets. JSON.parse reads each row, and the frame: the text with an empty list in the place of the rows. When
// all of them are JSON, so is the whole text.
import { isUtf8 } from 'node:buffer';
import type { Sliced } from './slices.ts';
import { parseJson, parseMembers, type TableText } from './text.ts';

export interface SplitText extends Pick<TableText, 'members'> {
  readonly bytes: Buffer;
  /** Where the list of rows begins and ends, without its brackets. */
  readonly listStart: number;
  readonly listEnd: number;
  /** Where each row ends: at a comma, or at the end of the list. */
  readonly ends: Uint32Array;
}

/** Returns the JSON of a row, with the space around it. */
export function rowText(text: SplitText, index: number): string {
  return text.bytes.toString('utf8', startOfRow(text, index), endOfRow(text, index));
}

export function startOfRow({ listStart, ends }: SplitText, index: number): number {
  return index === 0 ? listStart : (ends[index - 1] as number) + 1;
}

export function endOfRow({ ends }: SplitText, index: number): number {
  return ends[index] as number;
}

/** Returns how many of the ascending numbers are below a limit. */
export function countBelow(numbers: Uint32Array, limit: number): number {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((numbers[middle] as number) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Bytes that one step checks, compares or scans, in about a millisecond. */
export const STEP_BYTES = 256 * 1024;

/** @throws Error with a message of one line, which quotes no part of the text, because the text may contain secrets */
export function* splitTable(bytes: Buffer): Sliced<SplitText> {
  for (let start = 0, end = 0; start < bytes.length; start = end) {
    end = characterStart(bytes, start + STEP_BYTES);
    if (!isUtf8(bytes.subarray(start, end))) throw new Error('it is not UTF-8');
    yield;
  }
  const scanner = createScanner(bytes);
  for (let end = STEP_BYTES; scanner.scanTo(end); end += STEP_BYTES) yield;
  const { listStart, listEnd, ends } = scanner.result();
  return { members: parseFrame(bytes, listStart, listEnd), bytes, listStart, listEnd, ends };
}

export function parseFrame(bytes: Buffer, listStart: number, listEnd: number): TableText['members'] {
  const text = bytes.toString('utf8', 0, listStart) + bytes.toString('utf8', listEnd);
  return parseMembers(text, bytes.length).members;
}

/** Returns where the list of rows begins; 0 when the first bytes of the text do not show it. */
export function scanHead(bytes: Buffer): number {
  const scanner = createScanner(bytes);
  scanner.scanTo(4096);
  return scanner.result().listStart;
}

/** Returns the nearest start of a character at or before an offset. A character has four bytes at most. */
function characterStart(bytes: Buffer, offset: number): number {
  let start = offset;
  while (start > offset - 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start--;
  return start;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPENING = new Set([0x5b, 0x7b]);
const CLOSING = new Set([0x5d, 0x7d]);

function createScanner(bytes: Buffer) {
  let position = 0;
  let depth = 0;
  let isInString = false;
  /** Where the last string directly in the frame begins. Before a colon, this string is the key of a member. */
  let stringStart = 0;
  /** Where the rows begin and end, and where each row ends. A second list of rows stays in the frame. */
  let listStart = 0;
  let listEnd = 0;
  let isInList = false;
  let count = 0;
  let ends = new Uint32Array(1024);

  function endRow(): void {
    if (count === ends.length) {
      const grown = new Uint32Array(count * 2);
      grown.set(ends);
      ends = grown;
    }
    ends[count++] = position;
  }

  function beginList(): void {
    isInList = listStart === 0;
    if (isInList) listStart = position + 1;
  }

  function endList(): void {
    isInList = false;
    listEnd = position;
    // `[]` has no row, but `[1,]` has an empty one, which is not JSON.
    if (count > 0 || !isBlank(bytes.subarray(listStart, position))) endRow();
  }

  /** Reads a byte outside of strings. */
  function read(byte: number): void {
    if (byte === QUOTE) {
      isInString = true;
      if (depth === 1) stringStart = position;
    } else if (OPENING.has(byte)) {
      if (depth++ === 1 && isProduction(bytes.subarray(stringStart, position), bytes.length)) beginList();
    } else if (CLOSING.has(byte)) {
      if (--depth === 1 && isInList) endList();
    } else if (byte === COMMA && isInList && depth === 2) endRow();
  }

  return {
    /** Scans to an offset. @returns whether there are further bytes */
    scanTo(offset: number): boolean {
      const end = Math.min(offset, bytes.length);
      for (; position < end; position++) {
        const byte = bytes[position] as number;
        if (!isInString) {
          if (byte > 0x20) read(byte);
        } else if (byte === BACKSLASH) position++;
        else if (byte === QUOTE) isInString = false;
      }
      return end < bytes.length;
    },
    result: () => ({ listStart, listEnd: isInList ? bytes.length : listEnd, ends: ends.slice(0, count) }),
  };
}

/** Whether a text is the key `production`, which may have escapes, and a colon. */
function isProduction(text: Buffer, byteLength: number): boolean {
  const [, key] = /^("[^"\\]*(?:\\.[^"\\]*)*")\s*:\s*$/.exec(text.toString()) ?? [];
  return key !== undefined && parseJson(key, byteLength) === 'production';
}

function isBlank(text: Buffer): boolean {
  return text.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d);
}
