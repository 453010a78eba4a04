// What text for a terminal is made of: colours where they are welcome, columns, places in files. Nothing that a file or
// a thrown message says may steer the terminal.
import { relative } from 'node:path';

export interface Ink {
  readonly red: Paint;
  readonly yellow: Paint;
  readonly green: Paint;
  readonly dim: Paint;
  readonly bold: Paint;
}

export type Paint = (text: string) => string;

/** Colours only on a terminal, and not where the environment asks for none (no-color.org: present and not empty). */
export function createInk({ isTTY, env }: { isTTY: boolean; env: Readonly<Record<string, string | undefined>> }): Ink {
  const wanted = isTTY && !env.NO_COLOR && env.TERM !== 'dumb';
  const paint = (on: number, off: number): Paint =>
    wanted ? (text) => `\u001b[${on}m${text}\u001b[${off}m` : (text) => text;
  return { red: paint(31, 39), yellow: paint(33, 39), green: paint(32, 39), dim: paint(2, 22), bold: paint(1, 22) };
}

/** Control and invisible characters become U+FFFD. */
export function plain(text: string): string {
  return text.replaceAll(/\p{C}/gu, '\u{fffd}');
}

/** The same in JSON, where they can be said: a terminal must not obey what a table or a file name holds. */
export function escapeInvisible(json: string): string {
  return json.replaceAll(/\p{C}/gu, (text) =>
    Array.from({ length: text.length }, (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`).join(''),
  );
}

/** Pads every cell to the longest of its column. The last column is left as it is. */
export function alignColumns(rows: readonly (readonly string[])[]): string[][] {
  const clean = rows.map((row) => row.map(plain));
  const widths = clean.reduce<number[]>((most, row) => row.map((cell, i) => Math.max(cell.length, most[i] ?? 0)), []);
  return clean.map((row) => row.map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd(widths[i] ?? 0))));
}

/** A path, or `path:line`, as someone standing in `cwd` would write it. */
export function shortPlace(place: string, cwd: string): string {
  const short = relative(cwd, place);
  return short === '' || short.startsWith('..') ? place : short;
}
