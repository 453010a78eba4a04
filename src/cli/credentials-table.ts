// The table of credentials as lines for a terminal. It decides nothing: what may be shown is credentials/listing.ts.
import type { Listed } from '../credentials/listing.ts';

const HEADER = ['ID', 'NAME', 'STATE', 'EXPIRES', 'METHODS', 'HANDLER'] as const;

export function drawTable(rows: readonly Listed[]): string {
  const cells = rows.map((row) => [
    row.id ?? '-',
    row.name,
    row.reason === undefined ? row.state : `${row.state}: ${row.reason}`,
    row.expires_at ?? ifGood(row, 'never'),
    row.methods?.join(',') ?? ifGood(row, 'all'),
    row.handler ?? '-',
  ]);
  const lines = [HEADER, ...cells.map((line) => line.map(printable))];
  const widths = HEADER.map((_, column) => lines.reduce((width, line) => Math.max(width, (line[column] as string).length), 0));
  const draw = (line: readonly string[]) => line.map((cell, column) => cell.padEnd(widths[column] as number)).join('  ');
  return lines.map((line) => draw(line).trimEnd()).join('\n');
}

function ifGood(row: Listed, text: string): string {
  return row.state === 'quarantined' ? '-' : text;
}

/** A name in a table edited by hand, or registered by a stranger, must not steer the terminal. */
export function printable(text: string): string {
  return text.replaceAll(/\p{C}/gu, '\u{fffd}').slice(0, 80);
}
