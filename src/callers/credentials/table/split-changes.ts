// Splits a new text of a table by the old one. Most changes of a large table concern few rows, so the two texts begin
// alike and end alike. Only the rows between are scanned, and only these rows are new to the reader.
import { isUtf8 } from 'node:buffer';
import type { Sliced } from './slices.ts';
import { countBelow, parseFrame, type SplitText, STEP_BYTES, scanHead, splitTable, startOfRow } from './split.ts';

const [OPENING, CLOSING] = ['{"production":[', ']}'].map((text) => Buffer.from(text)) as [Buffer, Buffer];

/**
 * @returns the new text, which begins with `head` rows of the old one, and ends with `tail` rows of the old one;
 *   undefined when the new text must be read as a whole, for example because it is not a table
 * @throws Error, as `splitTable` does, when already the head of the text shows that it is not a table
 */
export function* splitChanges(bytes: Buffer, old: SplitText) {
  const listStart = scanHead(bytes);
  if (listStart === 0 || old.ends.length === 0) return undefined;
  const shorter = Math.min(old.bytes.length - old.listStart, bytes.length - listStart);
  const sameStart = yield* countEqual(Math.min(shorter, old.listEnd - old.listStart), (from, to) =>
    equals(old.bytes, old.listStart + from, old.listStart + to, bytes, listStart + from),
  );
  const growth = bytes.length - old.bytes.length;
  const sameEnd = yield* countEqual(shorter - sameStart, (from, to) =>
    equals(old.bytes, old.bytes.length - to, old.bytes.length - from, bytes, bytes.length - to),
  );
  // A row is the same when it and the comma on its side of the change are in the same part. The text after the list
  // must be in the same part, too.
  const head = countBelow(old.ends, old.listStart + sameStart);
  const firstSameEnd = countBelow(old.ends, old.bytes.length - sameEnd);
  const tail = old.ends.length - firstSameEnd - 1;
  if (tail < 0) return undefined;
  const shift = listStart - old.listStart;
  const start = startOfRow(old, head) + shift;
  const end = (old.ends[firstSameEnd] as number) + growth;
  try {
    const middle = yield* splitTable(Buffer.concat([OPENING, bytes.subarray(start, end), CLOSING]));
    // The text between may end the list, and begin another one.
    const isList = middle.listEnd === OPENING.length + end - start;
    if (!isList || middle.ends.length === 0 || !isUtf8(bytes.subarray(0, listStart))) return undefined;
    const listEnd = old.listEnd + growth;
    const ends = new Uint32Array(head + middle.ends.length + tail);
    const parts = [old.ends.subarray(0, head), middle.ends, old.ends.subarray(firstSameEnd + 1)];
    const offsets = [shift, start - OPENING.length, growth];
    let index = 0;
    for (const [part, rowEnds] of parts.entries())
      for (const rowEnd of rowEnds) ends[index++] = rowEnd + (offsets[part] as number);
    const text: SplitText = { members: parseFrame(bytes, listStart, listEnd), bytes, listStart, listEnd, ends };
    return { text, head, tail };
  } catch {
    // A reader of the whole text finds out what is wrong.
    return undefined;
  }
}

/** @param isEqual compares two texts between two offsets @returns how far the texts are equal, at most `length` */
function* countEqual(length: number, isEqual: (from: number, to: number) => boolean): Sliced<number> {
  let count = 0;
  for (let step = STEP_BYTES; step >= 1; ) {
    const end = Math.min(count + step, length);
    if (!isEqual(count, end)) step = Math.floor(step / 2);
    else if (end === length) return length;
    else count = end;
    yield;
  }
  return count;
}

function equals(a: Buffer, from: number, to: number, b: Buffer, fromInB: number): boolean {
  return a.compare(b, fromInB, fromInB + to - from, from, to) === 0;
}
