// Turns what a failed import threw into one line and a place: which file, which line, why. V8 gives no place for a
// syntax error in plain JavaScript that was imported, so for that one `node --check` is asked.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { widthOf } from '../base/ink.ts';
import { ContractError } from '../contract/contract-error.ts';
import { isOwnFile } from '../own-files.ts';
import { explainPackageType } from './package-type.ts';

export interface LoadError {
  readonly reason: string;
  readonly at?: string;
  /** Of that line, in UTF-16 units from 1, where known. */
  readonly column?: number;
  /** A file that is no part of the import and has to change, or to come. */
  readonly dueTo?: string;
}

export async function describeLoadError(error: unknown, file: string): Promise<LoadError> {
  const found = await findLoadError(error, file);
  const explained = explainPackageType(found.reason, found.at?.replace(/:\d+$/, '') ?? file);
  return explained === undefined ? found : { ...found, ...explained };
}

async function findLoadError(error: unknown, file: string): Promise<LoadError> {
  try {
    return await describe(error, file);
  } catch {
    // Its name is a symbol, or one of its fields a getter that throws.
    return { reason: 'it threw an error that cannot be described while loading' };
  }
}

async function describe(error: unknown, file: string): Promise<LoadError> {
  if (!(error instanceof Error)) return { reason: `it threw ${describeThrown(error)} while loading` };
  if (error instanceof ContractError) {
    const { at, column } = error;
    return { reason: oneLine(error.message), at, ...(column === undefined ? {} : { column }) };
  }
  const stack = typeof error.stack === 'string' ? error.stack : '';
  const text = error.message;
  // esbuild, by way of tsx: "Transform failed with 1 error:\n/path/X.ts:5:0: ERROR: Expected …"
  const transform = /^(\/.*?|[A-Za-z]:\\.*?):(\d+):(\d+): ERROR: (.*)$/m.exec(text);
  if (transform !== null) {
    // It counts bytes, from 0.
    const at = `${transform[1]}:${transform[2]}`;
    return { reason: `SyntaxError: ${transform[4]}`, at, column: 1 + unitsAt(at, Number(transform[3]), unitsOfBytes) };
  }
  const reason = oneLine(`${error.name}: ${text}`);
  // Node's own decoration: "file:///path/x.mjs:1\nimport …\n ^^^^\nSyntaxError: …", or "/path/x.ts:4\n…"
  const decorated = /^((?:file:\/\/)?\/[^\n]*?|[A-Za-z]:\\[^\n]*?):(\d+)\n/.exec(stack);
  if (decorated !== null) {
    const at = `${pathOf(decorated[1] as string)}:${decorated[2]}`;
    const { column } = caretIn(stack);
    // What strips the types draws its caret below the letter as a terminal shows it.
    if (column === undefined || !stack.includes('_TYPESCRIPT_SYNTAX]')) return { reason, at, ...caretIn(stack) };
    return { reason, at, column: 1 + unitsAt(at, column - 1, unitsOfCells) };
  }
  const frame = authorsFrame(stack);
  if (error instanceof SyntaxError && !isFrameOf(frame, file)) {
    return { reason, ...(await locateSyntaxError(file)) };
  }
  const imported = /'([^']+)' imported from (.+)$/m.exec(text);
  if (imported !== null) return { reason, ...placeOfImport(imported[1] as string, (imported[2] as string).trim()) };
  return frame === undefined ? { reason } : { reason, at: `${frame.file}:${frame.line}`, column: Number(frame.column) };
}

/** Columns of a tab there. */
const TAB = 4;

interface Frame {
  readonly file: string;
  readonly line: string;
  readonly column: string;
}

/** The innermost frame of a stack that is the author's own code: neither Node's nor a package's nor this program's. */
export function authorsFrame(stack: string): Frame | undefined {
  for (const text of stack.split('\n')) {
    const frame = frameOf(text);
    // Further out than this program there are only its callers.
    if (frame !== undefined && isOwnFile(frame.file)) return undefined;
    if (frame !== undefined && !frame.file.includes('node_modules')) return frame;
  }
  return undefined;
}

/**
 * `at f (file:///x.ts:1:2)`, `at async /x.ts:1:2`; undefined for places that are no file, such as `node:internal/url:1:2`. Each
 * expression takes linear time, because the message of an error may hold what a client has sent.
 */
function frameOf(text: string): Frame | undefined {
  const [, place = '', line = '', column = ''] = /^ *at (?:async )?(.*):(\d+):(\d+)\)?$/.exec(text) ?? [];
  const file = place.replace(/^.*? \((?=\/|file:|[A-Za-z]:\\)/, '');
  return /^(?:\/|file:|[A-Za-z]:\\)/.test(file) && !file.includes('<anonymous>') ? { file: pathOf(file), line, column } : undefined;
}

/** A path, of a path or of a URL: stacks have both. */
function pathOf(file: string): string {
  try {
    return file.startsWith('file:') ? fileURLToPath(file) : file;
  } catch {
    return file;
  }
}

function isFrameOf(frame: Frame | undefined, file: string): boolean {
  return frame?.file.split('?')[0] === file;
}

function describeThrown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 200)) : value === null ? 'null' : typeof value;
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').slice(0, 500);
}

/** The column of the caret that Node draws under the line it quotes. */
function caretIn(text: string): { column?: number } {
  const caret = /\n([ \t]*)\^/.exec(text);
  return caret === null ? {} : { column: (caret[1] as string).length + 1 };
}

/** Where a file names what is not there; the file alone where that cannot be told. */
function placeOfImport(missing: string, file: string): { at: string; column?: number } {
  try {
    const source = readFileSync(file, 'utf8');
    const name = basename(missing).replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');
    const at = source.search(new RegExp(`(['"])(?:[^'"\n]*/)?${name}\\1`));
    if (at >= 0) return { at: `${file}:${source.slice(0, at).split('\n').length}`, column: at - source.lastIndexOf('\n', at) };
  } catch {
    // It is gone, too.
  }
  return { at: file };
}

/** How much of a line, in UTF-16 units, comes to `size` as `unitsOf` reckons. */
function unitsAt(at: string, size: number, unitsOf: (line: string, size: number) => number): number {
  const [, path = '', number = ''] = /^(.*):(\d+)$/.exec(at) ?? [];
  try {
    return unitsOf(readFileSync(path, 'utf8').split('\n')[Number(number) - 1] ?? '', size);
  } catch {
    return size;
  }
}

function unitsOfBytes(line: string, bytes: number): number {
  return Buffer.from(line).subarray(0, bytes).toString().length;
}

function unitsOfCells(line: string, cells: number): number {
  let [units, cell] = [0, 0];
  for (const letter of line) {
    if (cell >= cells) break;
    cell += letter === '\t' ? TAB - (cell % TAB) : widthOf(letter);
    units += letter.length;
  }
  return units;
}

/** The place of a syntax error; none when the file itself is sound (the mistake is in what it imports). */
function locateSyntaxError(file: string): Promise<Omit<LoadError, 'reason'>> {
  return new Promise((resolve) => {
    execFile(process.execPath, ['--check', file], { timeout: 5000, env: {} }, (_error, _stdout, stderr) => {
      const place = /^(?:file:\/\/)?(.*:\d+)$/m.exec(stderr);
      resolve(place === null ? {} : { at: place[1] as string, ...caretIn(stderr) });
    });
  });
}
