// Turns the error of a failed import into a reason of one line and a place: the file, the line and the column. For a
// syntax error in an imported module, V8 gives no place, so another process compiles the files to find the place.
import { execFile } from 'node:child_process';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { attempt, isError } from '../../base/failure.ts';
import { type LoadErrorCode, LoadRefusal } from '../../base/load-refusal.ts';
import { readSourceOrEmpty } from '../../base/source-file.ts';
import { ContractError } from '../../contract/contract-error.ts';
import type { WantedType } from '../../contract/source/source-error.ts';
import { isOwnFile } from '../../own-files.ts';
import { filesReachedFrom } from './import-scan.ts';
import { explainPackageType, withAdvice } from './load-advice.ts';
import { placesOfPackage } from './resolutions.ts';

export interface Place {
  /** The file and the line of the mistake as `file:line`, or only the file. */
  readonly at?: string;
  /** The column in the line of `at`, from 1. After letters beyond ASCII, it can be wrong: some tools count bytes. */
  readonly column?: number | undefined;
  /** A type that the reader refuses, and that TypeScript can write out (operate/cli/contracts.ts). */
  readonly wanted?: WantedType | undefined;
}

export interface LoadError extends Place {
  readonly code: LoadErrorCode;
  readonly reason: string;
  /** Paths that can be the cause and are not imported, such as package.json. A change of one loads the file again. */
  readonly dueTo: readonly string[];
}

/** @param imported the files that this process has imported so far, in the order of their imports */
export async function describeLoadError(
  error: unknown,
  file: string,
  imported: readonly string[] = [],
): Promise<LoadError> {
  const described = await describeSafely(error, file, imported);
  const failedFile = described.at?.replace(/:\d+$/, '') ?? file;
  const explained = explainPackageType(described.reason, failedFile);
  if (explained !== undefined) return { ...described, reason: explained.reason, dueTo: [explained.dueTo] };
  const dueTo = placesOfPackage(described.reason, failedFile);
  return { ...described, reason: withAdvice(described.reason, failedFile, described), dueTo };
}

type Described = Omit<LoadError, 'dueTo'>;

async function describeSafely(error: unknown, file: string, imported: readonly string[]): Promise<Described> {
  try {
    const described = await describe(error, file, imported);
    const isSyntaxError = described.reason.startsWith('SyntaxError');
    const code = isSyntaxError ? 'SYNTAX_ERROR' : 'IMPORT_FAILED';
    return { ...described, code: error instanceof LoadRefusal ? error.code : code };
  } catch {
    // For example, the name of the error is a symbol, or one of its fields is a getter that throws.
    return { code: 'IMPORT_FAILED', reason: 'it threw an error that cannot be described while loading' };
  }
}

async function describe(error: unknown, file: string, imported: readonly string[]): Promise<Omit<Described, 'code'>> {
  if (!isError(error)) return { reason: `it threw ${describeThrown(error)} while loading` };
  if (error instanceof ContractError) {
    const { message, at, column, wanted } = error;
    return { reason: oneLine(message), at, column, ...(wanted && { wanted }) };
  }
  const stack = typeof error.stack === 'string' ? error.stack : '';
  const text = error.message;
  // An error of esbuild, which tsx uses: "Transform failed with 1 error:\n/path/X.ts:5:0: ERROR: Expected …"
  const [, failedFile, row, columnIndex, fault] = /^(\/.*?|[A-Za-z]:\\.*?):(\d+):(\d+): ERROR: (.*)$/m.exec(text) ?? [];
  if (failedFile !== undefined)
    return { reason: `SyntaxError: ${fault}`, at: `${failedFile}:${row}`, column: 1 + Number(columnIndex) };
  const reason = oneLine(`${error.name}: ${text}`);
  // Node quotes the source: "file:///path/x.mjs:1\nimport …\n ^^^^\nSyntaxError: …", or "/path/x.ts:4\n…"
  const [, quotedFile, line] = /^((?:file:\/\/)?\/[^\n]*?|[A-Za-z]:\\[^\n]*?):(\d+)\n/.exec(stack) ?? [];
  if (quotedFile !== undefined) {
    const path = pathOf(quotedFile);
    const column = caretColumn(stack);
    // Node's type stripping quotes the line with its tabs replaced by spaces (see sourceColumn).
    const isFromTypeStripping = column !== undefined && stack.includes('_TYPESCRIPT_SYNTAX]');
    return {
      reason,
      at: `${path}:${line}`,
      column: isFromTypeStripping ? sourceColumn(path, Number(line), column) : column,
    };
  }
  const frame = authorsFrame(stack);
  if (error instanceof SyntaxError && frame?.file.split('?')[0] !== file) {
    const place = await locateSyntaxError([file, ...lastScripts(imported, file)]);
    // If no file has a syntax error, code that ran has thrown the error: JSON.parse in an imported file, for example.
    return { reason, ...(place.at === undefined ? placeOfFrame(frame) : place) };
  }
  const [, missing, importer] = /'([^']+)' imported from (.+)$/m.exec(text) ?? [];
  if (missing !== undefined && importer !== undefined) return { reason, ...placeOfImport(missing, importer.trim()) };
  return { reason, ...placeOfFrame(frame) };
}

function placeOfFrame(frame: Frame | undefined): Place {
  return frame === undefined ? {} : { at: `${frame.file}:${frame.line}`, column: Number(frame.column) };
}

type Frame = NonNullable<ReturnType<typeof parseFrame>>;

/** Returns the innermost frame of a stack in the author's own code: not in Node, a package or Gatefold. */
export function authorsFrame(stack: string): Frame | undefined {
  for (const text of stack.split('\n')) {
    const frame = parseFrame(text);
    // Gatefold has thrown the error, or has called a package or Node, which threw it. The frames that follow are code
    // that has called Gatefold, so none of them is the place.
    if (frame !== undefined && isOwnFile(frame.file)) return undefined;
    if (frame !== undefined && !frame.file.includes('node_modules')) return frame;
  }
  return undefined;
}

/**
 * Parses a line such as `at f (file:///x.ts:1:2)` or `at async /x.ts:1:2`. Returns undefined for a place that is not in
 * a file, such as `node:internal/url:1:2`. Each regular expression must take linear time, because the message of
 * an error can contain text that a client has sent.
 */
function parseFrame(text: string) {
  const [, functionAndFile = '', line = '', column = ''] = /^ *at (?:async )?(.*):(\d+):(\d+)\)?$/.exec(text) ?? [];
  const file = functionAndFile.replace(/^.*? \((?=\/|file:|[A-Za-z]:\\)/, '');
  return /^(?:\/|file:|[A-Za-z]:\\)/.test(file) && !file.includes('<anonymous>')
    ? { file: pathOf(file), line, column }
    : undefined;
}

/** @param file a path or a file URL. Stacks have both */
function pathOf(file: string): string {
  return attempt(() => (file.startsWith('file:') ? fileURLToPath(file) : file), file);
}

function describeThrown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 200));
  return value === null ? 'null' : typeof value;
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').slice(0, 500);
}

/** Returns the column of the caret that Node draws under the line it quotes. */
function caretColumn(text: string): number | undefined {
  const caret = /\n([ \t]*)\^/.exec(text)?.[1];
  return caret === undefined ? undefined : caret.length + 1;
}

/** Converts the column of a caret. In the quoted line, Node has replaced a tab by spaces up to a multiple of four. */
function sourceColumn(path: string, line: number, caret: number): number {
  const text = readSourceOrEmpty(path).split('\n')[line - 1] ?? '';
  let column = 1;
  for (let quotedColumn = 1; quotedColumn < caret; column++)
    quotedColumn += text[column - 1] === '\t' ? 4 - ((quotedColumn - 1) % 4) : 1;
  return column;
}

/** Returns only the file when its text does not have the name of the missing import. */
function placeOfImport(missing: string, file: string): Place {
  const source = readSourceOrEmpty(file);
  const name = basename(missing).replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  const index = source.search(new RegExp(`(['"])(?:[^'"\n]*/)?${name}\\1`));
  return index < 0
    ? { at: file }
    : { at: `${file}:${source.slice(0, index).split('\n').length}`, column: index - source.lastIndexOf('\n', index) };
}

/** Maximum files, besides the controller, that are checked for a syntax error. Each check starts a process. */
const MAX_CHECKED = 16;

/**
 * Returns the author's scripts among the imported files, the last read first: an import ends at a mistake. Those that
 * `file` imports come before all others, because another controller can be broken, too.
 */
function lastScripts(paths: readonly string[], file: string): string[] {
  const reached = filesReachedFrom(file);
  const isScript = (path: string) => /\.[cm]?[jt]s$/.test(path) && !path.includes('node_modules') && path !== file;
  const scripts = paths.filter(isScript).reverse();
  const others = scripts.filter((path) => !reached.has(path));
  return [...scripts.filter((path) => reached.has(path)), ...others].slice(0, MAX_CHECKED);
}

async function locateSyntaxError(files: readonly string[]): Promise<Place> {
  for (const file of files) {
    const place = await checkSyntax(file);
    if (place.at !== undefined) return place;
  }
  return {};
}

/** `node --check` does not remove types. Their places stay empty, so each place is the same in the source. */
const COMPILE_TYPESCRIPT = `
const source = require('node:fs').readFileSync(process.argv[1], 'utf8');
const code = require('node:module').stripTypeScriptTypes(source);
new (require('node:vm').SourceTextModule)(code, { identifier: process.argv[1] });`;

function checkSyntax(file: string): Promise<Place> {
  const args = /\.[cm]?ts$/.test(file)
    ? ['--experimental-vm-modules', '-e', COMPILE_TYPESCRIPT, file]
    : ['--check', file];
  return new Promise((resolve) => {
    execFile(process.execPath, args, { timeout: 5000, env: {} }, (_error, _stdout, stderr) => {
      // Only the first match is used, because the lines after it have places inside of Node.
      const match = /^(?:file:\/\/)?((?:\/|[A-Za-z]:\\).*:\d+)$/m.exec(stderr);
      resolve(match === null ? {} : { at: match[1] as string, column: caretColumn(stderr) });
    });
  });
}
