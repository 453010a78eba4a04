// Formats text for a terminal: colours, columns, paths. Text from files and errors may have control characters, which a
// terminal obeys as commands. So `plain` replaces these characters before the text is printed.
import { relative } from 'node:path';

export type Ink = Readonly<ReturnType<typeof createInk>>;

type Paint = (text: string) => string;

/** The functions change nothing without a terminal, with TERM=dumb, or with NO_COLOR (no-color.org). */
export function createInk({ isTTY, env }: { isTTY: boolean; env: NodeJS.ProcessEnv }) {
  const hasColours = isTTY && !env.NO_COLOR && env.TERM !== 'dumb';
  // The numbers are those of the escape sequence SGR: 31 begins red, and 39 ends a colour.
  const paint = (on: number, off: number): Paint =>
    hasColours ? (text) => `\u001b[${on}m${text}\u001b[${off}m` : (text) => text;
  return { red: paint(31, 39), yellow: paint(33, 39), green: paint(32, 39), dim: paint(2, 22), bold: paint(1, 22) };
}

export function plain(text: string): string {
  return text.replaceAll(/\p{C}/gu, '\u{fffd}');
}

/** Escapes the control and invisible characters in a JSON text: `\u001b`. The JSON value stays the same. */
export function escapeInvisible(json: string): string {
  return json.replaceAll(/\p{C}/gu, (text) =>
    Array.from({ length: text.length }, (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`).join(''),
  );
}

export function alignColumns(rows: readonly (readonly string[])[]): string[][] {
  const cells = rows.map((row) => row.map(plain));
  const widths = cells.reduce<number[]>(
    (widest, row) => row.map((cell, i) => Math.max(cell.length, widest[i] ?? 0)),
    [],
  );
  return cells.map((row) => row.map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd(widths[i] as number))));
}

/** Shortens a path below `cwd`, with or without a line: `/app/controllers/A.ts:3` becomes `controllers/A.ts:3`. */
export function shortPlace(place: string, cwd: string): string {
  const relativePath = relative(cwd, place);
  return relativePath === '' || relativePath.startsWith('..') ? place : relativePath;
}
