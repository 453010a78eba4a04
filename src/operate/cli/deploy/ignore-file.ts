// Reads `.gatefoldignore`, which names the files of a project that no release needs. The lines are those of .gitignore,
// without negation and character classes. .gitignore itself does not count, because it often names what a build made.
import { join } from 'node:path';
import { explainFailure, unlessMissing } from '../../../base/failure.ts';
import { readSource } from '../../../base/source-file.ts';
import { CommandError } from '../command.ts';

export const IGNORE_FILE = '.gatefoldignore';

/** Returns whether a file or a folder is not sent. @param path relative to the root, with slashes */
export type Ignores = (path: string, isFolder: boolean) => boolean;

/** @throws Error for a file that cannot be read, and for a line in a form that is not read */
export function readIgnoreFile(root: string): Ignores {
  const lines = readText(join(root, IGNORE_FILE)).split('\n');
  const patterns = lines.map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'));
  const unread = patterns.find((pattern) => /^!|[[\]\\]/.test(pattern));
  if (unread !== undefined)
    throw new CommandError(`Cannot read ${IGNORE_FILE}: ${unread} has !, [ or \\. Write names, *, ** and ? alone`);
  const regexps = patterns.map(toRegExp);
  return (path, isFolder) => regexps.some((regexp) => regexp.test(isFolder ? `${path}/` : path));
}

function readText(path: string): string {
  const text = explainFailure(`Cannot read ${path}`, () => unlessMissing(() => readSource(path), ''));
  // PowerShell writes UTF-16 by default, in which no line names a file.
  if (text.includes('\0')) throw new CommandError(`Cannot read ${path}: it is not UTF-8. Save it as UTF-8`);
  return text;
}

/** Without a slash before its end, a pattern holds in each folder; with one, it begins at the root. */
function toRegExp(pattern: string): RegExp {
  const start = pattern.replace(/\/$/, '').includes('/') ? '' : '(?:.*/)?';
  const body = pattern
    .replace(/^\//, '')
    // Two stars beside other characters are one.
    .replaceAll(/(?<=[^/*])\*+|\*+(?=[^/*])/g, '*')
    .replaceAll(/[.+^${}()|]/g, '\\$&')
    .replaceAll(/\*\*\/|\*\*|\*|\?/g, (wildcard) => WILDCARDS[wildcard] as string);
  return new RegExp(`^${start}${body}${pattern.endsWith('/') ? '' : '/?'}$`);
}

const WILDCARDS: Readonly<Record<string, string>> = { '**/': '(?:.*/)?', '**': '.*', '*': '[^/]*', '?': '[^/]' };
